//! The expected answer of `extend`, and the state afterwards.

use super::{CEILING, Charge, ChargeState, Extension, Model, millis};
use crate::snapshot::Window;
use domain::cap::{self, CapSnapshot};
use domain::money::Nanos;
use store::call::extend::Extended;

impl Model {
    /// The expected answer of `extend`; `None` if the store lacks writes. Updates the model.
    pub fn extend(&mut self, extension: &Extension, at: Window) -> Option<Extended> {
        let known = &extension.view;
        if (self.generation, self.version) < (known.generation, known.version) {
            return None;
        }
        let Some(found) = self.open(&extension.name.allow_id) else {
            return Some(Extended::Missing);
        };
        let to = extension.to.max(extension.from);
        let estimate = self.charges[found].estimate;
        if estimate != to {
            if estimate != extension.from {
                return Some(Extended::Mismatch);
            }
            if let Some(refused) = self.refuses(extension, found, to - estimate) {
                return Some(refused);
            }
            let due = at.later(millis(extension.hold_life));
            let charge = &mut self.charges[found];
            charge.estimate = to;
            charge.amount += i128::from(to - estimate);
            charge.state = ChargeState::Open { due };
            self.version += 1;
        }
        Some(Extended::Extended {
            as_of: self.view().as_of(),
        })
    }

    /// The state that Cap checks, with what is spent in the run, the day, the month and by the account, and the slots.
    pub(super) fn cap_snapshot(
        &self,
        agent: &str,
        spent: [i128; 4],
        (has_slot, slots_used): (bool, u64),
    ) -> CapSnapshot {
        let stored = |sum: i128| Nanos::from_stored(u64::try_from(sum).expect("no counter is negative"));
        let [run_spent, day_spent, month_spent, tracked_spent] = spent.map(stored);
        CapSnapshot {
            frozen: self.agents.get(agent).is_some_and(|agent| agent.frozen),
            run_spent,
            day_spent,
            month_spent,
            has_slot,
            slots_used,
            tracked_spent,
        }
    }

    /// The reason why a hold may not be extended by this amount.
    fn refuses(&self, extension: &Extension, found: usize, by: u64) -> Option<Extended> {
        let is_active = self.active.iter().any(|(_, key)| *key == extension.key_id);
        if !is_active {
            return Some(Extended::Revoked);
        }
        if self.plan != extension.view.plan {
            let plan = self.plan.clone();
            return Some(Extended::OtherPlan { plan });
        }
        let charge = &self.charges[found];
        let spent = self.spent_with(charge);
        let snapshot = self.cap_snapshot(&charge.agent, spent, (true, 0));
        let policy = self.effective(&charge.agent);
        if let Err(denial) = cap::decide(
            policy.as_ref(),
            &extension.plan.cap(),
            &snapshot,
            Nanos::from_stored(by),
        ) {
            return Some(Extended::Denied(denial));
        }
        let held = self.held(|other| other.agent == charge.agent);
        let top = spent.into_iter().fold(i128::from(held), i128::max);
        (top + i128::from(by) > CEILING).then_some(Extended::TooMuch)
    }

    /// The charged totals of the run, day, month and account of a charge, itself included.
    fn spent_with(&self, charge: &Charge) -> [i128; 4] {
        let (agent, period) = (&charge.agent, charge.period);
        let of_run = (charge.agent.clone(), charge.run.clone());
        let run = if charge.named && self.runs.contains_key(&of_run) {
            self.run_spent(agent, &charge.run)
        } else {
            charge.amount
        };
        [
            run,
            self.sum(|other| other.agent == *agent && other.period.day == period.day),
            self.sum(|other| other.agent == *agent && other.period.month == period.month),
            self.sum(|other| other.period.month == period.month),
        ]
    }
}
