//! One action of the mock provider.

use super::feed::Feed;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// One action of the mock.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Bytes as they are.
    Send(Vec<u8>),
    /// A piece of a scripted body, which is framed when it is sent.
    Body(Vec<u8>),
    Pause(Duration),
    Wait(Arc<Notify>),
    Feed(Feed),
    Hang,
    Reset,
    BreakOff,
}
