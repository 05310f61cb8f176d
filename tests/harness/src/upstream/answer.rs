//! Responses of the mock provider: a plain response, with any number of faults.

use super::script::Script;
use super::step::Step;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// An answer: start with one of the constructors and change it with the methods.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
    before: Vec<Step>,
    cut: Option<(usize, Step)>,
    trickle: Option<(usize, Duration)>,
    twice: bool,
    close: bool,
    after: Vec<Step>,
    keeps: Option<bool>,
    raw: Option<Vec<u8>>,
    script: Option<Script>,
}

#[derive(Debug, Clone, Copy)]
enum Framing {
    /// `Content-Length`, too high by this many bytes.
    Length(usize),
    /// Chunks of this size.
    Chunked(usize),
    /// Neither: the body ends with the connection.
    UntilClose,
}

/// Behaviour of the mock for one request.
pub(super) struct Play {
    pub(super) steps: Vec<Step>,
    /// The body, where it is scripted.
    pub(super) script: Option<Vec<Step>>,
    /// True if the pieces are chunks of the transfer encoding.
    pub(super) chunked: bool,
    pub(super) keep_alive: bool,
}

impl Answer {
    /// An answer with these bytes and no content type.
    pub fn bytes(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            framing: Framing::Length(0),
            before: Vec::new(),
            cut: None,
            trickle: None,
            twice: false,
            close: false,
            after: Vec::new(),
            keeps: None,
            raw: None,
            script: None,
        }
    }

    /// A stream of events whose body is this script: the head goes first, each piece is a chunk.
    pub fn stream(script: Script) -> Self {
        Self::scripted(200, script).header("Content-Type", "text/event-stream; charset=utf-8")
    }

    /// An answer with any status and no content type whose body is this script.
    pub fn scripted(status: u16, script: Script) -> Self {
        let mut answer = Self::bytes(status, []).chunked(0);
        answer.script = Some(script);
        answer
    }

    /// A JSON answer.
    pub fn json(status: u16, body: impl Into<Value>) -> Self {
        Self::bytes(status, body.into().to_string()).header("Content-Type", "application/json")
    }

    /// A chat completion with this usage.
    pub fn chat(prompt_tokens: u64, completion_tokens: u64) -> Self {
        Self::chat_with_usage(json!({
            "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        }))
    }

    /// A chat completion with any `usage`; `null` leaves it out.
    pub fn chat_with_usage(usage: Value) -> Self {
        let mut body = json!({
            "id": "chatcmpl-test", "object": "chat.completion", "created": 1_760_000_000, "model": "gpt-4o-mini",
            "choices": [{ "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": "Hello." } }],
        });
        if !usage.is_null() {
            body["usage"] = usage;
        }
        Self::json(200, body)
    }

    /// The provider's error shape.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let error = json!({ "message": message, "type": "test_error", "param": null, "code": code });
        Self::json(status, json!({ "error": error }))
    }

    /// These bytes in place of an HTTP answer; the connection closes after them.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        let mut answer = Self::bytes(200, []);
        answer.raw = Some(bytes.into());
        answer.close()
    }

    /// Never answers.
    pub fn hang() -> Self {
        let mut answer = Self::raw([]);
        answer.before.push(Step::Hang);
        answer
    }

    /// Resets the connection in place of an answer.
    pub fn reset() -> Self {
        let mut answer = Self::raw([]);
        answer.before.push(Step::Reset);
        answer
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before answering.
    #[must_use]
    pub fn delay(mut self, time: Duration) -> Self {
        self.before.push(Step::Pause(time));
        self
    }

    /// Waits until the test calls `notify_one` on the gate.
    #[must_use]
    pub fn wait_for(mut self, gate: &Arc<Notify>) -> Self {
        self.before.push(Step::Wait(gate.clone()));
        self
    }

    /// Sends an informational answer such as 100 or 103 first; several calls send several.
    #[must_use]
    pub fn interim(mut self, status: u16) -> Self {
        let text = format!("HTTP/1.1 {status} Interim\r\nLink: </test>; rel=preload\r\n\r\n");
        self.before.push(Step::Send(text.into_bytes()));
        self
    }

    /// Sends the body in chunks of this size.
    #[must_use]
    pub const fn chunked(mut self, size: usize) -> Self {
        self.framing = Framing::Chunked(size);
        self
    }

    /// Sends neither a length nor chunks: the body ends with the connection.
    #[must_use]
    pub const fn until_close(mut self) -> Self {
        self.framing = Framing::UntilClose;
        self.close()
    }

    /// Compresses the body and sets `Content-Encoding`.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.body).expect("compression into memory");
        self.body = encoder.finish().expect("compression into memory");
        self.header("Content-Encoding", "gzip")
    }

    /// Announces `more` bytes than it sends, then closes.
    #[must_use]
    pub const fn truncated(mut self, more: usize) -> Self {
        self.framing = Framing::Length(more);
        self.close()
    }

    /// Resets the connection after this many bytes of the answer, head included.
    #[must_use]
    pub fn reset_after(mut self, bytes: usize) -> Self {
        self.cut = Some((bytes, Step::Reset));
        self
    }

    /// Sends nothing more after this many bytes of the answer, head included.
    #[must_use]
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.cut = Some((bytes, Step::Hang));
        self
    }

    /// Sends the answer in pieces of `bytes`, with a pause after each.
    #[must_use]
    pub const fn trickle(mut self, bytes: usize, pause: Duration) -> Self {
        self.trickle = Some((bytes, pause));
        self
    }

    /// Sends the answer twice.
    #[must_use]
    pub const fn twice(mut self) -> Self {
        self.twice = true;
        self
    }

    /// Closes the connection after the answer and announces that in the head.
    #[must_use]
    pub const fn close(mut self) -> Self {
        self.close = true;
        self
    }

    /// Closes the connection after the answer without announcing it.
    #[must_use]
    pub const fn close_silently(mut self) -> Self {
        self.keeps = Some(false);
        self
    }

    /// Leaves the connection open after the answer, even if its head announces the end.
    #[must_use]
    pub const fn keep_open(mut self) -> Self {
        self.keeps = Some(true);
        self
    }

    /// Sends more bytes on the connection, this long after the answer.
    #[must_use]
    pub fn then_after(mut self, time: Duration, bytes: impl Into<Vec<u8>>) -> Self {
        self.after = vec![Step::Pause(time), Step::Send(bytes.into())];
        self
    }

    /// Everything that is sent after the interim answers, before [`Self::twice`] repeats it.
    fn rendered(&self) -> Vec<u8> {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut head = format!("HTTP/1.1 {} Test\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if self.close {
            head += "Connection: close\r\n";
        }
        let mut body = self.body.clone();
        match self.framing {
            Framing::Length(more) => head += &format!("Content-Length: {}\r\n", body.len() + more),
            Framing::UntilClose => {}
            Framing::Chunked(size) => {
                head += "Transfer-Encoding: chunked\r\n";
                if self.script.is_none() {
                    body = chunks(&body, size);
                }
            }
        }
        [head.as_bytes(), b"\r\n", &body].concat()
    }

    pub(super) fn play(self) -> Play {
        let mut bytes = self.rendered();
        if self.twice {
            bytes = bytes.repeat(2);
        }
        let end = self.cut.as_ref().map(|(length, _)| *length);
        if let Some(length) = end {
            bytes.truncate(length);
        }
        let mut steps = self.before;
        match self.trickle {
            None => steps.push(Step::Send(bytes)),
            Some((size, pause)) => {
                steps.extend(
                    bytes
                        .chunks(size)
                        .flat_map(|part| [Step::Send(part.to_owned()), Step::Pause(pause)]),
                );
            }
        }
        steps.extend(self.cut.map(|(_, step)| step));
        steps.extend(self.after);
        Play {
            steps,
            script: self.script.map(|script| script.steps),
            chunked: matches!(self.framing, Framing::Chunked(_)),
            keep_alive: self.keeps.unwrap_or(!self.close),
        }
    }
}

fn chunks(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(size) {
        out.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        out.extend(chunk);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\n\r\n");
    out
}
