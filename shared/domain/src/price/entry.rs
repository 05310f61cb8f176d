//! One model's entry in `config/prices.toml` and in the store: published figures, before any rule is applied.

use super::error::PriceError;
use super::picos::CallPrice;
use super::rates::Published;
use super::tier::{STANDARD, is_reserved};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest name of a model, in bytes. A longer one counts as unknown.
pub(super) const MAX_NAME_BYTES: usize = 256;
/// Most aliases of a model.
const MAX_ALIASES: usize = 64;
/// Most service tiers of a model.
const MAX_TIERS: usize = 16;

/// The published figures of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// Other names of the same model at the same price.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// By service tier. `standard` is always present.
    pub rates: BTreeMap<String, Published>,
    /// Above this number of prompt tokens, `long_context` prices the whole call (D65).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_context_above: Option<u64>,
    /// By service tier, like `rates`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub long_context: BTreeMap<String, Published>,
    /// The fee for a call with web search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_search: Option<CallPrice>,
    /// True if the model searches the web on every call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always_searches: bool,
    /// Tokens of an image part in the estimate, if they differ from the table's allowance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tokens: Option<u64>,
    /// The minimum completion allowance of a call without its own limit, if it differs from the table's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
}

impl ModelEntry {
    /// Checks that the figures are consistent. The error names `model` and the field.
    pub(super) fn check(&self, model: &str) -> Result<(), PriceError> {
        let wrong = |reason: &str| Err(PriceError::model(model, reason));
        if !is_model_name(model) {
            return wrong("the name must be 1 to 256 printable characters without spaces");
        }
        if self.aliases.len() > MAX_ALIASES || !self.aliases.iter().all(|alias| is_model_name(alias)) {
            return wrong(
                "`aliases` must be at most 64 names of 1 to 256 printable characters without spaces",
            );
        }
        if self.rates.len() > MAX_TIERS || !self.rates.contains_key(STANDARD) {
            return wrong("`rates` must have `standard` and at most 16 tiers");
        }
        if self.rates.keys().any(|tier| is_reserved(tier)) {
            return wrong("`rates` must not have `auto` or `default`: `standard` is that tier");
        }
        if self.long_context_above.is_some() != self.long_context.contains_key(STANDARD) {
            return wrong("`long_context_above` and `long_context.standard` need each other");
        }
        match self
            .long_context
            .keys()
            .find(|tier| !self.rates.contains_key(*tier))
        {
            Some(tier) => wrong(&format!("`long_context.{tier}` has no `rates.{tier}`")),
            None => Ok(()),
        }
    }

    /// Completes this entry with the figures of `older` other than token prices (D65): an import has the token prices,
    /// the file has the rest.
    pub(super) fn completed_by(&self, older: &Self) -> Self {
        Self {
            web_search: self.web_search.or(older.web_search),
            always_searches: self.always_searches || older.always_searches,
            image_tokens: self.image_tokens.or(older.image_tokens),
            completion_tokens: self.completion_tokens.or(older.completion_tokens),
            ..self.clone()
        }
    }
}

/// Returns whether this can be the model of a request.
pub(super) fn is_model_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> ModelEntry {
        serde_json::from_str(r#"{"rates": {"standard": {"input": "1", "output": "1"}}}"#).unwrap()
    }

    fn is_sound(model: &str, change: impl Fn(&mut ModelEntry)) -> bool {
        let mut entry = entry();
        change(&mut entry);
        entry.check(model).is_ok()
    }

    #[test]
    fn a_name_is_printable_without_spaces_and_has_an_end() {
        let is_named = |name: &str| is_sound(name, |_| {});
        assert!(is_named("m") && is_named(&"m".repeat(MAX_NAME_BYTES)));
        for name in ["", "a b", "é", "a\n", &"m".repeat(MAX_NAME_BYTES + 1)] {
            assert!(!is_named(name), "{name}");
        }
    }

    #[test]
    fn aliases_and_tiers_are_bounded() {
        let with_aliases = |count: usize| {
            is_sound("m", |entry| {
                entry.aliases = (0..count).map(|at| format!("a{at}")).collect()
            })
        };
        assert!(with_aliases(MAX_ALIASES) && !with_aliases(MAX_ALIASES + 1));
        assert!(!with_aliases(MAX_ALIASES + 2));
        assert!(!is_sound("m", |entry| entry.aliases = vec!["a b".to_owned()]));
        let with_tiers = |count: usize| {
            is_sound("m", |entry| {
                let rates = entry.rates[STANDARD];
                entry.rates.extend((1..count).map(|at| (format!("t{at}"), rates)));
            })
        };
        assert!(with_tiers(MAX_TIERS) && !with_tiers(MAX_TIERS + 1));
        assert!(!with_tiers(MAX_TIERS + 2));
        assert!(!is_sound("m", |entry| {
            let rates = entry.rates.remove(STANDARD).unwrap();
            entry.rates.insert("flex".to_owned(), rates);
        }));
    }

    #[test]
    fn an_import_takes_over_what_it_has_no_word_for() {
        let mut older = entry();
        older.web_search = CallPrice::parse_usd_per_unit("0.01").ok();
        older.image_tokens = Some(7);
        older.completion_tokens = Some(5);
        older.always_searches = true;
        let completed = entry().completed_by(&older);
        assert_eq!(completed, older);
        let mut own = entry();
        own.web_search = CallPrice::parse_usd_per_unit("0.02").ok();
        own.image_tokens = Some(9);
        own.completion_tokens = Some(8);
        let kept = own.completed_by(&older);
        assert_eq!((kept.web_search, kept.image_tokens), (own.web_search, Some(9)));
        assert_eq!(kept.completion_tokens, Some(8));
        let searches = own.completed_by(&entry());
        assert!(!searches.always_searches && kept.always_searches);
        own.always_searches = true;
        assert!(own.completed_by(&entry()).always_searches);
    }
}
