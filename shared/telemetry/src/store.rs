//! Store metrics: queried every few seconds in the background, never by a call.

use super::registrar::{level, raise};
use std::time::Duration;
use store::error_counters::{self, FailureKind};
use store::server_info::{self, ServerInfo};
use store::{Store, sanity};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Pause between two queries.
pub const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Pause between two reads of the store's certificate, each on a connection of its own.
const CERTIFICATE_EVERY: Duration = Duration::from_secs(60);
/// Upper ends of the buckets of the store's round trip, in seconds.
const ROUND_TRIPS: [f64; 9] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0];

crate::metrics! {
    /// The store's metrics.
    #[derive(Debug, Clone)]
    pub struct StoreMetrics {
        /// 1 while the store answered the last check.
        up: gauge("store_up"),
        /// 1 while the store has its ledger epoch.
        epoch_ok: gauge("store_epoch_ok"),
        /// 1 while a restored store is not accepted: every call is denied.
        restored: gauge("store_restored"),
        /// Round trip of one small command, every five seconds.
        round_trip: histogram("store_round_trip_seconds", &ROUND_TRIPS),
        /// Commands to the store without a usable answer: timeout, broken (the connection was lost and is made anew),
        /// unreachable, refused, nonsense.
        errors: counters("store_errors_total", "kind", FailureKind::ALL.map(FailureKind::as_str)),
        /// Servers of the store that answered the last check.
        nodes: gauge("store_nodes"),
        /// Memory that the store's servers use, together.
        memory_used: gauge("store_memory_used_bytes"),
        /// maxmemory of the store's servers, together; 0 when one has no limit.
        memory_max: gauge("store_memory_max_bytes"),
        /// Share of its maxmemory that the fullest server uses; 0 when none has a limit.
        memory_fullest: fraction("store_memory_used_ratio"),
        /// 1 while no server may evict keys.
        never_evicts: gauge("store_noeviction"),
        /// Keys that the servers evicted since they started.
        evicted: gauge("store_evicted_keys"),
        /// Writes of their files or primaries that the servers left out since they started: every call is denied.
        lost_writes: gauge("store_lost_writes"),
        /// 1 while all servers write an append-only file.
        aof_enabled: gauge("store_aof_enabled"),
        /// 1 while the last write of every append-only file and snapshot succeeded.
        persistence_ok: gauge("store_persistence_ok"),
        /// Writes that had to wait for the disk since the servers started.
        fsync_delayed: gauge("store_fsync_delayed"),
        /// Replicas of the server with the fewest.
        replicas: gauge("store_replicas"),
        /// Longest silence of a replica.
        replica_lag: gauge("store_replica_lag_seconds"),
        /// Connections of all callers to the store's servers.
        clients: gauge("store_clients"),
        /// Commands a second, as the servers count them.
        commands: gauge("store_commands_per_second"),
        /// Seconds since the last start of a server.
        uptime: gauge("store_uptime_seconds"),
        /// End of the certificate that the store presents to new connections (rediss://), in seconds since 1970; 0
        /// without TLS.
        certificate_ends: gauge("store_certificate_expires_timestamp_seconds"),
        /// Lead of a server's clock over this process's; below 0 if it is behind.
        clock_difference: gauge_family("store_clock_difference_seconds", &["server"]),
    }
}

impl StoreMetrics {
    /// Queries the store until the process ends.
    pub async fn follow(self, store: Store) {
        let mut ticks = interval(LOOK_EVERY);
        let mut certificate_ticks = interval(CERTIFICATE_EVERY);
        for ticks in [&mut ticks, &mut certificate_ticks] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                _ = ticks.tick() => self.refresh_server_info(&store).await,
                _ = certificate_ticks.tick() => self.refresh_certificate(&store).await,
            }
        }
    }

    /// Keeps the last known end while the store is away.
    async fn refresh_certificate(&self, store: &Store) {
        if let Some(ends_s) = store.certificate_ends_s().await {
            self.certificate_ends.set(ends_s);
        }
    }

    async fn refresh_server_info(&self, store: &Store) {
        let began = Instant::now();
        let record = sanity::record(store).await;
        let answered = !record.as_ref().is_err_and(sanity::UntrustedStore::is_unreachable);
        if answered {
            self.round_trip.observe(began.elapsed().as_secs_f64());
            let is_lost = matches!(record, Err(sanity::UntrustedStore::NoEpoch));
            let is_restored = matches!(record, Err(sanity::UntrustedStore::Restored(_)));
            self.epoch_ok.set(i64::from(!is_lost));
            self.restored.set(i64::from(is_restored));
        }
        let seen = server_info::read(store).await;
        let is_up = answered && seen.is_ok();
        if let Ok(seen) = seen {
            self.take_in(&seen);
        }
        // Set last: while it is 0 the others are unset, and the alert rules ignore them.
        self.up.set(i64::from(is_up));
    }

    fn take_in(&self, seen: &ServerInfo) {
        self.memory_fullest.set(seen.memory_fullest);
        for (gauge, value) in [
            (&self.nodes, seen.nodes),
            (&self.memory_used, seen.memory_used),
            (&self.memory_max, seen.memory_max),
            (&self.never_evicts, seen.never_evicts.into()),
            (&self.evicted, seen.evicted_keys),
            (&self.lost_writes, seen.lost_writes),
            (&self.aof_enabled, seen.aof_enabled.into()),
            (&self.persistence_ok, seen.persistence_ok.into()),
            (&self.fsync_delayed, seen.fsync_delayed),
            (&self.replicas, seen.replicas_fewest),
            (&self.replica_lag, seen.replica_lag_seconds),
            (&self.clients, seen.clients),
            (&self.commands, seen.commands_a_second),
            (&self.uptime, seen.uptime_seconds),
        ] {
            gauge.set(level(value));
        }
        // Servers that have left have no series.
        self.clock_difference.reset();
        for (server, ahead) in &seen.clocks_ahead {
            self.clock_difference.with_label_values(&[server]).set(*ahead);
        }
    }

    /// Updates the counters at a scrape.
    pub fn refresh(&self) {
        for (counter, count) in self.errors.iter().zip(error_counters::counts()) {
            raise(counter, count);
        }
    }
}
