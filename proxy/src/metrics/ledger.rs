//! Money of approved calls: estimates, real costs, and outcomes of settlements and voids.

use domain::money::Nanos;
use store::call::settle::{Settle, Settled};
use store::call::void::Voided;

/// Bucket bounds of the real cost divided by the estimate.
const SHARES: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 2.0, 10.0];
/// Outcomes of a void.
const VOIDED: [&str; 2] = ["refunded", "barred"];

telemetry::metrics! {
    /// Counters of money, in nano-USD.
    #[derive(Debug, Clone)]
    pub struct LedgerMetrics {
        /// Settlements that the store took: done, missing (settled or voided before), mismatch (another estimate).
        settlements: counters("settlements_total", "result", Settled::ALL.map(Settled::as_str)),
        /// Settlements that went to the retry queue.
        settlements_waited: counter("settlements_waited_total"),
        /// Approvals whose answer was lost: refunded (it had charged), barred (it had not and never will).
        voids: counters("voids_total", "result", VOIDED),
        /// Nano-USD estimated for approved calls.
        estimated_nanos: counter("estimated_nanos_total"),
        /// Nano-USD charged in the end.
        charged_nanos: counter("charged_nanos_total"),
        /// Nano-USD that calls cost by the provider's usage.
        actual_nanos: counter("actual_nanos_total"),
        /// Real cost divided by the estimate, of calls with reported usage.
        actual_share: histogram("actual_ratio", &SHARES),
    }
}

impl LedgerMetrics {
    /// Records an approved call that was settled.
    pub(super) fn approved(&self, estimate: Nanos, actual: Option<Nanos>) {
        self.estimated_nanos.inc_by(estimate.get());
        if let Some(actual) = actual {
            self.actual_nanos.inc_by(actual.get());
            if estimate > Nanos::ZERO {
                self.actual_share
                    .observe(actual.as_double() / estimate.as_double());
            }
        }
    }

    /// Records a settlement that the store accepted.
    pub fn settled(&self, settled: Settled, settle: &Settle) {
        self.settlements[settled as usize].inc();
        if matches!(settled, Settled::Done) {
            self.charged_nanos.inc_by(settle.cost.get());
        } else {
            tracing::warn!(
                decision.id = settle.name.allow_id,
                result = settled.as_str(),
                "no matching hold for a settlement: `missing` after a lost reply means that the first attempt settled it"
            );
        }
    }

    /// Records a settlement that went to the retry queue.
    pub fn settlement_waits(&self) {
        self.settlements_waited.inc();
    }

    /// Records a void that the store accepted.
    pub fn voided(&self, voided: Voided) {
        self.voids[usize::from(voided == Voided::Barred)].inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_settlements_are_in_the_order_of_their_outcomes() {
        for (at, settled) in Settled::ALL.into_iter().enumerate() {
            assert_eq!(settled as usize, at, "{settled:?}");
        }
    }
}
