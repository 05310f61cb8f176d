//! One model's prices with every gap filled, as used for computing costs.

use super::entry::ModelEntry;
use super::error::PriceError;
use super::picos::CallPrice;
use super::rates::Rates;
use super::tier::{STANDARD, TierNames, TierRates};

/// Part of the names of models that search on every call, for models that the table does not contain.
const SEARCH_MARK: &str = "search";

/// Prices of one model.
#[derive(Debug, Clone)]
pub struct ModelPrice {
    name: String,
    standard: TierRates,
    tiers: Vec<(String, TierRates)>,
    /// At least the price of any tier at any prompt length.
    dearest: TierRates,
    pub(super) web_search_picos: u64,
    pub(super) always_searches: bool,
    pub(super) image_tokens: u64,
    pub(super) completion_tokens: u64,
}

/// Values of the table for a model without its own figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fallback {
    /// The dearest search fee of the table.
    pub(super) web_search_picos: u64,
    /// The table's allowance for an image.
    pub(super) image_tokens: u64,
    /// The table's minimum completion allowance; 0 for none.
    pub(super) completion_tokens: u64,
}

impl ModelPrice {
    /// Creates the price of the model with the entry `name`.
    pub(super) fn new(name: &str, entry: &ModelEntry, fallback: Fallback) -> Result<Self, PriceError> {
        entry.check(name)?;
        let missing = || PriceError::model(name, "`rates.standard` is missing");
        let base = Rates::new(entry.rates.get(STANDARD).ok_or_else(missing)?);
        let base_long = entry
            .long_context
            .get(STANDARD)
            .map(|long| Rates::derived(long, &base));
        let standard = TierRates::new(base, entry.long_context_above.zip(base_long));
        let tiers = entry
            .rates
            .iter()
            .filter(|(tier, _)| *tier != STANDARD)
            .map(|(tier, published)| {
                let short = Rates::derived(published, &base);
                // A tier without long-context figures is charged the dearer of its own and the standard ones.
                let long = match entry.long_context.get(tier) {
                    Some(long) => Some(Rates::derived(long, &short)),
                    None => base_long.map(|long| long.dearer(&short)),
                };
                (
                    tier.clone(),
                    TierRates::new(short, entry.long_context_above.zip(long)),
                )
            });
        let tiers: Vec<_> = tiers.collect();
        Ok(Self {
            name: name.to_owned(),
            dearest: tiers
                .iter()
                .fold(standard, |dearest, (_, tier)| dearest.dearer(tier)),
            standard,
            tiers,
            web_search_picos: entry
                .web_search
                .map_or(fallback.web_search_picos, CallPrice::picos),
            always_searches: entry.always_searches,
            image_tokens: entry.image_tokens.unwrap_or(fallback.image_tokens),
            completion_tokens: entry.completion_tokens.unwrap_or(fallback.completion_tokens),
        })
    }

    /// Returns the price of an unknown model: the highest of all in every figure; `None` for an empty table.
    pub(super) fn dearest_of(models: &[Self]) -> Option<Self> {
        let rates = models
            .iter()
            .map(|model| model.dearest)
            .reduce(|a, b| a.dearer(&b))?;
        let most = |count: fn(&Self) -> u64| models.iter().map(count).max().unwrap_or(0);
        Some(Self {
            name: String::new(),
            standard: rates,
            tiers: Vec::new(),
            dearest: rates,
            web_search_picos: most(|model| model.web_search_picos),
            // The name of the requested model decides: see `searches`.
            always_searches: false,
            image_tokens: most(|model| model.image_tokens),
            completion_tokens: most(|model| model.completion_tokens),
        })
    }

    /// Returns the name of the model in the table; empty for the price of unknown models.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a call for `model` with this price pays the search fee: it requests a search, or the model
    /// searches on every call. For a model without a price this is judged by its name, which is reliable for all models
    /// of OpenAI.
    pub(super) fn searches(&self, model: &str, requested: bool) -> bool {
        let mark = SEARCH_MARK.as_bytes();
        let is_named_so = || {
            let mut windows = model.as_bytes().windows(mark.len());
            windows.any(|window| window.eq_ignore_ascii_case(mark))
        };
        requested || self.always_searches || self.name.is_empty() && is_named_so()
    }

    /// Returns the rates of a call by requested or reported tier and by prompt length. A tier without a price has the
    /// model's highest rates (D32).
    pub(super) fn rates(&self, tier: Option<&str>, names: &TierNames, prompt_tokens: u64) -> &Rates {
        let tier = names.canonical(tier);
        let rates = match self.tiers.iter().find(|(name, _)| name == tier) {
            _ if tier == STANDARD => &self.standard,
            Some((_, rates)) => rates,
            None => &self.dearest,
        };
        rates.at(prompt_tokens)
    }

    /// Returns the rates of a call whose upstream reports no tier: for each kind of token the dearer of the requested
    /// tier and the table's `auto_tier`, which applies to upstreams without tiers.
    pub(super) fn rates_unreported(
        &self,
        requested: Option<&str>,
        names: &TierNames,
        prompt_tokens: u64,
    ) -> Rates {
        let unasked = self.rates(None, names, prompt_tokens);
        self.rates(requested, names, prompt_tokens).dearer(unasked)
    }
}
