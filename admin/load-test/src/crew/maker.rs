//! Agents, policies and keys that are made for a run in an account of one's own, and put away after it.

use super::super::kind::Kind;
use super::{Agent, Crew, KEYS_MAX};
use crate::error::BenchError;
use clock::now_ms;
use crypto::seal::{SealedFor, Sealer};
use crypto::virtual_key::{self, CheckSecret, WellFormed};
use domain::id::Kind as Id;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::plan::Plans;
use secrecy::{ExposeSecret, SecretString};
use std::time::{Duration, Instant};
use store::Store;
use store::account::Account;
use store::agent::freeze::{Authority, Freeze, Frozen, set_frozen};
use store::agent::script::PlanLimit;
use store::audit::OPERATOR;
use store::policy::script as policy;
use store::policy::script::{Expected, PolicySet};
use store::provider_key::NewProviderKey;
use store::script::change::Scope;
use store::virtual_key::script::{Created, NewVirtualKey, revoke};

/// What agents of a run call the provider with unless another key is given: a sandbox takes any.
pub const STAND_IN: &str = "sk-tollgate-load-test";

/// Attempts when the account's plan changes meanwhile.
const PLAN_ATTEMPTS: usize = 4;
/// How keys of a run are called.
const NAME: &str = "load test";
/// Putting away ends when nothing at all could be put away for so long: each success removes one thing, so this bounds it.
const PATIENCE: Duration = Duration::from_secs(15);
/// Between two rounds of what could not be put away.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// Most things of [`LeftOver`] that are named one by one.
const NAMED_MAX: usize = 100;

/// What was made for the run, the most dangerous to leave first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Made {
    ProviderKey { agent: String, id: String },
    Key { agent: String, id: String },
    Policy { id: String },
}

impl std::fmt::Display for Made {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ProviderKey { agent, id } => write!(out, "provider key {id} of agent {agent}"),
            Self::Key { agent, id } => write!(out, "virtual key {id} of agent {agent}"),
            Self::Policy { id } => write!(out, "policy {id}"),
        }
    }
}

/// What of a run could not be put away.
#[derive(Debug, thiserror::Error)]
#[error("{} of the run could not be put away ({why}): {}", self.count(), self.named())]
pub struct LeftOver {
    left: Vec<String>,
    why: BenchError,
}

impl LeftOver {
    fn count(&self) -> String {
        match self.left.len() {
            1 => "1 thing".to_owned(),
            count => format!("{count} things"),
        }
    }

    fn named(&self) -> String {
        let named = self.left[..self.left.len().min(NAMED_MAX)].join(", ");
        match self.left.len().saturating_sub(NAMED_MAX) {
            0 => named,
            more => format!("{named}, and {more} more"),
        }
    }

    /// Each thing that is left.
    #[must_use]
    pub fn left(&self) -> &[String] {
        &self.left
    }
}

/// What makes a crew of an account.
#[derive(Debug)]
pub struct Maker<'a> {
    /// The store.
    pub store: &'a Store,
    /// Under which the provider key is sealed.
    pub sealer: &'a Sealer,
    /// Under which virtual keys are made.
    pub check_secret: &'a CheckSecret,
    /// The plans.
    pub plans: &'a Plans,
    /// The edge's provider.
    pub provider: &'a str,
    /// The account.
    pub account: &'a str,
    /// Agents of approved calls.
    pub agents: usize,
    /// Keys of approved calls; as many as the plan's rate needs when not given.
    pub keys: Option<usize>,
    /// The highest rate of the run, calls a second.
    pub rate: u32,
    /// Their daily cap.
    pub cap: Option<Nanos>,
    /// What they call the provider with.
    pub provider_key: &'a SecretString,
    /// Whether calls to be denied are made too.
    pub denials: bool,
}

