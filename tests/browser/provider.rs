//! Answers of the provider: whole and streamed chat completions, responses, embeddings.

use harness::{Answer, Recorded, Script};
use serde_json::{Value, json};
use std::time::Duration;

/// Time before the head of a stream, so that its first byte comes measurably later than the request. Journeys filter by
/// less.
const BEFORE_STREAM: Duration = Duration::from_millis(120);
/// A caller who asks for this in a stream gets more text than is held for a call without a limit.
const LONG: &str = "a long story";
/// Number of pieces of a long text, of 400 bytes (about 100 tokens) each.
const LONG_PIECES: usize = 40;

/// Returns the answer to a request: its usage is 9 + 12 tokens, in embeddings 9.
pub fn answer(request: &Recorded) -> Answer {
    let is_streamed = request.json()["stream"] == true;
    let of_responses = json!({ "input_tokens": 9, "output_tokens": 12, "total_tokens": 21 });
    match (request.path.as_str(), is_streamed) {
        ("/v1/responses", false) => Answer::json(200, response(&of_responses)),
        ("/v1/responses", true) => stream(Script::response(&["Hello", "."], &of_responses)),
        ("/v1/embeddings", _) => Answer::json(200, embedding()),
        (_, true) => {
            let long = "word".repeat(100);
            let pieces = match String::from_utf8_lossy(&request.body).contains(LONG) {
                true => vec![long.as_str(); LONG_PIECES],
                false => vec!["Hello", "."],
            };
            let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21 });
            stream(Script::chat(&pieces, &usage))
        }
        (_, false) => Answer::chat(9, 12),
    }
}

fn stream(script: Script) -> Answer {
    Answer::stream(script).delay(BEFORE_STREAM)
}

fn response(usage: &Value) -> Value {
    let text = json!([{ "type": "output_text", "text": "Hello.", "annotations": [] }]);
    let message = json!({ "type": "message", "role": "assistant", "content": text });
    json!({ "id": "resp_test", "object": "response", "status": "completed", "output": [message], "usage": usage })
}

fn embedding() -> Value {
    json!({
        "object": "list", "data": [{ "object": "embedding", "index": 0, "embedding": [0.5] }],
        "usage": { "prompt_tokens": 9, "total_tokens": 9 },
    })
}
