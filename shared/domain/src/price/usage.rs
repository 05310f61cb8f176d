//! Token counts in the upstream's `usage`, accepted only if plausible (decisions D33, D64).

mod endpoints;

pub use endpoints::{EmbeddingsUsage, ResponsesUsage};

use serde::Deserialize;

/// Largest plausible number of tokens of a prompt, and of a completion. An upstream can have a lower bound.
pub const USAGE_TOKENS_MAX: u64 = 1_000_000_000;

/// The usage of a call as OpenAI documents it: each detail is part of its total, and prompt and completion together are
/// the whole.
///
/// Some compatible providers bill tokens that are only in `total_tokens`: reasoning (Gemini, xAI) or the prompts of
/// tools (Gemini). The excess of `total_tokens` over both counts is added to the completion, the dearer kind
/// (specification §4.4 step 7: the real cost is what the provider reports).
///
/// Others report a detail in addition to its total (reasoning in addition to the completion, cached tokens in addition
/// to the prompt), or omit a count. A detail that exceeds the reported total is added to it, and a missing count is
/// `total_tokens` less the other one. So neither a detail nor a total ever lowers a charge, except for the discount of
/// cached tokens that are part of the prompt.
///
/// Parsed from the provider's JSON. Empty, negative or implausible counts are errors; the estimate then stays charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Wire")]
pub struct Usage {
    /// Tokens of the prompt, including cached and audio ones.
    pub prompt_tokens: u64,
    /// Tokens of the completion, including reasoning, audio, rejected predictions, and tokens that are only in
    /// `total_tokens`.
    pub completion_tokens: u64,
    /// Of the prompt: read from the provider's cache.
    pub cached_tokens: u64,
    /// Tokens of the prompt that were written to the provider's cache; excludes cached ones.
    pub cache_write_tokens: u64,
    /// The part of the written tokens that is kept for 12 hours, or longer than the provider's default, as far as the
    /// usage reports it.
    pub cache_write_12h_tokens: u64,
    /// The part of the written tokens that is kept for the default of 30 (Anthropic: 5) minutes, as far as the usage
    /// reports it.
    pub cache_write_30m_tokens: u64,
    /// Of the prompt: sound.
    pub prompt_audio_tokens: u64,
    /// Of the completion: sound.
    pub completion_audio_tokens: u64,
    /// Of the completion: reasoning. Billed like the rest.
    pub reasoning_tokens: u64,
}

/// The upstream's object. Unknown fields are ignored; `null` counts as absent.
#[derive(Deserialize, Default)]
struct Wire {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize, Default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    audio_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    /// Name of `cache_write_tokens` at some compatible providers.
    cache_creation_tokens: Option<u64>,
    cache_write_tokens_details: Option<WriteDetails>,
    /// Lifetimes of Anthropic's models, as LiteLLM reports them.
    cache_creation_token_details: Option<CreationDetails>,
}

/// Lifetimes of the tokens written to the cache.
#[derive(Deserialize, Default)]
struct WriteDetails {
    ttl_12h_tokens: Option<u64>,
    ttl_30m_tokens: Option<u64>,
}

/// The same with the lifetimes that Anthropic's models have: the longer one has the price of the longer one.
#[derive(Deserialize, Default)]
struct CreationDetails {
    ephemeral_1h_input_tokens: Option<u64>,
    ephemeral_5m_input_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
    audio_tokens: Option<u64>,
    accepted_prediction_tokens: Option<u64>,
    rejected_prediction_tokens: Option<u64>,
}