impl Maker<'_> {
    fn scope(&self) -> Scope<'_> {
        Scope {
            account: self.account,
            mode: Mode::Live,
            actor: OPERATOR,
        }
    }

    /// Makes the crew. What was made before something failed, or may have been made although no answer came, is in the crew
    /// that is passed in, to be put away.
    ///
    /// # Errors
    /// [`BenchError::Refused`] when the account or its plan does not allow it.
    pub async fn make(&self, crew: &mut Crew) -> Result<(), BenchError> {
        let account = Account::read(self.store, self.account).await?;
        let account =
            account.ok_or_else(|| BenchError::Refused(format!("there is no account {}", self.account)))?;
        let keys = self.keys.unwrap_or_else(|| self.keys_needed(&account.plan));
        let run = Id::Request.mint(now_ms()).map_err(refused)?;
        let run = run.trim_start_matches("req_").to_lowercase();
        let name = |word: &str| format!("load-{run}-{word}");
        let agents = self.agents.min(keys).max(1);
        for number in 0..agents {
            let agent = name(&(number + 1).to_string());
            self.make_agent(crew, &agent, self.cap).await?;
            for _ in (number..keys.max(1)).step_by(agents) {
                self.make_key(crew, Kind::Approved, &agent).await?;
            }
        }
        let (_, key) = crew.of_kind(Kind::Approved).swap_remove(0);
        crew.add(Kind::Malformed, self.agent(&name("1")), key);
        if !self.denials {
            return Ok(());
        }
        for kind in [Kind::Frozen, Kind::Revoked, Kind::OverCap] {
            let agent = name(kind.as_str());
            let cap = (kind == Kind::OverCap).then_some(Nanos::ZERO);
            self.make_agent(crew, &agent, cap).await?;
            let key = self.make_key(crew, kind, &agent).await?;
            let scope = self.scope();
            match kind {
                Kind::Frozen => {
                    let freeze = Freeze::By(Authority::Operator);
                    let frozen = set_frozen(self.store, &scope, &agent, freeze).await?;
                    if !matches!(frozen, Frozen::Done | Frozen::AlreadySo) {
                        let message = format!("agent {agent} could not be frozen");
                        return Err(BenchError::Refused(message));
                    }
                }
                Kind::Revoked => drop(revoke(self.store, &scope, &agent, &key).await?),
                _ => {}
            }
        }
        Ok(())
    }

    fn agent(&self, id: &str) -> Agent {
        Agent {
            account: self.account.to_owned(),
            id: id.to_owned(),
        }
    }

    /// As many keys as the plan's rate of one needs, and a quarter more.
    fn keys_needed(&self, plan: &str) -> usize {
        let limit = self
            .plans
            .get(plan)
            .and_then(|plan| plan.proxy_requests_per_minute);
        match limit {
            None | Some(0) => self.agents,
            Some(limit) => {
                let needed = (u64::from(self.rate) * 75).div_ceil(limit);
                usize::try_from(needed)
                    .unwrap_or(KEYS_MAX)
                    .clamp(self.agents, KEYS_MAX)
            }
        }
    }

    async fn make_agent(&self, crew: &mut Crew, agent: &str, cap: Option<Nanos>) -> Result<(), BenchError> {
        let given = |name, value: &str| (name, Some(value.to_owned()));
        let mut changes = vec![given("cap", "1")];
        changes.extend(cap.map(|cap| ("day", Some(cap.get().to_string()))));
        let defaults = [
            given("name", NAME),
            given("currency", "USD"),
            given("agent", agent),
        ];
        let id = Id::Policy.mint(now_ms()).map_err(refused)?;
        let scope = self.scope();
        crew.made.push(Made::Policy { id: id.clone() });
        let set = policy::set(
            self.store,
            &scope,
            Some(agent),
            &changes,
            &defaults,
            &id,
            &Expected::None,
        );
        match set.await? {
            PolicySet::Done(_) => {}
            PolicySet::TooMany | PolicySet::Unexpected => {
                return Err(BenchError::Refused(format!("agent {agent} has a policy already")));
            }
        }
        let key_id = Id::ProviderKey.mint(now_ms()).map_err(refused)?;
        if self.provider_key.expose_secret() != STAND_IN {
            crew.made.push(Made::ProviderKey {
                agent: agent.to_owned(),
                id: key_id.clone(),
            });
        }
        self.store_provider_key(agent, &key_id, self.provider_key).await
    }

    async fn store_provider_key(
        &self,
        agent: &str,
        key_id: &str,
        key: &SecretString,
    ) -> Result<(), BenchError> {
        let owner = SealedFor {
            account: self.account,
            agent,
            provider: self.provider,
            key_id,
        };
        let sealed = self.sealer.seal(&owner, key).map_err(refused)?;
        let text = key.expose_secret();
        let new = NewProviderKey {
            agent,
            provider: self.provider,
            key_id,
            sealed: &sealed,
            last4: &text[text.len().saturating_sub(4)..],
        };
        new.store(self.store, &self.scope()).await?;
        Ok(())
    }

    /// Makes a key; its id.
    async fn make_key(&self, crew: &mut Crew, kind: Kind, agent: &str) -> Result<String, BenchError> {
        let secret = virtual_key::mint(self.check_secret).map_err(refused)?;
        let formed = WellFormed::parse(secret.expose_secret().as_bytes());
        let formed = formed.ok_or_else(|| BenchError::Refused("a key came out malformed".to_owned()))?;
        let key_id = Id::VirtualKey.mint(now_ms()).map_err(refused)?;
        crew.made.push(Made::Key {
            agent: agent.to_owned(),
            id: key_id.clone(),
        });
        let mut plan = String::new();
        for _ in 0..PLAN_ATTEMPTS {
            let limits = self.plans.get(&plan);
            let new = NewVirtualKey {
                agent,
                key_id: &key_id,
                name: NAME,
                secret: formed,
                limit: PlanLimit {
                    plan: &plan,
                    most: limits.and_then(|limits| limits.active_virtual_keys),
                },
            };
            match new.create(self.store, &self.scope()).await? {
                Created::Done { .. } => {
                    crew.add(kind, self.agent(agent), secret.clone());
                    return Ok(key_id);
                }
                Created::PlanLimit => {
                    return Err(BenchError::Refused(format!(
                        "the plan `{plan}` allows no more virtual keys: revoke some, give fewer --keys, or take an account \
                         on a larger plan"
                    )));
                }
                Created::OtherPlan(other) => plan = other,
            }
        }
        Err(BenchError::Refused(
            "the account's plan keeps changing".to_owned(),
        ))
    }
}

