//! Reads LiteLLM's `model_prices_and_context_window.json`. Its costs are JSON numbers in USD per token, often in
//! scientific notation. They are parsed from their decimal text, never through floating point.

mod field;
mod unknown_cost;

use super::entry::{ModelEntry, is_model_name};
use super::error::PriceError;
use super::overlay::PriceOverlay;
use super::picos::{CallPrice, TokenPrice};
use super::rates::Published;
use super::text::{check_count, check_size};
use super::tier::{STANDARD, is_reserved};
use field::{PriceField, TokenKind};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The `litellm_provider` of OpenAI's own models.
pub const OPENAI: &str = "openai";
/// Endpoints with text answers. A chat or responses model must support one of them.
const TEXT_ENDPOINTS: [&str; 2] = ["/v1/chat/completions", "/v1/responses"];
/// Endpoints of embeddings. An embeddings model must support one of them.
const EMBEDDING_ENDPOINTS: [&str; 1] = ["/v1/embeddings"];
/// Parts of the names of models that search the web on every call.
const SEARCH_MARKS: [&str; 2] = ["-search-preview", "-search-api"];
/// Service tiers that no call through the edge can have.
const OTHER_TIERS: [&str; 2] = ["batches", "decisions"];

/// Result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The usable entries.
    pub overlay: PriceOverlay,
    /// The unusable entries, in the order of their names.
    pub skipped: Vec<Skipped>,
    /// Unknown costs of imported models, which are therefore not charged, in the order of the models' names.
    pub ignored: Vec<IgnoredCosts>,
}

/// Cost fields of an imported model that no price covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredCosts {
    /// Its name in the file.
    pub model: String,
    /// Names of the fields.
    pub fields: Vec<String>,
}

/// An entry, or one service tier of it, that an import left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name in the file.
    pub model: String,
    /// Why it was left out, as a sentence.
    pub reason: String,
}

/// The fields of one entry, unread.
type RawFields<'a> = BTreeMap<String, &'a RawValue>;

/// Kind of a model's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerKind {
    /// Text, in chat completions or responses.
    Text,
    /// Embeddings: only the input is charged.
    Embeddings,
}

/// Imports the chat, responses and embeddings models of `provider` (such as [`OPENAI`]) from LiteLLM's price list.
/// Models of OpenAI have plain names. Models of another provider have its name as a prefix, such as `azure/gpt-4o`,
/// which named upstreams use to look them up.
///
/// # Errors
/// [`PriceError`] if the text is not a JSON object, or is implausibly large. An unusable entry is not an error:
/// [`Imported::skipped`] lists it.
pub fn import_litellm(json: &str, provider: &str) -> Result<Imported, PriceError> {
    check_size("import", json)?;
    let entries: BTreeMap<String, &RawValue> =
        serde_json::from_str(json).map_err(|source| PriceError::Json {
            what: "import",
            source,
        })?;
    check_count("import", entries.len())?;
    let (mut models, mut skipped, mut ignored) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (key, value) in entries {
        let name = key
            .strip_prefix(provider)
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or(&key);
        let name = match provider {
            OPENAI => name.to_owned(),
            _ => format!("{provider}/{name}"),
        };
        let mut tiers_left_out = Vec::new();
        let entry = read_entry(&name, value, provider, &mut tiers_left_out);
        let reasons = match entry {
            Ok(entry) => {
                let fields = unknown_cost::fields(value, &entry);
                if !fields.is_empty() {
                    let model = key.clone();
                    ignored.push(IgnoredCosts { model, fields });
                }
                models.insert(name, entry);
                tiers_left_out
            }
            Err(reason) => vec![reason],
        };
        skipped.extend(reasons.into_iter().map(|reason| Skipped {
            model: key.clone(),
            reason,
        }));
    }
    Ok(Imported {
        overlay: PriceOverlay::new(models)?,
        skipped,
        ignored,
    })
}

/// Returns the entry of one model, or why it is skipped. Adds unusable tiers to `left_out`.
fn read_entry(
    name: &str,
    json: &RawValue,
    provider: &str,
    left_out: &mut Vec<String>,
) -> Result<ModelEntry, String> {
    let fields: RawFields =
        serde_json::from_str(json.get()).map_err(|_| "it is no JSON object".to_owned())?;
    let answers = check_usable(name, &fields, provider)?;
    let mut figures = Figures::read(&fields)?;
    if answers == AnswerKind::Embeddings {
        figures.take_output_for_input();
    }
    let mut entry = ModelEntry {
        aliases: Vec::new(),
        rates: BTreeMap::new(),
        long_context_above: figures.long_context_above,
        long_context: BTreeMap::new(),
        web_search: search_fee(&fields)?,
        always_searches: SEARCH_MARKS.iter().any(|mark| name.contains(mark)),
        image_tokens: None,
        completion_tokens: None,
    };
    for (tier, figures) in figures.tiers {
        match figures.short.published(None) {
            Ok(short) => {
                let long = (!figures.long.is_empty()).then(|| figures.long.published(Some(&short)));
                if let Some(long) = long.transpose()? {
                    entry.long_context.insert(tier.clone(), long);
                }
                entry.rates.insert(tier, short);
            }
            Err(reason) if tier == STANDARD => return Err(reason),
            Err(reason) => left_out.push(format!("service tier `{tier}`: {reason}")),
        }
    }
    entry.check(name).map_err(|error| error.to_string())?;
    Ok(entry)
}

