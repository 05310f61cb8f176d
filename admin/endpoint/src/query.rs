//! The parameters of a query. Each is parsed as its expected type, so that every error names its parameter.

use super::agent_id::require_agent_id;
use super::body::quoted;
use super::run_id::require_run_id;
use crate::problem::Problem;
use axum::extract::Query;
use axum::http::Uri;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

/// The parameters of a query, by name. Each was sent once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryParams(BTreeMap<String, String>);

impl QueryParams {
    /// Parses the query of `uri`, whose parameters must all be `known`.
    ///
    /// # Errors
    /// 400 for a query that is not UTF-8, or with an unknown or duplicate parameter.
    pub(super) fn from_uri(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        // The parser would replace invalid UTF-8.
        let query = uri.query().unwrap_or_default();
        if percent_decode_str(query).decode_utf8().is_err() {
            return Err(Problem::validation("The query string is not valid UTF-8."));
        }
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let Query(pairs) = pairs.map_err(|_| Problem::validation("The query string is not valid."))?;
        let mut found = BTreeMap::new();
        for (name, value) in pairs {
            if !known.contains(&name.as_str()) {
                return Err(unknown_parameter(&name, known));
            }
            if found.insert(name.clone(), value).is_some() {
                return Err(Problem::validation(format!("{name} is given twice.")));
            }
        }
        Ok(Self(found))
    }

    /// Returns a parameter as it was sent: the caller of this function must validate it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter()
    }

    /// Returns the same query without a parameter.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Returns the same query, with this value of a parameter unless another one was sent.
    #[must_use]
    pub fn with_default(mut self, name: &str, value: String) -> Self {
        self.0.entry(name.to_owned()).or_insert(value);
        self
    }

    /// Parses the id of an agent.
    ///
    /// # Errors
    /// 400 with the parameter.
    pub fn agent_id(&self, name: &str) -> Result<Option<&str>, Problem> {
        let id = self.get(name);
        id.map(|id| require_agent_id(name, id).map(|()| id)).transpose()
    }

    /// Parses the id of a run.
    ///
    /// # Errors
    /// 400 with the parameter.
    pub fn run_id(&self, name: &str) -> Result<Option<&str>, Problem> {
        let id = self.get(name);
        id.map(|id| require_run_id(name, id).map(|()| id)).transpose()
    }

    /// Parses one of these words.
    ///
    /// # Errors
    /// 400 with the parameter and the words.
    pub fn word(
        &self,
        name: &str,
        words: impl IntoIterator<Item = &'static str> + Clone,
    ) -> Result<Option<&str>, Problem> {
        let word = self.get(name);
        if word.is_some_and(|word| !words.clone().into_iter().any(|known| known == word)) {
            let known = words.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Problem::validation(format!("{name} must be one of {known}.")));
        }
        Ok(word)
    }

    /// Parses one of these words, into the value of the word.
    ///
    /// # Errors
    /// 400 with the parameter and the words.
    pub fn value<T>(
        &self,
        name: &str,
        words: impl IntoIterator<Item = &'static str> + Clone,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        Ok(self.word(name, words)?.and_then(parse))
    }
}

impl FromIterator<(String, String)> for QueryParams {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// Returns the error about a query parameter that the operation does not have.
fn unknown_parameter(name: &str, known: &[&str]) -> Problem {
    let name = quoted(name);
    Problem::validation(match known {
        [] => format!("{name} is not a query parameter here; this operation has none."),
        _ => format!(
            "{name} is not a query parameter here; known: {}.",
            known.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_parameter_is_named_escaped() {
        assert_eq!(
            unknown_parameter("limt", &["limit", "offset"]).message(),
            "\"limt\" is not a query parameter here; known: limit, offset."
        );
        assert_eq!(
            unknown_parameter("a\n\"b", &[]).message(),
            "\"a\\n\\\"b\" is not a query parameter here; this operation has none."
        );
    }
}
