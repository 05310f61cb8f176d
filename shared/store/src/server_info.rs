//! Memory, persistence, replicas and clocks of the store's servers: one `INFO` from each, read at intervals.

use crate::durability::replicas_online;
use crate::info::{field, number, replica_lines};
use crate::sanity::LOST_WRITES;
use crate::server_report;
use crate::{Store, StoreError};

/// Totals or worst values over all servers of the store.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerInfo {
    /// Servers that answered.
    pub nodes: u64,
    /// Bytes of memory used by all.
    pub memory_used: u64,
    /// Bytes of memory that all servers together may use; 0 if any has no limit.
    pub memory_max: u64,
    /// Used share of memory of the fullest server, from 0 to 1; 0 if none has a limit.
    pub memory_fullest: f64,
    /// True if no server may evict.
    pub never_evicts: bool,
    /// Number of evicted keys: each may have been money.
    pub evicted_keys: u64,
    /// Writes of their append-only files or of their primaries that they left out.
    pub lost_writes: u64,
    /// True if all servers write an append-only file.
    pub aof_enabled: bool,
    /// True if the last write of all append-only files and snapshots succeeded.
    pub persistence_ok: bool,
    /// Times that a write had to wait for the disk.
    pub fsync_delayed: u64,
    /// Number of replicas of the server with the fewest.
    pub replicas_fewest: u64,
    /// Longest time since a replica's last acknowledgement, in seconds.
    pub replica_lag_seconds: u64,
    /// Connections of all callers.
    pub clients: u64,
    /// Commands per second, as the servers measure them.
    pub commands_a_second: u64,
    /// Seconds since the last start of any server.
    pub uptime_seconds: u64,
    /// Each server that reports its time, and by how many seconds its clock is ahead of this process's; negative if it
    /// is behind.
    pub clocks_ahead: Vec<(String, i64)>,
}

/// Queries every server.
///
/// # Errors
/// [`StoreError`] if no server replies.
pub async fn read(store: &Store) -> Result<ServerInfo, StoreError> {
    let reports = server_report::read(store, &[]).await?;
    let clocks = reports
        .iter()
        .filter_map(|report| Some((report.server.clone(), report.clock_ahead_ms? / 1000)));
    let clocks_ahead = clocks.collect();
    let infos: Vec<String> = reports.into_iter().map(|report| report.info).collect();
    Ok(ServerInfo {
        clocks_ahead,
        ..ServerInfo::from_replies(&infos)
    })
}

/// Returns whether a field is `ok`. A field that an older server lacks counts as ok.
fn is_ok(info: &str, name: &str) -> bool {
    field(info, name).is_none_or(|text| text == "ok")
}

/// Returns the largest lag of a replica, in seconds.
fn worst_lag(info: &str) -> u64 {
    let lags = replica_lines(info).filter_map(|line| {
        let lag = line
            .trim()
            .split(',')
            .find_map(|part| part.strip_prefix("lag="))?;
        lag.parse().ok()
    });
    lags.max().unwrap_or(0)
}

impl ServerInfo {
    /// Parses the replies to `INFO`.
    pub(crate) fn from_replies(infos: &[String]) -> Self {
        let sum = |name: &str| infos.iter().map(|info| number(info, name)).sum();
        let least = |name: &str| {
            infos
                .iter()
                .map(|info| number(info, name))
                .min()
                .unwrap_or_default()
        };
        let all = |holds: fn(&str) -> bool| !infos.is_empty() && infos.iter().all(|info| holds(info));
        let unlimited = infos.iter().any(|info| number(info, "maxmemory") == 0);
        Self {
            nodes: infos.len() as u64,
            memory_used: sum("used_memory"),
            memory_max: if unlimited { 0 } else { sum("maxmemory") },
            memory_fullest: infos.iter().map(|info| fullness(info)).fold(0.0, f64::max),
            never_evicts: all(|info| field(info, "maxmemory_policy") == Some("noeviction")),
            evicted_keys: sum("evicted_keys"),
            lost_writes: sum(LOST_WRITES),
            aof_enabled: all(|info| field(info, "aof_enabled") == Some("1")),
            persistence_ok: all(|info| {
                [
                    "aof_last_write_status",
                    "aof_last_bgrewrite_status",
                    "rdb_last_bgsave_status",
                ]
                .iter()
                .all(|name| is_ok(info, name))
            }),
            fsync_delayed: sum("aof_delayed_fsync"),
            replicas_fewest: infos
                .iter()
                .map(|info| replicas_online(info))
                .min()
                .unwrap_or_default(),
            replica_lag_seconds: infos.iter().map(|info| worst_lag(info)).max().unwrap_or(0),
            clients: sum("connected_clients"),
            commands_a_second: sum("instantaneous_ops_per_sec"),
            uptime_seconds: least("uptime_in_seconds"),
            clocks_ahead: Vec::new(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn fullness(info: &str) -> f64 {
    match number(info, "maxmemory") {
        0 => 0.0,
        most => number(info, "used_memory") as f64 / most as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(used: u64, max: u64, aof: &str, replicas: &str) -> String {
        let head = format!("# Memory\r\nused_memory:{used}\r\nused_memory_human:1M\r\nmaxmemory:{max}\r\n");
        let rest = format!(
            "maxmemory_policy:noeviction\r\naof_enabled:1\r\naof_last_write_status:{aof}\r\naof_delayed_fsync:2\r\n"
        );
        format!(
            "{head}{rest}connected_clients:3\r\nuptime_in_seconds:50\r\nevicted_keys:0\r\nunexpected_error_replies:2\r\n{replicas}"
        )
    }

    #[test]
    fn several_servers_are_summed_and_the_worst_is_reported() {
        let two = "connected_slaves:2\r\nslave0:ip=10.0.0.1,port=1,state=online,offset=5,lag=0\r\n\
                   slave1:ip=10.0.0.2,port=1,state=online,offset=5,lag=7\r\n";
        let one = "connected_slaves:1\r\nslave0:ip=10.0.0.3,port=1,state=online,offset=5,lag=1\r\n";
        let totals = ServerInfo::from_replies(&[info(10, 100, "ok", two), info(90, 100, "ok", one)]);
        assert_eq!(
            (totals.nodes, totals.memory_used, totals.memory_max),
            (2, 100, 200)
        );
        assert!((totals.memory_fullest - 0.9).abs() < 1e-9);
        assert_eq!((totals.replicas_fewest, totals.replica_lag_seconds), (1, 7));
        assert!(totals.never_evicts && totals.aof_enabled && totals.persistence_ok);
        assert_eq!(
            (totals.clients, totals.uptime_seconds, totals.fsync_delayed),
            (6, 50, 4)
        );
        assert_eq!((totals.lost_writes, totals.evicted_keys), (4, 0));
    }

    #[test]
    fn one_bad_server_is_enough() {
        let bad = info(10, 0, "err", "").replace("noeviction", "allkeys-lru");
        let totals = ServerInfo::from_replies(&[info(10, 100, "ok", ""), bad]);
        assert!(!totals.never_evicts && !totals.persistence_ok && totals.aof_enabled);
        assert_eq!(totals.memory_max, 0, "one without a limit has no sum");
        assert!(!ServerInfo::from_replies(&[]).aof_enabled && !ServerInfo::from_replies(&[]).never_evicts);
    }
}
