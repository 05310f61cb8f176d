//! `If-Match` and `If-None-Match` of a change (RFC 9110): concurrent edits of a policy do not overwrite each other.

use axum::http::{HeaderMap, HeaderName, header};
use endpoint::problem::Problem;
use store::policy::script::PolicyPrecondition;

/// Maximum number of revisions in a header.
const TAGS_MAX: usize = 10;

/// Parses the precondition of a change.
///
/// # Errors
/// 400 for headers other than `If-Match: "<revision>"`, `If-Match: *` and `If-None-Match: *`, or for both headers.
pub(super) fn expected(headers: &HeaderMap) -> Result<PolicyPrecondition, Problem> {
    let matches = single_value(headers, &header::IF_MATCH)?;
    let none = single_value(headers, &header::IF_NONE_MATCH)?;
    match (matches, none) {
        (None, None) => Ok(PolicyPrecondition::Anything),
        (None, Some("*")) => Ok(PolicyPrecondition::None),
        (None, Some(_)) => Err(Problem::validation("If-None-Match must be *.")),
        (Some("*"), None) => Ok(PolicyPrecondition::Some),
        (Some(tags), None) => revisions(tags),
        (Some(_), Some(_)) => Err(Problem::validation("Send If-Match or If-None-Match, not both.")),
    }
}

fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut sent = headers.get_all(name).iter();
    let Some(first) = sent.next() else {
        return Ok(None);
    };
    let text = first.to_str().ok().filter(|_| sent.next().is_none());
    text.map(|text| Some(text.trim()))
        .ok_or_else(|| Problem::validation(format!("{name} must be sent once, as plain text.")))
}

/// Parses `"3"`, or several of them. A tag of another form, such as a weak one, matches no revision.
fn revisions(tags: &str) -> Result<PolicyPrecondition, Problem> {
    let bad = || {
        let message = format!("If-Match must be * or up to {TAGS_MAX} revisions in quotes, such as \"3\".");
        Problem::validation(message)
    };
    let mut revisions = Vec::new();
    for (at, tag) in tags.split(',').map(str::trim).enumerate() {
        let strong = tag.strip_prefix("W/").unwrap_or(tag);
        let inner = strong.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let inner = inner
            .filter(|inner| at < TAGS_MAX && !inner.contains('"'))
            .ok_or_else(bad)?;
        let number = inner.parse::<u64>().ok();
        let same = number.filter(|number| strong == tag && number.to_string() == inner);
        revisions.extend(same);
    }
    Ok(PolicyPrecondition::Revisions(revisions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn expected_of(pairs: &[(HeaderName, &'static str)]) -> Result<PolicyPrecondition, Problem> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_static(value));
        }
        expected(&headers)
    }

    #[test]
    fn preconditions_are_read_and_others_are_refused() {
        let matches = |text| expected_of(&[(header::IF_MATCH, text)]);
        assert_eq!(expected_of(&[]), Ok(PolicyPrecondition::Anything));
        assert_eq!(matches("\"3\""), Ok(PolicyPrecondition::Revisions(vec![3])));
        assert_eq!(
            matches("\"3\", \"12\""),
            Ok(PolicyPrecondition::Revisions(vec![3, 12]))
        );
        assert_eq!(matches("*"), Ok(PolicyPrecondition::Some));
        for none in ["W/\"3\"", "\"x\"", "\"03\"", "\"\""] {
            assert_eq!(
                matches(none),
                Ok(PolicyPrecondition::Revisions(Vec::new())),
                "{none}"
            );
        }
        for bad in ["3", "", "\"3", "\"3\",", "\"3\"4\""] {
            matches(bad).unwrap_err();
        }
        assert_eq!(
            expected_of(&[(header::IF_NONE_MATCH, "*")]),
            Ok(PolicyPrecondition::None)
        );
        expected_of(&[(header::IF_NONE_MATCH, "\"3\"")]).unwrap_err();
        expected_of(&[(header::IF_MATCH, "*"), (header::IF_NONE_MATCH, "*")]).unwrap_err();
        expected_of(&[(header::IF_MATCH, "\"3\""), (header::IF_MATCH, "\"4\"")]).unwrap_err();
    }
}
