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
        let edge = three.stage.edge.addr();
        let mut stream = EventStream::open(edge, "/v1/chat/completions", &actor.key, "", sent).await;
        assert_eq!(last(&three.zeta).header("api-key"), Some(ZETA_KEY));
        let expected = format!("data: {text}\n\nevent: error\ndata: {clean}\n\ndata: [DONE]\n\n");
        assert_eq!(stream.rest().await, expected, "pieces of {size}");
    }
}
