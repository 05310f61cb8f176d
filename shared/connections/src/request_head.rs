//! Rules on the head of an HTTP/1 request that neither server's library enforces. Two servers could read a request that
//! breaks a rule differently, which allows request smuggling.

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Version};

/// Fault of a request head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// A transfer coding other than `chunked`, or `chunked` twice.
    TransferCoding,
    /// Several lengths, or one that is not a number in digits. RFC 9110 §8.6 lets `5, 5` be refused.
    Length,
    /// No `Host` in HTTP/1.1, several, or an invalid one (RFC 9112 §3.2).
    Host,
}

/// Checks transfer coding, length and host.
///
/// # Errors [`Malformed`], which names the malformed part.
pub fn check(version: Version, headers: &HeaderMap) -> Result<(), Malformed> {
    is_chunked(headers)?;
    check_length(headers)?;
    check_host(version, headers)
}

/// Returns whether the body is `chunked`. The libraries treat `gzip, chunked` as `chunked`, and decode only that.
///
/// # Errors
/// [`Malformed::TransferCoding`]
pub fn is_chunked(headers: &HeaderMap) -> Result<bool, Malformed> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => Ok(false),
        (Some(coding), None) if is_chunked(coding) => Ok(true),
        _ => Err(Malformed::TransferCoding),
    }
}

/// Checks that a declared length is one number, so that whatever compares it with a limit reads it as the library does.
///
/// # Errors
/// [`Malformed::Length`]
pub fn check_length(headers: &HeaderMap) -> Result<(), Malformed> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let is_number = |length: &HeaderValue| {
        let digits = length.as_bytes().trim_ascii();
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    let is_well_formed = match (lengths.next(), lengths.next()) {
        (None, _) => true,
        (Some(length), None) => is_number(length),
        _ => false,
    };
    is_well_formed.then_some(()).ok_or(Malformed::Length)
}

/// Checks that the request names one host. HTTP/1.0 may name none.
///
/// # Errors
/// [`Malformed::Host`]
pub fn check_host(version: Version, headers: &HeaderMap) -> Result<(), Malformed> {
    let mut hosts = headers.get_all(HOST).iter();
    let is_well_formed = match (hosts.next(), hosts.next()) {
        (None, _) => version < Version::HTTP_11,
        (Some(host), None) => is_host(host.as_bytes()),
        _ => false,
    };
    is_well_formed.then_some(()).ok_or(Malformed::Host)
}

/// Returns whether this is a name or an address with an optional port (`uri-host [":" port]`, RFC 9110 §7.2). May be
/// empty.
fn is_host(value: &[u8]) -> bool {
    let end_of_name = |text: &[u8]| text.iter().position(|byte| !is_of_name(*byte));
    match value.strip_prefix(b"[") {
        None => is_port(&value[end_of_name(value).unwrap_or(value.len())..]),
        Some(literal) => {
            let address = literal.split(|byte| *byte == b']').next().unwrap_or_default();
            let is_address = |byte: &u8| is_of_name(*byte) || *byte == b':';
            let port = literal.get(address.len() + 1..);
            !address.is_empty() && address.iter().all(is_address) && port.is_some_and(is_port)
        }
    }
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&'..=b',' | b';' | b'='
        )
}

fn is_port(text: &[u8]) -> bool {
    match text.split_first() {
        None => true,
        Some((colon, digits)) => *colon == b':' && digits.iter().all(u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            let name = http::HeaderName::from_static(name);
            (name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_body_is_chunked_once_or_not_coded() {
        assert_eq!(is_chunked(&HeaderMap::new()), Ok(false));
        for chunked in ["chunked", "CHUNKED", " chunked\t"] {
            assert_eq!(is_chunked(&headers(&[("transfer-encoding", chunked)])), Ok(true));
        }
        for other in [
            "",
            "gzip",
            "gzip, chunked",
            "chunked, chunked",
            ", chunked",
            "chunked;q=1",
            "chunked,",
        ] {
            let coded = headers(&[("transfer-encoding", other)]);
            assert_eq!(is_chunked(&coded), Err(Malformed::TransferCoding), "{other}");
            assert_eq!(check(Version::HTTP_10, &coded), Err(Malformed::TransferCoding));
        }
        let twice = headers(&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")]);
        assert_eq!(is_chunked(&twice), Err(Malformed::TransferCoding));
    }

    #[test]
    fn a_length_is_one_number() {
        assert_eq!(check_length(&HeaderMap::new()), Ok(()));
        for good in ["0", "5", " 5\t", "99999999999999999999999"] {
            assert_eq!(
                check_length(&headers(&[("content-length", good)])),
                Ok(()),
                "{good}"
            );
        }
        for bad in ["", " ", "5, 5", "5,", "+5", "-5", "0x5", "5 5", "٥"] {
            let length = headers(&[("host", "a"), ("content-length", bad)]);
            assert_eq!(check_length(&length), Err(Malformed::Length), "{bad}");
            assert_eq!(check(Version::HTTP_11, &length), Err(Malformed::Length), "{bad}");
        }
        let twice = headers(&[("content-length", "5"), ("content-length", "5")]);
        assert_eq!(check_length(&twice), Err(Malformed::Length));
    }

    #[test]
    fn a_request_names_one_host() {
        let none = HeaderMap::new();
        assert_eq!(check(Version::HTTP_11, &none), Err(Malformed::Host));
        assert_eq!(check(Version::HTTP_10, &none), Ok(()));
        for version in [Version::HTTP_10, Version::HTTP_11] {
            let twice = headers(&[("host", "a"), ("host", "a")]);
            assert_eq!(check(version, &twice), Err(Malformed::Host));
            for good in [
                "",
                "a",
                "edge.example",
                "edge.example:8080",
                "a:",
                "127.0.0.1:1",
                "a_b~c",
                "%41",
                "[::1]",
                "[::1]:80",
                "[v1.a:b]",
                "xn--nxasmq6b",
            ] {
                assert_eq!(check(version, &headers(&[("host", good)])), Ok(()), "{good}");
            }
            for bad in [
                "a b", "a/b", "a@b", "a:b", "a:1:2", "[", "[]", "[::1", "::1", "[::1]a", "[::1]:a", "a?",
                "a#", "ä", "a\\b", "[a b]", "a,b c", "\"a\"",
            ] {
                let host = headers(&[("host", bad)]);
                assert_eq!(check(version, &host), Err(Malformed::Host), "{bad}");
            }
        }
    }
}
