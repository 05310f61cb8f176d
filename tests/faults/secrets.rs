//! No secret is written anywhere: not to logs, metrics, journals, the store's files, answers.

use crate::fixture::{Fixture, SOON, STORE_TIMEOUT_MS, Setup, answer, body};
use harness::{Answer, Redis, TEST_MASTER_KEY};
use std::path::Path;

/// A provider key that occurs nowhere else.
const CANARY: &str = "sk-canary-8d1f3b7c5e9a2046-provider";

/// Every file below a directory.
fn files(dir: &Path, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else if path.is_file() {
            into.push((path.display().to_string(), std::fs::read(&path).expect("a file")));
        }
    }
}

fn has(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// Makes calls of every kind, also malformed ones with the key in wrong places. Returns all that the edge sent.
async fn calls_of_every_kind(fixture: &Fixture) -> Vec<(String, Vec<u8>)> {
    let mut texts = Vec::new();
    let echo = format!("Incorrect API key provided: {CANARY} ({CANARY})");
    let answers = [
        answer(),
        Answer::error(401, "invalid_api_key", &echo).header("X-Debug", CANARY),
        Answer::error(500, "server_error", &echo).gzip(),
        Answer::bytes(302, "").header("Location", &format!("/?key={CANARY}")),
        Answer::raw(format!("{CANARY} is no HTTP\r\n\r\n")),
        Answer::reset(),
    ];
    for answer in answers {
        fixture.upstream.set(move |_| answer.clone());
        let reply = fixture.call().await;
        texts.push((format!("{:?}", reply.headers), reply.body.to_vec()));
    }
    fixture.upstream.set(|_| answer());
    let (key, other) = (&fixture.key, format!("{}0", &fixture.key[..71]));
    let length = body().to_string().len();
    for head in [
        format!("Authorization: Bearer {key}\r\nx-api-key: {other}\r\n"),
        format!("Authorization: Basic {key}\r\n"),
        format!("Authorization: Bearer {key}\r\nContent-Length: x{key}\r\n"),
        format!("Authorization: Bearer {other}\r\n"),
        format!("Authorization: Bearer {key}\r\n folded: a\r\n"),
        format!("Authorization: Bearer {key}\r\nX-A: a\0b\r\n"),
    ] {
        let mut raw = fixture.raw().await;
        let start = "POST /v1/chat/completions HTTP/1.1\r\nHost: e\r\nContent-Type: application/json\r\n";
        raw.send(format!("{start}{head}Content-Length: {length}\r\n\r\n{}", body()))
            .await;
        if let Some(reply) = raw.reply(SOON).await {
            texts.push((reply.head, reply.body));
        }
    }
    texts
}

#[tokio::test]
async fn canaries_are_found_nowhere() {
    let redis = Redis::start_durable();
    let setup = Setup::default()
        .redis(redis)
        .wired()
        .env("STORE__TIMEOUT_MS", STORE_TIMEOUT_MS);
    let fixture = setup.log_everything().start().await;
    fixture.bot.provider_key(CANARY).await;
    let mut texts = calls_of_every_kind(&fixture).await;
    // A settlement that waits in the journal.
    fixture
        .upstream
        .set(|_| answer().delay(std::time::Duration::from_millis(300)));
    let arrived = fixture.upstream.requests().len();
    let (waited, ()) = futures::future::join(fixture.call(), async {
        fixture.upstream.wait_for(arrived + 1, SOON).await;
        fixture.lose_store();
    })
    .await;
    assert_eq!(waited.status, 200);
    fixture.unavailable_call().await;
    let metrics = fixture.edge.ops("/metrics").expect("metrics").1;
    texts.push(("metrics".to_owned(), metrics.into_bytes()));
    let _: String = fixture.redis.command(&["SAVE"]);
    files(fixture.edge.dir(), &mut texts);
    files(fixture.redis.dir(), &mut texts);
    let names: Vec<&str> = texts.iter().map(|(name, _)| name.as_str()).collect();
    for part in ["pending.jsonl", "log", "dump.rdb", ".aof"] {
        assert!(
            names.iter().any(|name| name.contains(part)),
            "{part} was not searched: {names:?}"
        );
    }
    let journal = texts
        .iter()
        .find(|(name, _)| name.contains("pending.jsonl"))
        .expect("a journal");
    assert!(has(&journal.1, b"settle"), "something waits in it");
    assert!(has(
        &texts
            .iter()
            .find(|(name, _)| name.ends_with("log"))
            .expect("a log")
            .1,
        b"decision"
    ));

    // TEST_MASTER_KEY, decoded.
    let master = [0x2a_u8; 32];
    let virtual_key = fixture.key.as_bytes();
    let secrets: [(&str, &[u8]); 5] = [
        ("the provider key", CANARY.as_bytes()),
        ("a part of the provider key", &CANARY.as_bytes()[3..20]),
        ("the virtual key", &virtual_key[12..]),
        ("the master key", TEST_MASTER_KEY.as_bytes()),
        ("the master key's bytes", &master),
    ];
    for (name, bytes) in &texts {
        for (what, secret) in secrets {
            assert!(
                !has(bytes, secret) && !has(name.as_bytes(), secret),
                "{what} is in {name}"
            );
        }
    }
}
