//! How much of the store accounts take (decision D71), and which accounts and addresses are refused.

use domain::budget::Budget;
use prometheus::{Gauge, IntGauge, Result};
use telemetry::registrar::Registrar;

/// The guard's gauges.
pub struct RoomMetrics {
    shares: Vec<Gauge>,
    /// Accounts that are refused what makes records.
    pub refused_accounts: IntGauge,
    /// Accounts that wait for `store accept`.
    pub lost_accounts: IntGauge,
    /// Blocked ranges that the store lost.
    pub blocked_kept: IntGauge,
}

impl RoomMetrics {
    pub(super) fn new(metrics: &Registrar) -> Result<Self> {
        Ok(Self {
            shares: metrics.fractions(
                "budget_used_ratio",
                "Share of each budget of records that the account with the most of it has used.",
                "budget",
                Budget::ALL.map(Budget::as_str),
            )?,
            refused_accounts: metrics.gauge(
                "refused_accounts",
                "Accounts that the guard refuses what makes records.",
            )?,
            lost_accounts: metrics.gauge(
                "lost_accounts",
                "Accounts that lost acknowledged writes and are denied until `tollgate-admin store accept`.",
            )?,
            blocked_kept: metrics.gauge(
                "blocked_ranges_kept",
                "Ranges of addresses that the store lost and this server keeps blocked; block them again.",
            )?,
        })
    }

    /// The share of a budget that the account with the most of it has used.
    pub fn fullest(&self, budget: Budget, share: f64) {
        if let Some(gauge) = self.shares.get(budget as usize) {
            gauge.set(share);
        }
    }
}
