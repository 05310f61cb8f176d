//! Readiness: whether load balancers should send calls to this process.

use crate::admission::RequestAdmission;
use crate::store_health::EdgeStoreHealth;
use crate::tables::prices::Prices;
use std::sync::Arc;
use store::blocked::BlockedCopy;

/// Readiness of this process: it can decide calls and is not draining. Reads no store.
#[derive(Clone)]
pub struct Readiness {
    /// Not ready while draining.
    pub admission: Arc<RequestAdmission>,
    /// Not ready while the store is untrusted or unreachable.
    pub health: Arc<EdgeStoreHealth>,
    /// Not ready until the blocked addresses are loaded.
    pub blocked: Arc<BlockedCopy>,
    /// Not ready until the imported prices are loaded.
    pub prices: Arc<Prices>,
}

impl Readiness {
    /// Returns whether all conditions hold, as of the last background check of the store.
    pub fn is_ready(&self) -> bool {
        self.health.is_ready()
            && self.blocked.is_read()
            && self.prices.are_known()
            && !self.admission.is_draining()
    }

    /// Returns why the process is not ready; `None` if it is ready.
    pub fn reason(&self) -> Option<String> {
        if self.admission.is_draining() {
            return Some("this process is about to end".to_owned());
        }
        let undecided = self.health.reason().or_else(|| {
            let unread = match (self.blocked.is_read(), self.prices.are_known()) {
                (false, _) => "the blocked addresses were not read yet",
                (true, false) => "the imported prices were not read yet",
                (true, true) => return None,
            };
            Some(unread.to_owned())
        })?;
        Some(format!(
            "calls cannot be decided, every call is denied: {undecided}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Fixture, StoreReaction};
    use store::keys::STORE;

    #[tokio::test]
    async fn each_part_is_needed_for_readiness() {
        for missing in [None, Some(0), Some(1), Some(2), Some(3)] {
            let fixture = Fixture::new().await;
            fixture.on_command(|command| {
                match (command[0].as_str(), command.get(1).map_or("", String::as_str)) {
                    ("HGET", _) => Some(StoreReaction::Raw("$-1\r\n".to_owned())),
                    ("HGETALL", key) if key != STORE => Some(StoreReaction::Raw("*0\r\n".to_owned())),
                    _ => None,
                }
            });
            if missing != Some(0) {
                assert!(fixture.health.is_trusted().await);
            }
            if missing != Some(1) {
                fixture.blocked.refresh(&fixture.store).await;
                assert!(fixture.blocked.is_read());
            }
            if missing != Some(2) {
                assert!(fixture.prices.are_known_now().await);
            }
            if missing == Some(3) {
                fixture.admission.drain();
            }
            assert_eq!(fixture.readiness().is_ready(), missing.is_none(), "{missing:?}");
            let reason = fixture.readiness().reason();
            let part = missing.map(|part| ["not checked yet", "addresses", "prices", "to end"][part]);
            assert_eq!(reason.is_some(), part.is_some(), "{reason:?}");
            assert!(
                reason.unwrap_or_default().contains(part.unwrap_or_default()),
                "{part:?}"
            );
            assert_eq!(fixture.admission.is_draining(), missing == Some(3));
        }
    }
}
