//! Difference between a server's clock and this process's. All scripts take the time from the store: a clock that is
//! wrong by days would prune, expire and archive too early.

/// Names a server of which only the time is known.
pub(crate) const THE_STORE: &str = "the store";

/// A server's clock differs from this process's by more than `store.max_clock_difference_ms`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the clock of {server} is {} this process's, more than store.max_clock_difference_ms = {allowed_ms}: one of both is wrong (docs/guides/runbook.md, TollgateStoreClock)",
    in_words(*.ahead_ms)
)]
pub struct ClockDiffers {
    /// `host:port`, or `the store`.
    pub server: String,
    /// Lead of the server's clock, in ms; negative if it is behind.
    pub ahead_ms: i64,
    /// The bound, in ms.
    pub allowed_ms: u64,
}

impl ClockDiffers {
    /// Reads a script's reply about the store's clock (`script/clock_bound.lua`): its lead, and the bound.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (ahead_ms, allowed_ms) = text.split_once(' ')?;
        Some(Self {
            server: THE_STORE.to_owned(),
            ahead_ms: ahead_ms.parse().ok()?,
            allowed_ms: allowed_ms.parse().ok()?,
        })
    }
}

/// Returns the lead of a server's clock over this process's, in ms, negative if behind. The server read it between
/// `sent_ms` and `received_ms`, so any time between them is no difference.
pub(crate) fn ahead_ms(server_ms: u64, sent_ms: u64, received_ms: u64) -> i64 {
    // This process's clock may have been set back meanwhile.
    let (first, last) = (sent_ms.min(received_ms), sent_ms.max(received_ms));
    let beyond = |later: u64, earlier: u64| i64::try_from(later.saturating_sub(earlier)).unwrap_or(i64::MAX);
    beyond(server_ms, last) - beyond(first, server_ms)
}

/// Checks the difference of one server.
///
/// # Errors
/// [`ClockDiffers`] if it is more than `allowed_ms`.
pub(crate) fn check(server: &str, ahead_ms: i64, allowed_ms: u64) -> Result<(), ClockDiffers> {
    if ahead_ms.unsigned_abs() <= allowed_ms {
        return Ok(());
    }
    Err(ClockDiffers {
        server: server.to_owned(),
        ahead_ms,
        allowed_ms,
    })
}

/// Returns a difference in its largest unit, so that the text stays the same from one check to the next.
fn in_words(ahead_ms: i64) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes")];
    let millis = ahead_ms.unsigned_abs();
    let rounded = |length: u64| millis.saturating_add(length / 2) / length;
    let unit = UNITS.into_iter().find(|(length, _)| rounded(*length) >= 2);
    let (length, name) = unit.unwrap_or((1000, "seconds"));
    let direction = if ahead_ms < 0 { "behind" } else { "ahead of" };
    format!("about {} {name} {direction}", rounded(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_round_trip_does_not_explain_is_a_difference() {
        for (server, sent, received, ahead) in [
            (1_000, 1_000, 1_000, 0),
            (1_500, 1_000, 2_000, 0),
            (2_000, 1_000, 2_000, 0),
            (2_001, 1_000, 2_000, 1),
            (999, 1_000, 2_000, -1),
            (1_500, 2_000, 1_000, 0),
            (0, 1_000, 1_000, -1_000),
        ] {
            assert_eq!(
                ahead_ms(server, sent, received),
                ahead,
                "{server} {sent} {received}"
            );
        }
    }

    #[test]
    fn the_bound_itself_is_allowed() {
        let allowed_ms = 300_000;
        for ahead_ms in [0, 300_000, -300_000] {
            assert_eq!(check("s:1", ahead_ms, allowed_ms), Ok(()));
        }
        for (ahead_ms, words) in [
            (300_001, "about 5 minutes ahead of"),
            (-300_001, "about 5 minutes behind"),
            (3 * 86_400_000 + 5, "about 3 days ahead of"),
            (-7_200_000, "about 2 hours behind"),
            (-7_199_999, "about 2 hours behind"),
        ] {
            let text = check("s:1", ahead_ms, allowed_ms).unwrap_err().to_string();
            assert!(
                text.contains(&format!("clock of s:1 is {words} this process's")),
                "{text}"
            );
        }
        let text = check("s:1", 1_200, 1_000).unwrap_err().to_string();
        assert!(text.contains("about 1 seconds ahead of"), "{text}");
    }
}
