//! Answers a request that a hook refused with a status. After any other failure the connection closes without an
//! answer.

use super::address_filter::peer_of;
use super::refused_head;
use super::state::EdgeState;
use connections::request_head;
use pingora::Error;
use pingora::ErrorType::HTTPStatus;
use pingora::protocols::http::ServerSession;
use pingora::proxy::FailToProxy;

/// Answers a head that is too long (431) or malformed (400). Writes nothing after a failed write, or in a process that
/// is ending.
pub(super) async fn answer(
    state: Option<&EdgeState>,
    session: &mut ServerSession,
    error: &Error,
) -> FailToProxy {
    let mut error_code = 0;
    if let (HTTPStatus(status), Some(state)) = (error.etype(), state) {
        error_code = *status;
        let request = session.req_header();
        let refusal = match request_head::check(request.version, &request.headers) {
            Err(malformed) if error_code == 400 => refused_head::malformed(malformed),
            _ => refused_head::too_long(),
        };
        let reply = refused_head::reply(&state.metrics, peer_of(session), &refusal);
        session.set_keepalive(None);
        // A caller who does not read the answer has disconnected.
        drop(state.writer.write(session, reply).await);
    }
    FailToProxy {
        error_code,
        can_reuse_downstream: false,
    }
}
