//! A whole answer of the provider as it is passed on and billed: decoded once, read for its usage, and without keys
//! (specification §4.4).

use super::encoding::{self, NotDecoded};
use super::failure::{UpstreamFailure, bad_answer};
use super::redact::{self, headers_with};
use super::sent_key::{SentKey, WholeKey};
use super::stream::has_events;
use super::usage::{Reported, UsageReader};
use crate::large_bodies::is_large;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};

/// Replaces the body of an error that cannot be decoded and therefore not be searched for keys.
const UNREADABLE: &[u8] = br#"{"error":{"message":"The provider's error is encoded in a way that cannot be passed on safely.","type":"upstream_error","param":null,"code":null}}"#;

/// Longest error without its compression that is searched for keys, in bytes: that takes a hundred times as long as
/// reading it, and no provider explains an error in more.
const ERROR_MAX: usize = 1 << 20;

/// The provider's whole answer as it arrived.
#[derive(Debug)]
pub struct ReceivedAnswer {
    pub status: StatusCode,
    /// Names in lower case.
    pub headers: HeaderMap,
    /// Still compressed if the provider compressed it.
    pub body: Bytes,
}

/// The provider's whole answer.
#[derive(Debug)]
pub struct WholeAnswer {
    pub status: StatusCode,
    /// Names in lower case.
    pub headers: HeaderMap,
    /// As it is passed on: still compressed if the provider compressed it and nothing was removed from it.
    pub body: Bytes,
    /// Usage that the settlement needs of a success; `None` if it cannot be read.
    pub reported: Option<Reported>,
}

/// Facts about an answer that are known before it arrives.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedAnswer {
    /// The rules by which its usage is read.
    pub usage: UsageReader,
    /// Longest body without compression, in bytes.
    pub bytes_max: usize,
}

impl ReceivedAnswer {
    /// Returns whether [`inspect`](Self::inspect) may take long.
    pub fn is_large(&self) -> bool {
        is_large(self.body.len()) || self.headers.contains_key(CONTENT_ENCODING)
    }

    /// Decodes the body, reads its usage, and removes keys: all fragments from an error, which may echo the caller's
    /// key too, and the sent key as a whole from any other answer. Another answer in an encoding that the edge does
    /// not decode stays as it is.
    ///
    /// # Errors
    /// The decoded body of a success is longer than expected, or no client can decode it.
    pub fn inspect(self, sent_key: &str, expected: ExpectedAnswer) -> Result<WholeAnswer, UpstreamFailure> {
        let Self {
            status,
            headers,
            body,
        } = self;
        let content_encoding = encoding::content_encoding(&headers);
        let bytes_max = match status.is_success() {
            true => expected.bytes_max,
            false => ERROR_MAX,
        };
        let plain = match encoding::decode(&body, content_encoding.as_deref(), bytes_max) {
            Ok(plain) => Some(plain),
            // The status alone decides what an error costs.
            Err(NotDecoded::TooLong) if status.is_success() => {
                return Err(bad_answer("its answer is too long"));
            }
            // OpenAI's SDKs repeat a call whose answer they cannot decode, and do not read its headers then.
            Err(NotDecoded::Broken) if status.is_success() => {
                return Err(bad_answer("its answer is not gzip, as its head says"));
            }
            Err(_) => None,
        };
        let is_error = redact::is_error(status, plain.as_deref());
        let mut answer = WholeAnswer {
            reported: plain
                .as_ref()
                .filter(|_| status.is_success())
                .and_then(|plain| expected.read(&headers, plain)),
            status,
            headers,
            body,
        };
        if is_error {
            let sent_key = SentKey::new(sent_key);
            answer.redact(plain.as_deref(), &|text| sent_key.redact(text));
            // In UTF-16, which has NUL bytes, keys are not found.
            if plain.is_none_or(|plain| plain.contains(&0)) {
                let json = HeaderValue::from_static("application/json");
                answer.headers.insert(CONTENT_TYPE, json);
                answer.replace_body(Bytes::from_static(UNREADABLE));
            }
        } else if let Some(key) = WholeKey::new(sent_key) {
            // A search is a fraction of a copy, which only an answer that has the key needs.
            let has_key = |text: &Bytes| key.find(text).is_some();
            if key.is_in_head(&answer.headers) || plain.as_ref().is_some_and(has_key) {
                answer.redact(plain.as_deref(), &|text| key.without(text));
            }
        }
        Ok(answer)
    }
}

