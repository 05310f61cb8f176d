//! Decisions on calls: the types of their audit entries, and the ids of denials.

use crate::denial::{Denial, DenialStage};
use crate::id::IdKind;

/// Type of the entry of an approved call.
pub const APPROVED: &str = "decision.approved";
/// Type of the entry of a denied call.
pub const DENIED: &str = "decision.denied";
/// Type of the entry of an approval that did not reach the edge.
pub const VOIDED: &str = "decision.voided";

/// Returns the kind of a denial's id: `allow_…` if Cap decided, `deny_…` for earlier checks.
pub const fn denial_kind(denial: Denial) -> IdKind {
    match denial.stage() {
        DenialStage::BeforeCap => IdKind::Deny,
        DenialStage::Cap | DenialStage::Plan => IdKind::Allow,
    }
}

/// Returns the id of a denial: the id of the hold, with the prefix of the [kind](denial_kind).
pub fn denial_id(denial: Denial, hold_id: &str) -> String {
    hold_id.replacen(IdKind::Allow.prefix(), denial_kind(denial).prefix(), 1)
}

/// Returns the id of the hold for a `deny_…` id, the inverse of [`denial_id`]; `None` for another kind of id.
pub fn hold_id(deny_id: &str) -> Option<String> {
    let random = deny_id.strip_prefix(IdKind::Deny.prefix())?;
    Some(format!("{}{random}", IdKind::Allow.prefix()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_before_cap_has_another_prefix_than_its_hold() {
        let hold = "allow_01KAH3V9J80123456789ABCDEF";
        let denied = denial_id(Denial::ServiceUnavailable, hold);
        assert_eq!(denied, "deny_01KAH3V9J80123456789ABCDEF");
        assert_eq!(hold_id(&denied).as_deref(), Some(hold));
        assert_eq!(denial_id(Denial::DailyLimit, hold), hold);
        assert_eq!(hold_id(hold), None);
    }
}
