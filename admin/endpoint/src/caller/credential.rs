//! The API key of a request: `x-api-key` or `Authorization: Bearer` (specification "Authentication", decision D8).

use crate::problem::{Code, Problem};
use axum::http::{HeaderMap, HeaderValue, header};
use crypto::key_kind::KeyKind;
use crypto::{api_key, sha256_hex};

const X_API_KEY: &str = "x-api-key";
const BEARER: &[u8] = b"bearer ";

/// Returns the hash of the request's key. If the key is sent more than once, all must be equal.
///
/// # Errors
/// 401 `API_KEY_REQUIRED` if there is none, 401 `INVALID_API_KEY` for different keys or a malformed one.
pub(super) fn key_hash(headers: &HeaderMap) -> Result<String, Problem> {
    let plain = headers.get_all(X_API_KEY).iter().map(HeaderValue::as_bytes);
    let authorization = headers
        .get_all(header::AUTHORIZATION)
        .iter()
        .map(HeaderValue::as_bytes);
    let mut sent = plain
        .chain(authorization.filter_map(bearer))
        .map(<[u8]>::trim_ascii)
        .filter(|key| !key.is_empty());
    let key = sent.next().ok_or(Code::ApiKeyRequired)?;
    if sent.any(|other| other != key) {
        return Err(Problem::new(
            Code::InvalidApiKey,
            "Two different API keys were sent.",
        ));
    }
    let key = std::str::from_utf8(key).map_err(|_| Code::InvalidApiKey)?;
    if !api_key::is_well_formed(key) {
        return Err(not_an_api_key(key));
    }
    Ok(sha256_hex(key.as_bytes()))
}

/// Explains what was sent in place of an API key, without repeating it.
fn not_an_api_key(key: &str) -> Problem {
    let message = match KeyKind::from_prefix(key.as_bytes()) {
        None => return Code::InvalidApiKey.into(),
        Some(KeyKind::Virtual) => {
            "This is a virtual key, which is for calls to the edge. Send an API key here: `svc_live_…` or `svc_test_…`."
        }
        Some(KeyKind::Provider) => {
            "This is a provider's key, which is stored for an agent. Send an API key here: `svc_live_…` or `svc_test_…`."
        }
        Some(KeyKind::Api) => "The API key is malformed: 64 lower-case hex digits follow its prefix.",
    };
    Problem::new(Code::InvalidApiKey, message)
}

/// Returns the text after `Bearer`; the scheme is case-insensitive.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    fn code(pairs: &[(&'static str, &str)]) -> Option<Code> {
        key_hash(&headers(pairs)).err().map(|problem| problem.code())
    }

    #[test]
    fn either_header_will_do_and_both_must_agree() {
        let (a, b) = (
            format!("svc_live_{}", "0a".repeat(32)),
            format!("sk_service_test_{}", "0b".repeat(32)),
        );
        let hash = sha256_hex(a.as_bytes());
        let (bearer_a, shouted) = (format!("Bearer {a}"), format!("BEARER  {a} "));
        for pairs in [
            vec![("x-api-key", a.as_str())],
            vec![("authorization", &bearer_a)],
            vec![("authorization", &shouted)],
            vec![("authorization", &bearer_a), ("x-api-key", &a)],
            vec![("authorization", "Basic eDp5"), ("x-api-key", &a)],
        ] {
            assert_eq!(key_hash(&headers(&pairs)), Ok(hash.clone()), "{pairs:?}");
        }
        for pairs in [
            vec![("authorization", bearer_a.as_str()), ("x-api-key", &b)],
            vec![("x-api-key", &a), ("x-api-key", &b)],
        ] {
            assert_eq!(code(&pairs), Some(Code::InvalidApiKey), "{pairs:?}");
        }
    }

    #[test]
    fn nothing_is_required_and_nonsense_is_invalid() {
        for pairs in [
            vec![],
            vec![("x-api-key", "")],
            vec![("authorization", "Bearer ")],
            vec![("authorization", "Basic eDp5")],
        ] {
            assert_eq!(code(&pairs), Some(Code::ApiKeyRequired), "{pairs:?}");
        }
        let virtual_key = format!("vk_live_{}", "0a".repeat(32));
        for bad in ["x", "svc_live_", "é", &virtual_key] {
            assert_eq!(code(&[("x-api-key", bad)]), Some(Code::InvalidApiKey), "{bad}");
        }
    }

    #[test]
    fn a_key_of_another_kind_is_named_and_not_repeated() {
        let digits = "0A".repeat(32);
        for (prefix, kind) in [
            ("vk_live_", "This is a virtual key"),
            ("sk-proj-", "This is a provider's key"),
            ("svc_live_", "The API key is malformed"),
            ("sk_service_test_", "The API key is malformed"),
            ("", Code::InvalidApiKey.message()),
        ] {
            let key = format!("{prefix}{digits}");
            let problem = key_hash(&headers(&[("x-api-key", &key)])).unwrap_err();
            assert_eq!(problem.code(), Code::InvalidApiKey, "{prefix}");
            assert!(problem.message().starts_with(kind), "{prefix}");
            assert!(!problem.message().contains(&digits), "{prefix}");
        }
    }
}
