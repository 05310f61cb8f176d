//! Step 1a: the virtual key in the request's headers. Only its form is checked here, without the store (decisions D29,
//! D63).

use crate::reply::refusal::{Refusal, RefusalKind};
use crypto::key_kind::KeyKind;
use crypto::virtual_key::WellFormed;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};

/// The other header that may contain the key.
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Header of Azure clients; its value is not used.
const API_KEY: HeaderName = HeaderName::from_static("api-key");

fn invalid_key(message: &str) -> Refusal {
    Refusal::new(RefusalKind::InvalidApiKey, message)
}

/// Reads the key of `Authorization: Bearer` or `x-api-key`, where it stays: nothing copies it, and only its hash is
/// looked up and cached. Both headers may contain it if the values are equal.
///
/// # Errors
/// 401 when there is no key, when it is malformed, or when the headers have different keys.
pub fn from_headers(headers: &HeaderMap) -> Result<WellFormed<'_>, Refusal> {
    let bearer = single_value(headers, &AUTHORIZATION)?
        .map(bearer_token)
        .transpose()?;
    let plain = single_value(headers, &X_API_KEY)?;
    let key = match (bearer, plain) {
        (None, None) => return Err(invalid_key(no_key(headers))),
        (Some(bearer), Some(plain)) if bearer != plain => {
            return Err(invalid_key(
                "`Authorization` and `x-api-key` hold different keys.",
            ));
        }
        (Some(key), _) | (None, Some(key)) => key,
    };
    WellFormed::parse(key).ok_or_else(|| invalid_key(not_a_virtual_key(key)))
}

/// Explains which header is missing.
fn no_key(headers: &HeaderMap) -> &'static str {
    match headers.contains_key(API_KEY) {
        true => {
            "No virtual key: `api-key` is not read here. Send `Authorization: Bearer vk_live_…` or `x-api-key: vk_live_…`, \
             with the client `OpenAI` in place of `AzureOpenAI`."
        }
        false => "No virtual key: send `Authorization: Bearer vk_live_…` or `x-api-key: vk_live_…`.",
    }
}

/// Explains what was sent in place of a virtual key, without repeating it.
fn not_a_virtual_key(key: &[u8]) -> &'static str {
    match KeyKind::from_prefix(key) {
        Some(KeyKind::Api) => {
            "This is an API key, which is for the management API. Send a virtual key of the agent here: `vk_live_…`."
        }
        Some(KeyKind::Provider) => {
            "This is a provider's key, which Tollgate stores for the agent. Send a virtual key of the agent here: `vk_live_…`."
        }
        Some(KeyKind::Virtual) | None => {
            "This is not a virtual key: one is `vk_live_` and 64 lower-case hex digits."
        }
    }
}

/// Returns the value of a header that must not occur more than once.
fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(invalid_key(&format!("`{name}` is sent more than once.")));
    }
    Ok(first.map(|value| value.as_bytes().trim_ascii()))
}

fn bearer_token(value: &[u8]) -> Result<&[u8], Refusal> {
    match value.split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => Ok(key.trim_ascii()),
        _ => Err(invalid_key("`Authorization` must be `Bearer` and a virtual key.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&'static str, &str)]) -> Result<(), RefusalKind> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        from_headers(&map).map(drop).map_err(|refusal| refusal.kind)
    }

    #[test]
    fn both_headers_are_read_and_must_agree() {
        let key = format!("vk_live_{}", "0a".repeat(32));
        let other = format!("vk_live_{}", "0b".repeat(32));
        let bearer = format!("Bearer {key}");
        assert_eq!(check(&[("authorization", &bearer)]), Ok(()));
        assert_eq!(check(&[("authorization", &format!("bearer  {key} "))]), Ok(()));
        assert_eq!(check(&[("x-api-key", &key)]), Ok(()));
        assert_eq!(check(&[("authorization", &bearer), ("x-api-key", &key)]), Ok(()));
        let bad: [&[(&'static str, &str)]; 8] = [
            &[],
            &[("authorization", &bearer), ("x-api-key", &other)],
            &[("x-api-key", &key), ("x-api-key", &key)],
            &[("authorization", &key)],
            &[("authorization", "Bearer")],
            &[("authorization", "Basic abc")],
            &[("x-api-key", "sk-abc")],
            &[("x-api-key", "")],
        ];
        for headers in bad {
            assert_eq!(check(headers), Err(RefusalKind::InvalidApiKey), "{headers:?}");
        }
    }

    #[test]
    fn the_header_of_azures_clients_is_named_and_not_read() {
        let key = format!("vk_live_{}", "0a".repeat(32));
        let mut headers = HeaderMap::new();
        let message = |headers: &HeaderMap| from_headers(headers).err().unwrap().message;
        assert!(!message(&headers).contains("`api-key`"));
        headers.insert(API_KEY, key.parse().unwrap());
        assert!(message(&headers).contains("`api-key` is not read here"));
        assert!(!message(&headers).contains(&key));
        headers.insert(X_API_KEY, key.parse().unwrap());
        assert!(from_headers(&headers).is_ok(), "beside a key it changes nothing");
    }

    #[test]
    fn a_key_of_another_kind_is_named_and_not_repeated() {
        let digits = "0a".repeat(32);
        for (prefix, kind) in [
            ("svc_live_", "an API key"),
            ("svc_test_", "an API key"),
            ("sk_service_live_", "an API key"),
            ("sk-proj-", "a provider's key"),
            ("vk_test_", "not a virtual key"),
            ("", "not a virtual key"),
        ] {
            let key = format!("{prefix}{digits}");
            let mut headers = HeaderMap::new();
            headers.insert(X_API_KEY, key.parse().unwrap());
            let refusal = from_headers(&headers).err().unwrap();
            assert!(
                refusal.message.starts_with(&format!("This is {kind}")),
                "{prefix}"
            );
            assert!(!refusal.message.contains(&digits), "{prefix}");
        }
    }
}
