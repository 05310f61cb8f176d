//! Twin of `notice.lua`: notices of thresholds, each recorded once for an agent, limit and period. A notice is not an
//! audit entry, since it follows from existing entries.

use crate::keys::Realm;
use crate::script::script;
use crate::{Store, StoreError};
use domain::period::{DAY_MS, Period};
use domain::reason::Reset;
use domain::threshold::{Threshold, Watched};

script! {
    /// Records a notice, once.
    pub static NOTICE = "threshold_notice",
    kind: Timed,
    source: [include_str!("notice.lua")],
    when_full: Refuse,
    keys: struct NoticeKeys<'a>: &'a str { notices },
    args: struct NoticeArgs<'a>: &'a str { field, kept_until },
}

/// Time for which the notices of a period are kept after its end, in ms.
const KEPT_MS: u64 = DAY_MS;
/// Notices read in one round trip.
const CHUNK: usize = 500;
/// Represents the account in place of an agent. No agent id can have this form.
const ACCOUNT: &str = "*";

/// Subject of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice<'a> {
    /// Watched limit: a cap, or the tracked spend of the plan.
    pub watched: Watched,
    /// The reached share of the limit.
    pub threshold: Threshold,
    /// The agent; `None` for the account's plan.
    pub agent: Option<&'a str>,
}

impl Notice<'_> {
    /// Records the notice at `at_ms`, a time in the period that it counts for. Returns whether it is the first one.
    ///
    /// # Errors
    /// [`StoreError`]; safe to retry, but a retry after a lost reply returns false.
    pub async fn record(&self, store: &Store, realm: &Realm, at_ms: u64) -> Result<bool, StoreError> {
        let ends_ms = self.watched.reset().after(at_ms).unwrap_or(at_ms);
        let kept_until = (ends_ms.saturating_add(KEPT_MS) / 1000).to_string();
        let keys = NoticeKeys {
            notices: &self.key(realm, Period::at(at_ms)),
        };
        let args = NoticeArgs {
            field: &self.field(),
            kept_until: &kept_until,
        };
        let reply = store.reply(&NOTICE, keys, args).await?;
        reply.is("noticed", &["known"])
    }

    /// Reads when each of some notices was recorded in its present period, in ms since 1970.
    pub async fn recorded_at(
        notices: &[Self],
        store: &Store,
        realm: &Realm,
        period: Period,
    ) -> Result<Vec<Option<u64>>, StoreError> {
        let mut found = Vec::with_capacity(notices.len());
        for some in notices.chunks(CHUNK) {
            let fields = some
                .iter()
                .map(|notice| (notice.key(realm, period), notice.field()));
            let times: Vec<Option<u64>> = store.each("HGET", fields).await?;
            found.extend(times);
        }
        Ok(found)
    }

    fn key(&self, realm: &Realm, period: Period) -> String {
        match self.watched.reset() {
            Reset::Month => realm.notices(&format!("m{}", period.month)),
            Reset::Day | Reset::Minute | Reset::Never => realm.notices(&format!("d{}", period.day)),
        }
    }

    fn field(&self) -> String {
        let (watched, threshold) = (self.watched.as_str(), self.threshold.as_str());
        format!("{watched} {threshold} {}", self.agent.unwrap_or(ACCOUNT))
    }
}
