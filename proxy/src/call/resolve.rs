//! Step 1b: whose key it is. The look-up never changes once written, so its answer is cached; whether the key is still
//! active is decided with everything else in the store's script.

use super::Stop;
use super::credential::PresentedKey;
use crate::gate::Gate;
use crate::key_owners::known_key::KnownKey;
use crate::reply::refusal::{Refusal, RefusalKind};
use crypto::virtual_key::WellFormed;
use domain::denial::Denial;
use secrecy::ExposeSecret;
use std::sync::Arc;
use store::lookup::VirtualKeyOwner;

/// A key that is not one of ours, or no longer.
pub fn unknown_key() -> Stop {
    Refusal::new(
        RefusalKind::InvalidApiKey,
        "This virtual key is unknown or revoked.",
    )
    .into()
}

/// The owner of the key.
///
/// # Errors
/// 503 when the store may not be trusted or does not answer, or has not told yet which prices are in force, 401 when there is no such key.
pub async fn owner(gate: &Gate, key: &PresentedKey) -> Result<Arc<KnownKey>, Stop> {
    let unavailable = || Stop::denied(Denial::ServiceUnavailable);
    if !gate.watch.usable(gate).await || !gate.imported.is_known_now(gate).await {
        return Err(unavailable());
    }
    let Some(key) = WellFormed::parse(key.secret.expose_secret().as_bytes()) else {
        return Err(unknown_key());
    };
    let digest = key.digest();
    if let Some(owner) = gate.owners.get(&digest) {
        return Ok(owner);
    }
    if !gate.watch.can_have_issued(&key) || gate.unknown.get(&digest).is_some() {
        return Err(unknown_key());
    }
    match VirtualKeyOwner::find(&gate.store, &key.hash()).await {
        Ok(Some(owner)) => Ok(gate.remember(digest, owner)),
        // A wiped store knows no key either; only a store that still has its epoch may say that there is none.
        Ok(None) if gate.watch.ask_now(gate).await => {
            gate.unknown.insert(digest, ());
            Err(unknown_key())
        }
        Ok(None) => Err(unavailable()),
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a key could not be looked up"
            );
            Err(unavailable())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Does, Stand, record, text};
    use crypto::virtual_key::{CheckSecret, mint};
    use store::keys::STORE;

    /// A key that the store of the stand can have issued, or one of another installation.
    fn key(secret: &str) -> PresentedKey {
        let secret = CheckSecret::from_stored(secret.to_owned());
        PresentedKey {
            secret: mint(&secret).unwrap(),
        }
    }

    fn is_unknown(owner: &Result<Arc<KnownKey>, Stop>) -> bool {
        match owner {
            Err(Stop::Refused(refusal)) => refusal.kind == RefusalKind::InvalidApiKey,
            _ => false,
        }
    }

    #[tokio::test]
    async fn a_key_is_looked_up_once() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        assert!(gate.imported.is_known_now(gate).await);
        stand.store_says(|command| (command[0] == "GET").then(|| text("acct_1 bot vk_1")));
        let key = key("00");
        for _ in 0..2 {
            let known = owner(gate, &key).await.unwrap();
            assert_eq!((known.owner.account(), known.owner.agent()), ("acct_1", "bot"));
        }
        let looks = |command: &Vec<String>| command[0] == "GET" && command[1].contains(&*hash(&key));
        assert_eq!(stand.asked().iter().filter(|command| looks(command)).count(), 1);
    }

    fn hash(key: &PresentedKey) -> String {
        WellFormed::parse(key.secret.expose_secret().as_bytes())
            .unwrap()
            .hash()
    }

    /// The second time nobody is asked; a key with another installation's checksum is never asked for.
    #[tokio::test]
    async fn a_key_that_is_not_there_is_remembered_as_unknown() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        assert!(gate.imported.is_known_now(gate).await);
        let (ours, foreign) = (key("00"), key("01"));
        let before = stand.count("GET");
        for _ in 0..2 {
            assert!(is_unknown(&owner(gate, &ours).await));
            assert!(is_unknown(&owner(gate, &foreign).await));
        }
        assert_eq!(stand.count("GET") - before, 1);
        assert_eq!(gate.cached()[1], 1);
    }

    /// It has no record any more, or does not answer: then it cannot say that there is no such key.
    #[tokio::test]
    async fn a_store_that_lost_its_ledger_knows_of_no_unknown_keys() {
        for is_away in [false, true] {
            let stand = Stand::new().await;
            let gate = &stand.gate;
            assert!(gate.imported.is_known_now(gate).await && gate.watch.usable(gate).await);
            let mut asked_for_key = false;
            stand.store_says(move |command| {
                asked_for_key |= command[0] == "GET";
                match command[0].as_str() {
                    "GET" if is_away => Some(Does::Answers("-LOADING it starts\r\n".to_owned())),
                    "HGETALL" if asked_for_key && command[1] == STORE => {
                        Some(Does::Answers("*0\r\n".to_owned()))
                    }
                    "HGETALL" if command[1] == STORE => Some(record(crate::fixture::EPOCH)),
                    _ => None,
                }
            });
            let stopped = owner(gate, &key("00")).await;
            assert!(matches!(stopped, Err(Stop::Denied(_))), "{is_away} {stopped:?}");
            assert_eq!(gate.cached()[1], 0, "{is_away}");
        }
    }
}
