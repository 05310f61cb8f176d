//! The hold of an approved call, and its end: the ledger moves from the estimate to the final charge, now or, if the
//! store does not accept it, later.

use super::rejection::Rejection;
use crate::metrics::ledger::LedgerMetrics;
use crate::reply::denied::Denied;
use crate::retry_queue::RetryQueue;
use crate::retry_queue::item::HoldOrigin;
use crate::store_health::EdgeStoreHealth;
use domain::decision::denial_id;
use domain::denial::Denial;
use domain::entry::HoldOutcome;
use domain::id::IdKind;
use domain::measured::Measured;
use domain::money::Nanos;
use futures::future::BoxFuture;
use std::sync::Arc;
use store::Store;
use store::call::hold::{HoldKeys, HoldName};
use store::call::settle::{Settle, Settled};
use store::lookup::VirtualKeyOwner;

/// The charged estimate of one approved call. Its owner must settle it.
#[must_use = "a hold that is not settled stays charged"]
#[derive(Debug)]
pub struct OpenHold {
    /// Account, agent, run and decision id.
    pub name: HoldName,
    /// The store's keys for `name`.
    pub keys: Box<HoldKeys>,
    /// The ledger that charged the estimate.
    pub origin: HoldOrigin,
    /// The charge so far.
    pub estimate: Nanos,
    /// Target of an extension whose reply was lost: the hold may have been raised to it.
    pub extension: Option<Nanos>,
}

/// Creates the name of a hold with a new decision id. The edge chooses the id, so that it can void the hold if the
/// reply is lost.
///
/// # Errors
/// 503 when the system has no randomness.
pub fn hold_name(owner: &VirtualKeyOwner, run: &str) -> Result<HoldName, Rejection> {
    let allow_id = IdKind::Allow
        .mint(clock::now_ms())
        .map_err(|_| Rejection::unavailable())?;
    let (account, agent) = (owner.account().to_owned(), owner.agent().to_owned());
    Ok(HoldName {
        account,
        agent,
        run: run.to_owned(),
        allow_id,
    })
}

/// Outcome of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The store accepted it.
    Accepted(Settled),
    /// It is queued for a retry.
    Queued,
}

impl Settlement {
    /// Returns the value for the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted(settled) => settled.as_str(),
            Self::Queued => "waits",
        }
    }
}

/// Settles holds.
pub struct HoldSettler {
    store: Store,
    health: Arc<EdgeStoreHealth>,
    retry_queue: Arc<RetryQueue>,
    metrics: LedgerMetrics,
}

impl HoldSettler {
    /// Creates a settler that queues settlements and voids in `retry_queue` if the store does not accept them.
    pub const fn new(
        store: Store,
        health: Arc<EdgeStoreHealth>,
        retry_queue: Arc<RetryQueue>,
        metrics: LedgerMetrics,
    ) -> Self {
        Self {
            store,
            health,
            retry_queue,
            metrics,
        }
    }

    /// Charges `cost` in place of the estimate, now or later. If the store does not have the hold, or replied after a
    /// connection broke, it may have another ledger than the hold's: the settlement is then queued.
    pub async fn settle(
        &self,
        hold: OpenHold,
        cost: Nanos,
        outcome: HoldOutcome,
        measured: Option<Measured>,
    ) -> Settlement {
        let OpenHold {
            name,
            keys,
            origin,
            estimate,
            extension,
        } = hold;
        let settle = Settle {
            name,
            estimate,
            cost,
            outcome,
            extension,
            measured,
            ended_by: None,
        };
        let error = match settle.execute(&keys, None, &self.store).await {
            Ok(Settled::Missing) => None,
            Ok(settled) if self.health.is_same_ledger(&origin.ledger).await => {
                self.metrics.settled(settled, &settle);
                return Settlement::Accepted(settled);
            }
            Ok(_) => None,
            Err(error) => Some(error),
        };
        tracing::warn!(
            decision.id = settle.name.allow_id,
            error = error.as_ref().map(|error| error as &dyn std::error::Error),
            "a settlement has to wait"
        );
        self.metrics.settlement_waits();
        Box::pin(self.retry_queue.settle(settle, &origin)).await;
        Settlement::Queued
    }

    /// Releases the hold of a call that cannot be sent, and returns the denial. The id of the denial is that of the
    /// entry in the audit trail, with the prefix of a denial. Boxed: the case is rare, and this future needs more space
    /// than the one that awaits it.
    pub fn release_unsent(&self, hold: OpenHold) -> BoxFuture<'_, Rejection> {
        let denial = Denial::ServiceUnavailable;
        let denied = Denied {
            run_id: Some(hold.name.run.clone()),
            estimate: Some(hold.estimate),
            ..Denied::new(denial, denial_id(denial, &hold.name.allow_id))
        };
        Box::pin(async move {
            self.settle(hold, Nanos::ZERO, HoldOutcome::Unsent, None).await;
            Rejection::Denied(Box::new(denied))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, StoreReaction, record, runs, text};
    use store::call::settle::SETTLE;

    /// Settles while the store replies with `reply`, or closes the connection if `reply` is empty. If `is_lost`,
    /// another connection breaks before.
    async fn settled(fixture: &Fixture, reply: &'static str, is_lost: bool) -> Settlement {
        let hold = fixture.open_hold().await;
        fixture.on_command(move |command| match command[0].as_str() {
            "EVALSHA" if reply.is_empty() => Some(StoreReaction::Close),
            "EVALSHA" => runs(command, &SETTLE).then(|| text(reply)),
            "HGETALL" if is_lost => Some(record("another")),
            _ => None,
        });
        if is_lost {
            fixture.lose_a_connection().await;
        }
        let holds = fixture.hold_settler();
        holds
            .settle(hold, Nanos::from_stored(7), HoldOutcome::Settled, None)
            .await
    }

    #[tokio::test]
    async fn a_settlement_that_may_be_lost_waits() {
        for (reply, is_lost, outcome) in [
            ("settled", false, Settlement::Accepted(Settled::Done)),
            ("mismatch", false, Settlement::Accepted(Settled::Mismatch)),
            ("missing", false, Settlement::Queued),
            ("", false, Settlement::Queued),
            ("settled", true, Settlement::Queued),
        ] {
            let fixture = Fixture::new().await;
            assert_eq!(
                settled(&fixture, reply, is_lost).await,
                outcome,
                "{reply} {is_lost}"
            );
            let waiting = usize::from(outcome == Settlement::Queued);
            assert_eq!(fixture.retry_queue.len(), waiting, "{reply} {is_lost}");
            assert_eq!(
                fixture.arguments(&SETTLE)[0],
                ["allow_1", "1000", "7", "settled", ""]
            );
        }
    }
}
