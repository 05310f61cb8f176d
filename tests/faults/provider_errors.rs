//! Errors of the provider that echo the key they were sent: no fragment reaches the caller (specification §4.4).

use crate::fixture::{ESTIMATE, Fixture, PROVIDER_KEY, SOON, Setup, body};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use harness::{Answer, RawReply};
use std::io::Write as _;

/// The key in every way an error might show it.
fn forms_of_key() -> Vec<String> {
    let masked = format!(
        "{}****{}",
        &PROVIDER_KEY[..7],
        &PROVIDER_KEY[PROVIDER_KEY.len() - 4..]
    );
    let escaped: String = PROVIDER_KEY
        .chars()
        .map(|letter| format!("\\u{:04x}", letter as u32))
        .collect();
    let dash = PROVIDER_KEY.replacen('-', "\\u002d", 1);
    let capital = PROVIDER_KEY.replacen('-', "\\u002D", 1);
    vec![
        PROVIDER_KEY.to_owned(),
        masked,
        escaped,
        dash,
        capital,
        "sk-proj-other_Key.1".to_owned(),
    ]
}

fn error(echo: &str) -> String {
    format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {echo}. Key again: ({echo}),{echo}","code":"invalid_api_key"}}}}"#
    )
}

fn compressed(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(text.as_bytes()).unwrap();
    vec![
        ("gzip", gzip.finish().unwrap()),
        ("x-gzip", gzip_of(text)),
        ("deflate", zlib.finish().unwrap()),
    ]
}

fn gzip_of(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

async fn call_answered(fixture: &Fixture, answer: Answer) -> RawReply {
    fixture.upstream.set(move |_| answer.clone());
    let mut raw = fixture.raw().await;
    assert!(
        raw.send_chat(&fixture.key, "", body().to_string().as_bytes())
            .await
    );
    let reply = raw.reply(SOON).await.expect("an answer");
    let length = reply.body.len().to_string();
    assert_eq!(reply.header("content-length"), Some(length.as_str()), "{reply:?}");
    reply
}

/// Asserts that no part of a key is left, in any JSON escaping.
#[track_caller]
fn clean(reply: &RawReply, what: &str) {
    let text = reply.text();
    let unescaped =
        serde_json::from_str::<serde_json::Value>(&text).map_or(text.clone(), |json| json.to_string());
    for shown in [&reply.head, &text, &unescaped] {
        assert!(!shown.contains("sk-"), "{what}: {shown}");
        for part in ["test-provider", "provider-key", "****", "other_Key"] {
            assert!(!shown.contains(part), "{what}: {shown}");
        }
    }
}

#[tokio::test]
async fn echoed_keys_are_removed_from_error_bodies() {
    let fixture = Setup::default().start().await;
    for echo in forms_of_key() {
        for status in [400, 401, 403, 429, 500, 503, 302] {
            let reply = call_answered(&fixture, Answer::bytes(status, error(&echo))).await;
            assert_eq!(reply.status, status);
            clean(&reply, &echo);
            let text = reply.text();
            assert_eq!(text.matches("[redacted]").count(), 3, "{text}");
            assert!(
                text.starts_with(r#"{"error":{"message":"Incorrect API key provided: "#),
                "{text}"
            );
            assert!(text.ends_with(r#","code":"invalid_api_key"}}"#), "{text}");
        }
        for (encoding, bytes) in compressed(&error(&echo)) {
            let reply = call_answered(
                &fixture,
                Answer::bytes(401, bytes).header("Content-Encoding", encoding),
            )
            .await;
            assert_eq!(
                reply.header("content-encoding"),
                None,
                "{encoding}: sent as it is now"
            );
            clean(&reply, &format!("{encoding} {echo}"));
        }
    }
    let chunked = call_answered(&fixture, Answer::bytes(401, error(PROVIDER_KEY)).chunked(3)).await;
    clean(&chunked, "in chunks of three bytes");
    fixture.at_rest().await;
    assert_eq!(fixture.open_holds(), 0);
}

#[tokio::test]
async fn echoed_keys_are_removed_from_error_headers() {
    let fixture = Setup::default().start().await;
    for status in [401, 500, 307] {
        let answer = Answer::bytes(status, "{}")
            .header("X-Debug", &format!("key={PROVIDER_KEY}; next"))
            .header("WWW-Authenticate", &format!("Bearer error=\"{PROVIDER_KEY}\""))
            .header("X-Twice", "kept")
            .header("X-Twice", &format!("a {PROVIDER_KEY}"))
            .header("Location", &format!("/v1/x?key={PROVIDER_KEY}"));
        let reply = call_answered(&fixture, answer).await;
        clean(&reply, "headers");
        assert_eq!(reply.header("x-debug"), Some("key=[redacted]; next"));
        let head = reply.head.to_lowercase();
        assert!(
            head.contains("x-twice: kept") && head.contains("x-twice: a [redacted]"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn answers_that_cannot_be_searched_are_not_passed_on() {
    let fixture = Setup::default().start().await;
    let half = gzip_of(&error(PROVIDER_KEY));
    let bomb = gzip_of(&" ".repeat(65 << 20));
    let cases = [
        ("br", error(PROVIDER_KEY).into_bytes()),
        ("gzip", error(PROVIDER_KEY).into_bytes()),
        ("gzip", half[..half.len() / 2].to_vec()),
        ("gzip", bomb),
        ("gzip, gzip", half),
    ];
    for (encoding, bytes) in cases {
        let reply = call_answered(
            &fixture,
            Answer::bytes(401, bytes).header("Content-Encoding", encoding),
        )
        .await;
        assert_eq!(reply.status, 401, "the status is the provider's");
        clean(&reply, encoding);
        assert!(reply.text().contains("cannot be passed on"), "{}", reply.text());
        assert_eq!(reply.header("content-encoding"), None);
    }
    fixture.settled_at(0).await;
}

#[tokio::test]
async fn a_success_that_is_too_long_without_its_compression_is_502() {
    let fixture = Setup::default().start().await;
    let bomb = Answer::bytes(200, gzip_of(&" ".repeat(65 << 20))).header("Content-Encoding", "gzip");
    let reply = call_answered(&fixture, bomb).await;
    assert_eq!(reply.status, 502, "{}", reply.text());
    fixture.settled_at(ESTIMATE).await;
}

#[tokio::test]
async fn errors_without_keys_are_unchanged() {
    let fixture = Setup::default().start().await;
    // A completion is passed on unchanged, whatever it contains.
    let quoting = r#"{"content":"a key starts with sk-abc"}"#;
    let reply = call_answered(&fixture, Answer::bytes(200, quoting)).await;
    assert_eq!(reply.text(), quoting);
    let plain =
        r#"{"error":{"message":"a \u00e9 \\u002d \/ tail of task-7 on disk-2: risk-free","code":null}}"#;
    let reply = call_answered(&fixture, Answer::bytes(400, plain)).await;
    assert_eq!(
        reply.text(),
        plain,
        "words that end with the prefix of a key stay"
    );
    let gzip = gzip_of(plain);
    let reply = call_answered(
        &fixture,
        Answer::bytes(400, gzip.clone()).header("Content-Encoding", "gzip"),
    )
    .await;
    assert_eq!(
        (
            reply.body,
            reply.head.to_lowercase().contains("content-encoding: gzip")
        ),
        (gzip, true)
    );
}
