//! The accounts' usage of the store (decision D71), and refused accounts and addresses.

use domain::budget::Budget;

telemetry::metrics! {
    /// The guard's gauges.
    pub struct RoomMetrics {
        /// Share of each budget of records that the account with the most of it has used.
        shares: fractions("budget_used_ratio", "budget", Budget::ALL.map(Budget::as_str)),
        /// Accounts that the guard lets create no more records.
        pub refused_accounts: gauge("refused_accounts"),
        /// Accounts that lost acknowledged writes and are denied until `tollgate-admin store accept`.
        pub lost_accounts: gauge("lost_accounts"),
        /// Ranges of addresses that the store lost and this server keeps blocked; block them again.
        pub blocked_kept: gauge("blocked_ranges_kept"),
    }
}

impl RoomMetrics {
    /// Records the used share of a budget of the account with the highest one.
    pub fn fullest(&self, budget: Budget, share: f64) {
        if let Some(gauge) = self.shares.get(budget as usize) {
            gauge.set(share);
        }
    }
}
