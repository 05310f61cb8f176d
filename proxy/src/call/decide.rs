//! Step 4: the decision. One script in the store checks key status, plan keys, rate, provider key and Cap, and charges
//! the estimate. Only this file can make an [`Approval`]. Whatever is not an explicit approval is a denial.

use super::authorize::{Authorizer, ChargeRequest, Decision};
use super::call_request::CallRequest;
use super::denials::{DenialBuilder, DenialSubject};
use super::hold::{HoldSettler, OpenHold, hold_name};
use super::rejection::Rejection;
use crate::key_owners::known_key::KnownKey;
use crate::provider_keys::ProviderKeys;
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::upstream::Upstream;
use crypto::seal::SealedFor;
use domain::plan::no_streaming;
use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;
use store::call::authorize::{AuthorizeOutcome, Charge};

/// Permission to forward exactly one call. Proves that the estimate is charged, the hold is open and the provider key
/// is decrypted. It cannot be made outside this file, and [`forward`](super::forward) takes it by value.
#[must_use = "an approval that is not forwarded leaves a hold open"]
#[derive(Debug)]
pub struct Approval {
    hold: OpenHold,
    provider_key: Arc<SecretString>,
    upstream: Arc<Upstream>,
}

impl Approval {
    /// Consumes the approval: the caller settles the hold, and sends the provider key to its upstream and to no other.
    pub(super) fn into_parts(self) -> (OpenHold, Arc<Upstream>, Arc<SecretString>) {
        (self.hold, self.upstream, self.provider_key)
    }
}

/// Decides calls.
pub struct Decider {
    /// Executes the script.
    pub authorizer: Arc<Authorizer>,
    /// Builds the rejections.
    pub denials: Arc<DenialBuilder>,
    /// Decrypts the provider key.
    pub provider_keys: Arc<ProviderKeys>,
    /// Releases the hold of a call whose provider key does not decrypt.
    pub holds: Arc<HoldSettler>,
    /// Time from the deadline of the upstream until the reaper may end a hold that nobody settled.
    pub hold_grace: Duration,
    /// Longest duration of a stream, including its drain.
    pub stream_life: Duration,
}

impl Decider {
    /// Decides a valid call.
    ///
    /// # Errors
    /// 401 for a revoked key, or the denial.
    pub async fn decide(&self, key: &KnownKey, request: &CallRequest) -> Result<Approval, Rejection> {
        let name = hold_name(&key.owner, &request.run.id)?;
        let subject = DenialSubject {
            owner: &key.owner,
            name: &name,
            request: Some(request),
        };
        let requested = ChargeRequest {
            charge: &self.charge(request),
            is_stream: request.stream.is_some(),
        };
        let keys = Box::new(name.keys_in(key.bucket));
        match self
            .authorizer
            .authorize(key, &name, &keys, Some(requested))
            .await
        {
            Ok(Decision {
                outcome:
                    AuthorizeOutcome::Charged {
                        estimate,
                        provider_key_id,
                        sealed,
                    },
                origin,
                ..
            }) => {
                let hold = OpenHold {
                    name,
                    keys,
                    origin,
                    estimate,
                    extension: None,
                };
                self.approve(hold, &request.upstream, &provider_key_id, &sealed)
                    .await
            }
            // The plan excludes streams, so nothing was charged.
            Ok(Decision {
                outcome: AuthorizeOutcome::Counted,
                plan,
                ..
            }) => Err(Rejection::Refused(no_streams(&plan.name))),
            Ok(decision) => Err(self.denials.rejection(subject, decision)),
            Err(_no_decision) => Err(self.denials.unavailable(subject)),
        }
    }

    /// Returns the charge of a call that is approved.
    fn charge<'a>(&self, request: &'a CallRequest) -> Charge<'a> {
        Charge {
            estimate: request.estimate,
            run_named: request.run.named,
            hold_life: self.hold_life(request),
            price_version: request.prices.version(),
            model: &request.model,
            provider: &request.upstream.identity().provider,
        }
    }

    /// Returns how long a hold that nobody settles stays open before the reaper may end it.
    fn hold_life(&self, request: &CallRequest) -> Duration {
        let deadlines = request.upstream.deadlines();
        let longest = match request.stream {
            Some(_) => deadlines.whole.max(deadlines.stream_head).max(self.stream_life),
            None => deadlines.whole,
        };
        longest + self.hold_grace
    }

    /// Decrypts the provider key of a call whose estimate is charged.
    async fn approve(
        &self,
        hold: OpenHold,
        upstream: &Arc<Upstream>,
        key_id: &str,
        sealed: &str,
    ) -> Result<Approval, Rejection> {
        let owner = SealedFor {
            account: &hold.name.account,
            agent: &hold.name.agent,
            provider: &upstream.identity().provider,
            key_id,
        };
        match self.provider_keys.open(&owner, sealed) {
            Ok(provider_key) => Ok(Approval {
                hold,
                provider_key,
                upstream: Arc::clone(upstream),
            }),
            Err(error) => {
                tracing::error!(provider_key.id = key_id, %error, "a call is denied for its provider key");
                Err(self.holds.release_unsent(hold).await)
            }
        }
    }
}

fn no_streams(plan: &str) -> Refusal {
    Refusal {
        param: Some("stream".to_owned()),
        ..Refusal::new(RefusalKind::StreamNotSupported, no_streaming(plan))
    }
}

#[cfg(test)]
mod tests;
