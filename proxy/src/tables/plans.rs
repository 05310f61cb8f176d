//! The plans in force.

use arc_swap::ArcSwap;
use domain::plan::{Plan, Plans};
use std::collections::BTreeMap;
use std::sync::Arc;
use telemetry::PacedLine;

/// A plan with the data that answers show.
#[derive(Debug, Clone)]
pub struct PlanLimits {
    /// Empty for the plan of an account that was never seen.
    pub name: String,
    /// The limits that the edge sends with each call.
    pub plan: Plan,
    /// Absolute URL of the page where the plan can be changed.
    pub upgrade_url: Option<String>,
}

/// The plans in force, by name.
pub struct PlanTable {
    plans: ArcSwap<BTreeMap<String, Arc<PlanLimits>>>,
    unknown: Arc<PlanLimits>,
    public_url: String,
}

impl PlanTable {
    /// Creates the table. `public_url` is the base of relative upgrade URLs.
    pub fn new(plans: &Plans, public_url: String) -> Self {
        Self {
            plans: ArcSwap::from_pointee(by_name(plans, &public_url)),
            unknown: Arc::new(unknown()),
            public_url,
        }
    }

    /// Returns the plan of an account; `None` if the table has no plan of this name, which is logged: the call is
    /// denied (decision D7), and only the operator can mend that. The empty name stands for the plan of an account that
    /// was never seen: the store replies with the account's plan and checks nothing.
    pub fn get(&self, name: &str, account: &str) -> Option<Arc<PlanLimits>> {
        if name.is_empty() {
            return Some(Arc::clone(&self.unknown));
        }
        let plan = self.plans.load().get(name).cloned();
        // No rate is counted without a plan, so nothing else bounds these lines.
        static LINE: PacedLine = PacedLine::new();
        if plan.is_none()
            && let Some(left_out) = LINE.due()
        {
            tracing::error!(
                plan = name,
                account,
                left_out,
                "the account's plan is not in plans.file"
            );
        }
        plan
    }

    /// Replaces the plans in force. Returns the names of those that are gone, in alphabetical order.
    pub fn replace(&self, plans: &Plans) -> Vec<String> {
        let before = self.plans.swap(Arc::new(by_name(plans, &self.public_url)));
        let gone = plans.absent(before.keys().map(String::as_str));
        gone.into_iter().map(str::to_owned).collect()
    }
}

/// Returns limits that admit no call, in case an account's record names no plan at all.
fn unknown() -> PlanLimits {
    let plan = Plan {
        active_virtual_keys: Some(0),
        ..Plan::default()
    };
    PlanLimits {
        name: String::new(),
        plan,
        upgrade_url: None,
    }
}

fn by_name(plans: &Plans, public_url: &str) -> BTreeMap<String, Arc<PlanLimits>> {
    let limits = |name: &str| {
        let plan = plans.get(name)?.clone();
        let limits = PlanLimits {
            name: name.to_owned(),
            upgrade_url: plan.absolute_upgrade_url(public_url),
            plan,
        };
        Some((name.to_owned(), Arc::new(limits)))
    };
    plans.names().filter_map(limits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::plan::DEFAULT_PLANS;

    #[test]
    fn an_account_without_a_plan_has_limits_that_admit_no_call() {
        let table = PlanTable::new(&Plans::parse(DEFAULT_PLANS).unwrap(), "https://t".to_owned());
        let unknown = table.get("", "a").unwrap();
        assert_eq!(unknown.plan.active_virtual_keys, Some(0));
        assert!(table.get("no such plan", "a").is_none());
        assert_eq!(table.get("free", "a").unwrap().name, "free");
    }

    #[test]
    fn plans_that_are_gone_are_named() {
        let table = PlanTable::new(&Plans::parse("[a]\n[b]\n[c]\n").unwrap(), "https://t".to_owned());
        assert_eq!(table.replace(&Plans::parse("[b]\n[d]\n").unwrap()), ["a", "c"]);
        assert!(
            table
                .replace(&Plans::parse("[b]\n[d]\n[e]\n").unwrap())
                .is_empty()
        );
    }
}
