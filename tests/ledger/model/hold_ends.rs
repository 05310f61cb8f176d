//! The expected answers of the scripts that end a hold (`settle`, `void`, `reap`), and the state afterwards.

use super::rules::EXPIRED_MAX;
use super::{ChargeState, Model, millis};
use crate::snapshot::Window;
use domain::entry::{EndedBy, HoldOutcome};
use domain::measured::Measured;
use domain::money::Nanos;
use store::call::reap::{KEPT_LIFE, Reaped};
use store::call::settle::{Settle, Settled};
use store::call::void::{TOMBSTONE_LIFE, Voided};
use store::versions::AccountVersion;

impl Model {
    pub fn open(&self, id: &str) -> Option<usize> {
        self.find(id, |state| matches!(state, ChargeState::Open { .. }))
    }

    fn kept(&self, id: &str) -> Option<usize> {
        self.find(id, |state| matches!(state, ChargeState::Kept { .. }))
    }

    fn find(&self, id: &str, of: impl Fn(ChargeState) -> bool) -> Option<usize> {
        self.charges
            .iter()
            .position(|charge| charge.id == id && of(charge.state))
    }

    /// Returns true if there is no trace of this hold, and the account's version is below `as_of`.
    pub fn lost_writes(&self, id: &str, as_of: AccountVersion) -> bool {
        let is_here = self.tombstones.contains_key(id) || self.open(id).or_else(|| self.kept(id)).is_some();
        !is_here && (self.generation, self.version) < (as_of.generation, as_of.version)
    }

    /// The expected answer of `settle`.
    pub fn settle(&mut self, settle: &Settle, ended_by: Option<&EndedBy>, at: Window) -> Settled {
        let (id, outcome) = (settle.name.allow_id.as_str(), settle.outcome);
        let (estimate, cost) = (settle.estimate.get(), settle.cost.get());
        if self.tombstones.contains_key(id) {
            return Settled::Missing;
        }
        let Some(found) = self.open(id).or_else(|| self.kept(id)) else {
            return Settled::Missing;
        };
        let held = self.charges[found].estimate;
        if held != estimate && settle.extension.map(Nanos::get) != Some(held) {
            return Settled::Mismatch;
        }
        // Only a caller that knows the real cost corrects a kept hold.
        let corrected = self.kept(id).is_some() && outcome != HoldOutcome::Estimated;
        let outcome = if corrected {
            HoldOutcome::Corrected
        } else {
            outcome
        };
        self.ended(found, (outcome, cost), (ended_by, settle.measured.as_ref()), at);
        self.charges[found].amount += i128::from(cost) - i128::from(held);
        self.charges[found].state = ChargeState::Settled;
        Settled::Done
    }

    /// Writes the line of an approved call that came to its end.
    fn ended(
        &mut self,
        charge: usize,
        (outcome, cost): (HoldOutcome, u64),
        (ended_by, measured): (Option<&EndedBy>, Option<&Measured>),
        at: Window,
    ) {
        let charge = &self.charges[charge];
        let text = self.hold_text(charge);
        let (outcome, id) = (outcome.as_str(), &charge.id);
        let version = match (ended_by, measured) {
            (_, Some(measured)) if !measured.billing.is_ordinary() => "v4 ",
            (Some(_), _) => "v3 ",
            (None, Some(_)) => "v2 ",
            (None, None) => "",
        };
        let words = [ended_by.map(EndedBy::to_word), measured.map(Measured::to_word)];
        let words: String = words.into_iter().flatten().map(|word| word + " ").collect();
        let line = format!("{version}A {outcome} {cost} {id} {words}{text}");
        self.log.push((at, line));
    }

    /// The expected answer of `void`.
    pub fn void(&mut self, id: &str, at: Window) -> Voided {
        let life = millis(TOMBSTONE_LIFE);
        let found = self.open(id).or_else(|| self.kept(id));
        self.tombstones.insert(id.to_owned(), at.later(life));
        let Some(found) = found else { return Voided::Barred };
        self.ended(found, (HoldOutcome::Voided, 0), (None, None), at);
        let charge = &mut self.charges[found];
        charge.amount = 0;
        charge.state = ChargeState::Voided;
        let name = (charge.agent.clone(), charge.run.clone());
        if let Some(run) = self.runs.get_mut(&name).filter(|_| charge.named) {
            run.calls = run.calls.map(|calls| calls - 1);
            // Nothing else used it, and the caller received that no call was approved.
            if run.by_calls && run.calls == Some(0) && run.denied == 0 && run.status.is_none() {
                self.runs.remove(&name);
                self.listed.remove(&name);
                self.counted_runs.remove(&name);
            }
        }
        Voided::Refunded
    }

    /// The expected answer of `reap`.
    pub fn reap(&mut self, id: &str, at: Window) -> Reaped {
        let Some(found) = self.open(id) else {
            if self.due_extra.get(id).is_some_and(|deadline| *deadline > at.to) {
                return Reaped::Early;
            }
            self.due_extra.remove(id);
            return Reaped::Gone;
        };
        let charge = &mut self.charges[found];
        let ChargeState::Open { due } = charge.state else {
            return Reaped::Gone;
        };
        if due.from > at.to {
            return Reaped::Early;
        }
        assert!(
            due.to <= at.from,
            "a test must not depend on the millisecond: {due:?} {at:?}"
        );
        charge.state = ChargeState::Kept { at };
        let kept = (HoldOutcome::Kept, charge.estimate);
        self.ended(found, kept, (Some(&EndedBy::Worker), None), at);
        let life = millis(KEPT_LIFE);
        let ended = self
            .kept_extra
            .iter()
            .filter(|(_, moment)| **moment + life <= at.to);
        let mut ended: Vec<_> = ended.map(|(id, moment)| (*moment, id.clone())).collect();
        ended.sort_unstable();
        for (_, id) in ended.into_iter().take(EXPIRED_MAX) {
            self.kept_extra.remove(&id);
        }
        Reaped::Kept
    }
}
