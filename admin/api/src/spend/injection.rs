//! Attempts to instruct an AI agent in the free text of a spend (decision D45): `description`, `recipient`, and every
//! text and name inside `metadata`, brought into one form and matched with patterns in linear time. What an account
//! writes into the records of another one is searched in the same way: memo, conditions, reason of a dispute.

mod normal;
pub mod patterns;

use self::normal::forms;
use self::patterns::BUILT_IN;
use endpoint::{Code, Problem};
use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use serde_json::Value;
use settings::{BadSettings, InjectionSettings};
use store::spend::Injection;

/// Maximum number of configured patterns.
const PATTERNS_MAX: usize = 200;
/// Maximum length of a pattern, in bytes.
const PATTERN_MAX: usize = 2000;
/// Maximum size of a compiled pattern, in bytes.
const COMPILED_MAX: usize = 1 << 20;
/// Maximum size of the automaton's cache for matching, in bytes; it is rebuilt when full.
const CACHE_MAX: usize = 8 << 20;

/// The free text of a spend.
#[derive(Debug, Clone, Copy)]
pub struct SpendTexts<'a> {
    /// Purpose.
    pub description: Option<&'a str>,
    pub recipient: Option<&'a str>,
    /// The caller's own.
    pub metadata: Option<&'a Value>,
}

/// The patterns, compiled.
#[derive(Debug)]
pub struct Injections {
    set: RegexSet,
    /// Name of each pattern in the set.
    names: Vec<String>,
}

impl Injections {
    /// Compiles the patterns; `None` if texts are not to be searched.
    ///
    /// # Errors
    /// [`BadSettings`] with the unusable pattern.
    pub fn from_settings(settings: &InjectionSettings) -> Result<Option<Self>, BadSettings> {
        if !settings.enabled {
            return Ok(None);
        }
        if settings.patterns.len() > PATTERNS_MAX {
            let message = format!("`injection.patterns` can have at most {PATTERNS_MAX} patterns");
            return Err(BadSettings(message));
        }
        let named: Vec<(String, String)> = match settings.patterns.as_slice() {
            [] => BUILT_IN
                .iter()
                .map(|built_in| (built_in.name.to_owned(), built_in.regex()))
                .collect(),
            own => (0..)
                .zip(own)
                .map(|(at, pattern): (usize, _)| (format!("patterns[{at}]"), pattern.clone()))
                .collect(),
        };
        for (name, pattern) in &named {
            check(pattern).map_err(|why| BadSettings(format!("`injection.{name}`: {why}")))?;
        }
        let (names, all): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let set = RegexSetBuilder::new(&all)
            .size_limit(COMPILED_MAX * all.len())
            .dfa_size_limit(CACHE_MAX)
            .build()
            .map_err(|error| BadSettings(format!("`injection.patterns`: {}", in_one_line(&error))))?;
        Ok(Some(Self { set, names }))
    }

    /// Returns the first text that tries to instruct the agent.
    pub fn find(&self, texts: SpendTexts<'_>) -> Option<Injection<'_>> {
        let plain = [("description", texts.description), ("recipient", texts.recipient)];
        let found = plain.into_iter().find_map(|(field, text)| {
            let pattern = self.match_in(text?)?;
            Some(Injection { field, pattern })
        });
        found.or_else(|| {
            let pattern = self.match_inside(texts.metadata?)?;
            Some(Injection {
                field: "metadata",
                pattern,
            })
        })
    }

    /// Refuses `value`, the text of `field` or a value with texts, for another account, whose agents would read it.
    ///
    /// # Errors
    /// 402 `INJECTION_DETECTED`, naming the pattern.
    pub fn require_none_in(&self, field: &'static str, value: &Value) -> Result<(), Problem> {
        match self.match_inside(value) {
            None => Ok(()),
            Some(pattern) => {
                let message =
                    format!("{field} reads like an attempt to instruct an AI agent (pattern {pattern}).");
                Err(Problem::new(Code::InjectionDetected, message))
            }
        }
    }

    /// The name of the first pattern that a text matches.
    fn match_in(&self, text: &str) -> Option<&str> {
        let first = |form: &String| self.set.matches(form).into_iter().next();
        let matched = forms(text).iter().find_map(first)?;
        self.names.get(matched).map(String::as_str)
    }

    /// Matches every text in a value. The parser of the body bounds its nesting.
    fn match_inside(&self, value: &Value) -> Option<&str> {
        match value {
            Value::String(text) => self.match_in(text),
            Value::Array(items) => items.iter().find_map(|item| self.match_inside(item)),
            Value::Object(fields) => fields
                .iter()
                .find_map(|(name, value)| self.match_in(name).or_else(|| self.match_inside(value))),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }
}

/// Checks a single pattern.
fn check(pattern: &str) -> Result<(), String> {
    if pattern.len() > PATTERN_MAX {
        return Err(format!("must have at most {PATTERN_MAX} bytes"));
    }
    let compiled = RegexBuilder::new(pattern).size_limit(COMPILED_MAX).build();
    let regex = compiled.map_err(|error| in_one_line(&error))?;
    if regex.is_match("") {
        return Err("matches every text, so nothing could be spent".to_owned());
    }
    Ok(())
}

/// Returns the sentence of an error, without the drawing that points into the pattern.
fn in_one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.unwrap_or("no regular expression").to_owned()
}

#[cfg(test)]
mod tests;
