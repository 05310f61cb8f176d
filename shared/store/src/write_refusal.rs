//! Detects a store whose servers refuse every write, by their replies to `INFO`: a server is full, its append-only file
//! failed, it is a replica, or it lacks replicas. Such a store can be trusted and read. It refuses writes before any
//! effect, so that every call is denied. The check writes nothing.

use crate::info::{field, number};
use crate::server_report::ServerReport;
use parking_lot::{Mutex, MutexGuard};

/// Sections of `INFO` that report it.
pub(crate) const SECTIONS: [&str; 3] = ["memory", "persistence", "replication"];

/// Checks in a row that must agree before [`SteadyRefusal`] changes: a server at the border of its memory refuses and
/// accepts by turns.
const CHECKS_IN_A_ROW: u32 = 3;

/// Why a server refuses every write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store takes no writes: {server} {why} ({})", .code.as_str())]
pub struct WriteRefusal {
    /// `host:port`, or the path of a socket.
    server: String,
    /// The error code of a write.
    pub code: WriteRefusalCode,
    /// The server's report.
    why: String,
}

domain::words! {
    /// The error code with which a server refuses a write.
    pub enum WriteRefusalCode {
        /// It is a replica.
        ReadOnly = "READONLY",
        /// Its append-only file could not be written.
        Misconf = "MISCONF",
        /// It requires replicas (`min-replicas-to-write`) and none is in sync.
        NoReplicas = "NOREPLICAS",
        /// It uses more than `maxmemory`.
        OutOfMemory = "OOM",
    }
}

impl WriteRefusal {
    /// Checks the report of a server; `None` if it accepts writes, according to its report.
    ///
    /// `min-replicas-to-write` itself is not reported, so too few replicas are detected only if none is in sync.
    pub(crate) fn from_report(report: &ServerReport) -> Option<Self> {
        let info = report.info.as_str();
        let is_replica = field(info, "role") == Some("slave");
        let (used, free_of_charge) = (
            number(info, "used_memory"),
            number(info, "mem_not_counted_for_evict"),
        );
        let (used, most) = (used.saturating_sub(free_of_charge), number(info, "maxmemory"));
        let (code, why) = if is_replica && field(info, "slave_read_only") == Some("1") {
            (WriteRefusalCode::ReadOnly, "is a read-only replica".to_owned())
        } else if field(info, "aof_enabled") == Some("1")
            && field(info, "aof_last_write_status") == Some("err")
        {
            (
                WriteRefusalCode::Misconf,
                "could not write its append-only file".to_owned(),
            )
        } else if !is_replica && field(info, "min_slaves_good_slaves") == Some("0") {
            (
                WriteRefusalCode::NoReplicas,
                "has no replica in step, and min-replicas-to-write demands some".to_owned(),
            )
        } else if most > 0 && used > most {
            let why = format!("uses {used} bytes of a maxmemory of {most}");
            (WriteRefusalCode::OutOfMemory, why)
        } else {
            return None;
        };
        Some(Self {
            server: report.server.clone(),
            code,
            why,
        })
    }
}

/// The refusal that successive checks agree on.
#[derive(Debug, Default)]
pub struct SteadyRefusal {
    state: Mutex<RefusalState>,
}

#[derive(Debug, Default)]
struct RefusalState {
    is_known: bool,
    current: Option<WriteRefusal>,
    /// Checks in a row that contradicted it.
    contradicted: u32,
}

impl SteadyRefusal {
    /// Returns why the store accepts no writes.
    pub fn current(&self) -> Option<WriteRefusal> {
        self.state().current.clone()
    }

    /// Records the result of a check. Logs a change.
    pub fn record(&self, found: Option<&WriteRefusal>) {
        let mut state = self.state();
        if state.current.is_some() == found.is_some() {
            state.contradicted = 0;
            // With the numbers of now.
            state.current = found.cloned();
            state.is_known = true;
            return;
        }
        state.contradicted += 1;
        if state.is_known && state.contradicted < CHECKS_IN_A_ROW {
            return;
        }
        match found {
            Some(refusal) => tracing::error!(reason = %refusal, "calls and changes are refused"),
            None => tracing::info!("the store takes writes again"),
        }
        *state = RefusalState {
            is_known: true,
            current: found.cloned(),
            contradicted: 0,
        };
    }

    fn state(&self) -> MutexGuard<'_, RefusalState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(info: &str) -> Option<WriteRefusal> {
        WriteRefusal::from_report(&ServerReport {
            server: "s:1".to_owned(),
            info: info.replace(' ', "\r\n"),
            clock_ahead_ms: None,
        })
    }

    #[test]
    fn a_server_says_that_it_takes_no_writes() {
        for (info, code) in [
            ("role:master used_memory:9 maxmemory:0", None),
            ("role:master used_memory:100 maxmemory:100", None),
            (
                "role:master used_memory:101 maxmemory:100",
                Some(WriteRefusalCode::OutOfMemory),
            ),
            (
                "role:master used_memory:101 mem_not_counted_for_evict:1 maxmemory:100",
                None,
            ),
            ("aof_enabled:1 aof_last_write_status:ok", None),
            (
                "aof_enabled:1 aof_last_write_status:err",
                Some(WriteRefusalCode::Misconf),
            ),
            ("aof_enabled:0 aof_last_write_status:err", None),
            ("role:slave slave_read_only:1", Some(WriteRefusalCode::ReadOnly)),
            ("role:slave slave_read_only:0", None),
            ("role:master min_slaves_good_slaves:1", None),
            (
                "role:master min_slaves_good_slaves:0",
                Some(WriteRefusalCode::NoReplicas),
            ),
            ("role:slave min_slaves_good_slaves:0", None),
        ] {
            let refusal = refusal(info);
            assert_eq!(refusal.as_ref().map(|refusal| refusal.code), code, "{info}");
            if let Some(refusal) = refusal {
                let text = refusal.to_string();
                assert!(
                    text.contains("s:1") && text.contains(refusal.code.as_str()),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn a_server_at_the_border_changes_nothing() {
        let full = refusal("used_memory:101 maxmemory:100");
        let fuller = refusal("used_memory:102 maxmemory:100");
        let steady = SteadyRefusal::default();
        steady.record(full.as_ref());
        assert_eq!(steady.current(), full, "the first check counts");
        for _ in 0..9 {
            for found in [None, None, fuller.as_ref()] {
                steady.record(found);
                assert!(steady.current().is_some());
            }
        }
        assert_eq!(steady.current(), fuller);
        for left in (0..CHECKS_IN_A_ROW).rev() {
            steady.record(None);
            assert_eq!(steady.current().is_none(), left == 0);
        }
        for _ in 0..9 {
            for found in [full.as_ref(), full.as_ref(), None] {
                steady.record(found);
                assert_eq!(steady.current(), None);
            }
        }
        for left in (0..CHECKS_IN_A_ROW).rev() {
            steady.record(full.as_ref());
            assert_eq!(steady.current().is_some(), left == 0);
        }
    }
}
