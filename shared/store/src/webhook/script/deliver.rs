//! Twins of `take.lua`, `finish.lua` and `release.lua`: one server at a time delivers to a webhook.

use super::{READY, TRIM, WebhookLocation};
use crate::connection::batch::Batch;
use crate::keys::{Bucket, DeliverySet};
use crate::read::Read;
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::webhook::delivery::Delivery;
use crate::{Store, StoreError};
use std::time::Duration;

script! {
    /// Leases a webhook and takes deliveries.
    pub static TAKE = "webhook_take",
    kind: Timed,
    source: [READY, include_str!("../take.lua")],
    when_full: Run,
    keys: struct TakeKeys: String { account, ready, webhook, due, parked, deliveries },
    /// Times are in ms.
    args: struct TakeArgs<'a>: &'a str { mode, member, token, lease_life, deliveries_max, farthest },
}

script! {
    /// Records the outcome of an attempt.
    pub static FINISH = "webhook_finish",
    kind: Timed,
    source: [TRIM, include_str!("../finish.lua")],
    when_full: Run,
    keys: struct FinishKeys: String { account, due, parked, deliveries, delivered, failed },
    /// `before` and `after` are texts of the delivery; `pause` is in ms.
    args: struct FinishArgs<'a>: &'a str { mode, number, before, after, outcome, pause, history_max },
}

script! {
    /// Ends a lease.
    pub static RELEASE = "webhook_release",
    kind: Timed,
    source: [READY, include_str!("../release.lua")],
    when_full: Run,
    keys: struct ReleaseKeys: String { account, ready, webhook, due, parked },
    args: struct ReleaseArgs<'a>: &'a str { mode, member, token },
}

/// A lease of a webhook. Its holder is the process that knows `token`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Account, mode and id of the webhook.
    pub endpoint: WebhookLocation,
    /// Random token of the holder.
    pub token: String,
    /// Lifetime from each renewal.
    pub life: Duration,
    /// Longest delay of a delivery.
    pub farthest: Duration,
}

/// Due deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The store's clock, in ms since 1970.
    pub now_ms: u64,
    /// URL of the receiver.
    pub url: String,
    /// The sealed secret.
    pub secret: String,
    /// Previous secret, if there is one.
    pub old_secret: Option<String>,
    /// Expiry of the previous secret, in ms since 1970.
    pub old_until_ms: u64,
    /// Numbers and texts, in order of delivery.
    pub deliveries: Vec<(String, String)>,
}

/// Outcome of renewing a lease and taking deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakeOutcome {
    /// The lease is held; with the due deliveries.
    Taken(Box<Taken>),
    /// Nothing is due; the lease is released.
    Idle,
    /// Another server has the lease.
    Held,
    /// The webhook is deleted or disabled.
    Gone,
}

/// Next step after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterAttempt {
    /// None: the delivery was accepted.
    Delivered,
    /// None: this was the last attempt.
    Failed,
    /// Another attempt after a pause.
    Retry(Duration),
    /// Another attempt at a later event.
    Park,
}

/// Arguments that record an attempt.
#[derive(Debug)]
pub struct AttemptOutcome<'a> {
    /// Number of the delivery.
    pub number: &'a str,
    /// Stored text, as read before the attempt.
    pub before: &'a str,
    /// Replaces the text if it is still `before`.
    pub after: &'a Delivery,
    /// Next step.
    pub next: AfterAttempt,
}

impl Lease {
    /// Takes or renews the lease, and takes at most `most` deliveries.
    ///
    /// # Errors
    /// [`StoreError`]; the lease may be taken.
    pub async fn take(&self, store: &Store, most: usize) -> Result<TakeOutcome, StoreError> {
        let WebhookLocation { realm, webhook } = &self.endpoint;
        let set = |set| realm.deliveries_in(webhook, set);
        let keys = TakeKeys {
            account: realm.record(),
            ready: realm.bucket().webhooks_ready(),
            webhook: realm.webhook(webhook),
            due: set(DeliverySet::Due),
            parked: set(DeliverySet::Parked),
            deliveries: realm.deliveries(webhook),
        };
        let args = TakeArgs {
            mode: realm.mode().as_str(),
            member: &self.endpoint.member(),
            token: &self.token,
            lease_life: &self.life.as_millis().to_string(),
            deliveries_max: &most.to_string(),
            farthest: &self.farthest.as_millis().to_string(),
        };
        let mut reply = store.reply(&TAKE, keys, args).await?;
        match reply.word()?.as_str() {
            "taken" => Ok(TakeOutcome::Taken(Box::new(Taken::read(reply)?))),
            "idle" => Ok(TakeOutcome::Idle),
            "held" => Ok(TakeOutcome::Held),
            "gone" => Ok(TakeOutcome::Gone),
            _ => reply.unexpected(),
        }
    }

