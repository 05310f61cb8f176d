//! `X-Request-Id` (decision D5): the caller's if it has the form of a run id, otherwise a new one, as on the edge.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use domain::id::IdKind;
use domain::names::is_request_id;

/// Header with the id of a request, chosen by the caller or generated.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(super) fn choose(headers: &HeaderMap) -> HeaderValue {
    let sent = headers.get(X_REQUEST_ID);
    match sent.filter(|id| is_request_id(id.as_bytes())) {
        Some(id) => id.clone(),
        None => generated(),
    }
}

/// Generates an id of a request.
pub fn generated() -> HeaderValue {
    let id = IdKind::Request
        .mint(clock::now_ms())
        .ok()
        .and_then(|id| id.parse().ok());
    id.unwrap_or(HeaderValue::from_static("req_unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_for(sent: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, HeaderValue::from_bytes(sent).unwrap());
        choose(&headers).to_str().unwrap().to_owned()
    }

    #[test]
    fn a_well_formed_id_is_kept_and_any_other_replaced() {
        assert_eq!(id_for(b"My.req_1:a-b"), "My.req_1:a-b");
        assert_eq!(id_for(&[b'x'; 200]).len(), 200);
        for bad in [&b""[..], b"a b", b"a/b", "é".as_bytes(), &[b'x'; 201]] {
            assert!(id_for(bad).starts_with("req_"), "{bad:?}");
        }
        assert_ne!(id_for(b""), id_for(b""));
    }
}
