//! Health of the store (decision D47). It can be trusted if it replies, has an epoch and all acknowledged writes, and
//! never evicts.
//!
//! A worker checks it once a second; a request checks it again if the connection was lost since. Uses only the store.

use arc_swap::ArcSwap;
use crypto::seal::{Keyring, SealError, SealOwner};
use secrecy::SecretString;
use std::sync::Arc;
use store::Store;
use store::command_rights::Program;
use store::lost_connections::LostConnections;
use store::sanity::{self, MasterKeyCheck, StoreRecord, UntrustedStore, WrongMasterKey};
use store::write_refusal::{SteadyRefusal, WriteRefusalCode};
use telemetry::error_chain;

/// Why the store cannot be used now.
#[derive(Debug, thiserror::Error)]
pub enum NotTrusted {
    /// The last check found and logged why it cannot be trusted.
    #[error("the store may not be trusted")]
    Known,
    /// It was checked just now.
    #[error(transparent)]
    Found(UntrustedStore),
}

/// Why a secret was not sealed.
#[derive(Debug, thiserror::Error)]
pub enum NotSealed {
    /// The master keys of this process do not match the store.
    #[error(transparent)]
    WrongMasterKey(#[from] WrongMasterKey),
    /// The cipher or the random source failed.
    #[error(transparent)]
    Failed(#[from] SealError),
}

/// Result of the last check of the store, and the reason for not trusting it.
#[derive(Debug)]
pub struct StoreHealth {
    state: ArcSwap<StoreState>,
    lost_connections: LostConnections,
    /// Refusal of writes by the store. It is only reported: a request or worker that writes gets the store's own error,
    /// and a full store accepts some writes.
    refusal: SteadyRefusal,
    /// Master keys of this process, if it has any.
    keyring: Option<Arc<Keyring>>,
    /// Result of comparing the master keys with the store. If they do not match, no edge could open the secrets that
    /// this process seals.
    master_key: MasterKeyCheck,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum StoreState {
    Trusted,
    /// It does not reply, or was not checked yet. A request may check it.
    Unreachable(String),
    /// It replies but cannot be trusted.
    Untrusted(String),
}

impl Default for StoreHealth {
    fn default() -> Self {
        let state = StoreState::Unreachable("the store was not checked yet".to_owned());
        Self {
            state: ArcSwap::from_pointee(state),
            lost_connections: LostConnections::default(),
            refusal: SteadyRefusal::default(),
            keyring: None,
            master_key: MasterKeyCheck::default(),
        }
    }
}

impl StoreHealth {
    /// Creates the health of a store that was not checked yet, for a process with these master keys.
    pub fn new(keyring: Arc<Keyring>) -> Self {
        Self {
            keyring: Some(keyring),
            ..Self::default()
        }
    }

    /// Returns why the server is not ready; `None` if it is. With a full store it is ready: agents can still be frozen
    /// and addresses blocked, also through a load balancer.
    pub fn reason(&self) -> Option<String> {
        let refusal = || self.refusal.current();
        match &**self.state.load() {
            StoreState::Trusted => refusal()
                .filter(|refusal| refusal.code != WriteRefusalCode::OutOfMemory)
                .map(|refusal| refusal.to_string())
                .or_else(|| self.master_key.last().err().map(|error| error.to_string())),
            StoreState::Unreachable(reason) | StoreState::Untrusted(reason) => Some(reason.clone()),
        }
    }

    /// Returns the fault of a server that is nevertheless ready: its store is full.
    pub fn warning(&self) -> Option<String> {
        self.refusal.current().map(|refusal| refusal.to_string())
    }

    /// Seals a new secret under the store's master key: no other process could open one that is sealed under another.
    ///
    /// # Errors
    /// [`NotSealed`], also if the master keys do not match the store, as of the last check.
    pub fn seal(&self, owner: &impl SealOwner, secret: &SecretString) -> Result<String, NotSealed> {
        self.master_key.last()?;
        let keyring = self.keyring.as_deref().ok_or(WrongMasterKey)?;
        Ok(keyring.seal(owner, secret)?)
    }

    /// Returns the record of the store, unless the store is known to be untrusted. Performs a full check if none was
    /// made since a connection was lost.
    pub async fn trusted(&self, store: &Store) -> Result<StoreRecord, NotTrusted> {
        self.require_trust()?;
        if !self.lost_connections.since_check(store) {
            return sanity::record(store).await.map_err(NotTrusted::Found);
        }
        self.check(store).await.map_err(NotTrusted::Found)
    }

    /// Performs a full check, and records the result.
    ///
    /// # Errors
    /// [`UntrustedStore`] if it does not reply, or cannot be trusted.
    pub async fn check(&self, store: &Store) -> Result<StoreRecord, UntrustedStore> {
        let lost_connections = LostConnections::count();
        let outcome = sanity::check(store, Program::Management).await;
        if self.update(outcome.as_ref().map(|_| ())) {
            self.lost_connections.record_passed(lost_connections);
        }
        if let Ok(record) = &outcome {
            self.refusal.record(record.takes_no_writes());
            self.check_master_key(record);
        }
        outcome
    }

    fn check_master_key(&self, record: &StoreRecord) {
        let checked = self
            .keyring
            .as_ref()
            .map_or(Ok(()), |keyring| record.check_master_key(keyring));
        match self.master_key.record(checked) {
            Some(Ok(())) => tracing::info!("this process has the store's master key"),
            Some(Err(error)) => {
                tracing::error!(%error, "secrets cannot be decrypted or encrypted with the master keys of this server");
            }
            None => {}
        }
    }

    /// Returns whether a check has succeeded, none has failed since, and no connection was lost. Some nodes of a
    /// cluster may be unreachable.
    pub fn is_trusted(&self, store: &Store) -> bool {
        self.require_trust().is_ok()
            && self.lost_connections.has_passed()
            && !self.lost_connections.since_check(store)
    }

    fn require_trust(&self) -> Result<(), NotTrusted> {
        match &**self.state.load() {
            StoreState::Untrusted(_) => Err(NotTrusted::Known),
            StoreState::Trusted | StoreState::Unreachable(_) => Ok(()),
        }
    }

    /// Records the outcome of a check, and logs a change.
    fn update(&self, outcome: Result<(), &UntrustedStore>) -> bool {
        let state = match outcome {
            Ok(()) => StoreState::Trusted,
            Err(error) if error.is_unreachable() => StoreState::Unreachable(error_chain(error)),
            Err(error) => StoreState::Untrusted(error_chain(error)),
        };
        if **self.state.load() != state {
            match &state {
                StoreState::Trusted => tracing::info!("the store passed all checks"),
                StoreState::Unreachable(reason) => tracing::error!(reason, "the store cannot be reached"),
                StoreState::Untrusted(reason) => tracing::error!(reason, "the store may not be trusted"),
            }
        }
        let is_trusted = state == StoreState::Trusted;
        self.state.store(Arc::new(state));
        is_trusted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::StoreError;

    #[test]
    fn a_store_that_may_evict_is_refused_and_one_that_is_away_is_asked_again() {
        let health = StoreHealth::default();
        assert!(health.reason().is_some() && health.require_trust().is_ok());
        assert!(health.update(Ok(())));
        assert_eq!(health.reason(), None);
        assert!(!health.update(Err(&UntrustedStore::Evicts("allkeys-lru".to_owned()))));
        assert!(health.reason().unwrap().contains("allkeys-lru") && health.require_trust().is_err());
        assert!(!health.update(Err(&StoreError::NoAnswer(None).into())));
        assert!(health.reason().is_some() && health.require_trust().is_ok());
    }
}
