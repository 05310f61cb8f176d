//! Sentences that explain a failed check.

use super::{Check, Reset, Unit};
use crate::money::Nanos;
use crate::timestamp::spoken_from_ms;

/// Amount that checks compare with their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedAmount {
    /// The estimate of a proxied call.
    Call(Nanos),
    /// A proxied call whose estimate exceeds any amount.
    Beyond,
    /// Requested by a spend.
    Spend(Nanos),
}

impl CheckedAmount {
    /// Returns the amount that would be charged.
    pub const fn amount(self) -> Option<Nanos> {
        match self {
            Self::Call(amount) | Self::Spend(amount) => Some(amount),
            Self::Beyond => None,
        }
    }

    /// Returns the amount that limits are compared with. For [`Beyond`](Self::Beyond) no limit allows it.
    pub fn compared(self) -> Nanos {
        self.amount().unwrap_or(Nanos::from_stored(u64::MAX))
    }

    /// Returns the sentence of a denial in which every check passes but the amount cannot be charged.
    pub const fn cannot_be_charged(self) -> &'static str {
        match self {
            Self::Beyond => "The estimate is beyond any amount that can be charged.",
            Self::Call(_) | Self::Spend(_) => "The counters of the agent or its account cannot hold the sum.",
        }
    }

    /// Returns the sentence of an approval.
    pub fn approved(self) -> String {
        format!("Every check passes: {}.", self.clause())
    }

    fn clause(self) -> String {
        match self {
            Self::Call(estimate) => format!("this call is estimated at {}", usd(estimate.get())),
            Self::Beyond => "this call is estimated beyond any amount".to_owned(),
            Self::Spend(amount) => format!("this spend is {}", usd(amount.get())),
        }
    }
}

impl Check {
    /// Explains why `amount` does not pass; `resets_at_ms` is when the check's counter restarts.
    pub fn sentence(&self, amount: CheckedAmount, resets_at_ms: Option<u64>) -> String {
        let limit = self.limit.unwrap_or_default();
        let limit = match self.name.unit() {
            Unit::Usd => usd(limit),
            Unit::Count | Unit::State => limit.to_string(),
        };
        let held = match self.held {
            Some(held) if held > 0 => format!(" (of which {} in calls under way)", usd(held)),
            _ => String::new(),
        };
        [
            ("{limit}", limit),
            ("{spent}", spent_words(self.spent.unwrap_or_default())),
            ("{held}", held),
            ("{asked}", amount.clause()),
            ("{end}", end_of(self.name.reset(), resets_at_ms)),
        ]
        .iter()
        .fold(self.name.failed().to_owned(), |sentence, (place, text)| {
            sentence.replace(place, text)
        })
    }
}

/// Returns the subject and verb of a sentence, such as `9.50 USD are` or `nothing is`.
fn spent_words(nanos: u64) -> String {
    match nanos {
        0 => "nothing is".to_owned(),
        _ => format!("{} are", usd(nanos)),
    }
}

/// Returns the clause that says when the counter restarts, if that is known.
fn end_of(reset: Reset, resets_at_ms: Option<u64>) -> String {
    let Some(at) = resets_at_ms.map(spoken_from_ms) else {
        return String::new();
    };
    match reset {
        Reset::Never => String::new(),
        Reset::Minute => format!(" Its minute ends by {at}."),
        Reset::Day => format!(" The day ends at {at}."),
        Reset::Month => format!(" The month ends at {at}."),
    }
}

/// Formats an exact amount in USD, with at least two fraction digits.
pub fn usd(nanos: u64) -> String {
    amount_in("USD", nanos)
}

/// Formats an exact amount with at least two fraction digits, and its currency.
pub fn amount_in(currency: &str, nanos: u64) -> String {
    let amount = Nanos::from_stored(nanos);
    let (exact, short) = (amount.to_string(), amount.two_digits());
    let longer = if exact.len() > short.len() { exact } else { short };
    format!("{longer} {currency}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckName;

    const CENT: u64 = 10_000_000;

    #[test]
    fn amounts_have_at_least_two_digits_and_lose_none() {
        for (nanos, text) in [
            (0, "0.00 USD"),
            (CENT, "0.01 USD"),
            (950 * CENT, "9.50 USD"),
            (1_000 * CENT, "10.00 USD"),
            (1, "0.000000001 USD"),
            (1_000 * CENT + 5, "10.000000005 USD"),
        ] {
            assert_eq!(usd(nanos), text);
        }
    }

    #[test]
    fn a_sentence_contains_limit_spent_held_and_the_end() {
        let check = Check::within(CheckName::DailyLimit, Some(1_000 * CENT), 950 * CENT, 75 * CENT);
        let call = CheckedAmount::Call(Nanos::from_stored(75 * CENT));
        assert_eq!(
            check
                .with_held(120 * CENT)
                .sentence(call, Some(1_795_219_200_000)),
            "The daily cap of 10.00 USD would be passed: 9.50 USD are spent today (of which 1.20 USD in calls under way), \
             this call is estimated at 0.75 USD. The day ends at 2026-11-21 00:00 UTC."
        );
        let check = Check::within(CheckName::PerRunLimit, Some(0), 0, 1);
        assert_eq!(
            check
                .with_held(0)
                .sentence(CheckedAmount::Spend(Nanos::from_stored(CENT)), None),
            "The per-run cap of 0.00 USD would be passed: nothing is spent in this run, this spend is 0.01 USD."
        );
    }

    #[test]
    fn every_check_has_its_own_sentence() {
        let mut seen = std::collections::HashSet::new();
        for name in CheckName::ALL {
            let check = Check::within(*name, Some(1), 1, 1);
            let sentence = check.sentence(CheckedAmount::Spend(Nanos::from_stored(1)), name.reset().after(0));
            assert!(
                sentence.ends_with('.') && !sentence.contains(['{', '}']),
                "{sentence}"
            );
            assert!(seen.insert(sentence), "{name:?}");
        }
    }
}
