//! Service tiers: their names, and their prices by prompt length.

use super::rates::Rates;
use std::collections::BTreeMap;

/// The tier with the list prices.
pub(super) const STANDARD: &str = "standard";
/// Name of [`STANDARD`] in the provider's API.
const DEFAULT: &str = "default";
/// The provider chooses the tier. An absent `service_tier` has the same meaning.
const AUTO: &str = "auto";

/// Returns whether a tier of the table must not have this name, because the API gives it another meaning.
pub(super) fn is_reserved(name: &str) -> bool {
    name == DEFAULT || name == AUTO
}

/// Meaning of the values of `service_tier`.
#[derive(Debug, Clone)]
pub(super) struct TierNames {
    /// Tier of calls with `auto` or without a tier.
    pub(super) auto_tier: String,
    /// Aliases for tiers of the table.
    pub(super) aliases: BTreeMap<String, String>,
}

impl TierNames {
    /// Returns the table's name for the `requested` tier.
    pub(super) fn canonical<'a>(&'a self, requested: Option<&'a str>) -> &'a str {
        let word = match requested {
            None | Some(AUTO) => self.auto_tier.as_str(),
            Some(word) => word,
        };
        match word {
            DEFAULT => STANDARD,
            word => self.aliases.get(word).map_or(word, String::as_str),
        }
    }
}

/// The rates of one service tier: up to the long-context threshold, and for the whole call above it (D65).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TierRates {
    short: Rates,
    long: Option<LongContext>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LongContext {
    above_tokens: u64,
    rates: Rates,
}

impl TierRates {
    pub(super) fn new(short: Rates, long: Option<(u64, Rates)>) -> Self {
        Self {
            short,
            long: long.map(|(above_tokens, rates)| LongContext { above_tokens, rates }),
        }
    }

    /// Returns the rates for this many prompt tokens.
    pub(super) fn at(&self, prompt_tokens: u64) -> &Rates {
        match &self.long {
            Some(long) if prompt_tokens > long.above_tokens => &long.rates,
            _ => &self.short,
        }
    }

    /// Rates that at no prompt length are below `self` or `other`.
    pub(super) fn dearer(&self, other: &Self) -> Self {
        let short = self.short.dearer(&other.short);
        let longs = [self.long, other.long].into_iter().flatten();
        let long = longs.reduce(|a, b| LongContext {
            above_tokens: a.above_tokens.min(b.above_tokens),
            rates: a.rates.dearer(&b.rates),
        });
        let long = long.map(|long| LongContext {
            rates: long.rates.dearer(&short),
            ..long
        });
        Self { short, long }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_become_tiers() {
        let aliases = BTreeMap::from([("fast".to_owned(), "priority".to_owned())]);
        let names = TierNames {
            auto_tier: DEFAULT.to_owned(),
            aliases,
        };
        for (requested, tier) in [
            (None, "standard"),
            (Some("auto"), "standard"),
            (Some("default"), "standard"),
            (Some("standard"), "standard"),
            (Some("flex"), "flex"),
            (Some("fast"), "priority"),
            (Some("warp"), "warp"),
        ] {
            assert_eq!(names.canonical(requested), tier, "{requested:?}");
        }
        let names = TierNames {
            auto_tier: "fast".to_owned(),
            ..names
        };
        assert_eq!(
            (names.canonical(None), names.canonical(Some("default"))),
            ("priority", "standard")
        );
    }

    fn rates() -> impl Strategy<Value = Rates> {
        prop::array::uniform7(0_u64..100).prop_map(|[a, b, c, d, e, f, g]| Rates {
            input_picos: a,
            cached_input_picos: b,
            cache_write_picos: c,
            cache_write_12h_picos: g,
            output_picos: d,
            audio_input_picos: e,
            audio_output_picos: f,
        })
    }

    fn tier() -> impl Strategy<Value = TierRates> {
        (rates(), prop::option::of((0_u64..10, rates())))
            .prop_map(|(short, long)| TierRates::new(short, long))
    }

    proptest! {
        #[test]
        fn the_dearer_is_not_below_either(a in tier(), b in tier()) {
            let both = a.dearer(&b);
            for prompt_tokens in 0..12 {
                for one in [&a, &b] {
                    let (both, one) = (both.at(prompt_tokens), one.at(prompt_tokens));
                    prop_assert_eq!(&both.dearer(one), both);
                }
            }
        }
    }
}