impl Made {
    /// Revokes, deletes, or puts a stand-in in its place. What is gone already, or never came to be, is as it should be.
    async fn put_away(&self, maker: &Maker<'_>) -> Result<(), BenchError> {
        let scope = maker.scope();
        match self {
            Self::ProviderKey { agent, id } => {
                let nothing = SecretString::from(STAND_IN);
                maker.store_provider_key(agent, id, &nothing).await?;
            }
            Self::Key { agent, id } => drop(revoke(maker.store, &scope, agent, id).await?),
            Self::Policy { id } => drop(policy::delete(maker.store, &scope, id).await?),
        }
        Ok(())
    }
}

impl Crew {
    /// Puts a stand-in in the place of the provider keys, revokes the virtual keys and deletes the policies that were made for
    /// the run, in this order. Each is tried, also after another failed, and again until nothing went for [`PATIENCE`].
    /// What was spent, and the audit trail, stay.
    ///
    /// # Errors
    /// [`LeftOver`] names what stays.
    pub async fn put_away(&self, maker: &Maker<'_>) -> Result<(), LeftOver> {
        let mut left: Vec<&Made> = self.made.iter().collect();
        left.sort();
        let mut last_success = Instant::now();
        loop {
            let (mut still, mut why) = (Vec::new(), None);
            for (number, made) in left.iter().enumerate() {
                if why.is_some() && last_success.elapsed() > PATIENCE {
                    still.extend_from_slice(&left[number..]);
                    break;
                }
                match made.put_away(maker).await {
                    Ok(()) => last_success = Instant::now(),
                    Err(error) => {
                        still.push(*made);
                        why = Some(error);
                    }
                }
            }
            let Some(why) = why else { return Ok(()) };
            if last_success.elapsed() > PATIENCE {
                let left = still.iter().map(ToString::to_string).collect();
                return Err(LeftOver { left, why });
            }
            left = still;
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }
}

fn refused(error: impl std::fmt::Display) -> BenchError {
    BenchError::Refused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named_the_most_dangerous_first() {
        let (agent, id) = ("load-1".to_owned(), "x".to_owned());
        let mut all = [
            Made::Policy { id: id.clone() },
            Made::Key {
                agent: agent.clone(),
                id: id.clone(),
            },
            Made::ProviderKey { agent, id },
        ];
        all.sort();
        let left: Vec<String> = all.iter().map(ToString::to_string).collect();
        let why = || BenchError::Refused("it is away".to_owned());
        let said = LeftOver { left, why: why() }.to_string();
        assert_eq!(
            said,
            "3 things of the run could not be put away (it is away): provider key x of agent load-1, \
             virtual key x of agent load-1, policy x"
        );
        let left = vec!["a".to_owned(); NAMED_MAX + 7];
        let said = LeftOver { left, why: why() }.to_string();
        assert!(
            said.starts_with("107 things ") && said.ends_with(", and 7 more"),
            "{said}"
        );
    }
}
