//! Decoding of compressed answers, with a size limit. Tollgate requests no compression, but providers may compress
//! anyway.

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};
use std::borrow::Cow;
use std::io::Read;

/// Longest decoded body, in bytes.
const DECODED_MAX: u64 = 64 << 20;

/// A content encoding that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Not compressed.
    Identity,
    Gzip,
    /// The zlib format, which HTTP calls `deflate`.
    Deflate,
}

impl Encoding {
    /// Parses `Content-Encoding`; `None` if it cannot be decoded. Without the header a body is not compressed.
    pub(super) fn parse(content_encoding: Option<&[u8]>) -> Option<Self> {
        match content_encoding.map(<[u8]>::to_ascii_lowercase).as_deref() {
            None | Some(b"" | b"identity") => Some(Self::Identity),
            Some(b"gzip" | b"x-gzip") => Some(Self::Gzip),
            Some(b"deflate") => Some(Self::Deflate),
            Some(_) => None,
        }
    }
}

/// Returns the value of `Content-Encoding`. Several header lines form one list (RFC 9110 §5.3), which is not a
/// decodable encoding.
pub fn content_encoding(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let mut values = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .map(HeaderValue::as_bytes);
    let first = values.next()?;
    let further: Vec<&[u8]> = values.collect();
    Some(match further.is_empty() {
        true => Cow::Borrowed(first),
        false => Cow::Owned([&[first], &*further].concat().join(&b", "[..])),
    })
}

/// Decodes a body; `None` if the encoding is unknown or broken, or the result is too long.
pub fn decode<'a>(body: &'a [u8], content_encoding: Option<&[u8]>) -> Option<Cow<'a, [u8]>> {
    match Encoding::parse(content_encoding)? {
        Encoding::Identity => Some(Cow::Borrowed(body)),
        Encoding::Gzip => inflate(MultiGzDecoder::new(body)).map(Cow::Owned),
        Encoding::Deflate => inflate(ZlibDecoder::new(body)).map(Cow::Owned),
    }
}

fn inflate(decoder: impl Read) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let read = decoder.take(DECODED_MAX + 1).read_to_end(&mut plain).ok()?;
    (read as u64 <= DECODED_MAX).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use std::io::Write;

    #[test]
    fn known_encodings_are_decoded_and_others_are_not() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"hello").unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(b"hello").unwrap();
        assert_eq!(
            decode(&gzip.finish().unwrap(), Some(b"GZip")).as_deref(),
            Some(&b"hello"[..])
        );
        assert_eq!(
            decode(&zlib.finish().unwrap(), Some(b"deflate")).as_deref(),
            Some(&b"hello"[..])
        );
        assert_eq!(decode(b"hello", None).as_deref(), Some(&b"hello"[..]));
        assert_eq!(
            decode(b"hello", Some(b"Identity")).as_deref(),
            Some(&b"hello"[..])
        );
        assert_eq!(decode(b"hello", Some(b"gzip")), None);
        assert_eq!(decode(b"hello", Some(b"br")), None);
    }

    #[test]
    fn several_encodings_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(content_encoding(&headers), None);
        for (line, all) in [("identity", "identity"), ("gzip", "identity, gzip")] {
            headers.append(CONTENT_ENCODING, HeaderValue::from_static(line));
            let value = content_encoding(&headers);
            assert_eq!(value.as_deref(), Some(all.as_bytes()));
        }
        assert_eq!(Encoding::parse(content_encoding(&headers).as_deref()), None);
    }

    #[test]
    fn encodings_are_parsed() {
        for (name, encoding) in [
            (None, Some(Encoding::Identity)),
            (Some(""), Some(Encoding::Identity)),
            (Some("Identity"), Some(Encoding::Identity)),
            (Some("X-GZip"), Some(Encoding::Gzip)),
            (Some("deflate"), Some(Encoding::Deflate)),
            (Some("br"), None),
            (Some("gzip, gzip"), None),
        ] {
            assert_eq!(Encoding::parse(name.map(str::as_bytes)), encoding, "{name:?}");
        }
    }

    #[test]
    fn a_bomb_is_not_decoded() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![0_u8; 1 << 20];
        for _ in 0..65 {
            gzip.write_all(&zeros).unwrap();
        }
        assert_eq!(decode(&gzip.finish().unwrap(), Some(b"gzip")), None);
    }
}
