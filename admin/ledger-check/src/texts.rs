//! The counter of the text that intents and escrows keep, for which there is a budget (decision D71): it is the sum of
//! the texts of those in the store.
//!
//! It is compared also while intents are made: the counter is read together with the number of the last intent, before
//! the scan, and of the records that the scan finds those up to that number count. Intents that were archived meanwhile
//! are no longer there, so a difference is then undecided.

mod pass;

use super::book::AccountMode;

/// Age, in ms, below which an escrow may have been made after the counter was read; the number of its intent decides.
/// More than clocks of a cluster can differ.
const RECENT_MS: u64 = 60_000;

/// Sums of one account and mode.
#[derive(Debug, Default)]
struct TextSum {
    /// The counter, as stored.
    says: Option<String>,
    /// Number of the last intent that it counts.
    last: u64,
    /// Number of segments of archived intents before it was read.
    segments: u64,
    /// Sum of the records that were read.
    sum: u64,
}

/// An escrow that may be newer than the counter.
#[derive(Debug)]
struct RecentEscrow {
    account_mode: AccountMode,
    /// The intent that made it.
    intent: String,
    bytes: u64,
}

/// The sums of a pass.
#[derive(Debug, Default)]
pub(super) struct PassTexts {
    sums: Vec<TextSum>,
    /// The store's time when the counters were read.
    read_ms: u64,
    recent: Vec<RecentEscrow>,
}

impl PassTexts {
    fn sum(&mut self, account_mode: AccountMode) -> Option<&mut TextSum> {
        self.sums.get_mut(account_mode.index())
    }
}

/// Returns the difference and the fault if a counter of text is not the `sum` of the texts of `records`.
pub(super) fn differs(says: Option<&str>, sum: u64, records: &str) -> Option<(String, String)> {
    let says = says.unwrap_or("0");
    let apart = match says.parse::<i128>() {
        Ok(says) => says - i128::from(sum),
        Err(_) => return Some((says.to_owned(), "it is no number of bytes".to_owned())),
    };
    let detail = || format!("it is {says} bytes, but the texts of its {records} sum to {sum}");
    (apart != 0).then(|| (apart.to_string(), detail()))
}

#[cfg(test)]
mod tests {
    use super::differs;

    #[test]
    fn a_counter_is_the_sum_of_the_texts() {
        for (says, sum, apart) in [
            (None, 0, None),
            (Some("0"), 0, None),
            (Some("12"), 12, None),
            (None, 3, Some("-3")),
            (Some("15"), 12, Some("3")),
            (Some("-1"), 0, Some("-1")),
            (Some("x"), 0, Some("x")),
        ] {
            let found = differs(says, sum, "escrows");
            assert_eq!(found.map(|(apart, _)| apart).as_deref(), apart, "{says:?} {sum}");
        }
    }
}
