//! Common parts of all endpoints' bodies: unambiguous top-level keys, `model`, `stream` and `service_tier`, and the
//! parsing of single values.

use super::error::{BodyError, Scan};
use super::key::{folded, letters};
use super::keys::Keys;
use super::scan::{BodyValue, Scanner};
use super::text::Text;
use super::{MODEL_BYTES_MAX, SERVICE_TIER_BYTES_MAX};
use std::borrow::Cow;

/// Keys with which callers of OpenRouter, LiteLLM, xAI, Azure, Qwen, Anthropic and Gemini name further models, paid
/// services, texts that the provider adds to the prompt, another host that gets the provider key, parameters that do
/// not count, or an answer that is fetched elsewhere. OpenAI refuses them as unknown.
const CHOICES: &[&str] = &[
    "models",
    "fallbacks",
    "plugins",
    "context_window_fallbacks",
    "context_window_fallback_dict",
    "content_policy_fallbacks",
    "preset",
    "search_parameters",
    "user_config",
    "api_base",
    "base_url",
    "data_sources",
    "enhancements",
    "enable_search",
    "mcp_servers",
    "cached_content",
    "speed",
    "inference_geo",
    "enable_code_interpreter",
    "compound_custom",
    "search_options",
    "vector_store_ids",
    "router_settings_override",
    "deployment_id",
    "custom_llm_provider",
    "azure",
    "model_list",
    "litellm_credential_name",
    "prompt_id",
    "fastest_response",
    "silent_model",
    "additional_drop_params",
    "extra_headers",
    "headers",
    "deferred",
    "context_management",
];
/// Keys whose objects have keys of a provider's own, and those of them that pass. A LiteLLM proxy replaces the checked
/// parameters by the fields of `extra_body`; Gemini reads `extra_body.google`.
const EXTENSIONS: &[(&str, &[&str])] = &[
    ("extra_body", &["google"]),
    ("google", &["thinking_config", "safety_settings"]),
];

/// Separates the models that a LiteLLM proxy is to call at once, each of which is billed.
const SEVERAL_MODELS: char = ',';

/// The members that every endpoint has, as far as they have been parsed.
#[derive(Debug)]
pub(super) struct Common<'a> {
    pub keys: Keys<'a>,
    pub model: Option<BodyValue<'a>>,
    pub stream: Option<BodyValue<'a>>,
    pub service_tier: Option<BodyValue<'a>>,
    /// The first of [`CHOICES`] with a value that chooses something.
    pub choice: Option<&'static str>,
}

impl<'a> Common<'a> {
    /// Creates the state before the first member; `decisive` as in [`Keys::new`].
    pub(super) const fn new(decisive: &'static [&'static str]) -> Self {
        Self {
            keys: Keys::new(decisive),
            model: None,
            stream: None,
            service_tier: None,
            choice: None,
        }
    }

    /// Records a key that no OpenAI endpoint has, if it is one of [`CHOICES`] or could be mistaken for one. The scanner
    /// is at its value. `null`, `false` and an empty list choose nothing. A body with ambiguous keys is refused for
    /// these.
    pub(super) fn note_choice(&mut self, name: &str, scanner: &Scanner<'_>) {
        if self.choice.is_none() && self.keys.ambiguity().is_none() {
            self.choice = choice(name, scanner);
        }
    }

    /// Returns the unescaped model. [`check_model`](Self::check_model) must have checked its presence.
    pub(super) fn model(&self) -> Scan<Cow<'a, str>> {
        match self.model {
            Some(BodyValue::Text(text)) => text_of(text, MODEL_BYTES_MAX)?
                .filter(|model| !model.contains(SEVERAL_MODELS))
                .ok_or(BodyError::BadModel),
            _ => Err(BodyError::MissingModel),
        }
    }

    /// Refuses ambiguous keys, then a body without a model.
    pub(super) fn check_model(&self) -> Scan {
        if let Some(error) = self.keys.ambiguity() {
            return Err(error.clone());
        }
        match self.model {
            Some(BodyValue::Text(text)) if text.bytes > 0 => Ok(()),
            _ => Err(BodyError::MissingModel),
        }
    }

    /// Returns whether a stream is requested.
    pub(super) fn stream(&self) -> Scan<bool> {
        boolean(self.stream, BodyError::StreamNotBoolean)
    }

    /// Returns the requested service tier.
    pub(super) fn service_tier(&self) -> Scan<Option<Cow<'a, str>>> {
        match self.service_tier {
            None | Some(BodyValue::Null) => Ok(None),
            Some(BodyValue::Text(text)) => {
                let tier = text_of(text, SERVICE_TIER_BYTES_MAX)?;
                tier.map(Some).ok_or(BodyError::BadServiceTier)
            }
            Some(_) => Err(BodyError::BadServiceTier),
        }
    }
}

