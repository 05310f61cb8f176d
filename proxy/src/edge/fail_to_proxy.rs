//! Answers a request that a hook refused with a status; any other failure ends the connection without an answer.

use super::state::EdgeState;
use super::unread;
use pingora::Error;
use pingora::ErrorType::HTTPStatus;
use pingora::protocols::http::ServerSession;
use pingora::proxy::FailToProxy;

/// Answers a head that is too long (431). Nothing is written after a failed write, nor by a process that ends.
pub(super) async fn answer(
    state: Option<&EdgeState>,
    session: &mut ServerSession,
    error: &Error,
) -> FailToProxy {
    let mut error_code = 0;
    if let (HTTPStatus(status), Some(state)) = (error.etype(), state) {
        error_code = *status;
        let reply = unread::reply(&state.metrics, &unread::too_long());
        session.set_keepalive(None);
        // A caller who does not take it has left.
        drop(state.writer.write(session, reply).await);
    }
    FailToProxy {
        error_code,
        can_reuse_downstream: false,
    }
}
