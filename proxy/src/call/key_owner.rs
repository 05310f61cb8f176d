//! Step 1b: finds the owner of the virtual key. The owner never changes, so the edge caches it. `authorize.lua` checks
//! whether the key is active, together with everything else.

use super::rejection::Rejection;
use crate::key_owners::KeyOwners;
use crate::key_owners::known_key::KnownKey;
use crate::store_health::EdgeStoreHealth;
use crate::tables::prices::Prices;
use crypto::virtual_key::WellFormed;
use std::sync::Arc;
use store::Store;
use store::lookup::VirtualKeyOwner;
use telemetry::PacedLine;

/// Finds the owners of virtual keys.
pub struct KeyOwnerLookup {
    /// Queried once for each key.
    pub store: Store,
    /// Only a usable store proves that a key does not exist.
    pub health: Arc<EdgeStoreHealth>,
    /// No call is accepted before the imported prices are loaded.
    pub prices: Arc<Prices>,
    /// Cache of the look-ups.
    pub owners: Arc<KeyOwners>,
}

impl KeyOwnerLookup {
    /// Returns the key and its owner.
    ///
    /// # Errors
    /// 401 if the key does not exist; 503 if the store is untrusted or unreachable, or the imported prices are not yet
    /// loaded.
    pub async fn key_owner(&self, key: WellFormed<'_>) -> Result<Arc<KnownKey>, Rejection> {
        if !self.health.is_trusted().await || !self.prices.are_known_now().await {
            return Err(Rejection::unavailable());
        }
        let digest = key.digest();
        match self.owners.get(&digest) {
            Some(known) => Ok(known),
            // Boxed: the case is rare, and this future needs more space than the one that awaits it.
            None => Box::pin(self.look_up(key, digest)).await,
        }
    }

    /// Finds the owner in the store.
    async fn look_up(&self, key: WellFormed<'_>, digest: [u8; 32]) -> Result<Arc<KnownKey>, Rejection> {
        if !self.health.can_have_issued(&key) || self.owners.is_unknown(&digest) {
            return Err(Rejection::unknown_key());
        }
        match VirtualKeyOwner::find(&self.store, &key.hash()).await {
            Ok(Some(owner)) => Ok(self.owners.insert(digest, owner)),
            // A wiped store has no keys either, so the epoch is confirmed before the key counts as unknown.
            Ok(None) if self.health.confirm().await => {
                self.owners.insert_unknown(digest);
                Err(Rejection::unknown_key())
            }
            Ok(None) => Err(Rejection::unavailable()),
            Err(error) => {
                static LINE: PacedLine = PacedLine::new();
                if let Some(left_out) = LINE.due() {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        left_out,
                        "a key could not be looked up"
                    );
                }
                Err(Rejection::unavailable())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{EPOCH, Fixture, StoreReaction, record, text};
    use crate::reply::refusal::RefusalKind;
    use crypto::virtual_key::{CheckSecret, mint};
    use secrecy::{ExposeSecret as _, SecretString};
    use store::keys::STORE;

    /// Creates a key whose checksum was made with this secret. The fixture's secret is `00`.
    fn key(secret: &str) -> SecretString {
        let secret = CheckSecret::from_stored(secret.to_owned());
        mint(&secret).unwrap()
    }

    fn well_formed(key: &SecretString) -> WellFormed<'_> {
        WellFormed::parse(key.expose_secret().as_bytes()).unwrap()
    }

    fn is_unknown(owner: &Result<Arc<KnownKey>, Rejection>) -> bool {
        match owner {
            Err(Rejection::Refused(refusal)) => refusal.kind == RefusalKind::InvalidApiKey,
            _ => false,
        }
    }

    #[tokio::test]
    async fn a_key_is_looked_up_once() {
        let fixture = Fixture::new().await;
        assert!(fixture.prices.are_known_now().await);
        fixture.on_command(|command| (command[0] == "GET").then(|| text("acct_1 bot vk_1")));
        let (lookup, key) = (fixture.key_owner_lookup(), key("00"));
        for _ in 0..2 {
            let known = lookup.key_owner(well_formed(&key)).await.unwrap();
            assert_eq!((known.owner.account(), known.owner.agent()), ("acct_1", "bot"));
        }
        let is_lookup =
            |command: &&Vec<String>| command[0] == "GET" && command[1].contains(&*well_formed(&key).hash());
        assert_eq!(fixture.commands().iter().filter(is_lookup).count(), 1);
    }

    /// A key whose checksum belongs to another installation is never looked up.
    #[tokio::test]
    async fn an_unknown_key_is_looked_up_once() {
        let fixture = Fixture::new().await;
        assert!(fixture.prices.are_known_now().await);
        let (lookup, ours, foreign) = (fixture.key_owner_lookup(), key("00"), key("01"));
        let before = fixture.count("GET");
        for _ in 0..2 {
            assert!(is_unknown(&lookup.key_owner(well_formed(&ours)).await));
            assert!(is_unknown(&lookup.key_owner(well_formed(&foreign)).await));
        }
        assert_eq!(fixture.count("GET") - before, 1);
        assert_eq!(fixture.owners.sizes(), [0, 1]);
    }

    /// A store that lost its record, or does not reply, does not prove that a key is unknown.
    #[tokio::test]
    async fn a_store_that_lost_its_ledger_makes_no_key_unknown() {
        for is_away in [false, true] {
            let fixture = Fixture::new().await;
            assert!(fixture.prices.are_known_now().await && fixture.health.is_trusted().await);
            let mut has_looked_up = false;
            fixture.on_command(move |command| {
                has_looked_up |= command[0] == "GET";
                match command[0].as_str() {
                    "GET" if is_away => Some(StoreReaction::Raw("-LOADING it starts\r\n".to_owned())),
                    "HGETALL" if has_looked_up && command[1] == STORE => {
                        Some(StoreReaction::Raw("*0\r\n".to_owned()))
                    }
                    "HGETALL" if command[1] == STORE => Some(record(EPOCH)),
                    _ => None,
                }
            });
            let rejected = fixture
                .key_owner_lookup()
                .key_owner(well_formed(&key("00")))
                .await;
            assert!(
                matches!(rejected, Err(Rejection::Denied(_))),
                "{is_away} {rejected:?}"
            );
            assert_eq!(fixture.owners.sizes(), [0, 0], "{is_away}");
        }
    }
}
