//! Compares the limits of agents and accounts with their policies, and freezes with the list of frozen agents.
//!
//! Calls are judged by the first, and an edge may write it; the second is out of its reach. Each change writes both and
//! its audit entry in one step, so reads between two entries must agree.

use super::book::AccountMode;
use super::drive::{BATCH, Job, drive};
use super::pass::Pass;
use super::violation::Invariant;
use domain::mode::Mode;
use std::collections::{BTreeMap, BTreeSet};
use store::StoreError;
use store::keys::USER;
use store::read::Read;
use store::record_fields::FieldValues;

/// The limits that an agent has from its policy, and the fields of the policy's record.
const LIMITS: [(&str, &str); 7] = [
    ("cap", "cap"),
    ("cap_run", "run"),
    ("cap_day", "day"),
    ("cap_month", "month"),
    ("cap_txn", "transaction"),
    ("cap_approval", "approval"),
    ("cap_low", "low_balance"),
];
/// The same limits in the account's record, after its mode.
const OF_ACCOUNT: [&str; 7] = ["cap", "run", "day", "month", "txn", "approval", "low"];
/// Position of the threshold of a low balance. The highest one is the strictest; of the others the lowest.
const LOW_BALANCE: usize = 6;

/// The limits as texts, in the order of [`LIMITS`]; `None` or empty where there is none.
type LimitTexts = [Option<String>; 7];

/// The records of a violation, and its detail.
pub(super) type PolicyFault = (Vec<String>, String);

/// An agent, and the policies that may be its own.
type JudgedAgent = (String, BTreeSet<String>);

