//! Agents and policies, as they should be where money meets them (decisions D14, D15, D20, D22).

use super::audit_entries::event;
use super::{At, Closed, Limits, Model, Place, Policy, Wallet};
use crate::act::ACTOR;
use store::agent::freeze::FrozenBy;
use store::keys::Series;

impl Model {
    pub fn new_agent(&mut self, at: At, agent: &str, most: Option<u64>) -> String {
        let number = self.draw(Series::Wallet, at);
        if self.wallet(at, agent).is_some() {
            return "exists".to_owned();
        }
        let agents = self.sides[at]
            .agents
            .values()
            .filter(|agent| agent.wallet.is_some())
            .count() as u64;
        if most.is_some_and(|most| agents >= most) {
            return "tier_limit".to_owned();
        }
        let (id, made) = (self.names.id("wal_"), self.now());
        self.sides[at].agents.entry(agent.to_owned()).or_default().wallet = Some(Wallet {
            number,
            id: id.clone(),
            awaits: false,
            spend_limit: None,
            made: made.clone(),
            updated: made.clone(),
        });
        self.wallets.push(Place {
            at,
            owner: agent.to_owned(),
            number,
            id,
        });
        self.record(at, event(made, "agent.created", ACTOR, Some(agent)));
        "created".to_owned()
    }

    pub fn delete(&mut self, at: At, agent: &str) -> String {
        let Some(wallet) = self.wallet(at, agent).cloned() else {
            return "missing".to_owned();
        };
        if self.balance(at, wallet.number) != 0 {
            return "holds_money".to_owned();
        }
        if self.pending(at, wallet.number) != 0 {
            return "awaits_deposit".to_owned();
        }
        let open = self.sides[at].open.get(agent);
        if open.is_some_and(|open| !open.is_empty()) {
            return "open_escrows".to_owned();
        }
        let moment = self.now();
        let side = &mut self.sides[at];
        let record = side.agents.get_mut(agent).expect("the agent");
        record.wallet = None;
        record.old.retain(|field, _| is_counter(field));
        record.provider_key = false;
        if super::mode(at) == domain::mode::Mode::Live {
            record.virtual_keys.clear();
        }
        if let Some(policy) = record.policy.take() {
            side.policies.remove(&policy);
        }
        side.closed.push(Closed {
            wallet,
            agent: agent.to_owned(),
            at: moment.clone(),
        });
        self.record(at, event(moment, "agent.deleted", ACTOR, Some(agent)));
        "deleted".to_owned()
    }

    pub fn freeze(&mut self, at: At, agent: &str, by: FrozenBy, lift: bool) -> String {
        if !self.exists(at, agent) {
            return "not_found".to_owned();
        }
        let frozen = self.sides[at].agents[agent].frozen;
        let word = if by == FrozenBy::Operator {
            "operator"
        } else {
            "user"
        };
        let (next, kind) = match (frozen, lift) {
            (None, true) => return "already".to_owned(),
            (Some("operator"), true) if word == "user" => return "not_permitted".to_owned(),
            (Some(_), true) => (None, "agent.unfrozen"),
            (Some(who), false) if who == "operator" || who == word => return "already".to_owned(),
            (_, false) => (Some(word), "agent.frozen"),
        };
        let moment = self.now();
        let record = self.sides[at].agents.entry(agent.to_owned()).or_default();
        record.frozen = next;
        if let Some(wallet) = &mut record.wallet {
            wallet.updated.clone_from(&moment);
        }
        // An operator's freeze of a frozen agent does not move it in the index.
        record.frozen_at = next.map(|_| record.frozen_at.take().unwrap_or_else(|| moment.clone()));
        self.record(at, event(moment, kind, ACTOR, Some(agent)));
        "done".to_owned()
    }

    /// Sets the policy of an agent, or makes an account-wide one named `id`. A policy that is so already stays.
    pub fn set_policy(&mut self, at: At, agent: Option<&str>, limits: Limits, id: &str) -> String {
        let side = &self.sides[at];
        let before = agent
            .and_then(|agent| side.agents.get(agent)?.policy.as_ref())
            .map(|id| &side.policies[id]);
        if before.is_some_and(|before| before.limits == limits) {
            return "set".to_owned();
        }
        let moment = self.now();
        let side = &mut self.sides[at];
        let of_agent = agent.map(|agent| side.agents.entry(agent.to_owned()).or_default());
        let known = of_agent.as_ref().and_then(|agent| agent.policy.clone());
        let id = known.unwrap_or_else(|| id.to_owned());
        if let Some(of_agent) = of_agent {
            of_agent.policy = Some(id.clone());
        }
        let policy = side.policies.entry(id).or_insert(Policy {
            agent: agent.map(str::to_owned),
            limits,
            made: moment.clone(),
            set: String::new(),
            revision: 0,
        });
        (policy.limits, policy.set) = (limits, moment.clone());
        policy.revision += 1;
        self.record(at, event(moment, "policy.set", ACTOR, agent));
        "set".to_owned()
    }

    pub fn drop_policy(&mut self, at: At, id: &str) -> String {
        let Some(policy) = self.sides[at].policies.remove(id) else {
            return "missing".to_owned();
        };
        if let Some(agent) = &policy.agent {
            let agent = self.sides[at].agents.get_mut(agent).expect("the agent");
            agent.policy = None;
        }
        let moment = self.now();
        self.record(
            at,
            event(moment, "policy.deleted", ACTOR, policy.agent.as_deref()),
        );
        "deleted".to_owned()
    }
}

/// Returns true for the counters of an agent, which a deletion keeps.
fn is_counter(field: &str) -> bool {
    if field == "held" {
        return true;
    }
    let (kind, number) = field.split_at(1);
    ["d", "m", "s", "w"].contains(&kind) && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}
