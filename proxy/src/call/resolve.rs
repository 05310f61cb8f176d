//! Step 1b: whose key it is. The look-up never changes once written, so its answer is cached; whether the key is still
//! active is decided with everything else in the store's script.

use super::Stop;
use super::credential::PresentedKey;
use super::known_key::KnownKey;
use crate::gate::Gate;
use crate::reply::refusal::{Refusal, RefusalKind};
use secrecy::ExposeSecret;
use shared::crypto::virtual_key::WellFormed;
use shared::domain::denial::Denial;
use shared::store::lookup::VirtualKeyOwner;
use std::sync::Arc;

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