impl Pass<'_> {
    /// Compares limits, freezes and active keys of all accounts.
    pub(super) async fn check_policies(&mut self) -> Result<(), StoreError> {
        for account_mode in self.accounts.account_modes() {
            let agents = self.judged_agents(account_mode).await?;
            self.compare_agents(account_mode, agents).await?;
            self.compare_account(account_mode).await?;
            if account_mode.mode == Mode::Live {
                self.compare_active_keys(account_mode).await?;
            }
        }
        Ok(())
    }

    /// Returns all agents, also those that only a policy or the list of frozen agents names.
    async fn judged_agents(&mut self, account_mode: AccountMode) -> Result<Vec<JudgedAgent>, StoreError> {
        let (store, realm) = (self.store, self.accounts.realm(account_mode));
        let bucket = realm.bucket();
        let mut agents: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let owners = self
            .page(account_mode)
            .owners
            .keys()
            .filter(|owner| owner.as_str() != USER);
        agents.extend(owners.map(|agent| (agent.clone(), BTreeSet::new())));
        for agent in self.members(account_mode, &realm.frozen_agents()).await? {
            agents.entry(agent).or_default();
        }
        let policies = self.members(account_mode, &realm.policies()).await?;
        let reads = policies.into_iter().map(|id| {
            let read = Read::field(bucket, realm.policy(&id), "agent");
            Job::new([read], id)
        });
        drive(store, reads, |id, mut answers| {
            if let Some(agent) = answers.text() {
                agents.entry(agent).or_default().insert(id);
            }
        })
        .await?;
        let mut judged = Vec::with_capacity(agents.len());
        let reads = agents.into_iter().map(|(agent, policies)| {
            let read = Read::field(bucket, realm.agent(&agent), "policy_id");
            Job::new([read], (agent, policies))
        });
        drive(store, reads, |(agent, mut policies), mut answers| {
            policies.extend(answers.text());
            judged.push((agent, policies));
        })
        .await?;
        Ok(judged)
    }

    async fn compare_agents(
        &mut self,
        account_mode: AccountMode,
        agents: Vec<JudgedAgent>,
    ) -> Result<(), StoreError> {
        let realm = self.accounts.realm(account_mode);
        let bucket = realm.bucket();
        let mut of_agent = vec!["policy_id", "frozen"];
        of_agent.extend(LIMITS.map(|(own, _)| own));
        let mut of_policy = vec!["agent"];
        of_policy.extend(LIMITS.map(|(_, set)| set));
        let reads = |(agent, policies): &JudgedAgent| {
            let mut reads = vec![
                Read::fields(bucket, realm.agent(agent), &of_agent),
                Read::score(bucket, realm.frozen_agents(), agent),
            ];
            reads.extend(
                policies
                    .iter()
                    .map(|id| Read::fields(bucket, realm.policy(id), &of_policy)),
            );
            reads
        };
        let mut faults = Vec::new();
        let (_, is_sure) = self
            .read_between_entries(
                account_mode,
                agents,
                reads,
                |(agent, policies), _, mut answers| {
                    let fields = answers.read::<Vec<Option<String>>>().unwrap_or_default();
                    let is_listed = answers.read::<Option<f64>>().flatten().is_some();
                    let Some(own) = Own::from_fields(fields) else {
                        return;
                    };
                    let policies = policies.into_iter().map(|id| {
                        let fields = answers.read::<Vec<Option<String>>>().unwrap_or_default();
                        (id, fields)
                    });
                    let policies: Vec<_> = policies.collect();
                    let key = realm.agent(&agent);
                    if own.is_frozen != is_listed {
                        let detail = match is_listed {
                            true => "the list of frozen agents contains the agent, but it is not frozen",
                            false => "the agent is frozen, but the list of frozen agents lacks it",
                        };
                        faults.push((vec![format!("{key} frozen")], detail.to_owned()));
                    }
                    if let Some((field, detail)) = own.fault(&agent, &policies) {
                        faults.push((vec![format!("{key} {field}")], detail));
                    }
                },
            )
            .await?;
        self.report_policies(account_mode, faults, is_sure, "its agents");
        Ok(())
    }

    async fn compare_account(&mut self, account_mode: AccountMode) -> Result<(), StoreError> {
        let realm = self.accounts.realm(account_mode);
        let names = OF_ACCOUNT.map(|name| format!("{}_{name}", account_mode.mode));
        let reads = |(): &()| {
            vec![
                Read::hash(realm.bucket(), realm.account_policies()),
                Read::fields(realm.bucket(), realm.record(), &names),
            ]
        };
        let mut faults = Vec::new();
        let (_, is_sure) = self
            .read_between_entries(account_mode, vec![()], reads, |(), _, mut answers| {
                let policies = answers.read::<FieldValues>();
                let limits = answers.read::<LimitTexts>().unwrap_or_default();
                let Some(strictest) = policies.and_then(|policies| strictest(policies.values())) else {
                    return faults.push((vec![realm.account_policies()], "it is malformed".to_owned()));
                };
                if let Some(at) = first_difference(&limits, &strictest) {
                    let (is, set) = (shown(&limits[at]), shown(&strictest[at]));
                    let detail = format!("it is {is}, but the strictest of its policies says {set}");
                    faults.push((vec![format!("{} {}", realm.record(), names[at])], detail));
                }
            })
            .await?;
        self.report_policies(account_mode, faults, is_sure, "its policies");
        Ok(())
    }

    /// Reads all members of a sorted set.
    pub(super) async fn members(
        &mut self,
        account_mode: AccountMode,
        key: &str,
    ) -> Result<Vec<String>, StoreError> {
        let bucket = self.accounts.realm(account_mode).bucket();
        let mut members: Vec<String> = Vec::new();
        loop {
            let read = Read::sorted(bucket, key, members.len() as u64, BATCH as u64);
            let mut answers = self.store.many(&[read]).await?;
            let Some(part) = answers.read::<Vec<(String, f64)>>() else {
                self.add_violation(Invariant::Policies, &[key], "it is not a sorted set");
                return Ok(Vec::new());
            };
            let is_last = part.len() < BATCH;
            members.extend(part.into_iter().map(|(member, _)| member));
            if is_last {
                self.count(members.len());
                return Ok(members);
            }
        }
    }

    /// Reports the records that are wrong, and an inconclusive result if some could not be read between two entries.
    pub(super) fn report_policies(
        &mut self,
        account_mode: AccountMode,
        faults: Vec<PolicyFault>,
        is_sure: bool,
        what: &str,
    ) {
        for (records, detail) in faults {
            let records: Vec<&str> = records.iter().map(String::as_str).collect();
            self.add_violation(Invariant::Policies, &records, detail);
        }
        if !is_sure {
            let record = self.accounts.realm(account_mode).record();
            let reason = format!("{what} changed during each read");
            self.add_inconclusive(Invariant::Policies, &[&record], reason);
        }
    }
}

/// Freeze and limits in an agent's record, by which its calls are judged.
struct Own {
    policy: Option<String>,
    is_frozen: bool,
    limits: LimitTexts,
}

impl Own {
    /// Creates it from the agent's policy, freeze and limits; `None` if they could not be read.
    fn from_fields(fields: Vec<Option<String>>) -> Option<Self> {
        let mut fields = fields.into_iter();
        let (policy, frozen) = (fields.next()?, fields.next()?);
        let limits: Vec<Option<String>> = fields.collect();
        Some(Self {
            policy,
            is_frozen: frozen.is_some(),
            limits: limits.try_into().ok()?,
        })
    }

