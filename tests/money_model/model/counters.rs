//! Counters of a spend: earlier charges, the plan's slots, the policy in effect.

use super::{Agent, At, Charge, Limits, Model, mode};
use domain::mode::Mode;

impl Model {
    fn charged(&self, at: At, agent: &str, of: impl Fn(&Charge) -> bool) -> i128 {
        let charges = self.sides[at].charges.iter();
        charges
            .filter(|charge| charge.agent == agent && of(charge))
            .map(|charge| i128::from(charge.amount))
            .sum()
    }

    pub fn run_spent(&self, at: At, agent: &str, run: &str) -> i128 {
        self.charged(at, agent, |charge| charge.run.as_deref() == Some(run))
    }

    pub fn day_spent(&self, at: At, agent: &str, day: u64) -> i128 {
        self.charged(at, agent, |charge| charge.period.day == day)
    }

    pub fn month_spent(&self, at: At, agent: &str, month: u64) -> i128 {
        self.charged(at, agent, |charge| charge.period.month == month)
    }

    pub fn wallet_spent(&self, at: At, agent: &str, day: u64) -> i128 {
        self.charged(at, agent, |charge| charge.from_wallet && charge.period.day == day)
    }

    /// The plan's tracked USD: live charges.
    pub fn tracked(&self, at: At, month: u64) -> i128 {
        let charges = self.sides[at]
            .charges
            .iter()
            .filter(|charge| charge.period.month == month);
        let sum = charges.map(|charge| i128::from(charge.amount)).sum();
        if mode(at) == Mode::Live { sum } else { 0 }
    }

    /// Whether the agent has one of the plan's slots of `month`.
    pub fn has_slot(&self, at: At, agent: &str, month: u64) -> bool {
        let side = &self.sides[at];
        let old = side.agents.get(agent).map(|agent| &agent.old);
        let kept = old.is_some_and(|old| old.contains_key(&format!("s{month}")));
        let is_in_month = |charge: &Charge| charge.agent == agent && charge.period.month == month;
        let is_taken = kept || side.charges.iter().any(is_in_month);
        is_taken && mode(at) == Mode::Live
    }

    /// Number of agents that took a slot in `month`.
    pub fn slots(&self, at: At, month: u64) -> u64 {
        let took = |agent: &&String| self.has_slot(at, agent, month);
        self.sides[at].agents.keys().filter(took).count() as u64
    }

    /// The policy in effect and its id.
    pub fn effective(&self, at: At, agent: &str) -> Option<(Limits, String)> {
        let side = &self.sides[at];
        match side.agents.get(agent).and_then(|agent| agent.policy.clone()) {
            Some(id) => Some((side.policies[&id].limits, id)),
            None => Some((side.account_limits()?, "account-policies".to_owned())),
        }
    }

    /// Returns true if the agent exists (decision D22).
    pub fn exists(&self, at: At, agent: &str) -> bool {
        let has = |agent: &Agent| {
            let keys = mode(at) == Mode::Live && !agent.virtual_keys.is_empty();
            agent.wallet.is_some() || agent.policy.is_some() || agent.provider_key || keys
        };
        self.sides[at].agents.get(agent).is_some_and(has)
    }
}
