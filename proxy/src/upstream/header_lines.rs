//! Headers of the provider's request as they are sent, with and without the provider key.

use http::header::{self, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use settings::upstreams::Auth;

/// Name of the header in which Azure expects the key.
const API_KEY: HeaderName = HeaderName::from_static("api-key");

/// Headers of the provider's request as they are sent, except the provider key.
pub struct HeaderLines(Vec<u8>);

impl Default for HeaderLines {
    fn default() -> Self {
        /// Initial capacity, more than the headers of an SDK's request need.
        const BYTES: usize = 1024;
        Self(Vec::with_capacity(BYTES))
    }
}

impl HeaderLines {
    /// Adds a line, whose value consists of these parts. Neither names nor values contain line ends.
    pub(super) fn push<const N: usize>(&mut self, name: &HeaderName, value: [&[u8]; N]) {
        self.0.extend_from_slice(name.as_str().as_bytes());
        self.0.extend_from_slice(b": ");
        value.iter().for_each(|part| self.0.extend_from_slice(part));
        self.0.extend_from_slice(b"\r\n");
    }

    /// Returns the lines, each with its line end.
    #[cfg(test)]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds the line of the provider key. `None` if the stored key is not a valid header value.
    pub fn authorize(mut self, auth: Auth, key: &SecretString) -> Option<AuthorizedHeaders> {
        let key = key.expose_secret().as_bytes();
        if !key.iter().all(may_be_in_value) {
            return None;
        }
        match auth {
            Auth::Bearer => self.push(&header::AUTHORIZATION, [b"Bearer ", key]),
            Auth::ApiKey => self.push(&API_KEY, [key]),
        }
        Some(AuthorizedHeaders(self.0))
    }
}

/// Returns whether the value of a header may have this byte, as [`http::HeaderValue`] judges it. It would copy the key.
const fn may_be_in_value(byte: &u8) -> bool {
    matches!(*byte, b'\t' | b' '..=b'~' | 0x80..)
}

/// Headers of the provider's request with the provider key. No request can be sent without them. No `Debug`, since one
/// line contains the key.
pub struct AuthorizedHeaders(Vec<u8>);

impl AuthorizedHeaders {
    /// Returns the lines, each with its line end.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_key_is_sent_if_it_can_be_the_value_of_a_header() {
        for byte in 0..=u8::MAX {
            let accepted = HeaderValue::from_bytes(&[byte]).is_ok();
            assert_eq!(may_be_in_value(&byte), accepted, "{byte}");
        }
        for auth in [Auth::Bearer, Auth::ApiKey] {
            let authorized = |key: &str| HeaderLines::default().authorize(auth, &key.into()).is_some();
            assert!(authorized("sk-1 a~") && !authorized("sk-1\r\nx: y") && !authorized("sk\u{7f}"));
        }
    }

    #[test]
    fn a_key_that_is_no_header_value_sends_nothing() {
        for auth in [Auth::Bearer, Auth::ApiKey] {
            let headers = HeaderLines::default().authorize(auth, &"sk-a\nb: c".into());
            assert!(headers.is_none());
        }
    }

    #[test]
    fn the_key_stands_in_the_header_of_its_upstream() {
        for (auth, expected) in [
            (Auth::Bearer, "authorization: Bearer k1\r\n"),
            (Auth::ApiKey, "api-key: k1\r\n"),
        ] {
            let headers = HeaderLines::default().authorize(auth, &"k1".into()).unwrap();
            assert_eq!(headers.as_bytes(), expected.as_bytes());
        }
    }
}
