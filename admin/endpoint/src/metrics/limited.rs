//! Requests refused by a limit that holds for every plan (decision D71).

use domain::budget::Budget;
use domain::rate::Rate;
use prometheus::{IntCounterVec, Result};
use telemetry::registrar::Registrar;

/// The technical rates that are counted.
const RATES: [Rate; 2] = [Rate::Test, Rate::Session];

/// Label of requests of accounts that use too much of the store (those in the list of refused accounts).
const STORE_SHARE: &str = "store_share";

/// The counters. Clones share them.
#[derive(Clone)]
pub struct LimitedMetrics {
    refusals: IntCounterVec,
}

impl LimitedMetrics {
    pub(super) fn new(metrics: &Registrar) -> Result<Self> {
        let family = metrics.counter_family(
            "limited_total",
            "Requests refused by test_requests, session_requests, a budget of records by its name, or store_share \
             (the guard).",
            &["limit"],
        )?;
        let rates = RATES.map(label).into_iter();
        let kinds = Budget::ALL.map(Budget::as_str);
        for limit in rates.chain(kinds).chain([STORE_SHARE]) {
            family.with_label_values(&[limit]);
        }
        Ok(Self { refusals: family })
    }

    /// Counts a request that a technical rate refused.
    pub(crate) fn over_rate(&self, rate: Rate) {
        self.refusals.with_label_values(&[label(rate)]).inc();
    }

    /// Counts a request that a budget refused.
    pub fn over_budget(&self, budget: Budget) {
        self.refusals.with_label_values(&[budget.as_str()]).inc();
    }

    /// Records a request to create records that was refused because its account uses too much of the store.
    pub(crate) fn over_store_share(&self) {
        self.refusals.with_label_values(&[STORE_SHARE]).inc();
    }
}

const fn label(rate: Rate) -> &'static str {
    match rate {
        Rate::Session => "session_requests",
        _ => "test_requests",
    }
}
