//! Policies, their combination for an account, and the keys of agents, as the store should hold them.

use super::{Cells, Page, cells};
use crate::model::{Limits, Side, USD};
use crate::snapshot::Shape;
use std::collections::BTreeSet;
use store::keys::{AccountKeys, Realm};

impl Side {
    pub(super) fn policies_in(&self, page: &mut Page, realm: &Realm) {
        let mut wide = Cells::new();
        for (id, policy) in &self.policies {
            let mut record = cells([("id", id), ("name", "n"), ("currency", USD)]);
            record.insert("created_at".to_owned(), policy.made.clone());
            record.insert("updated_at".to_owned(), policy.set.clone());
            record.insert("revision".to_owned(), policy.revision.to_string());
            record.extend(policy.limits.on_record());
            match &policy.agent {
                Some(agent) => drop(record.insert("agent".to_owned(), agent.clone())),
                None => drop(wide.insert(id.clone(), policy.limits.as_line())),
            }
            page.put(realm.policy(id), Shape::Hash(record));
        }
        let order = self
            .policies
            .iter()
            .map(|(id, policy)| (id.clone(), policy.made.clone()));
        page.put(realm.policies(), Shape::Zset(order.collect()));
        page.put(realm.account_policies(), Shape::Hash(wide));
    }

    /// The index of frozen agents.
    pub(super) fn frozen_in(&self, page: &mut Page, realm: &Realm) {
        let frozen = self.agents.iter();
        let frozen = frozen.filter_map(|(id, agent)| Some((id.clone(), agent.frozen_at.clone()?)));
        page.put(realm.frozen_agents(), Shape::Zset(frozen.collect()));
    }

    /// Virtual and provider keys, which are live only.
    pub(super) fn keys_in(&self, page: &mut Page, keys: &AccountKeys) {
        let (mut active, mut sealed) = (Cells::new(), BTreeSet::new());
        for (name, agent) in &self.agents {
            let ids = agent.virtual_keys.iter();
            let of_agent: Cells = ids.map(|id| (id.clone(), "1".to_owned())).collect();
            for id in of_agent.keys() {
                page.put(keys.virtual_key(id), Shape::Hash(cells([("agent", name)])));
            }
            active.extend(of_agent.clone());
            page.put(keys.agent_keys(name), Shape::Zset(of_agent));
            if agent.provider_key {
                sealed.insert(name.clone());
            }
        }
        page.put(keys.active_keys(), Shape::Zset(active));
        page.put(keys.sealed_agents(), Shape::Set(sealed));
    }

    /// The account-wide policies in effect, as fields of the account's record.
    pub(super) fn strictest(&self, mode: &str) -> Cells {
        let Some(limits) = self.account_limits() else {
            return Cells::new();
        };
        let fields = limits.named(
            ["cap", "run", "day", "month", "txn", "approval", "low"],
            |limit| Some(limit.unwrap_or_default()),
        );
        fields
            .into_iter()
            .map(|(name, value)| (format!("{mode}_{name}"), value))
            .collect()
    }

    /// The strictest of the account-wide policies.
    pub fn account_limits(&self) -> Option<Limits> {
        let wide = self.policies.values().filter(|policy| policy.agent.is_none());
        let tighter = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        wide.map(|policy| policy.limits).reduce(|a, b| Limits {
            disabled: a.disabled || b.disabled,
            run: tighter(a.run, b.run),
            day: tighter(a.day, b.day),
            month: tighter(a.month, b.month),
            txn: tighter(a.txn, b.txn),
            approval: tighter(a.approval, b.approval),
            low: a.low.max(b.low),
        })
    }
}

impl Limits {
    fn all(&self) -> [Option<u64>; 6] {
        [self.run, self.day, self.month, self.txn, self.approval, self.low]
    }

    /// The limits under these names; `text` formats a limit, or omits it.
    fn named(&self, names: [&str; 7], text: impl Fn(Option<String>) -> Option<String>) -> Cells {
        let [cap, limits @ ..] = names;
        let limits = limits.into_iter().zip(self.all());
        let written = limits
            .filter_map(|(name, limit)| Some((name.to_owned(), text(limit.map(|nanos| nanos.to_string()))?)));
        let cap = (cap.to_owned(), u8::from(!self.disabled).to_string());
        std::iter::once(cap).chain(written).collect()
    }

    fn on_record(&self) -> Cells {
        let names = [
            "cap",
            "run",
            "day",
            "month",
            "transaction",
            "approval",
            "low_balance",
        ];
        self.named(names, |limit| limit)
    }

    pub(super) fn on_agent(&self) -> Cells {
        let names = [
            "cap",
            "cap_run",
            "cap_day",
            "cap_month",
            "cap_txn",
            "cap_approval",
            "cap_low",
        ];
        self.named(names, |limit| Some(limit.unwrap_or_default()))
    }

    fn as_line(&self) -> String {
        let limits = self
            .all()
            .map(|limit| limit.map_or_else(|| "-".to_owned(), |nanos| nanos.to_string()));
        format!("{} {}", u8::from(!self.disabled), limits.join(" "))
    }
}
