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
    /// 400 for a key that is not 1 to 255 printable ASCII characters, also where another one takes precedence, or for
    /// two different headers.
    pub fn from_request(headers: &HeaderMap, body: &Fields<'_>) -> Result<Option<Self>, Problem> {
        let header = from_header(headers)?;
        let mut in_body = None;
        for name in IDEMPOTENCY_FIELDS {
            if let Some(key) = body.string(name)?.value() {
                if !is_key(&key) {
                    return Err(malformed(name));
                }
                in_body = in_body.or(Some(Self::Body(key)));
            }
        }
        Ok(header.map(Self::Header).or(in_body))
    }

    /// Returns the key.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Header(key) | Self::Body(key) => key,
        }
    }
}

/// Returns the value of `Idempotency-Key`.
fn from_header(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = sent.next() else {
        return Ok(None);
    };
    if sent.any(|other| other != key) {
        let message = "Idempotency-Key is given twice.";
        return Err(Problem::validation(message));
    }
    let key = key.to_str().ok().filter(|key| is_key(key));
    key.map(|key| Some(key.to_owned()))
        .ok_or_else(|| malformed("Idempotency-Key"))
}

fn malformed(name: &str) -> Problem {
    Problem::validation(format!(
        "{name} must be 1 to {KEY_MAX} printable ASCII characters."
    ))
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
            // A malformed key is refused wherever it stands, also where another one counts.
            (&["h"], r#"{"idempotency_key":7}"#, Err(Code::Validation)),
            (&["h"], r#"{"intent_id":""}"#, Err(Code::Validation)),
            (
                &[],
                r#"{"intent_id":"b","idempotency_key":true}"#,
                Err(Code::Validation),
            ),
            (
                &[],
                r#"{"intent_id":"b","idempotency_key":"é"}"#,
                Err(Code::Validation),
            ),
            (&["h"], r#"{"intent_id":null,"idempotency_key":null}"#, header()),
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
