//! The path of an endpoint, with `{model}` as a placeholder for the requested model.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;

/// Longest path, and longest query, in bytes.
pub(crate) const PATH_BYTES_MAX: usize = 512;
const MODEL: &str = "{model}";
/// Characters that are percent-encoded in a model's name: all except the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A path with its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate {
    /// The whole path, or the part before the model.
    before: String,
    /// The part after the model, if the path contains the model.
    after: Option<String>,
}

impl PathTemplate {
    /// Parses a path, such as `/chat/completions`, and adds a query, such as `api-version=2024-10-21`, unless it is
    /// empty. `Err` is a description of a valid path.
    pub(super) fn parse(path: &str, query: &str) -> Result<Self, &'static str> {
        let (before, after) = match path.split_once(MODEL) {
            Some((before, after)) => (before, Some(after)),
            None => (path, None),
        };
        let parts = [before, after.unwrap_or_default()];
        if !path.starts_with('/') || path.len() > PATH_BYTES_MAX || !parts.iter().all(|part| is_path(part)) {
            return Err(
                "must start with `/` and be at most 512 characters of a path, with `{model}` once at most",
            );
        }
        let with_query = |text: &str| match query {
            "" => text.to_owned(),
            query => format!("{text}?{query}"),
        };
        Ok(match after {
            Some(after) => Self {
                before: before.to_owned(),
                after: Some(with_query(after)),
            },
            None => Self::fixed(with_query(before)),
        })
    }

    /// Creates a path that does not name the model.
    pub const fn fixed(path: String) -> Self {
        Self {
            before: path,
            after: None,
        }
    }

    /// Prepends the path of a base URL.
    pub fn under(&self, base_path: &str) -> Self {
        Self {
            before: format!("{}{}", base_path.trim_end_matches('/'), self.before),
            after: self.after.clone(),
        }
    }

    /// Returns whether the path contains the model.
    pub(crate) const fn names_model(&self) -> bool {
        self.after.is_some()
    }

    /// Returns path and query for a call of `model`, which is percent-encoded.
    pub fn for_model(&self, model: &str) -> Cow<'_, str> {
        match &self.after {
            None => Cow::Borrowed(&self.before),
            Some(after) => Cow::Owned(format!(
                "{}{}{after}",
                self.before,
                utf8_percent_encode(model, ENCODED)
            )),
        }
    }
}

/// Returns whether `query` is a valid query.
pub(super) fn is_query(query: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"#{}\"<>\\^`|".contains(&byte);
    query.len() <= PATH_BYTES_MAX && !query.starts_with(['?', '&']) && query.bytes().all(plain)
}

fn is_path(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"?#{}\"<>\\^`|".contains(&byte);
    text.bytes().all(plain)
}

/// Returns whether a model's name stays a single path segment, even for a server that decodes it before it resolves `.`
/// and `..`.
pub(super) fn is_one_segment(model: &str) -> bool {
    let parts = model.split(['/', '\\']);
    let is_dots = |part: &str| !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte == b'.');
    !model.is_empty() && !parts.into_iter().any(is_dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_takes_its_place_and_never_leaves_it() {
        let azure = PathTemplate::parse(
            "/openai/deployments/{model}/chat/completions",
            "api-version=2024-10-21",
        )
        .unwrap()
        .under("/base/");
        assert!(azure.names_model());
        for (model, segment) in [
            ("gpt-4o", "gpt-4o"),
            ("gpt-4.1_mini~x", "gpt-4.1_mini~x"),
            ("a/b", "a%2Fb"),
            ("a?b#c&d=e", "a%3Fb%23c%26d%3De"),
            ("a b%2F\\:@+", "a%20b%252F%5C%3A%40%2B"),
            ("é{model}", "%C3%A9%7Bmodel%7D"),
            ("\r\nHost: x", "%0D%0AHost%3A%20x"),
        ] {
            assert_eq!(
                azure.for_model(model),
                format!("/base/openai/deployments/{segment}/chat/completions?api-version=2024-10-21")
            );
        }
        let plain = PathTemplate::parse("/chat/completions", "").unwrap().under("/v1");
        assert_eq!(plain.for_model("a/b"), "/v1/chat/completions");
        let plain = PathTemplate::parse("/chat/completions", "a=b&c").unwrap();
        assert_eq!(plain.for_model("m"), "/chat/completions?a=b&c");
    }

    #[test]
    fn a_model_of_dots_is_no_segment() {
        for model in ["gpt-4o", "a/b", "...", "a..b", "..a", "meta/llama-3.1", "a/"] {
            assert!(is_one_segment(model), "{model}");
        }
        for model in ["", ".", "..", "../x", "a/../b", "a/.", "a\\..\\b"] {
            assert!(!is_one_segment(model), "{model}");
        }
    }

    #[test]
    fn paths_and_queries_are_bounded_and_plain() {
        let longest = format!("/{}", "x".repeat(PATH_BYTES_MAX - 1));
        assert!(PathTemplate::parse(&longest, "").is_ok());
        for bad in [
            "",
            "chat",
            "/a b",
            "/a?b",
            "/a#b",
            "/{name}/x",
            "/{model}/{model}",
            "/é",
            "/a\r\nb",
            &format!("{longest}x"),
        ] {
            assert!(PathTemplate::parse(bad, "").is_err(), "{bad}");
        }
        for good in [
            "",
            "api-version=2024-10-21",
            "a=b&c=d",
            &"x".repeat(PATH_BYTES_MAX),
        ] {
            assert!(is_query(good), "{good}");
        }
        for bad in [
            "?a",
            "&a",
            "a b",
            "a#b",
            "a={model}",
            "é",
            "a\nb",
            &"x".repeat(PATH_BYTES_MAX + 1),
        ] {
            assert!(!is_query(bad), "{bad}");
        }
    }
}
