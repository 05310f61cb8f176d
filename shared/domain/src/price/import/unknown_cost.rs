//! Costs in LiteLLM's list that no price of an entry covers: an import names them, since what is billed by them is not
//! charged.

use super::field::Field;
use super::{Fields, STANDARD};
use crate::price::entry::ModelEntry;
use crate::price::picos::TokenPrice;
use serde_json::value::RawValue;

/// What the name of a field has that is a cost.
const MARK: &str = "cost";
/// A cost without the mark: prices by the length of the prompt, in a form of its own.
const TIERED: &str = "tiered_pricing";
/// Costs that make no call through the edge dearer than its price, by the beginning of their names.
const HARMLESS: [&str; 10] = [
    // Read as the search fee.
    "search_context_cost_per_query",
    // Discounts, and prices in the units of one provider.
    "cache_read_input_audio_token_cost",
    "explicit_cache_read_input_token_cost",
    "input_cost_per_token_cache_hit",
    "input_dbu_cost_per_token",
    "output_dbu_cost_per_token",
    // Tools that the provider runs, which the edge refuses.
    "code_interpreter_cost",
    "computer_use_",
    "file_search_cost",
    "vector_store_cost",
];

/// Returns the names of the cost fields of an imported entry that are not understood and could make a call dearer.
pub(super) fn fields(json: &RawValue, entry: &ModelEntry) -> Vec<String> {
    let fields: Fields<'_> = serde_json::from_str(json.get()).unwrap_or_default();
    let unknown = fields.iter().filter(|(name, value)| {
        let is_cost = name.contains(MARK) || *name == TIERED;
        let is_understood =
            Field::parse(name).is_some() || HARMLESS.iter().any(|known| name.starts_with(known));
        is_cost && !is_understood && !is_covered(name, value, entry)
    });
    unknown.map(|(name, _)| name.clone()).collect()
}

/// Whether the cost is nothing, or that of a token (such as an image's) which costs no more than one of text.
fn is_covered(name: &str, value: &RawValue, entry: &ModelEntry) -> bool {
    if value.get() == "null" {
        return true;
    }
    let Ok(cost) = TokenPrice::parse_usd_per_unit(value.get()) else {
        return false;
    };
    let text = entry.rates.get(STANDARD).filter(|_| name.ends_with("_token"));
    let text = text.and_then(|rates| match () {
        () if name.starts_with("input_") => Some(rates.input),
        () => name.starts_with("output_").then_some(rates.output),
    });
    cost.picos() == 0 || text.is_some_and(|text| cost <= text)
}
