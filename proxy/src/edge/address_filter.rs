//! From where a request comes, before anything else is looked at (decisions D11, D63): whoever has a blocked address is not
//! answered otherwise. Each request is judged by itself, also on a connection that was there before the address was blocked.

use crate::call::Stop;
use crate::gate::Gate;
use crate::reply::refusal::{Refusal, RefusalKind};
use connections::client_address::{UNKNOWN_ADDRESS, client_address, warn_of_untrusted_proxy};
use domain::denial::Denial;
use pingora::protocols::http::ServerSession;
use std::net::IpAddr;
use store::blocked::Verdict;

/// Whether the request may come in, as far as is known without asking anyone: the way of nearly all of them.
pub fn is_free(gate: &Gate, session: &ServerSession) -> bool {
    if let Some(peer) = peer_of(session) {
        let trusted = &gate.settings.network.trusted_proxies;
        warn_of_untrusted_proxy(peer, &session.req_header().headers, trusted);
    }
    gate.blocked.judge(|| client_of(gate, session)) == Verdict::Free
}

/// Turns blocked addresses away, and everybody until it is known which those are.
///
/// # Errors
/// 403 `IP_BLOCKED`, also for a client behind a trusted proxy whose address cannot be read (decision D73); 503.
pub async fn judge(gate: &Gate, session: &ServerSession) -> Result<(), Stop> {
    match gate
        .blocked
        .judge_now(&gate.store, || client_of(gate, session))
        .await
    {
        Verdict::Free => Ok(()),
        Verdict::Blocked => {
            let message = "The operator of this service has blocked your address.";
            Err(Refusal::new(RefusalKind::IpBlocked, message).into())
        }
        Verdict::Unknown => Err(Refusal::new(RefusalKind::IpBlocked, UNKNOWN_ADDRESS).into()),
        Verdict::Unread => Err(Stop::denied(Denial::ServiceUnavailable)),
    }
}

/// The client's address, as far as that is known.
fn client_of(gate: &Gate, session: &ServerSession) -> Option<IpAddr> {
    let peer = peer_of(session)?;
    let trusted = &gate.settings.network.trusted_proxies;
    client_address(peer, &session.req_header().headers, trusted)
}

fn peer_of(session: &ServerSession) -> Option<IpAddr> {
    Some(session.client_addr()?.as_inet()?.ip())
}
