//! Checks that each agent's held amount is exactly the sum of its open holds.
//!
//! Opening a hold raises the account's version, and ending one writes a line to its audit log. So data that was read
//! while neither changed is consistent.

use super::book::AccountMode;
use super::pass::Pass;
use super::violation::Invariant;
use domain::mode::Mode;
use std::collections::{BTreeMap, BTreeSet};
use store::StoreError;
use store::account::ModeField;
use store::call::hold::Hold;
use store::call::open_holds::State;
use store::read::Read;

/// Maximum number of attempts to read an account without a change in between. An account that always changes is not
/// checked.
const ATTEMPTS: usize = 20;
/// The field of an agent's record.
const HELD: &str = "held";

impl Pass<'_> {
    /// Checks the held amounts of every account with open holds.
    pub(super) async fn check_held(&mut self) -> Result<(), StoreError> {
        let accounts = self.accounts;
        for place in accounts.places().filter(|place| place.mode == Mode::Live) {
            let owners = self.page(place).owners.iter();
            let holding = owners.filter(|(_, owner)| {
                owner.record.as_ref().is_some_and(|record| record.held != Some(0))
                    || owner.holds.iter().any(|hold| hold.state == State::Open)
            });
            let agents: BTreeSet<String> = holding.map(|(name, _)| name.clone()).collect();
            if agents.is_empty() {
                continue;
            }
            for _ in 0..ATTEMPTS {
                if self.compare_held(place, &agents).await? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Checks the held amounts of an account. Returns false if it changed meanwhile.
    async fn compare_held(
        &mut self,
        place: AccountMode,
        agents: &BTreeSet<String>,
    ) -> Result<bool, StoreError> {
        let (store, realm) = (self.store, self.accounts.realm(place));
        let bucket = realm.bucket();
        let state_fields = ["version".to_owned(), ModeField::AuditSeq.name(Mode::Live)];
        let state = || Read::fields(bucket, realm.record(), &state_fields);
        let due = Read::sorted(bucket, bucket.due(), 0, u64::from(u32::MAX));
        let mut answers = store.many(&[state(), due]).await?;
        let before = answers.read::<(Option<String>, Option<String>)>();
        let listed = answers.read::<Vec<(String, f64)>>().unwrap_or_default();
        let mut ids: BTreeSet<String> = listed.into_iter().map(|(id, _)| id).collect();
        // Also holds that the index lacks.
        for owner in self.page(place).owners.values() {
            let open = owner.holds.iter().filter(|hold| hold.state == State::Open);
            ids.extend(open.map(|hold| hold.id.clone()));
        }
        let texts: Vec<Read> = ids.iter().map(|id| Read::text(bucket, bucket.hold(id))).collect();
        let mut answers = store.many(&texts).await?;
        let mut sums: BTreeMap<String, u128> = BTreeMap::new();
        for agent in agents {
            sums.insert(realm.agent(agent), 0);
        }
        for id in &ids {
            let text = answers.text();
            let hold = text.and_then(|text| Hold::parse(id, &text));
            let Some(hold) = hold.filter(|hold| hold.name.account == self.accounts.id(place)) else {
                continue;
            };
            let agent = realm.agent(&hold.name.agent);
            *sums.entry(agent).or_default() += u128::from(hold.estimate.get());
        }
        let mut reads: Vec<Read> = sums.keys().map(|key| Read::field(bucket, key, HELD)).collect();
        reads.push(state());
        let mut answers = store.many(&reads).await?;
        let mut wrong = Vec::new();
        for (key, sum) in sums {
            let held = answers.text();
            let says = held.as_deref().unwrap_or("0");
            if says != sum.to_string() {
                let detail = format!("it is {says} nanos, but its open holds sum to {sum}");
                wrong.push((format!("{key} {HELD}"), detail));
            }
        }
        if answers.read::<(Option<String>, Option<String>)>() != before {
            return Ok(false);
        }
        for (field, detail) in wrong {
            self.wrong(Invariant::Counters, &[&field], detail);
        }
        Ok(true)
    }
}