    /// Records an attempt, and keeps at most `history_max` finished deliveries. Returns false, with nothing changed, if
    /// the delivery is gone or another server attempted it.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry.
    pub async fn finish(
        &self,
        store: &Store,
        attempt: &AttemptOutcome<'_>,
        history_max: u64,
    ) -> Result<bool, StoreError> {
        let WebhookLocation { realm, webhook } = &self.endpoint;
        let set = |set| realm.deliveries_in(webhook, set);
        let keys = FinishKeys {
            account: realm.record(),
            due: set(DeliverySet::Due),
            parked: set(DeliverySet::Parked),
            deliveries: realm.deliveries(webhook),
            delivered: set(DeliverySet::Delivered),
            failed: set(DeliverySet::Failed),
        };
        let (outcome, pause) = match attempt.next {
            AfterAttempt::Delivered => ("delivered", Duration::ZERO),
            AfterAttempt::Failed => ("failed", Duration::ZERO),
            AfterAttempt::Retry(pause) => ("retry", pause),
            AfterAttempt::Park => ("park", Duration::ZERO),
        };
        let args = FinishArgs {
            mode: realm.mode().as_str(),
            number: attempt.number,
            before: attempt.before,
            after: &attempt.after.text(),
            outcome,
            pause: &pause.as_millis().to_string(),
            history_max: &history_max.to_string(),
        };
        let reply = store.reply(&FINISH, keys, args).await?;
        reply.is("kept", &["stale"])
    }

    /// Releases the lease, if it is still held.
    ///
    /// # Errors
    /// [`StoreError`]; the lease then expires.
    pub async fn release(&self, store: &Store) -> Result<(), StoreError> {
        let WebhookLocation { realm, webhook } = &self.endpoint;
        let set = |set| realm.deliveries_in(webhook, set);
        let keys = ReleaseKeys {
            account: realm.record(),
            ready: realm.bucket().webhooks_ready(),
            webhook: realm.webhook(webhook),
            due: set(DeliverySet::Due),
            parked: set(DeliverySet::Parked),
        };
        let args = ReleaseArgs {
            mode: realm.mode().as_str(),
            member: &self.endpoint.member(),
            token: &self.token,
        };
        let reply = store.reply(&RELEASE, keys, args).await?;
        reply.expect_one_of(&["released", "lost"])
    }
}

impl Taken {
    fn read(mut reply: ScriptReply) -> Result<Self, StoreError> {
        Ok(Self {
            now_ms: reply.number()?,
            url: reply.word()?,
            secret: reply.word()?,
            old_secret: Some(reply.word()?).filter(|old| !old.is_empty()),
            old_until_ms: reply.number()?,
            deliveries: reply.pairs()?,
        })
    }
}

/// Returns webhooks with a due time between `low` and `high` (scores of a sorted set), `most` of each bucket, with
/// their times; skips unreachable servers. One round trip on a single server.
pub async fn ready(batch: &Batch<'_>, low: &str, high: &str, most: usize) -> Vec<(WebhookLocation, u64)> {
    let reads: Vec<Read> = Bucket::all()
        .map(|bucket| Read::scored(bucket, bucket.webhooks_ready(), low, high, most))
        .collect();
    let mut answers = batch.many(&reads).await;
    let mut found = Vec::new();
    for _ in &reads {
        let members: Vec<(String, u64)> = answers.read().unwrap_or_default();
        found.extend(
            members
                .into_iter()
                .filter_map(|(member, at)| Some((WebhookLocation::parse(&member)?, at))),
        );
    }
    found
}
