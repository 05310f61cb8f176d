//! Deliveries of one webhook under a lease: this server attempts the due ones, some concurrently, and stores the
//! outcome of each (decision D43). Interrupted attempts are repeated once the lease has expired.

mod attempt;

use super::sign::Secrets;
use crate::Webhooks;
use attempt::{AttemptResult, attempt, send_by};
use crypto::seal::WebhookSecretOf;
use entropy::random_bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use store::webhook::script::WebhookLocation;
use store::webhook::script::deliver::{Lease, TakeOutcome, Taken};
use tokio::sync::watch;
use tokio::time::Instant;

/// Time within a turn in which new attempts of a webhook may begin, so that other webhooks get their turns.
const TURN_MAX: Duration = Duration::from_secs(10);
/// Maximum wait of taken deliveries before they are attempted under the same lease.
const QUEUED_MAX: Duration = Duration::from_secs(2);
/// Time that a lease lasts beyond a delivery's wait and time-out: for the store, and for a slow machine.
const LEASE_MARGIN: Duration = Duration::from_secs(10);
/// Maximum number of deliveries taken at once, in addition to those being attempted.
const TAKE_MAX: usize = 32;
/// Pause before more deliveries are taken while attempts are in progress and there is room.
const TAKE_EVERY: Duration = Duration::from_millis(200);

/// Outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnOutcome {
    /// True if the last attempt failed; `None` if there was none.
    pub failing: Option<bool>,
    /// True if it ended with deliveries left.
    pub unfinished: bool,
}

/// Returns how long a lease lasts after its last renewal.
pub fn lease_life(timeout_ms: u64) -> Duration {
    Duration::from_millis(timeout_ms) + QUEUED_MAX + LEASE_MARGIN
}

/// Returns the longest time until a delivery can be due; later due times were written before the clock was set back.
pub fn farthest(webhooks: &Webhooks) -> Duration {
    let delays = webhooks.settings.retry_delays_ms.iter().copied();
    let longest = Duration::from_millis(delays.max().unwrap_or(0));
    longest.max(lease_life(webhooks.settings.timeout_ms)) + LEASE_MARGIN
}

/// A webhook that this server has leased.
struct LeasedWebhook<'a> {
    webhooks: &'a Webhooks,
    lease: &'a Lease,
    began: Instant,
    /// When deliveries were last taken.
    taken_at: Option<Instant>,
    /// Deliveries that were taken then and wait.
    queue: VecDeque<TakenDelivery>,
    /// Numbers of the deliveries that are being attempted.
    in_flight: HashSet<String>,
    outcome: TurnOutcome,
    /// Error with which the turn ends once all attempts have ended.
    failure: Option<StoreError>,
}

/// The receiver of deliveries that were taken together.
struct Receiver {
    url: String,
    secrets: Secrets,
    /// Latest start of an attempt: the lease must outlast it.
    send_by: Instant,
}

/// A delivery under the lease.
struct TakenDelivery {
    number: String,
    /// Its record, as stored.
    text: String,
    receiver: Arc<Receiver>,
}

/// Leases a webhook for one turn and attempts its deliveries.
///
/// # Errors
/// [`StoreError`]; the lease then expires, and the deliveries are attempted under a later one.
pub async fn take(
    webhooks: &Webhooks,
    endpoint: WebhookLocation,
    stopping: &watch::Receiver<bool>,
) -> Result<TurnOutcome, StoreError> {
    let token = random_bytes::<8>().map_err(StoreError::unexpected)?;
    let lease = Lease {
        endpoint,
        token: hex::encode(token),
        life: lease_life(webhooks.settings.timeout_ms),
        farthest: farthest(webhooks),
    };
    let mut turn = LeasedWebhook {
        webhooks,
        lease: &lease,
        began: Instant::now(),
        taken_at: None,
        queue: VecDeque::new(),
        in_flight: HashSet::new(),
        outcome: TurnOutcome::default(),
        failure: None,
    };
    let mut attempts = FuturesUnordered::new();
    loop {
        let open = turn.began.elapsed() < TURN_MAX && turn.failure.is_none() && !*stopping.borrow();
        if open && turn.is_time_to_take() {
            match turn.take_deliveries().await {
                Ok(false) if attempts.is_empty() => return Ok(turn.outcome),
                Ok(_) => {}
                Err(error) => turn.failure = Some(error),
            }
        }
        for delivery in turn.ready(open) {
            attempts.push(attempt(webhooks, &lease, delivery));
        }
        if attempts.is_empty() {
            if let Some(error) = turn.failure {
                return Err(error);
            }
            turn.outcome.unfinished = !*stopping.borrow();
            lease.release(&webhooks.store).await?;
            return Ok(turn.outcome);
        }
        if let Ok(Some(result)) = tokio::time::timeout(TAKE_EVERY, attempts.next()).await {
            turn.record(result);
        }
    }
}

