//! The key names of the audit trail.

use super::AccountKeys;
use domain::mode::Mode;

/// Characters of a decision id, after its prefix, that name the key of its look-up: its time, to half a minute.
pub const DECISION_KEY_CHARS: usize = 7;
/// Stands for every agent and every type; no agent id or type can be this.
pub(super) const EVERY: &str = "*";

impl AccountKeys {
    /// The audit lines that are not archived (list, oldest first).
    pub fn audit(&self, mode: Mode) -> String {
        self.key(&["/", mode.as_str(), "/audit"])
    }

    /// The hashes of the sealed ones among them, 32 bytes each (list, in the same order).
    pub fn audit_hashes(&self, mode: Mode) -> String {
        self.key(&["/", mode.as_str(), "/audit/hashes"])
    }

    /// Number and hash of the last archived entry (hash).
    pub fn audit_base(&self, mode: Mode) -> String {
        self.key(&["/", mode.as_str(), "/audit/base"])
    }

    /// The archived segments (list, oldest first).
    pub(crate) fn audit_segments(&self, mode: Mode) -> String {
        self.key(&["/", mode.as_str(), "/audit/segments"])
    }

    /// How many entries of each index are archived (hash of `<agent>/<type>` to count).
    pub fn audit_archived(&self, mode: Mode) -> String {
        self.key(&["/", mode.as_str(), "/audit/archived"])
    }

    /// The field of [`AccountKeys::audit_archived`] for a list of the index.
    pub fn audit_count(agent: Option<&str>, kind: Option<&str>) -> String {
        format!("{}/{}", agent.unwrap_or(EVERY), kind.unwrap_or(EVERY))
    }

    /// The numbers of the sealed entries of an agent, of a type, or of both (list, ascending).
    pub fn audit_index(&self, mode: Mode, agent: Option<&str>, kind: Option<&str>) -> String {
        format!("{}/{mode}/audit/of/{}", self.base, Self::audit_count(agent, kind))
    }

    /// Statistics of a UTC day, in days since 1970 (hash): see [`crate::audit::statistics`].
    pub fn audit_day(&self, mode: Mode, day: u64) -> String {
        format!("{}/{mode}/audit/day/{day}", self.base)
    }

    /// Kept calls without a later entry, as far as sealed (sorted set of decision ids by time).
    pub fn audit_kept(&self, mode: Mode) -> String {
        self.key(&["/", mode.as_str(), "/audit/kept"])
    }

    /// Look-ups of the decisions whose ids start with `id_start` after their prefix (packed text).
    pub(crate) fn audit_decisions(&self, mode: Mode, id_start: &str) -> String {
        self.key(&["/", mode.as_str(), "/audit/decisions/", id_start])
    }
}
