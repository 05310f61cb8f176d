//! The watch on the store (decision D47): it must answer, have an epoch and all that it wrote down, and never evict.

use super::pause;
use crate::problem::{Code, Problem};
use crate::serve::App;
use arc_swap::ArcSwap;
use settings::durability::Durability;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::durability::Status;
use store::sanity::{self, Insane, StoreRecord};
use store::{Store, pulse};
use telemetry::error_chain;
use tokio::sync::watch;

/// Pause between two checks.
const EVERY: Duration = Duration::from_secs(1);

/// In the place of a count of cuts: no check has gone well yet.
const NEVER: u64 = u64::MAX;

/// The store as last checked.
#[derive(Debug)]
pub struct Health {
    state: ArcSwap<State>,
    /// How often the way to the server had been lost before the last check that went well.
    cuts: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Sane,
    /// It does not answer, or was not asked yet. A request may ask for itself.
    Away(String),
    /// It answers and may not be trusted.
    Untrusted(String),
}

impl Default for Health {
    fn default() -> Self {
        let state = State::Away("the store was not checked yet".to_owned());
        Self {
            state: ArcSwap::from_pointee(state),
            cuts: AtomicU64::new(NEVER),
        }
    }
}

impl Health {
    /// Why the server is not ready; `None` when it is.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match &**self.state.load() {
            State::Sane => None,
            State::Away(reason) | State::Untrusted(reason) => Some(reason.clone()),
        }
    }

    /// The record of the store, unless that is known to be one that may not be trusted. Looks at all of it where nobody did since
    /// the way to it was lost.
    ///
    /// # Errors
    /// 503.
    pub async fn trusted(&self, store: &Store) -> Result<StoreRecord, Problem> {
        self.require_trust()?;
        if !self.was_cut(store) {
            return Ok(sanity::record(store).await?);
        }
        Ok(self.check(store).await?)
    }

    /// Looks at all of the store, and remembers what was found.
    async fn check(&self, store: &Store) -> Result<StoreRecord, Insane> {
        let cuts = pulse::cuts();
        let outcome = sanity::check(store).await;
        if self.update(outcome.as_ref().map(|_| ())) {
            self.cuts.store(cuts, Ordering::Release);
        }
        outcome
    }

    /// Whether a check has gone well and none has found a reason against the store since, nor was the way to it lost. Of a cluster
    /// some nodes may be away.
    #[must_use]
    pub fn is_sound(&self, store: &Store) -> bool {
        self.require_trust().is_ok() && self.cuts.load(Ordering::Acquire) != NEVER && !self.was_cut(store)
    }

    /// Of a cluster the worker's next check is soon enough: a node that is away must not hold up the accounts of the others.
    fn was_cut(&self, store: &Store) -> bool {
        self.cuts.load(Ordering::Acquire) != pulse::cuts() && !store.is_cluster()
    }

    fn require_trust(&self) -> Result<(), Problem> {
        match &**self.state.load() {
            State::Untrusted(_) => Err(Code::ServiceUnavailable.into()),
            State::Sane | State::Away(_) => Ok(()),
        }
    }

    /// Takes in the outcome of a check; says so in the log when it is a change.
    fn update(&self, outcome: Result<(), &Insane>) -> bool {
        let state = match outcome {
            Ok(()) => State::Sane,
            Err(error @ Insane::Store(_)) => State::Away(error_chain(error)),
            Err(error) => State::Untrusted(error_chain(error)),
        };
        if **self.state.load() != state {
            match &state {
                State::Sane => tracing::info!("the store is sane"),
                State::Away(reason) => tracing::error!(reason, "the store is away"),
                State::Untrusted(reason) => tracing::error!(reason, "the store may not be trusted"),
            }
        }
        let sane = state == State::Sane;
        self.state.store(Arc::new(state));
        sane
    }
}

/// Checks until it is time to stop.
pub(super) async fn run(app: Arc<App>, mut stopping: watch::Receiver<bool>) {
    let mut told = None;
    loop {
        let sane = app.health.check(&app.store).await.is_ok();
        app.metrics.store_sane.set(i64::from(sane));
        if sane && let Ok(status) = app.store.durability().await {
            app.metrics
                .store_durable
                .set(i64::from(status.confirmed != Durability::Async));
            app.metrics.store_exposed.set(i64::from(status.exposed));
            if told.as_ref() != Some(&status) {
                tell(&status);
                told = Some(status);
            }
        }
        if !pause(&mut stopping, EVERY).await {
            return;
        }
    }
}

/// Says how changes of money stand, once for each change.
fn tell(status: &Status) {
    let (asked, sentence) = (status.asked.to_string(), status.sentence());
    if status.refuses() {
        tracing::error!(asked, "{sentence}");
    } else if status.lacks.is_some() || status.exposed {
        tracing::warn!(asked, "{sentence}");
    } else {
        tracing::info!(asked, "{sentence}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::StoreError;

    #[test]
    fn a_store_that_may_evict_is_refused_and_one_that_is_away_is_asked_again() {
        let health = Health::default();
        assert!(health.reason().is_some() && health.require_trust().is_ok());
        assert!(health.update(Ok(())));
        assert_eq!(health.reason(), None);
        assert!(!health.update(Err(&Insane::Evicts("allkeys-lru".to_owned()))));
        assert!(health.reason().unwrap().contains("allkeys-lru") && health.require_trust().is_err());
        assert!(!health.update(Err(&StoreError::NoAnswer(None).into())));
        assert!(health.reason().is_some() && health.require_trust().is_ok());
    }
}
