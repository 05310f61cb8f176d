//! The bytes on the wire: one chat request of 1 KB, one answer of a provider, and where a message ends.

use memchr::memmem;

/// Size of the request's body in bytes.
pub const REQUEST_BODY_BYTES: usize = 1024;
/// The path that the requests go to, at the provider and at every proxy.
pub const PATH: &str = "/v1/chat/completions";
/// Longest head that is searched for its end.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Room for one message of either side.
pub const MESSAGE_BYTES_MAX: usize = 32 << 10;

/// The answer's body: what a provider sends for a short completion.
const ANSWER_BODY: &str = r#"{"id":"chatcmpl-BENCHBENCHBENCHBENCHBENCHBENC","object":"chat.completion","created":1795214203,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"The invoice is due on the first working day of the month after delivery. Payments are matched by reference, so please quote the invoice number.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":231,"completion_tokens":29,"total_tokens":260,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_560af6e559"}"#;

/// A whole request: the body is exactly [`REQUEST_BODY_BYTES`] long.
#[must_use]
pub fn chat_request(host: &str, key: &str, run: &str) -> Vec<u8> {
    let start = concat!(
        r#"{"model":"gpt-4o-mini","temperature":0.2,"max_completion_tokens":64,"messages":["#,
        r#"{"role":"system","content":"You answer questions about invoices, briefly."},{"role":"user","content":""#
    );
    let end = r#""}]}"#;
    let text = "When is the invoice for the last delivery due, and how is it matched? ";
    let text = text
        .chars()
        .cycle()
        .take(REQUEST_BODY_BYTES - start.len() - end.len());
    let body = format!("{start}{}{end}", text.collect::<String>());
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nX-Service-Run-Id: {run}\r\n\
         User-Agent: bench-load\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

/// The provider's whole answer.
#[must_use]
pub fn chat_answer() -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Date: Fri, 20 Nov 2026 22:36:43 GMT\r\nopenai-processing-ms: 0\r\nopenai-version: 2020-10-01\r\n\
         x-request-id: req_bench\r\n\r\n",
        ANSWER_BODY.len()
    );
    [head.as_str(), ANSWER_BODY].concat().into_bytes()
}

/// A message that cannot be read; the reason names the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// Length of the message at the start of `bytes`, or `None` while its head is not whole. Only messages that declare
/// their length are understood.
///
/// # Errors
/// [`Broken`] for a head that is too long or declares no length.
pub fn message_length(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let Some(head) = memmem::find(bytes, b"\r\n\r\n") else {
        return if bytes.len() > HEAD_BYTES_MAX {
            Err(Broken("a head without an end"))
        } else {
            Ok(None)
        };
    };
    let mut lines = bytes[..head].split(|byte| *byte == b'\n');
    let length = lines.find_map(|line| {
        let (name, value) = line.split_at_checked("content-length:".len())?;
        name.eq_ignore_ascii_case(b"content-length:").then_some(value)
    });
    let length = length.and_then(|value| {
        std::str::from_utf8(value.trim_ascii())
            .ok()?
            .parse::<usize>()
            .ok()
    });
    match length {
        Some(length) if length <= MESSAGE_BYTES_MAX - HEAD_BYTES_MAX => Ok(Some(head + 4 + length)),
        Some(_) => Err(Broken("a body that is too long")),
        None => Err(Broken("no Content-Length")),
    }
}

/// The status of an answer.
///
/// # Errors
/// [`Broken`] when there is none.
pub fn status(answer: &[u8]) -> Result<u16, Broken> {
    let digits = answer.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    digits
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .ok_or(Broken("no status line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_one_kilobyte_of_json_with_its_length() {
        let request = chat_request("127.0.0.1:1", "vk_live_x", "r:1");
        let head = memmem::find(&request, b"\r\n\r\n").unwrap();
        assert_eq!(request.len() - head - 4, REQUEST_BODY_BYTES);
        assert_eq!(message_length(&request), Ok(Some(request.len())));
        let body: serde_json::Value = serde_json::from_slice(&request[head + 4..]).unwrap();
        assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn the_answer_reports_usage() {
        let answer = chat_answer();
        assert_eq!(message_length(&answer), Ok(Some(answer.len())));
        assert_eq!(status(&answer), Ok(200));
        let body: serde_json::Value = serde_json::from_str(ANSWER_BODY).unwrap();
        assert_eq!(body["usage"]["total_tokens"], 260);
    }

    #[test]
    fn a_message_ends_where_its_length_says() {
        let answer = b"HTTP/1.1 402 Payment Required\r\ncontent-LENGTH:  2\r\n\r\n{}HTTP/1.1";
        assert_eq!(message_length(answer), Ok(Some(answer.len() - 8)));
        assert_eq!(status(answer), Ok(402));
        assert_eq!(message_length(&answer[..40]), Ok(None));
        assert_eq!(
            message_length(b"HTTP/1.1 200 OK\r\n\r\n"),
            Err(Broken("no Content-Length"))
        );
        assert_eq!(
            message_length(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"),
            Err(Broken("a body that is too long"))
        );
        assert_eq!(
            message_length(&[b'a'; HEAD_BYTES_MAX + 1]),
            Err(Broken("a head without an end"))
        );
        assert_eq!(status(b"SSH-2.0"), Err(Broken("no status line")));
    }
}
