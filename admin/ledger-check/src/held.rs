//! Checks that each agent's held amount is exactly the sum of its open holds.
//!
//! Opening a hold raises the account's version. So the two reads are consistent if the version did not change since the
//! hold ids were listed. Holds that ended in between are in neither.

use super::book::AccountMode;
use super::drive::read_values;
use super::pass::Pass;
use super::violation::Invariant;
use domain::mode::Mode;
use std::collections::{BTreeMap, BTreeSet};
use store::StoreError;
use store::account::ModeField;
use store::call::hold::Hold;
use store::call::unsettled_holds::HoldState;
use store::read::Read;

/// Maximum number of attempts to read an account without a change in between.
const READ_ATTEMPTS: usize = 20;
/// The field of an agent's record.
const HELD: &str = "held";
/// The field of an account's record.
const VERSION: &str = "version";

impl Pass<'_> {
    /// Checks the held amounts of every account with open holds.
    pub(super) async fn check_held(&mut self) -> Result<(), StoreError> {
        let accounts = self.accounts;
        for account_mode in accounts.live() {
            let owners = self.page(account_mode).owners.iter();
            let holding = owners.filter(|(_, owner)| {
                owner.record.as_ref().is_some_and(|record| record.held != Some(0))
                    || owner.holds.iter().any(|hold| hold.state == HoldState::Open)
            });
            let agents: BTreeSet<String> = holding.map(|(name, _)| name.clone()).collect();
            if agents.is_empty() {
                continue;
            }
            // Agents whose amount is not known to be right.
            let mut open = agents;
            for _ in 0..READ_ATTEMPTS {
                if open.is_empty() || self.compare_held(account_mode, &mut open).await? {
                    open.clear();
                    break;
                }
            }
            let realm = accounts.realm(account_mode);
            for agent in &open {
                let record = format!("{} {HELD}", realm.agent(agent));
                let reason = "it differs from its open holds, but calls began during each read";
                self.add_inconclusive(Invariant::Counters, &[&record], reason);
            }
        }
        Ok(())
    }

    /// Checks the held amounts of an account. Returns false if calls began meanwhile, after removing the agents whose
    /// amounts are right from `agents`.
    async fn compare_held(
        &mut self,
        account_mode: AccountMode,
        agents: &mut BTreeSet<String>,
    ) -> Result<bool, StoreError> {
        let (store, realm) = (self.store, self.accounts.realm(account_mode));
        let bucket = realm.bucket();
        let audit_seq = ModeField::AuditSeq.name(Mode::Live);
        let state = Read::fields(bucket, realm.record(), &[VERSION, &audit_seq]);
        let due = Read::sorted(bucket, bucket.due(), 0, u64::from(u32::MAX));
        let mut answers = store.many(&[state, due]).await?;
        let before = answers.read::<Vec<Option<String>>>().unwrap_or_default();
        let listed = answers.read::<Vec<(String, f64)>>().unwrap_or_default();
        let mut ids: BTreeSet<String> = listed.into_iter().map(|(id, _)| id).collect();
        // Also holds that the index lacks.
        for owner in self.page(account_mode).owners.values() {
            let open = owner.holds.iter().filter(|hold| hold.state == HoldState::Open);
            ids.extend(open.map(|hold| hold.id.clone()));
        }
        let mut reads: Vec<Read> = ids.iter().map(|id| Read::text(bucket, bucket.hold(id))).collect();
        let held = |agent: &String| Read::field(bucket, realm.agent(agent), HELD);
        reads.extend(agents.iter().map(held));
        let count = reads.len();
        reads
            .extend([VERSION.to_owned(), audit_seq].map(|field| Read::field(bucket, realm.record(), &field)));
        let (mut values, is_at_once) = read_values(store, &reads).await?;
        let after = values.split_off(count);
        // Records that are read one after the other also miss calls that ended.
        let is_complete = match is_at_once {
            true => after.first() == before.first(),
            false => after == before,
        };
        let mut values = values.into_iter();
        let holds = ids.iter().zip(values.by_ref());
        let sums = held_by_agent(self.accounts.id(account_mode), holds);
        let mut wrong = Vec::new();
        agents.retain(|agent| {
            let held = values.next().flatten();
            let (says, sum) = (
                held.as_deref().unwrap_or("0"),
                sums.get(agent).copied().unwrap_or(0),
            );
            let is_right = says == sum.to_string();
            if !is_right {
                let detail = format!("it is {says} nanos, but its open holds sum to {sum}");
                wrong.push((format!("{} {HELD}", realm.agent(agent)), detail));
            }
            !is_right
        });
        if is_complete {
            for (field, detail) in wrong {
                self.add_violation(Invariant::Counters, &[&field], detail);
            }
        }
        Ok(is_complete)
    }
}

/// Sums the estimates of an account's holds by agent, in nanos. `holds` are ids with their records.
fn held_by_agent<'a>(
    account: &str,
    holds: impl Iterator<Item = (&'a String, Option<String>)>,
) -> BTreeMap<String, u128> {
    let mut sums: BTreeMap<String, u128> = BTreeMap::new();
    let holds = holds.filter_map(|(id, text)| Hold::parse(id, &text?));
    for hold in holds.filter(|hold| hold.name.account == account) {
        *sums.entry(hold.name.agent).or_default() += u128::from(hold.estimate.get());
    }
    sums
}
