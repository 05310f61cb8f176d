//! The bytes on the wire: chat requests of any size, the provider's answer, and where a message ends.

use memchr::memmem;

/// Default size of the request's body, in bytes.
pub const REQUEST_BODY_BYTES: usize = 1024;
/// Smallest body that can be requested, in bytes: it holds the model, the system message and one user message.
pub const BODY_BYTES_MIN: usize = 512;
/// Longest body of either side, in bytes.
pub const BODY_BYTES_MAX: usize = 64 << 20;
/// Text of one message in a long conversation, in bytes.
const MESSAGE_TEXT_BYTES: usize = 4000;
/// Path of the requests, at the provider and at every proxy.
pub const PATH: &str = "/v1/chat/completions";
/// Longest head, in bytes.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// Size of a buffer for the provider's whole answer or for a piece of a long request, in bytes.
pub const PIECE_BYTES: usize = 64 << 10;

/// The answer's body: a short completion.
pub(crate) const ANSWER_BODY: &str = r#"{"id":"chatcmpl-BENCHBENCHBENCHBENCHBENCHBENC","object":"chat.completion","created":1795214203,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"The invoice is due on the first working day of the month after delivery. Payments are matched by reference, so please quote the invoice number.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":231,"completion_tokens":29,"total_tokens":260,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_560af6e559"}"#;

/// Returns the body of a chat request, exactly `bytes` long (at least [`BODY_BYTES_MIN`]): a conversation of messages
/// of 4 KB, whose text has the escapes that prompts have.
#[must_use]
pub fn chat_body(bytes: usize) -> String {
    const START: &str = concat!(
        r#"{"model":"gpt-4o-mini","temperature":0.2,"max_completion_tokens":64,"messages":["#,
        r#"{"role":"system","content":"You answer questions about invoices, briefly."}"#
    );
    const OPEN: &str = r#",{"role":"user","content":""#;
    const CLOSE: &str = r#""}"#;
    const END: &str = "]}";
    const TEXT: &str = concat!(
        "When is the invoice for the last delivery due, and how is it matched? ",
        "The note says:\\n\\n\\\"30 days, net\\\". "
    );
    let mut body = String::with_capacity(bytes.max(BODY_BYTES_MIN));
    body.push_str(START);
    loop {
        let room = bytes.saturating_sub(body.len() + OPEN.len() + CLOSE.len() + END.len());
        // The rest after this message must have room for another one, or be empty.
        let length = if room > MESSAGE_TEXT_BYTES + BODY_BYTES_MIN {
            MESSAGE_TEXT_BYTES
        } else {
            room
        };
        body.push_str(OPEN);
        let whole = length / TEXT.len();
        body.extend(std::iter::repeat_n(TEXT, whole));
        // A text that is cut might end within an escape.
        body.extend(std::iter::repeat_n('.', length - whole * TEXT.len()));
        body.push_str(CLOSE);
        if length == room {
            body.push_str(END);
            return body;
        }
    }
}

/// Returns a whole HTTP/1.1 request with this body.
#[must_use]
pub fn chat_request(host: &str, key: &str, run: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nX-Service-Run-Id: {run}\r\n\
         User-Agent: bench-load\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_str(), body].concat().into_bytes()
}

/// Returns the provider's whole answer.
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

/// A malformed message; the reason names the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// Returns the length of the message at the start of `bytes`, or `None` while its head is incomplete. The message must
/// declare its length.
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
    let length = field(&bytes[..head], b"content-length:")
        .and_then(|value| std::str::from_utf8(value).ok()?.parse::<usize>().ok());
    match length {
        Some(length) if length <= BODY_BYTES_MAX => Ok(Some(head + 4 + length)),
        Some(_) => Err(Broken("a body that is too long")),
        None => Err(Broken("no Content-Length")),
    }
}

/// Returns the value of the first field with this name, which is in lower case and ends with a colon.
fn field<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| {
        let (start, value) = line.split_at_checked(name.len())?;
        start.eq_ignore_ascii_case(name).then_some(value)
    })?;
    Some(value.trim_ascii())
}

/// Whether the connection ends with this answer.
#[must_use]
pub fn closes(answer: &[u8]) -> bool {
    let head = memmem::find(answer, b"\r\n\r\n").map_or(answer, |end| &answer[..end]);
    field(head, b"connection:").is_some_and(|value| value.eq_ignore_ascii_case(b"close"))
}

/// Parses the status of an answer.
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
    fn bodies_are_json_of_exactly_the_requested_size() {
        for bytes in [BODY_BYTES_MIN, REQUEST_BODY_BYTES, 5000, 16 << 10, 1 << 20] {
            let body = chat_body(bytes);
            assert_eq!(body.len(), bytes);
            let json: serde_json::Value = serde_json::from_str(&body).unwrap();
            let messages = json["messages"].as_array().unwrap().len();
            assert!(
                (2..=2 + bytes / MESSAGE_TEXT_BYTES).contains(&messages),
                "{bytes}: {messages}"
            );
        }
        let request = chat_request("127.0.0.1:1", "vk_live_x", "r:1", &chat_body(1 << 20));
        assert_eq!(message_length(&request), Ok(Some(request.len())));
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
        assert!(!closes(answer) && closes(b"HTTP/1.1 401 No\r\nConnection: Close\r\n\r\nconnection: keep"));
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
