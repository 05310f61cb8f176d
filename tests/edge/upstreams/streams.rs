//! Streams of an upstream by name.

use super::*;
use harness::{EventStream, Script};

/// A provider that echoes its key in the middle of a stream, whole or masked: a key without `sk-`, sent in the header
/// of Azure. Neither form reaches the caller, wherever the borders of the pieces fall.
#[tokio::test]
async fn a_key_that_is_echoed_in_a_stream_is_removed_whatever_its_prefix() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    let masked = format!("{}****{}", &ZETA_KEY[..16], &ZETA_KEY[ZETA_KEY.len() - 4..]);
    let error = |message: &str| json!({ "error": { "message": message, "code": "invalid_api_key" } });
    let [echoed, clean] = [
        format!("{ZETA_KEY} or {masked} is no key"),
        "[redacted] or [redacted] is no key".to_owned(),
    ]
    .map(|message| error(&message).to_string());
    let text = json!({ "choices": [{ "index": 0, "delta": { "content": "hello" } }] }).to_string();
    for size in [1, 7, 4096] {
        let script = Script::new()
            .event(&text)
            .send(format!("event: error\ndata: {echoed}\n\n"))
            .event("[DONE]")
            .cut_anew(size);
        let answer = Answer::stream(script);
        three.zeta.set(move |_| answer.clone());
        let mut sent = body("gpt-4");
        sent["stream"] = json!(true);
        let edge = three.fixture.edge.addr();
        let mut stream = EventStream::open(edge, "/v1/chat/completions", &actor.key, "", sent).await;
        assert_eq!(last(&three.zeta).header("api-key"), Some(ZETA_KEY));
        let expected = format!("data: {text}\n\nevent: error\ndata: {clean}\n\ndata: [DONE]\n\n");
        assert_eq!(stream.rest().await, expected, "pieces of {size}");
    }
}

/// Streams whose provider is slow: at an upstream with its own times, and at one with those of `[proxy]`.
#[tokio::test]
async fn each_upstream_has_its_own_deadlines_of_streams() {
    const LATE: Duration = Duration::from_millis(900);
    let three = Three::start(
        "timeout_ms = 60000\nstream_idle_ms = 60000\n\
         [proxy]\nstream_first_byte_ms = 300\nstream_idle_ms = 300\n",
    )
    .await;
    let actor = three.actor().await;
    let open = async |model: &str| {
        let mut sent = body(model);
        sent["stream"] = json!(true);
        let edge = three.fixture.edge.addr();
        EventStream::open(edge, "/v1/chat/completions", &actor.key, "", sent).await
    };
    let text = json!({ "choices": [{ "index": 0, "delta": { "content": "hello" } }] }).to_string();
    let slow = Script::new().event(&text).pause(LATE).event("[DONE]");
    for (provider, model) in [(&three.alpha, "llama"), (&three.zeta, "gpt-4")] {
        let stream = Answer::stream(slow.clone());
        provider.set(move |_| stream.clone().delay(LATE));
        let mut answer = open(model).await;
        match model {
            "llama" => assert!(answer.rest().await.ends_with("data: [DONE]\n\n")),
            _ => assert_eq!(
                (answer.status(), &answer.whole().await["error"]["code"]),
                (504, &json!("upstream_timeout"))
            ),
        }
    }
    let entry = format!("{:?}", three.fixture.last_entry(&actor).await);
    assert!(entry.contains("first_byte_timeout"), "{entry}");
    let stream = Answer::stream(slow);
    three.zeta.set(move |_| stream.clone());
    let mut answer = open("gpt-4").await;
    let ended = answer.rest().await;
    assert!(
        ended.contains("event: error") && ended.contains("upstream_timeout"),
        "{ended}"
    );
}