impl TryFrom<Wire> for Usage {
    type Error = &'static str;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let prompt = wire.prompt_tokens_details.unwrap_or_default();
        let completion = wire.completion_tokens_details.unwrap_or_default();
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let (cached, prompt_audio) = (count(prompt.cached_tokens), count(prompt.audio_tokens));
        let lifetimes = prompt.cache_write_tokens_details.unwrap_or_default();
        let created = prompt.cache_creation_token_details.unwrap_or_default();
        let [written_12h, written_30m] = [
            lifetimes.ttl_12h_tokens.max(created.ephemeral_1h_input_tokens),
            lifetimes.ttl_30m_tokens.max(created.ephemeral_5m_input_tokens),
        ]
        .map(count);
        let written = count(prompt.cache_write_tokens.max(prompt.cache_creation_tokens));
        let written = with_disjoint(written, &[written_12h.saturating_add(written_30m)]);
        let (reasoning, spoken) = (count(completion.reasoning_tokens), count(completion.audio_tokens));
        let predicted = [
            completion.accepted_prediction_tokens,
            completion.rejected_prediction_tokens,
        ];
        let [accepted, rejected] = predicted.map(count);
        let [said, answered] = totals([wire.prompt_tokens, wire.completion_tokens], wire.total_tokens)?;
        // Reasoning and audio can both be additional to the completion. A prediction is part of its text.
        let completions = [
            with_disjoint(answered, &[reasoning, spoken]),
            with_disjoint(answered, &[accepted]),
            with_disjoint(answered, &[rejected]),
        ];
        // A total below the sum of both does not reduce it.
        let beside_the_prompt = count(wire.total_tokens).saturating_sub(said);
        let usage = Self {
            prompt_tokens: with_disjoint(said, &[cached.saturating_add(written), prompt_audio]),
            completion_tokens: completions.into_iter().fold(beside_the_prompt, u64::max),
            cached_tokens: cached,
            cache_write_tokens: written,
            cache_write_12h_tokens: written_12h,
            cache_write_30m_tokens: written_30m,
            prompt_audio_tokens: prompt_audio,
            completion_audio_tokens: spoken,
            reasoning_tokens: reasoning,
        };
        let plausible = count(wire.total_tokens) <= USAGE_TOKENS_MAX && usage.is_plausible();
        plausible
            .then_some(usage)
            .ok_or("not a usage that can be believed")
    }
}

/// Returns the tokens of prompt and completion as reported. A missing count is the total less the other one. If only
/// the total is reported, all of it is completion.
fn totals(reported: [Option<u64>; 2], total: Option<u64>) -> Result<[u64; 2], &'static str> {
    match (reported[0], reported[1], total) {
        (Some(prompt), Some(completion), _) => Ok([prompt, completion]),
        (Some(prompt), None, Some(total)) => Ok([prompt, total.saturating_sub(prompt)]),
        (None, Some(completion), Some(total)) => Ok([total.saturating_sub(completion), completion]),
        (None, None, Some(total)) => Ok([0, total]),
        (_, _, None) => Err("a count is missing, and there is no total"),
    }
}

/// Returns the total plus the details that exceed it and therefore cannot be part of it.
fn with_disjoint(total: u64, details: &[u64]) -> u64 {
    let disjoint = details.iter().filter(|detail| **detail > total);
    disjoint.fold(total, |sum, detail| sum.saturating_add(*detail))
}

impl Usage {
    /// Returns the tokens of the prompt or of the completion, whichever are more.
    pub fn largest_count(&self) -> u64 {
        self.prompt_tokens.max(self.completion_tokens)
    }

    /// Returns whether the usage is not empty, has plausible counts, and no detail exceeds its total.
    fn is_plausible(&self) -> bool {
        let details = [
            (
                self.cached_tokens.saturating_add(self.cache_write_tokens),
                self.prompt_tokens,
            ),
            (
                self.cache_write_12h_tokens
                    .saturating_add(self.cache_write_30m_tokens),
                self.cache_write_tokens,
            ),
            (self.prompt_audio_tokens, self.prompt_tokens),
            (self.completion_audio_tokens, self.completion_tokens),
            (self.reasoning_tokens, self.completion_tokens),
        ];
        (1..=USAGE_TOKENS_MAX).contains(&self.largest_count())
            && details.iter().all(|(part, total)| part <= total)
    }
}

#[cfg(test)]
mod tests;
