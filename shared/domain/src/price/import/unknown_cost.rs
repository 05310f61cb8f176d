//! Costs in LiteLLM's list that no price of an entry covers. An import reports them, since charges of this kind are not
//! accounted for.

use super::field::PriceField;
use super::{RawFields, STANDARD};
use crate::price::entry::ModelEntry;
use crate::price::picos::TokenPrice;
use serde_json::value::RawValue;

/// Part of the name of every cost field.
const MARK: &str = "cost";
/// A cost field without the mark: prices by the length of the prompt, in a different form.
const TIERED: &str = "tiered_pricing";
/// Prefixes of costs that never make a call through the edge dearer than its price.
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
    let fields: RawFields<'_> = serde_json::from_str(json.get()).unwrap_or_default();
    let unknown = fields.iter().filter(|(name, value)| {
        let is_cost = name.contains(MARK) || *name == TIERED;
        let is_understood =
            PriceField::parse(name).is_some() || HARMLESS.iter().any(|known| name.starts_with(known));
        is_cost && !is_understood && !is_covered(name, value, entry)
    });
    unknown.map(|(name, _)| name.clone()).collect()
}

/// Returns whether the cost is zero, or that of a token (such as an image's) which costs no more than a text token.
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

#[cfg(test)]
mod tests {
    use crate::price::{IgnoredCosts, OPENAI, import_litellm};

    /// A cost that is neither known nor known to be harmless is reported, since it is not charged.
    #[test]
    fn costs_that_are_not_understood_are_named() {
        let ignored = |more: &str| {
            let json = format!(
                r#"{{"m": {{"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6{more}}},
                    "n": {{"mode": "image_generation", "output_cost_per_image": 0.04}}}}"#
            );
            let imported = import_litellm(&json, OPENAI).unwrap();
            assert_eq!(imported.overlay.models().len(), 1);
            imported.ignored
        };
        for harmless in [
            "",
            r#", "input_cost_per_token_batches": 1e-9, "code_interpreter_cost_per_session": 0.03"#,
            r#", "search_context_cost_per_query": {"low": 0.01}, "output_cost_per_reasoning_token": 9e-6"#,
            r#", "input_cost_per_image": 0.0, "output_cost_per_image": null, "max_tokens": 4096"#,
            r#", "input_cost_per_image_token": 1e-6, "output_cost_per_video_token": 4e-6"#,
            r#", "cache_read_input_audio_token_cost_flex": 1e-7, "input_cost_per_token_cache_hit": 1e-7"#,
        ] {
            assert_eq!(ignored(harmless), [], "{harmless}");
        }
        for (more, fields) in [
            (
                r#", "citation_cost_per_token": 2e-6, "input_cost_per_request": 0.005"#,
                &["citation_cost_per_token", "input_cost_per_request"][..],
            ),
            (
                r#", "input_cost_per_image_token": 2e-6"#,
                &["input_cost_per_image_token"],
            ),
            (r#", "some_new_cost": {"a": 1}"#, &["some_new_cost"]),
            (r#", "tiered_pricing": [{}]"#, &["tiered_pricing"]),
        ] {
            let expected = IgnoredCosts {
                model: "m".to_owned(),
                fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            };
            assert_eq!(ignored(more), [expected], "{more}");
        }
    }
}
