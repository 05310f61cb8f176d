//! Filter of client addresses, applied before anything else of a request is read (decisions D11, D63). Each request is
//! checked, so a blocked address also loses its open connections.

use crate::call::rejection::Rejection;
use crate::reply::refusal::{Refusal, RefusalKind};
use connections::client_address::{UNKNOWN_ADDRESS, client_address, warn_of_untrusted_proxy};
use ipnet::IpNet;
use pingora::protocols::http::ServerSession;
use std::net::IpAddr;
use std::sync::Arc;
use store::Store;
use store::blocked::{BlockStatus, BlockedCopy};

/// Filters client addresses.
pub struct AddressFilter {
    /// The last copy of the list.
    pub blocked: Arc<BlockedCopy>,
    /// Read until the first copy of the list has arrived.
    pub store: Store,
    /// `network.trusted_proxies`
    pub trusted_proxies: Vec<IpNet>,
}

impl AddressFilter {
    /// Returns whether the address is known not to be blocked. True for nearly every request; never reads the store.
    pub fn is_free(&self, session: &ServerSession) -> bool {
        if let Some(peer) = peer_of(session) {
            warn_of_untrusted_proxy(peer, &session.req_header().headers, &self.trusted_proxies);
        }
        self.blocked.judge(|| self.client_of(session)) == BlockStatus::Free
    }

    /// Rejects blocked addresses, and every address until the list was read once.
    ///
    /// # Errors
    /// 403 `IP_BLOCKED`, also if the client's address behind a trusted proxy cannot be read (decision D73); 503.
    pub async fn check(&self, session: &ServerSession) -> Result<(), Rejection> {
        let verdict = self.blocked.judge_now(&self.store, || self.client_of(session));
        match verdict.await {
            BlockStatus::Free => Ok(()),
            BlockStatus::Blocked => {
                let message = "The operator of this service has blocked your address.";
                Err(Refusal::new(RefusalKind::IpBlocked, message).into())
            }
            BlockStatus::Unknown => Err(Refusal::new(RefusalKind::IpBlocked, UNKNOWN_ADDRESS).into()),
            BlockStatus::Unread => Err(Rejection::unavailable()),
        }
    }

    /// Returns the address of the caller; `None` if it is unknown.
    pub(super) fn client_of(&self, session: &ServerSession) -> Option<IpAddr> {
        let peer = peer_of(session)?;
        client_address(peer, &session.req_header().headers, &self.trusted_proxies)
    }
}

/// Returns the address of the connection.
pub(super) fn peer_of(session: &ServerSession) -> Option<IpAddr> {
    Some(session.client_addr()?.as_inet()?.ip())
}
