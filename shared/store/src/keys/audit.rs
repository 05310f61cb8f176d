//! The key names of the audit trail.

use super::Realm;

/// Characters of a decision id, after its prefix, that are part of its look-up's key: its time, to half a minute.
pub const DECISION_KEY_CHARS: usize = 7;
/// Represents all agents or all types. No agent id or type can have this form.
pub(super) const EVERY: &str = "*";

impl Realm {
    /// Returns the field of [`Realm::audit_archived`] for a list of the index.
    pub fn audit_count(agent: Option<&str>, kind: Option<&str>) -> String {
        format!("{}/{}", agent.unwrap_or(EVERY), kind.unwrap_or(EVERY))
    }
}

keys! {
    Realm:
    /// The audit lines that are not archived (list, oldest first).
    pub audit() = "/audit";
    /// The hashes of the sealed entries, 32 bytes each (list, in the same order).
    pub audit_hashes() = "/audit/hashes";
    /// Number and hash of the last archived entry (hash).
    pub audit_base() = "/audit/base";
    /// The archived segments (list, oldest first).
    pub(crate) audit_segments() = "/audit/segments";
    /// The number of archived entries of each index (hash of `<agent>/<type>` to count).
    pub audit_archived() = "/audit/archived";
    /// The numbers of the sealed entries of an agent, of a type, or of both (list, ascending).
    pub audit_index(agent: Option<&str>, kind: Option<&str>) = "/audit/of/", &Self::audit_count(agent, kind);
    /// Statistics of a UTC day, in days since 1970 (hash): see [`crate::audit::statistics`].
    pub audit_day(day: u64) = "/audit/day/", &day.to_string();
    /// The numbers of the sealed entries of calls that ended more than a day after the UTC day that they are charged to
    /// (list, ascending). Archived ones stay in it.
    pub audit_late(day: u64) = "/audit/late/", &day.to_string();
    /// Kept calls without a later entry, as far as sealed (sorted set of decision ids by time).
    pub audit_kept() = "/audit/kept";
    /// Look-ups of the decisions whose ids have `id_start` after their prefix (packed text).
    pub(crate) audit_decisions(id_start: &str) = "/audit/decisions/", id_start;
}
