//! Decoding of compressed answers, with a size limit. Tollgate requests no compression, but providers may compress
//! anyway.

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use flate2::read::ZlibDecoder;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};
use std::borrow::Cow;
use std::io::Read;

/// Maximum number of gzip members of a body: each costs time even if it is empty.
const MEMBERS_MAX: usize = 64;

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

/// Why a body is not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDecoded {
    /// No client can decode it: it is not gzip, as its head says.
    Broken,
    /// Other clients may decode it: its encoding is unknown, it has too many gzip members, or something else behind
    /// the first one, or it is `deflate` without the zlib format.
    Unreadable,
    /// The decoded body is longer than permitted.
    TooLong,
}

/// Bytes that are reserved for a decoded body at first.
const RESERVED_AT_FIRST: usize = 32 << 10;

/// Decodes a body.
///
/// # Errors
/// [`NotDecoded`]. An empty body is never broken: the answer to `HEAD` has one, and a 204.
pub fn decode(body: &Bytes, content_encoding: Option<&[u8]>, bytes_max: usize) -> Result<Bytes, NotDecoded> {
    match Encoding::parse(content_encoding).ok_or(NotDecoded::Unreadable)? {
        Encoding::Identity if body.len() > bytes_max => Err(NotDecoded::TooLong),
        Encoding::Identity => Ok(body.clone()),
        Encoding::Gzip if body.is_empty() => Ok(body.clone()),
        Encoding::Gzip => gunzip(body, bytes_max),
        Encoding::Deflate => {
            let mut plain = Vec::new();
            read_up_to(&mut ZlibDecoder::new(&**body), &mut plain, bytes_max)?;
            Ok(plain.into())
        }
    }
}

/// Decodes all members of a gzip file.
fn gunzip(mut rest: &[u8], bytes_max: usize) -> Result<Bytes, NotDecoded> {
    let mut plain = Vec::new();
    for number in 0..MEMBERS_MAX {
        let mut member = GzDecoder::new(rest);
        read_up_to(&mut member, &mut plain, bytes_max).map_err(|error| match error {
            // Clients ignore bytes behind the first member that are no further member.
            NotDecoded::Unreadable if number == 0 => NotDecoded::Broken,
            error => error,
        })?;
        rest = member.into_inner();
        if rest.is_empty() {
            return Ok(plain.into());
        }
    }
    Err(NotDecoded::Unreadable)
}

/// Appends the decoded bytes, until `plain` has `bytes_max` bytes. It never reserves more than that and a byte:
/// `read_to_end` alone would, by doubling.
fn read_up_to(decoder: &mut impl Read, plain: &mut Vec<u8>, bytes_max: usize) -> Result<(), NotDecoded> {
    loop {
        if plain.len() > bytes_max {
            return Err(NotDecoded::TooLong);
        }
        if plain.len() == plain.capacity() {
            let more = plain.len().max(RESERVED_AT_FIRST);
            plain.reserve_exact(more.min(bytes_max + 1 - plain.len()));
        }
        let room = plain.capacity() - plain.len();
        let read = decoder.take(room as u64).read_to_end(plain);
        if read.map_err(|_| NotDecoded::Unreadable)? < room {
            return match plain.len() > bytes_max {
                true => Err(NotDecoded::TooLong),
                false => Ok(()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(text).unwrap();
        zlib.finish().unwrap()
    }

    const UNREADABLE: Result<Bytes, NotDecoded> = Err(NotDecoded::Unreadable);
    const TOO_LONG: Result<Bytes, NotDecoded> = Err(NotDecoded::TooLong);

    fn decode(body: impl Into<Bytes>, content_encoding: &str) -> Result<Bytes, NotDecoded> {
        super::decode(&body.into(), Some(content_encoding.as_bytes()), 10)
    }

    #[test]
    fn no_more_is_reserved_than_a_body_may_have() {
        for (length, bytes_max) in [
            (0, 0),
            (1, 0),
            (70_000, 70_000),
            (70_000, 100_000),
            (200_000, 100_000),
        ] {
            let body = vec![b'a'; length];
            let mut plain = Vec::new();
            let read = read_up_to(&mut ZlibDecoder::new(&*zlib(&body)), &mut plain, bytes_max);
            assert_eq!(read.is_ok(), length <= bytes_max, "{length}");
            assert!(
                plain.capacity() <= bytes_max + 1,
                "{} for {bytes_max}",
                plain.capacity()
            );
            assert!(read.is_err() || plain == body);
        }
    }

    #[test]
    fn known_encodings_are_decoded_and_others_are_not() {
        let hello = Ok(Bytes::from_static(b"hello"));
        assert_eq!(decode(gzip(b"hello"), "GZip"), hello);
        assert_eq!(decode(zlib(b"hello"), "deflate"), hello);
        assert_eq!(super::decode(&Bytes::from_static(b"hello"), None, 10), hello);
        assert_eq!(decode("hello", "Identity"), hello);
        assert_eq!(decode("hello world", "identity"), TOO_LONG);
        assert_eq!(decode("hello", "gzip"), Err(NotDecoded::Broken));
        let cut = gzip(b"hello").split_off(1);
        assert_eq!(decode(cut, "gzip"), Err(NotDecoded::Broken));
        assert_eq!(decode("", "gzip"), Ok(Bytes::new()));
        assert_eq!(decode("hello", "deflate"), UNREADABLE);
        assert_eq!(decode("hello", "br"), UNREADABLE);
    }

    #[test]
    fn a_decoded_body_is_at_most_as_long_as_permitted() {
        for (length, is_decoded) in [(0, true), (10, true), (11, false), (1 << 20, false)] {
            let text = vec![b'a'; length];
            for (packed, name) in [(gzip(&text), "gzip"), (zlib(&text), "deflate")] {
                let expected = if is_decoded {
                    Ok(text.clone().into())
                } else {
                    TOO_LONG
                };
                assert_eq!(decode(packed, name), expected, "{length} {name}");
            }
        }
        let halves = [gzip(b"hello"), gzip(b"world")].concat();
        assert_eq!(
            decode(halves.clone(), "gzip"),
            Ok(Bytes::from_static(b"helloworld"))
        );
        assert_eq!(decode([halves, gzip(b"!")].concat(), "gzip"), TOO_LONG);
    }

    #[test]
    fn a_gzip_file_has_a_bounded_number_of_members() {
        let members = |count| gzip(b"").repeat(count);
        assert_eq!(decode(members(MEMBERS_MAX), "gzip"), Ok(Bytes::new()));
        assert_eq!(decode(members(MEMBERS_MAX + 1), "gzip"), UNREADABLE);
        assert_eq!(
            decode([gzip(b"a"), b"more".to_vec()].concat(), "gzip"),
            UNREADABLE
        );
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
}
