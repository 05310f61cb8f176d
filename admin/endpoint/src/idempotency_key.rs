//! The caller's idempotency key (decision D26), in a header or in the body.

use super::body::{Fields, IDEMPOTENCY_FIELDS};
use crate::problem::Problem;
use axum::http::HeaderMap;
use store::idempotency::{KEY_MAX, is_key};

/// The header of an idempotency key.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A caller's idempotency key (decision D26), by where it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotencyKey {
    /// Value of `Idempotency-Key`.
    Header(String),
    /// In a field of the body. It may be the id of an intent (decision D75).
    Body(String),
}

impl IdempotencyKey {
    /// Returns the idempotency key of a request (decision D26): the `Idempotency-Key` header, otherwise `intent_id` or
    /// `idempotency_key` of the body.
    ///
    /// # Errors
    /// 400 for a key that is not 1 to 255 printable ASCII characters, or for two different headers.
    pub fn from_request(headers: &HeaderMap, body: &Fields<'_>) -> Result<Option<Self>, Problem> {
        let bad = |name: &str| {
            Problem::validation(format!(
                "{name} must be 1 to {KEY_MAX} printable ASCII characters."
            ))
        };
        let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
        if let Some(key) = sent.next() {
            if sent.any(|other| other != key) {
                let message = "Idempotency-Key is given twice.";
                return Err(Problem::validation(message));
            }
            let key = key.to_str().ok().filter(|key| is_key(key));
            return key
                .map(|key| Some(Self::Header(key.to_owned())))
                .ok_or_else(|| bad("Idempotency-Key"));
        }
        for name in IDEMPOTENCY_FIELDS {
            if let Some(key) = body.string(name)?.value() {
                let key = is_key(&key).then_some(Some(Self::Body(key)));
                return key.ok_or_else(|| bad(name));
            }
        }
        Ok(None)
    }

    /// Returns the key.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Header(key) | Self::Body(key) => key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Code;
    use axum::http::HeaderValue;

    #[test]
    fn an_idempotency_key_comes_from_the_header_or_the_body() {
        let header = || Ok(Some(IdempotencyKey::Header("h".to_owned())));
        let body = || Ok(Some(IdempotencyKey::Body("b".to_owned())));
        for (headers, fields, expected) in [
            (&[][..], "{}", Ok(None)),
            (&[], r#"{"idempotency_key":null}"#, Ok(None)),
            (&["h"], r#"{"idempotency_key":"b"}"#, header()),
            (&["h", "h"], "{}", header()),
            (&[], r#"{"idempotency_key":"b"}"#, body()),
            (&[], r#"{"intent_id":"b","idempotency_key":"c"}"#, body()),
            (&["h", "i"], "{}", Err(Code::Validation)),
            (&[""], "{}", Err(Code::Validation)),
            (&[], r#"{"idempotency_key":""}"#, Err(Code::Validation)),
        ] {
            let parsed = Fields::parse(fields.as_bytes()).unwrap();
            let mut map = HeaderMap::new();
            for key in headers {
                map.append(IDEMPOTENCY_KEY, HeaderValue::from_static(key));
            }
            let key = IdempotencyKey::from_request(&map, &parsed).map_err(|problem| problem.code());
            assert_eq!(key, expected, "{headers:?} {fields}");
        }
    }
}