    /// Returns the field that disagrees with the agent's policy, which is among `policies`: ids, and for each the agent
    /// that it is for and its limits.
    fn fault(
        &self,
        agent: &str,
        policies: &[(String, Vec<Option<String>>)],
    ) -> Option<(&'static str, String)> {
        let is_for = |fields: &[Option<String>]| fields.first().cloned().flatten();
        let Some(own) = &self.policy else {
            if self.limits.iter().any(Option::is_some) {
                let detail = "the agent has limits, but no policy";
                return Some(("cap", detail.to_owned()));
            }
            let (id, _) = policies
                .iter()
                .find(|(_, fields)| is_for(fields).as_deref() == Some(agent))?;
            return Some((
                "policy_id",
                format!("the agent has no policy, but {id} is its policy"),
            ));
        };
        // Another one since the agents were read.
        let (_, fields) = policies.iter().find(|(id, _)| id == own)?;
        match is_for(fields) {
            Some(other) if other == agent => {}
            Some(other) => return Some(("policy_id", format!("its policy {own} is that of {other}"))),
            None => return Some(("policy_id", format!("its policy {own} has no record"))),
        }
        let set: LimitTexts = fields.get(1..)?.to_vec().try_into().ok()?;
        let at = first_difference(&self.limits, &set)?;
        let (is, set) = (shown(&self.limits[at]), shown(&set[at]));
        Some((
            LIMITS[at].0,
            format!("it is {is}, but the policy {own} says {set}"),
        ))
    }
}

/// Returns the position of the first limit that differs.
fn first_difference(limits: &LimitTexts, set: &LimitTexts) -> Option<usize> {
    let mut pairs = limits.iter().zip(set);
    pairs.position(|(own, set)| own.as_deref().unwrap_or_default() != set.as_deref().unwrap_or_default())
}

/// Returns a limit as reports show it.
fn shown(limit: &Option<String>) -> &str {
    limit.as_deref().filter(|text| !text.is_empty()).unwrap_or("none")
}

/// Returns the strictest of account-wide policies, as `policy/strictest.lua` writes it; `None` if one is malformed.
fn strictest<'a>(policies: impl Iterator<Item = &'a String>) -> Option<LimitTexts> {
    let mut strictest: Option<LimitTexts> = None;
    for policy in policies {
        let words: Vec<&str> = policy.split(' ').collect();
        let words: [&str; 7] = words.try_into().ok()?;
        let limits = strictest.get_or_insert_with(|| {
            let mut limits = LimitTexts::default();
            limits[0] = Some("1".to_owned());
            limits
        });
        if words[0] != "1" {
            limits[0] = Some("0".to_owned());
        }
        for (at, word) in words.into_iter().enumerate().skip(1) {
            let Ok(other) = word.parse::<u64>() else { continue };
            let own = limits[at].as_ref().and_then(|own| own.parse::<u64>().ok());
            let is_stricter = own.is_none_or(|own| match at {
                LOW_BALANCE => other > own,
                _ => other < own,
            });
            if is_stricter {
                limits[at] = Some(word.to_owned());
            }
        }
    }
    Some(strictest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(words: [&str; 7]) -> LimitTexts {
        words.map(|word| Some(word.to_owned()).filter(|word| !word.is_empty()))
    }

    #[test]
    fn the_strictest_policy_has_the_lowest_limits_and_reports_first() {
        let of = |policies: &[&str]| {
            let policies: Vec<String> = policies.iter().map(|&policy| policy.to_owned()).collect();
            strictest(policies.iter())
        };
        assert_eq!(of(&[]), Some(LimitTexts::default()));
        assert_eq!(
            of(&["1 - 7 9 - - 3"]),
            Some(limits(["1", "", "7", "9", "", "", "3"]))
        );
        assert_eq!(
            of(&["1 - 7 9 - 8 3", "0 5 10 8 - - 4"]),
            Some(limits(["0", "5", "7", "8", "", "8", "4"]))
        );
        assert_eq!(of(&["1 - 7 9"]), None);
    }

    #[test]
    fn an_agent_has_the_limits_of_its_policy() {
        let own = |policy: &str, words| Own {
            policy: Some(policy.to_owned()).filter(|policy| !policy.is_empty()),
            is_frozen: false,
            limits: limits(words),
        };
        let mut record = vec![Some("bot".to_owned())];
        record.extend(limits(["1", "", "5", "", "", "", ""]));
        let policies = [("pol_1".to_owned(), record), ("pol_2".to_owned(), vec![None; 8])];
        let wide = ["1", "", "9", "", "", "", ""];
        let field = |own: Own| own.fault("bot", &policies).map(|(field, _)| field);
        assert_eq!(field(own("pol_1", ["1", "", "5", "", "", "", ""])), None);
        assert_eq!(field(own("pol_1", wide)), Some("cap_day"));
        assert_eq!(field(own("pol_2", wide)), Some("policy_id"));
        assert_eq!(field(own("pol_3", wide)), None, "set since the agents were read");
        assert_eq!(field(own("", wide)), Some("cap"));
        assert_eq!(field(own("", [""; 7])), Some("policy_id"));
        let other = own("pol_1", wide).fault("other", &policies);
        assert_eq!(other.map(|(field, _)| field), Some("policy_id"));
    }
}
