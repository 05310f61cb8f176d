//! The report of one server of the store: its reply to `INFO`, and the difference of its clock from this process's.

use crate::clock_difference::ahead_ms;
use crate::info::field;
use crate::{Store, StoreError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerReport {
    /// `host:port`, or the path of a socket.
    pub(crate) server: String,
    /// The reply to `INFO`.
    pub(crate) info: String,
    /// Lead of its clock over this process's, in ms; negative if it is behind. `None` if it does not report its time.
    pub(crate) clock_ahead_ms: Option<i64>,
}

impl ServerReport {
    /// Reads the time in a reply to an `INFO` that was sent and received at these times.
    fn new(server: String, info: String, sent_ms: u64, received_ms: u64) -> Self {
        let server_us: Option<u64> = field(&info, "server_time_usec").and_then(|text| text.parse().ok());
        let clock_ahead_ms = server_us.map(|micros| ahead_ms(micros / 1000, sent_ms, received_ms));
        Self {
            server,
            info,
            clock_ahead_ms,
        }
    }
}

/// Reads these sections of `INFO`, all if none is named, from every server that replies. The clock needs `server`.
///
/// # Errors
/// [`StoreError`] if no server replies.
pub(crate) async fn read(store: &Store, sections: &[&str]) -> Result<Vec<ServerReport>, StoreError> {
    let mut info = redis::cmd("INFO");
    info.arg(sections);
    let sent_ms = clock::now_ms();
    let answers = store.every_node_there(&info).await?;
    let received_ms = clock::now_ms();
    let reports = answers
        .into_iter()
        .map(|(server, info)| ServerReport::new(server, info, sent_ms, received_ms));
    Ok(reports.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_time_is_neither_ahead_nor_behind() {
        for (info, ahead_ms) in [
            ("server_time_usec:5000000\r\n", Some(4_000)),
            ("server_time_usec:0\r\n", Some(-1_000)),
            ("server_time_usec:soon\r\n", None),
            ("uptime_in_seconds:7\r\n", None),
        ] {
            let report = ServerReport::new("s:1".to_owned(), info.to_owned(), 1_000, 1_000);
            assert_eq!(report.clock_ahead_ms, ahead_ms, "{info}");
        }
    }
}
