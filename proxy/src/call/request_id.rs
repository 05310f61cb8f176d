//! `X-Request-Id` (decision D5): the caller's if it has the form of a run id, otherwise a new one, as on the admin
//! server.

use crate::reply::names;
use domain::id::IdKind;
use domain::names::is_request_id;
use http::HeaderMap;

/// Returns the id that the caller sent, if it is well-formed.
pub(super) fn sent(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(names::REQUEST_ID)?.to_str().ok()?;
    is_request_id(value.as_bytes()).then(|| value.to_owned())
}

/// Returns a new id; empty if the clock or the system's randomness fails.
pub(super) fn generated() -> String {
    IdKind::Request.mint(clock::now_ms()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_well_formed_id_is_kept() {
        let id_for = |text: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(names::REQUEST_ID, HeaderValue::from_bytes(text).unwrap());
            sent(&headers)
        };
        assert_eq!(id_for(b"My.req_1:a-b").as_deref(), Some("My.req_1:a-b"));
        assert_eq!(id_for(&[b'x'; 200]).map_or(0, |id| id.len()), 200);
        for bad in [&b""[..], b"a b", b"a/b", "é".as_bytes(), &[b'x'; 201]] {
            assert_eq!(id_for(bad), None, "{bad:?}");
        }
        assert!(generated().starts_with("req_") && generated() != generated());
    }
}
