//! The report of one server of the store: its reply to `INFO`, and how far its clock is from this process's.

use crate::clock_difference::ahead_ms;
use crate::info::number;
use crate::{Store, StoreError};

/// What one server reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerReport {
    /// `host:port`, or the path of a socket.
    pub(crate) server: String,
    /// The reply to `INFO`.
    pub(crate) info: String,
    /// How far its clock is ahead of this process's, in ms; negative if it is behind.
    pub(crate) clock_ahead_ms: i64,
}

/// Reads these sections of `INFO`, all if none is named, from every server that answers. The clock needs `server`.
///
/// # Errors
/// [`StoreError`] when none answers.
pub(crate) async fn read(store: &Store, sections: &[&str]) -> Result<Vec<ServerReport>, StoreError> {
    let mut info = redis::cmd("INFO");
    info.arg(sections);
    let sent_ms = clock::now_ms();
    let answers = store.every_node_there(&info).await?;
    let received_ms = clock::now_ms();
    let reports = answers.into_iter().map(|(server, info)| {
        let server_ms = number(&info, "server_time_usec") / 1000;
        ServerReport {
            server,
            info,
            clock_ahead_ms: ahead_ms(server_ms, sent_ms, received_ms),
        }
    });
    Ok(reports.collect())
}
