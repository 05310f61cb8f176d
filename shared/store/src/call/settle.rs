//! Twin of `settle.lua`: replaces the estimate of a hold by the real cost.

use crate::call::hold::{END_HOLD, EndKeys, HoldKeys, HoldName, LOST_WRITES};
use crate::script::{script, with_fragments};
use crate::versions::AccountVersion;
use crate::{Store, StoreError};
use domain::entry::{EndedBy, HoldOutcome};
use domain::measured::Measured;
use domain::money::Nanos;

script! {
    /// Replaces the estimate of a hold by the real cost.
    pub static SETTLE = "settle",
    kind: Timed,
    source: [&with_fragments(include_str!("settle.lua"), &[LOST_WRITES, END_HOLD])],
    when_full: Run,
    keys: EndKeys,
    /// Amounts are nano-USD. `measured` is the word of [`Measured`] or empty, `ended_by` that of
    /// [`EndedBy`] or empty. `as_of` and `extension` may be empty. The [`RARE`] last ones are omitted if all are empty.
    args: struct SettleArgs<'a>: &'a str {
        allow_id, estimate, cost, outcome, measured, as_of, extension, ended_by
    },
}

/// Number of arguments that hardly any settlement has.
const RARE: usize = 3;

/// Settles the hold of `name` from `estimate` to `cost`: the real cost, the estimate if it stays charged, or zero if it
/// is released. Safe to repeat: a missing hold changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// Identifies the hold to settle.
    pub name: HoldName,
    /// Charged estimate.
    pub estimate: Nanos,
    /// Final charge.
    pub cost: Nanos,
    /// Outcome of the call. The audit log has `corrected` instead for a kept hold.
    pub outcome: HoldOutcome,
    /// Another possible estimate of the hold: that of an [extension](super::extend) whose reply was lost. The counters
    /// move by the difference from the estimate that the hold has.
    pub extension: Option<Nanos>,
    /// Measurements of the call for the audit log; `None` if unknown.
    pub measured: Option<Measured>,
    /// Named in the audit log; `None` if the hold's edge settles.
    pub ended_by: Option<EndedBy>,
}

domain::words! {
    /// Outcome of the script.
    pub enum Settled {
        /// The counters moved by the difference, and the hold is removed.
        Done = "done",
        /// There is no such hold: it was settled or voided. Without a version in [`execute`](Settle::execute) the store
        /// may also be another ledger, or have lost the hold.
        Missing = "missing",
        /// The hold has neither of the expected estimates; nothing changed.
        Mismatch = "mismatch",
    }
}

impl Settle {
    /// Executes the script. Safe to retry. `keys` are those of `name`. With `as_of`, a missing hold is accepted only
    /// from an account whose version is at least that.
    pub async fn execute(
        &self,
        keys: &HoldKeys,
        as_of: Option<AccountVersion>,
        store: &Store,
    ) -> Result<Settled, StoreError> {
        debug_assert_eq!(keys, &self.name.keys(), "the keys are of this hold");
        let mut digits = [itoa::Buffer::new(); 2];
        let [estimate, cost] = &mut digits;
        let measured = self.measured.as_ref().map(Measured::to_word);
        let extension = self.extension.map(|nanos| nanos.get().to_string());
        let ended_by = self.ended_by.as_ref().map(EndedBy::to_word);
        let as_of = as_of.map(AccountVersion::to_arg).unwrap_or_default();
        let args = SettleArgs {
            allow_id: &self.name.allow_id,
            estimate: estimate.format(self.estimate.get()),
            cost: cost.format(self.cost.get()),
            outcome: self.outcome.as_str(),
            measured: measured.as_deref().unwrap_or_default(),
            as_of: &as_of,
            extension: extension.as_deref().unwrap_or_default(),
            ended_by: ended_by.as_deref().unwrap_or_default(),
        };
        let args = args.into_values();
        let (usual, rare) = args.split_at(args.len() - RARE);
        let sent = if rare.iter().all(|arg| arg.is_empty()) {
            usual
        } else {
            &args
        };
        let reply: String = store.script(&SETTLE, &keys.to_end().into_values(), sent).await?;
        parse(&reply)
    }
}

/// Parses the reply. An unknown word is an error: the hold may still be open.
fn parse(reply: &str) -> Result<Settled, StoreError> {
    match reply {
        "settled" => Ok(Settled::Done),
        "missing" => Ok(Settled::Missing),
        "mismatch" => Ok(Settled::Mismatch),
        "lost_writes" => Err(StoreError::LacksWrites),
        _ => Err(StoreError::unexpected("settle")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        for (reply, outcome) in [
            ("settled", Settled::Done),
            ("missing", Settled::Missing),
            ("mismatch", Settled::Mismatch),
        ] {
            assert_eq!(parse(reply).unwrap(), outcome, "{reply}");
        }
        assert!(matches!(parse("lost_writes"), Err(StoreError::LacksWrites)));
        for reply in ["", "done", "settled 1"] {
            assert!(
                matches!(parse(reply), Err(StoreError::UnexpectedReply(_))),
                "{reply}"
            );
        }
    }
}