/// Returns the key of [`CHOICES`] that `name` is or could be mistaken for, or one that the object at the scanner has.
/// Of an object of [`EXTENSIONS`] with another key that may not pass, its own key.
///
/// Only objects under keys that pass are searched in turn. Any other object decides by being there, and to search it
/// would read its contents once more for each level of it.
fn choice(name: &str, scanner: &Scanner<'_>) -> Option<&'static str> {
    let alike = folded(Cow::Borrowed(name));
    let is_alike = |known: &&str| letters(known).eq(letters(&alike));
    let extension = EXTENSIONS.iter().find(|(own, _)| is_alike(own));
    if let Some((own, passing)) = extension.filter(|_| scanner.peek() == Some(b'{')) {
        let mut found = None;
        // The caller parses it again, and reports the fault.
        drop(scanner.fork().object(|scanner, key| {
            let name = key.decode()?;
            if found.is_none() {
                found = match passing.contains(&&*name) {
                    true => choice(&name, scanner),
                    false if chooses_nothing(scanner.rest()) => None,
                    false => Some(known_choice(&folded(name)).unwrap_or(own)),
                };
            }
            scanner.skip()
        }));
        return found;
    }
    known_choice(&alike).filter(|_| !chooses_nothing(scanner.rest()))
}

/// Returns the key of [`CHOICES`] that a [folded] key is or could be mistaken for.
fn known_choice(folded: &str) -> Option<&'static str> {
    let mut choices = CHOICES.iter().copied();
    choices.find(|known| letters(known).eq(letters(folded)))
}

/// Returns whether a value is `null`, `false` or an empty list.
fn chooses_nothing(value: &str) -> bool {
    let list = value.strip_prefix('[');
    let is_empty = |list: &str| list.trim_start_matches([' ', '\t', '\r', '\n']).starts_with(']');
    value.starts_with("null") || value.starts_with("false") || list.is_some_and(is_empty)
}

/// Reads a boolean. `null` and an absent value are false; any other value is `error`.
pub(super) fn boolean(value: Option<BodyValue<'_>>, error: BodyError) -> Scan<bool> {
    match value {
        None | Some(BodyValue::Null) => Ok(false),
        Some(BodyValue::Bool(value)) => Ok(value),
        Some(_) => Err(error),
    }
}

/// Returns the unescaped text; `None` if it is longer than `bytes_max` or has a control character.
fn text_of(text: Text<'_>, bytes_max: usize) -> Scan<Option<Cow<'_, str>>> {
    if text.bytes > bytes_max {
        return Ok(None);
    }
    let decoded = text.decode()?;
    Ok(if decoded.contains(char::is_control) {
        None
    } else {
        Some(decoded)
    })
}

/// Parses an integer from 1 to `max`; `null` is absent. Only digits are accepted: parsers disagree about `1.0`, `1e0`
/// and `-0`.
pub(super) fn count(key: &'static str, value: Option<BodyValue<'_>>, max: u64) -> Scan<Option<u64>> {
    let number = match value {
        None | Some(BodyValue::Null) => return Ok(None),
        Some(BodyValue::Number(number)) => number.parse::<u64>().ok(),
        Some(_) => None,
    };
    let in_range = number.filter(|number| (1..=max).contains(number));
    in_range.map(Some).ok_or(BodyError::BadCount { key, max })
}

/// Parses `modalities`, an array of strings, and returns whether it contains audio. A lone string counts as an array of
/// one.
pub(super) fn has_audio(scanner: &mut Scanner<'_>) -> Scan<bool> {
    let mut audio = false;
    let mut element = |scanner: &mut Scanner<'_>| {
        if let BodyValue::Text(text) = scanner.value()? {
            audio |= text.decode()? == "audio";
        }
        Ok(())
    };
    if scanner.peek() == Some(b'[') {
        scanner.array(element)?;
    } else {
        element(scanner)?;
    }
    Ok(audio)
}