/// Checks that the entry is a model of `provider` whose calls the edge can forward.
fn check_usable(name: &str, fields: &RawFields<'_>, provider: &str) -> Result<AnswerKind, String> {
    if !is_model_name(name) {
        return Err("the name cannot name a model".to_owned());
    }
    let text = |field: &str| {
        fields
            .get(field)
            .and_then(|value| serde_json::from_str::<String>(value.get()).ok())
    };
    match text("litellm_provider") {
        Some(other) if other != provider => return Err(format!("the provider is `{other}`")),
        None if provider != OPENAI => return Err("there is no `litellm_provider`".to_owned()),
        _ => {}
    }
    let endpoints = fields.get("supported_endpoints").map(|value| value.get());
    let endpoints = endpoints.map(serde_json::from_str::<Option<Vec<String>>>);
    let endpoints = endpoints
        .transpose()
        .map_err(|_| "`supported_endpoints` is no list of strings")?
        .flatten();
    let (answers, served_by) = match text("mode").as_deref() {
        Some("chat" | "responses") => (AnswerKind::Text, &TEXT_ENDPOINTS[..]),
        Some("embedding") => (AnswerKind::Embeddings, &EMBEDDING_ENDPOINTS[..]),
        Some(mode) => return Err(format!("the mode is `{mode}`")),
        None => return Err("there is no `mode`".to_owned()),
    };
    let is_served = endpoints.is_none_or(|listed| {
        let mut listed = listed.iter();
        listed.any(|endpoint| served_by.contains(&endpoint.as_str()))
    });
    match is_served {
        true => Ok(answers),
        false => Err(format!("it is not served by {}", served_by.join(" or "))),
    }
}

/// Returns the search fee for the dearest context size, because the request need not specify the size.
fn search_fee(fields: &RawFields<'_>) -> Result<Option<CallPrice>, String> {
    const FIELD: &str = "search_context_cost_per_query";
    let Some(sizes) = fields.get(FIELD).filter(|value| value.get() != "null") else {
        return Ok(None);
    };
    let sizes: RawFields =
        serde_json::from_str(sizes.get()).map_err(|_| format!("`{FIELD}` is no JSON object"))?;
    let fees = sizes.values().map(|fee| CallPrice::parse_usd_per_unit(fee.get()));
    let fees = fees
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("`{FIELD}` {error}"))?;
    Ok(fees.into_iter().max().filter(|fee| fee.picos() > 0))
}

/// The token prices of an entry, sorted by tier and prompt length.
#[derive(Default)]
struct Figures {
    tiers: BTreeMap<String, TierFigures>,
    long_context_above: Option<u64>,
}

#[derive(Default)]
struct TierFigures {
    short: Partial,
    long: Partial,
}

impl Figures {
    fn read(fields: &RawFields<'_>) -> Result<Self, String> {
        let mut figures = Self::default();
        for (name, value) in fields {
            let Some(field) = PriceField::parse(name).filter(|_| value.get() != "null") else {
                continue;
            };
            let tier = field.tier.unwrap_or(STANDARD);
            if OTHER_TIERS.contains(&tier) {
                continue;
            }
            if is_reserved(tier) || field.tier == Some(STANDARD) {
                return Err(format!("`{name}` names a tier that is the standard one"));
            }
            let price =
                TokenPrice::parse_usd_per_unit(value.get()).map_err(|error| format!("`{name}` {error}"))?;
            let of_tier = figures.tiers.entry(tier.to_owned()).or_default();
            let partial = match field.above_tokens {
                None => &mut of_tier.short,
                Some(above) if *figures.long_context_above.get_or_insert(above) == above => &mut of_tier.long,
                Some(_) => return Err("it has more than one long-context threshold".to_owned()),
            };
            partial.0.insert(field.kind, price);
        }
        figures.tiers.entry(STANDARD.to_owned()).or_default();
        Ok(figures)
    }

    /// Sets the price of output, which embeddings never have, to that of the input, as the price file does. Lists have
    /// zero or nothing there.
    fn take_output_for_input(&mut self) {
        for tier in self.tiers.values_mut() {
            for partial in [&mut tier.short, &mut tier.long] {
                partial.0.retain(|kind, _| !kind.is_output());
                if let Some(input) = partial.0.get(&TokenKind::Input).copied() {
                    partial.0.insert(TokenKind::Output, input);
                }
            }
        }
    }
}

/// The prices of one tier at one prompt length, as far as the file contains them.
#[derive(Default)]
struct Partial(BTreeMap<TokenKind, TokenPrice>);

impl Partial {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns complete figures. Figures that long context does not reprice stay as in `short`.
    fn published(&self, short: Option<&Published>) -> Result<Published, String> {
        let get = |kind: TokenKind| self.0.get(&kind).copied();
        let needed = |kind: TokenKind, short: Option<TokenPrice>| match get(kind).or(short) {
            Some(price) if price.picos() > 0 => Ok(price),
            // No limit would ever stop calls of a free model.
            Some(_) => Err(format!("`{}` is zero", kind.stem())),
            None => Err(format!("`{}` is missing", kind.stem())),
        };
        let input = needed(TokenKind::Input, short.map(|short| short.input))?;
        let output = needed(TokenKind::Output, short.map(|short| short.output))?;
        Ok(Published {
            input,
            cached_input: get(TokenKind::CachedInput),
            cache_write: get(TokenKind::CacheWrite),
            cache_write_12h: get(TokenKind::CacheWrite12h).max(get(TokenKind::CacheWrite1h)),
            // `usage` need not say which tokens of the completion are reasoning.
            output: get(TokenKind::Reasoning).map_or(output, |reasoning| output.max(reasoning)),
            audio_input: get(TokenKind::AudioInput),
            audio_output: get(TokenKind::AudioOutput),
        })
    }
}

#[cfg(test)]
mod tests;
