//! Twin of `reap.lua`, and the sweep over a bucket that executes it: holds past their deadline become kept holds.

use crate::call::hold::{END_HOLD, EndKeys, Hold};
use crate::keys::Bucket;
use crate::script::{script, with_fragments};
use crate::{Store, StoreError};
use domain::entry::EndedBy;
use std::time::Duration;

script! {
    /// Turns a hold past its deadline into a kept one.
    pub static REAP = "reap",
    kind: Timed,
    source: [&with_fragments(include_str!("reap.lua"), &[END_HOLD])],
    when_full: Run,
    keys: EndKeys,
    /// The life of a kept hold is in ms. `ended_by` is the word of [`EndedBy`].
    args: struct ReapArgs<'a>: &'a str { allow_id, kept_life, ended_by },
}

/// Time for which a kept hold can be listed and corrected: 34 days, within the lifetime of the run and the counters
/// that it was charged to.
pub const KEPT_LIFE: Duration = Duration::from_secs(34 * 24 * 3600);

/// Maximum number of holds in one sweep of a bucket.
pub(crate) const SWEEP_LIMIT: usize = 100;

domain::words! {
    /// Outcome of reaping a hold.
    pub enum Reaped {
        /// The hold is kept: its estimate stays charged.
        Kept = "kept",
        /// Its deadline has not passed; nothing changed.
        Early = "early",
        /// It was already settled or voided.
        Gone = "gone",
    }
}

/// Turns one overdue hold into a kept one.
///
/// # Errors
/// [`StoreError`]; the next sweep retries.
pub async fn reap(store: &Store, hold: &Hold) -> Result<Reaped, StoreError> {
    let keys = hold.name.keys();
    let args = ReapArgs {
        allow_id: &hold.name.allow_id,
        kept_life: &KEPT_LIFE.as_millis().to_string(),
        ended_by: &EndedBy::Worker.to_word(),
    };
    let mut reply = store.reply(&REAP, keys.to_end(), args).await?;
    reply.parsed(Reaped::parse)
}

/// Reaps the holds of a bucket that are overdue at `now_ms`. Returns those that were kept.
///
/// # Errors
/// [`StoreError`]; holds already reaped stay reaped.
pub async fn sweep(store: &Store, bucket: Bucket, now_ms: u64) -> Result<Vec<Hold>, StoreError> {
    let mut due = redis::cmd("ZRANGEBYSCORE");
    due.arg(bucket.due())
        .arg("-inf")
        .arg(now_ms)
        .arg("LIMIT")
        .arg(0)
        .arg(SWEEP_LIMIT);
    let ids: Vec<String> = store.command(&due).await?;
    let mut kept = Vec::new();
    for id in ids {
        let text: Option<String> = store.command(redis::cmd("GET").arg(bucket.hold(&id))).await?;
        match text.and_then(|text| Hold::parse(&id, &text)) {
            Some(hold) if reap(store, &hold).await? == Reaped::Kept => kept.push(hold),
            Some(_) => {}
            None => {
                let _: i64 = store
                    .command(redis::cmd("ZREM").arg(bucket.due()).arg(&id))
                    .await?;
            }
        }
    }
    Ok(kept)
}
