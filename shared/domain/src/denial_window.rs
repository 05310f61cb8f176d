//! Denials of a virtual key beyond its rate limit (decision D70). In each rate window, the first [`OWN_RECORDS`]
//! denials of a reason have an audit entry each. The others share one entry, the *window's record*, written when the
//! window has ended.
//!
//! The store keeps nothing for these other denials. The random part of such a denial's id contains a tag of the window,
//! from which the id of the window's record is computed:
//!
//! | bits | id of a denial | id of the window's record |
//! |---|---|---|
//! | 48 | time of the denial | end of the window, both in ms |
//! | 20 | lowest bits of the window's end | |
//! | 30 | tag: key and reason | tag |
//! | 30 or 50 | random | zero |

use super::denial::Denial;
use super::id::{IdKind, made_at_ms};
use entropy::{NoEntropy, id_bits};
use sha2::{Digest, Sha256};

/// Denials of one reason beyond the rate that have an audit entry each, in one window of a key (decision D70).
pub const OWN_RECORDS: u64 = 10;

/// Type of the audit entry for the other denials.
pub const KIND: &str = "decisions.denied";
/// Field of its data with the id of the window's record.
pub const ID_FIELD: &str = "decisionId";

/// Bits of the window's end in the id of a denial. They span 17 minutes, so the time in the id determines the other
/// bits.
const END_BITS: u32 = 20;
const TAG_BITS: u32 = 30;
/// Random bits of an id.
const RANDOM_BITS: u32 = 80;

/// The denials of one reason in one rate window of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenialWindow<'a> {
    /// The virtual key.
    pub key_id: &'a str,
    /// Reason of the denials.
    pub denial: Denial,
    /// When the window ends, in ms since 1970 on the store's clock.
    pub ends_ms: u64,
}

impl DenialWindow<'_> {
    /// Returns the id of the window's record, `deny_…`.
    pub fn record_id(self) -> String {
        record_id(self.ends_ms, self.tag())
    }

    /// Creates an id for a denial without its own entry, made at `at_ms`.
    pub fn mint(self, at_ms: u64) -> Result<String, NoEntropy> {
        let end = u128::from(self.ends_ms) & mask(END_BITS);
        let fixed = (end << TAG_BITS | self.tag()) << (RANDOM_BITS - END_BITS - TAG_BITS);
        let random = id_bits()? & mask(RANDOM_BITS - END_BITS - TAG_BITS);
        Ok(IdKind::Deny.derived(u128::from(at_ms) << RANDOM_BITS | fixed | random))
    }

    fn tag(self) -> u128 {
        let digest = Sha256::digest(format!("{} {}", self.key_id, self.denial.reason()));
        let bytes = [digest[0], digest[1], digest[2], digest[3]];
        u128::from(u32::from_be_bytes(bytes)) & mask(TAG_BITS)
    }
}

/// Returns the id of the window's record for the id of a denial, assuming that [`mint`](DenialWindow::mint) created it:
/// other denial ids yield an id without a record. `None` if it is not a denial id.
pub fn record_of(decision_id: &str) -> Option<String> {
    if !IdKind::Deny.has_form(decision_id) {
        return None;
    }
    let bits = ulid::Ulid::from_string(decision_id.strip_prefix(IdKind::Deny.prefix())?).ok()?;
    let random = bits.random() >> (RANDOM_BITS - END_BITS - TAG_BITS);
    let low = u64::try_from(random >> TAG_BITS & mask(END_BITS)).ok()?;
    // The end nearest to the id's time with these lowest bits, since clocks differ and a window lasts a minute.
    let span = 1_u64 << END_BITS;
    let first = made_at_ms(decision_id)?.checked_sub(span / 2)?;
    let ends_ms = first + (low.wrapping_sub(first) & (span - 1));
    Some(record_id(ends_ms, random & mask(TAG_BITS)))
}

/// Returns when the window of the record `id` ended; `None` if it is not an id.
pub fn end_of(record_id: &str) -> Option<u64> {
    made_at_ms(record_id)
}

fn record_id(ends_ms: u64, tag: u128) -> String {
    IdKind::Deny.derived(u128::from(ends_ms) << RANDOM_BITS | tag << (RANDOM_BITS - TAG_BITS))
}

const fn mask(bits: u32) -> u128 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS_MS: u64 = 1_795_000_060_123;

    fn window(key_id: &str, denial: Denial, ends_ms: u64) -> DenialWindow<'_> {
        DenialWindow {
            key_id,
            denial,
            ends_ms,
        }
    }

    #[test]
    fn an_id_of_the_rest_leads_to_the_record_of_its_window() {
        let its = window("vk_1", Denial::RateLimited, ENDS_MS);
        for before_ms in [0, 1, 59_999, 60_000, 300_000] {
            let id = its.mint(ENDS_MS - before_ms).unwrap();
            assert!(IdKind::Deny.has_form(&id), "{id}");
            assert_eq!(made_at_ms(&id), Some(ENDS_MS - before_ms));
            assert_eq!(record_of(&id), Some(its.record_id()));
        }
        let late = its.mint(ENDS_MS + 300_000).unwrap();
        assert_eq!(
            record_of(&late),
            Some(its.record_id()),
            "the edge's clock is ahead"
        );
        assert_eq!(end_of(&its.record_id()), Some(ENDS_MS));
    }

    #[test]
    fn ids_differ_and_so_do_records() {
        let its = window("vk_1", Denial::RateLimited, ENDS_MS);
        assert_ne!(its.mint(ENDS_MS).unwrap(), its.mint(ENDS_MS).unwrap());
        for other in [
            window("vk_2", Denial::RateLimited, ENDS_MS),
            window("vk_1", Denial::PlanKeyLimit, ENDS_MS),
            window("vk_1", Denial::RateLimited, ENDS_MS + 1),
        ] {
            assert_ne!(its.record_id(), other.record_id());
            let id = other.mint(ENDS_MS).unwrap();
            assert_eq!(record_of(&id), Some(other.record_id()));
        }
    }

    #[test]
    fn an_id_of_no_denial_has_no_record() {
        for id in ["", "deny_", "deny_1", "allow_01KAH3V9J80123456789ABCDEF"] {
            assert_eq!(record_of(id), None, "{id}");
        }
        assert_eq!(record_of(&IdKind::Deny.mint(0).unwrap()), None, "before its time");
    }
}
