//! The names of LiteLLM's price fields: `input_cost_per_token_above_272k_tokens_flex` consists of a kind of token, a
//! long-context threshold and a service tier.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TokenKind {
    Input,
    CachedInput,
    CacheWrite,
    /// Written for one or for twelve hours.
    CacheWrite1h,
    CacheWrite12h,
    Output,
    /// Reasoning, which `usage` counts as part of the completion.
    Reasoning,
    AudioInput,
    AudioOutput,
}

impl TokenKind {
    /// A stem precedes the shorter stems that it begins with.
    const ALL: [Self; 9] = [
        Self::Input,
        Self::CachedInput,
        Self::CacheWrite1h,
        Self::CacheWrite12h,
        Self::CacheWrite,
        Self::Output,
        Self::Reasoning,
        Self::AudioInput,
        Self::AudioOutput,
    ];

    /// Returns whether it is a token of the answer.
    pub(super) const fn is_output(self) -> bool {
        matches!(self, Self::Output | Self::Reasoning | Self::AudioOutput)
    }

    /// Returns the start of the names of its fields.
    pub(super) const fn stem(self) -> &'static str {
        match self {
            Self::Input => "input_cost_per_token",
            Self::CachedInput => "cache_read_input_token_cost",
            Self::CacheWrite => "cache_creation_input_token_cost",
            Self::CacheWrite1h => "cache_creation_input_token_cost_above_1hr",
            Self::CacheWrite12h => "cache_creation_input_token_cost_above_12hr",
            Self::Output => "output_cost_per_token",
            Self::Reasoning => "output_cost_per_reasoning_token",
            Self::AudioInput => "input_cost_per_audio_token",
            Self::AudioOutput => "output_cost_per_audio_token",
        }
    }
}

/// Meaning of a price field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PriceField<'a> {
    pub(super) kind: TokenKind,
    pub(super) above_tokens: Option<u64>,
    pub(super) tier: Option<&'a str>,
}

impl<'a> PriceField<'a> {
    /// Parses a field name; `None` if it is not the price of a token.
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        let (kind, rest) = TokenKind::ALL
            .iter()
            .find_map(|kind| Some((*kind, name.strip_prefix(kind.stem())?)))?;
        let (above_tokens, rest) = match rest.strip_prefix("_above_") {
            Some(rest) => {
                let (thousands, rest) = rest.split_once("k_tokens")?;
                let digits = thousands.bytes().all(|byte| byte.is_ascii_digit());
                let thousands: u64 = thousands.parse().ok().filter(|_| digits)?;
                (Some(thousands.checked_mul(1_000)?), rest)
            }
            None => (None, rest),
        };
        let tier = match rest {
            "" => None,
            rest => Some(rest.strip_prefix('_').filter(|tier| !tier.is_empty())?),
        };
        Some(Self {
            kind,
            above_tokens,
            tier,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (name, kind, above_tokens, tier) in [
            ("input_cost_per_token", TokenKind::Input, None, None),
            (
                "output_cost_per_token_flex",
                TokenKind::Output,
                None,
                Some("flex"),
            ),
            (
                "cache_read_input_token_cost_above_272k_tokens",
                TokenKind::CachedInput,
                Some(272_000),
                None,
            ),
            (
                "cache_creation_input_token_cost_above_200k_tokens_priority",
                TokenKind::CacheWrite,
                Some(200_000),
                Some("priority"),
            ),
            (
                "output_cost_per_reasoning_token",
                TokenKind::Reasoning,
                None,
                None,
            ),
            (
                "cache_creation_input_token_cost_above_1hr",
                TokenKind::CacheWrite1h,
                None,
                None,
            ),
            (
                "cache_creation_input_token_cost_above_12hr",
                TokenKind::CacheWrite12h,
                None,
                None,
            ),
            (
                "cache_creation_input_token_cost_above_12hr_above_272k_tokens_flex",
                TokenKind::CacheWrite12h,
                Some(272_000),
                Some("flex"),
            ),
            ("input_cost_per_audio_token", TokenKind::AudioInput, None, None),
            ("output_cost_per_audio_token", TokenKind::AudioOutput, None, None),
            (
                "input_cost_per_token_batches",
                TokenKind::Input,
                None,
                Some("batches"),
            ),
        ] {
            assert_eq!(
                PriceField::parse(name),
                Some(PriceField {
                    kind,
                    above_tokens,
                    tier
                }),
                "{name}"
            );
        }
    }

    #[test]
    fn other_fields_are_left_alone() {
        for name in [
            "mode",
            "input_cost_per_image",
            "input_cost_per_tokens",
            "input_cost_per_token_",
            "cache_creation_input_token_cost_above_24hr",
            "input_cost_per_token_above_k_tokens",
            "input_cost_per_token_above_+1k_tokens",
            "input_cost_per_token_above_99999999999999999999k_tokens",
            "input_cost_per_token_above_99999999999999999k_tokens",
        ] {
            assert_eq!(PriceField::parse(name), None, "{name}");
        }
    }
}