impl ExpectedAnswer {
    /// Reads the usage in a successful answer; `None` if it cannot be read.
    fn read(self, headers: &HeaderMap, plain: &Bytes) -> Option<Reported> {
        match has_events(headers) {
            true => Some(self.usage.read_events(plain)),
            false => self.usage.read(plain),
        }
    }
}

impl WholeAnswer {
    /// Applies `clean`, which returns a text without its secrets, or `None` if it has none, to the head and to the
    /// uncompressed body.
    fn redact(&mut self, plain: Option<&[u8]>, clean: &dyn Fn(&[u8]) -> Option<Vec<u8>>) {
        headers_with(&mut self.headers, clean);
        if let Some(changed) = plain.and_then(clean) {
            self.replace_body(changed.into());
        }
    }

    fn replace_body(&mut self, plain: Bytes) {
        self.headers.remove(CONTENT_ENCODING);
        self.headers.remove(CONTENT_LENGTH);
        self.body = plain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::measured::Endpoint;
    use domain::price::USAGE_TOKENS_MAX;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    const KEY: &str = "gsk_Zk3vB8qLr1Tn6XwY0pAe";
    const BYTES_MAX: usize = 1000;
    const EXPECTED: ExpectedAnswer = ExpectedAnswer {
        usage: UsageReader {
            endpoint: Endpoint::Chat,
            cost_counts: false,
            tokens_max: USAGE_TOKENS_MAX,
        },
        bytes_max: BYTES_MAX,
    };

    fn gzip(text: &str) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    }

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: Vec<u8>) -> ReceivedAnswer {
        let headers = headers.iter().map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        let (status, headers) = (
            StatusCode::from_u16(status).unwrap(),
            headers.collect::<HeaderMap>(),
        );
        ReceivedAnswer {
            status,
            headers,
            body: Bytes::from(body),
        }
    }

    fn inspected(
        status: u16,
        headers: &[(&'static str, &'static str)],
        body: impl Into<Vec<u8>>,
    ) -> WholeAnswer {
        let received = answer(status, headers, body.into());
        received.inspect(KEY, EXPECTED).unwrap()
    }

    /// OpenRouter reports an error in a choice. An answer that is no error loses the whole key only.
    #[test]
    fn no_answer_has_the_whole_key() {
        let part = &KEY[..12];
        for (status, body, is_error) in [
            (
                200,
                r#"{"choices":[{"error":{"message":"KEY"},"message":{}}]}"#,
                true,
            ),
            (
                200,
                r#"{"choices":[{"error":null,"message":{"content":"KEY and KEY"}}]}"#,
                false,
            ),
            (200, r#"{"detail":"KEY"}"#, false),
            (201, "<p>KEY</p>", false),
        ] {
            let echo = body.replace("KEY", KEY);
            let head = [("x-debug-auth", "Bearer gsk_Zk3vB8qLr1Tn6XwY0pAe")];
            let plain = inspected(status, &head, echo.clone());
            assert_eq!(plain.headers["x-debug-auth"], "Bearer [redacted]");
            assert_eq!(plain.body, body.replace("KEY", "[redacted]"));
            let packed = inspected(status, &[("content-encoding", "gzip")], gzip(&echo));
            assert_eq!(packed.body, body.replace("KEY", "[redacted]"));
            assert!(!packed.headers.contains_key(CONTENT_ENCODING));
            let parts = body.replace("KEY", part);
            let with_part = inspected(status, &[], parts.clone());
            assert_eq!(with_part.body == parts, !is_error, "{parts}");
        }
        let head = inspected(200, &[("x-key", "gsk_Zk3vB8qLr1Tn6XwY0pAe")], "").headers;
        assert_eq!(head["x-key"], "[redacted]");
    }

    #[test]
    fn headers_and_compressed_bodies_of_errors_are_searched() {
        let headers = [
            ("x-debug", KEY),
            ("content-encoding", "gzip"),
            ("content-length", "44"),
        ];
        let error = inspected(401, &headers, gzip(KEY));
        assert_eq!(error.body, "[redacted]");
        assert_eq!(error.headers["x-debug"], "[redacted]");
        assert_eq!(
            error.headers.len(),
            1,
            "neither length nor encoding is true any more"
        );

        let packed = gzip(&KEY[1..]);
        let success = inspected(200, &[("content-encoding", "gzip")], packed.clone());
        assert_eq!((success.body, success.headers.len()), (Bytes::from(packed), 1));
    }

    #[test]
    fn the_usage_of_a_success_is_read_without_its_compression() {
        let text = r#"{"usage":{"prompt_tokens":9,"completion_tokens":12}}"#;
        let packed = [("content-encoding", "gzip")];
        for (status, headers, body, is_read) in [
            (200, &[][..], text.as_bytes().to_vec(), true),
            (200, &packed, gzip(text), true),
            (
                200,
                &[("content-encoding", "br")],
                text.as_bytes().to_vec(),
                false,
            ),
            (400, &[], text.as_bytes().to_vec(), false),
        ] {
            let answer = inspected(status, headers, body);
            assert_eq!(answer.reported.is_some(), is_read, "{status} {headers:?}");
        }
    }

    #[test]
    fn an_error_that_cannot_be_searched_is_replaced_and_another_answer_stays() {
        let utf16: Vec<u8> = KEY.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (headers, body) in [
            (&[("content-encoding", "br")][..], KEY.as_bytes().to_vec()),
            (&[("content-encoding", "gzip")], KEY.as_bytes().to_vec()),
            (&[("content-type", "text/plain")], utf16),
        ] {
            let error = inspected(401, headers, body.clone());
            assert_eq!(error.body, UNREADABLE);
            assert_eq!(error.headers.len(), 1);
            assert_eq!(error.headers[CONTENT_TYPE], "application/json");
            let success = answer(200, headers, body.clone()).inspect(KEY, EXPECTED);
            if headers[0].1 == "gzip" {
                assert!(success.is_err(), "no client can decode it");
                continue;
            }
            let success = success.unwrap();
            assert_eq!((success.body, success.headers.len()), (body.into(), 1));
        }
    }

    #[test]
    fn an_error_that_is_longer_than_any_is_replaced() {
        for (length, is_kept) in [(ERROR_MAX, true), (ERROR_MAX + 1, false)] {
            let text = "a".repeat(length);
            for headers in [&[][..], &[("content-encoding", "gzip")]] {
                let body = if headers.is_empty() {
                    text.clone().into_bytes()
                } else {
                    gzip(&text)
                };
                let error = inspected(500, headers, body);
                assert_eq!(error.body != UNREADABLE, is_kept, "{length} {headers:?}");
            }
        }
    }

    #[test]
    fn an_answer_may_be_as_long_when_decoded_as_when_not_compressed() {
        for (length, is_accepted) in [(BYTES_MAX, true), (BYTES_MAX + 1, false)] {
            let packed = gzip(&"a".repeat(length));
            let received = |status| answer(status, &[("content-encoding", "gzip")], packed.clone());
            assert!(received(200).is_large(), "its length says nothing");
            assert_eq!(
                received(200).inspect(KEY, EXPECTED).is_ok(),
                is_accepted,
                "{length}"
            );
        }
    }

    #[test]
    fn an_error_with_the_status_of_a_success_is_searched() {
        for (body, is_error) in [
            (r#"{"error":{"message":"KEY"}}"#, true),
            (r#"{"id":"r","error": "KEY","x":1}"#, true),
            (r#"{"status":"failed","error":{"code":"a"},"x":"KEY"}"#, true),
            (r#"{"error":null,"error":"KEY"}"#, true),
            (r#"[{"error":"KEY"}]"#, true),
            (r#"{"error":null,"output":"KEY"}"#, false),
            (r#"{"choices":[{"message":{"content":"\"error\": KEY"}}]}"#, false),
            (r#"{"choices":[{"message":{"tool":{"error":"KEY"}}}]}"#, false),
            (r#"KEY"#, false),
        ] {
            // A part of the key, which only errors lose.
            let with = |text: &str| body.replace("KEY", text);
            let answer = inspected(200, &[], with(&KEY[1..]));
            assert_eq!(answer.body, with(if is_error { "[redacted]" } else { &KEY[1..] }));
        }
    }
}
