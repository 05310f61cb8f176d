//! Deliveries of one webhook under a lease: this server attempts the due ones, some concurrently, and stores the
//! outcome of each (decision D43). Interrupted attempts are repeated once the lease has expired.

mod attempt;

use super::sign::Secrets;
use crate::Webhooks;
use attempt::{Attempting, attempt, send_by};
use crypto::seal::WebhookSecretOf;
use entropy::random_bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use store::webhook::script::Endpoint;
use store::webhook::script::deliver::{Lease, TakeOutcome, Taken};
use tokio::sync::watch;
use tokio::time::Instant;

/// Time within a turn in which new attempts of a webhook may begin, so that other webhooks get their turns.
const TURN: Duration = Duration::from_secs(10);
/// Maximum wait of taken deliveries before they are attempted under the same lease.
const QUEUE: Duration = Duration::from_secs(2);
/// How much longer than a delivery's wait and time-out a lease lasts: for the store, and for a slow machine.
const MARGIN: Duration = Duration::from_secs(10);
/// Maximum number of deliveries taken at once, in addition to those being attempted.
const TAKE_MAX: usize = 32;
/// Pause before more deliveries are taken while attempts are in progress and there is room.
const TAKE_EVERY: Duration = Duration::from_millis(200);

/// Outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Whether the last attempt failed; `None` if there was none.
    pub failing: Option<bool>,
    /// Whether it ended with deliveries left.
    pub unfinished: bool,
}

/// Returns how long a lease lasts after its last renewal.
pub fn lease_life(timeout_ms: u64) -> Duration {
    Duration::from_millis(timeout_ms) + QUEUE + MARGIN
}

/// Returns the longest time until a delivery can be due; later due times were written before the clock was set back.
pub fn farthest(webhooks: &Webhooks) -> Duration {
    let delays = webhooks.settings.retry_delays_ms.iter().copied();
    let longest = Duration::from_millis(delays.max().unwrap_or(0));
    longest.max(lease_life(webhooks.settings.timeout_ms)) + MARGIN
}

/// A webhook that this server has leased.
struct LeasedWebhook<'a> {
    webhooks: &'a Webhooks,
    lease: &'a Lease,
    began: Instant,
    /// When deliveries were last taken.
    taken_at: Option<Instant>,
    /// Deliveries that were taken then and wait.
    queue: VecDeque<(String, String)>,
    /// The receiver at that time.
    receiver: Option<Arc<Receiver>>,
    /// Numbers of the deliveries that are being attempted.
    on_their_way: HashSet<String>,
    outcome: Outcome,
    /// Error with which the turn ends once all attempts have ended.
    failure: Option<StoreError>,
}

/// The URL of deliveries, and the secrets that sign them.
struct Receiver {
    url: String,
    secrets: Secrets,
}

/// Leases a webhook for one turn and attempts its deliveries.
///
/// # Errors
/// [`StoreError`]; the lease then expires, and the deliveries are attempted under a later one.
pub async fn take(
    webhooks: &Webhooks,
    endpoint: Endpoint,
    stopping: &watch::Receiver<bool>,
) -> Result<Outcome, StoreError> {
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
        receiver: None,
        on_their_way: HashSet::new(),
        outcome: Outcome::default(),
        failure: None,
    };
    let mut attempts = FuturesUnordered::new();
    loop {
        let open = turn.began.elapsed() < TURN && turn.failure.is_none() && !*stopping.borrow();
        if open && turn.is_time_to_take() {
            match turn.take_deliveries().await {
                Ok(false) if attempts.is_empty() => return Ok(turn.outcome),
                Ok(_) => {}
                Err(error) => turn.failure = Some(error),
            }
        }
        for (number, text) in turn.ready(open) {
            let latest = send_by(turn.taken_at.unwrap_or(turn.began), webhooks.settings.timeout_ms);
            attempts.push(attempt(
                webhooks,
                &lease,
                turn.receiver.clone(),
                latest,
                number,
                text,
            ));
        }
        if attempts.is_empty() {
            if let Some(error) = turn.failure {
                return Err(error);
            }
            turn.outcome.unfinished = !*stopping.borrow();
            lease.release(&webhooks.store).await?;
            return Ok(turn.outcome);
        }
        if let Ok(Some(attempting)) = tokio::time::timeout(TAKE_EVERY, attempts.next()).await {
            turn.ended(attempting);
        }
    }
}

impl LeasedWebhook<'_> {
    /// Returns how many attempts may begin.
    fn room(&self) -> usize {
        let most = self.webhooks.settings.requests_at_once.max(1);
        most.saturating_sub(self.on_their_way.len())
    }

    /// Returns whether to take deliveries: there is room, none waits, and while attempts are in progress some time has
    /// passed.
    fn is_time_to_take(&self) -> bool {
        let rested = self
            .taken_at
            .is_none_or(|taken_at| taken_at.elapsed() >= TAKE_EVERY);
        self.room() > 0 && self.queue.is_empty() && (rested || self.on_their_way.is_empty())
    }

    /// Renews the lease and takes deliveries. Returns false if there is no lease to renew, or nothing to deliver.
    async fn take_deliveries(&mut self) -> Result<bool, StoreError> {
        self.taken_at = Some(Instant::now());
        let most = self.on_their_way.len() + TAKE_MAX;
        let taken = match self.lease.take(&self.webhooks.store, most).await? {
            TakeOutcome::Taken(taken) => *taken,
            TakeOutcome::Idle | TakeOutcome::Held | TakeOutcome::Gone => return Ok(false),
        };
        let secrets = open_secrets(self.webhooks, &self.lease.endpoint, &taken)?;
        let Taken { url, deliveries, .. } = taken;
        self.receiver = Some(Arc::new(Receiver { url, secrets }));
        let fresh = deliveries.into_iter();
        self.queue = fresh
            .filter(|(number, _)| !self.on_their_way.contains(number))
            .collect();
        Ok(true)
    }

    /// Returns the deliveries whose attempts begin now. Those that have waited too long are dropped, to be taken again.
    fn ready(&mut self, open: bool) -> Vec<(String, String)> {
        if !open || self.taken_at.is_some_and(|taken_at| taken_at.elapsed() >= QUEUE) {
            self.queue.clear();
        }
        let count = self.room().min(self.queue.len());
        let begun: Vec<_> = self.queue.drain(..count).collect();
        self.on_their_way
            .extend(begun.iter().map(|(number, _)| number.clone()));
        begun
    }

    /// Notes the end of an attempt.
    fn ended(&mut self, Attempting { number, outcome }: Attempting) {
        self.on_their_way.remove(&number);
        match outcome {
            Ok(Some(accepted)) => self.outcome.failing = Some(!accepted),
            Ok(None) => {}
            Err(error) => self.failure = Some(error),
        }
    }
}

/// Returns the secrets of a webhook, opened.
fn open_secrets(webhooks: &Webhooks, endpoint: &Endpoint, taken: &Taken) -> Result<Secrets, StoreError> {
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