impl LeasedWebhook<'_> {
    /// Returns how many attempts may begin.
    fn room(&self) -> usize {
        let most = self.webhooks.settings.requests_at_once.max(1);
        most.saturating_sub(self.in_flight.len())
    }

    /// Returns whether to take deliveries: there is room, none waits, and while attempts are in progress some time has
    /// passed.
    fn is_time_to_take(&self) -> bool {
        let rested = self
            .taken_at
            .is_none_or(|taken_at| taken_at.elapsed() >= TAKE_EVERY);
        self.room() > 0 && self.queue.is_empty() && (rested || self.in_flight.is_empty())
    }

    /// Renews the lease and takes deliveries. Returns false if there is no lease to renew, or nothing to deliver.
    async fn take_deliveries(&mut self) -> Result<bool, StoreError> {
        let taken_at = Instant::now();
        self.taken_at = Some(taken_at);
        let most = self.in_flight.len() + TAKE_MAX;
        let taken = match self.lease.take(&self.webhooks.store, most).await? {
            TakeOutcome::Taken(taken) => *taken,
            TakeOutcome::Idle | TakeOutcome::Held | TakeOutcome::Gone => return Ok(false),
        };
        let secrets = open_secrets(self.webhooks, &self.lease.endpoint, &taken)?;
        let Taken { url, deliveries, .. } = taken;
        let receiver = Arc::new(Receiver {
            url,
            secrets,
            send_by: send_by(taken_at, self.webhooks.settings.timeout_ms),
        });
        self.queue = deliveries
            .into_iter()
            .filter(|(number, _)| !self.in_flight.contains(number))
            .map(|(number, text)| TakenDelivery {
                number,
                text,
                receiver: Arc::clone(&receiver),
            })
            .collect();
        Ok(true)
    }

    /// Returns the deliveries whose attempts begin now. Those that have waited too long are dropped, to be taken again.
    fn ready(&mut self, open: bool) -> Vec<TakenDelivery> {
        if !open
            || self
                .taken_at
                .is_some_and(|taken_at| taken_at.elapsed() >= QUEUED_MAX)
        {
            self.queue.clear();
        }
        let count = self.room().min(self.queue.len());
        let begun: Vec<_> = self.queue.drain(..count).collect();
        self.in_flight
            .extend(begun.iter().map(|delivery| delivery.number.clone()));
        begun
    }

    fn record(&mut self, AttemptResult { number, outcome }: AttemptResult) {
        self.in_flight.remove(&number);
        match outcome {
            Ok(Some(accepted)) => self.outcome.failing = Some(!accepted),
            Ok(None) => {}
            Err(error) => self.failure = Some(error),
        }
    }
}

/// Returns the secrets of a webhook, opened.
fn open_secrets(
    webhooks: &Webhooks,
    endpoint: &WebhookLocation,
    taken: &Taken,
) -> Result<Secrets, StoreError> {
    let owner = WebhookSecretOf {
        account: endpoint.realm.account(),
        mode: endpoint.realm.mode(),
        webhook: &endpoint.webhook,
    };
    let open = |sealed: &str| {
        let secret = webhooks.keyring.open(&owner, sealed);
        secret.map_err(StoreError::unexpected)
    };
    let old = taken.old_secret.as_deref();
    let old = old.filter(|_| taken.now_ms < taken.old_until_ms);
    Ok(Secrets {
        current: open(&taken.secret)?,
        old: old.map(open).transpose()?,
    })
}
