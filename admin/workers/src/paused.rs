//! Chains that failed, each with the end of its pause.

use std::collections::HashMap;
use std::time::Duration;
use store::keys::Realm;
use tokio::time::Instant;

/// Chains that are not tried again before their pause is over. A chain stays here until [`Self::resume`].
#[derive(Debug, Default)]
pub(super) struct PausedChains(HashMap<Realm, Instant>);

impl PausedChains {
    pub(super) fn is_paused(&self, chain: &Realm) -> bool {
        self.0.get(chain).is_some_and(|until| *until > Instant::now())
    }

    /// Pauses a chain after a failure. Returns true for its first failure in succession.
    pub(super) fn pause(&mut self, chain: Realm, time: Duration) -> bool {
        self.0.insert(chain, Instant::now() + time).is_none()
    }

    /// Ends the pause of a chain that succeeded.
    pub(super) fn resume(&mut self, chain: &Realm) {
        self.0.remove(chain);
    }

    /// Forgets the chains for which `keep` is false.
    pub(super) fn retain(&mut self, keep: impl Fn(&Realm) -> bool) {
        self.0.retain(|chain, _| keep(chain));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::mode::Mode;

    #[test]
    fn a_chain_is_paused_for_its_time_and_failed_first_once() {
        let chain = Realm::new("acct_1", Mode::Live);
        let long = Duration::from_secs(3600);
        let mut paused = PausedChains::default();
        assert!(!paused.is_paused(&chain));
        assert!(paused.pause(chain.clone(), long));
        assert!(paused.is_paused(&chain));
        assert!(!paused.pause(chain.clone(), Duration::ZERO), "it failed before");
        assert!(!paused.is_paused(&chain), "its pause is over");
        paused.resume(&chain);
        assert!(paused.pause(chain, long), "it succeeded meanwhile");
    }
}
