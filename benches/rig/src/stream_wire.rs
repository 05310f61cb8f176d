//! The bytes of streams on the wire: a request for a stream, its events, and the parser of the received bytes.

use crate::wire::{ANSWER_BODY, Broken, chat_body, status};
use memchr::memmem;

/// Events with text in a whole stream. The usage and `[DONE]` follow them.
pub const STREAM_EVENTS: u64 = 200;
/// Start of a request body that asks for a stream. The number after it encodes the [`StreamSpec`].
const STREAM_MARK: &str = r#"{"stream":true,"seed":"#;
/// Bytes that occur once in each event of a stream.
pub const EVENT_MARK: &[u8] = b"\"delta\"";
/// End of a stream, in the body.
pub const STREAM_END: &[u8] = b"data: [DONE]\n\n";

/// The stream that a request to the provider of the bench asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSpec {
    /// Microseconds between two events.
    pub every_us: u64,
    /// Events with text: [`STREAM_EVENTS`], or fewer.
    pub events: u64,
}

impl StreamSpec {
    /// Returns the body of a chat request of about `bytes` that asks for the stream. Like most callers, it does not ask
    /// for usage.
    #[must_use]
    pub fn body(self, bytes: usize) -> String {
        let number = self.every_us * (STREAM_EVENTS + 1) + self.events;
        let rest = chat_body(bytes);
        format!("{STREAM_MARK}{number},{}", rest.trim_start_matches('{'))
    }

    /// Parses the stream that a whole request asks for; `None` if it asks for none.
    #[must_use]
    pub fn from_request(request: &[u8]) -> Option<Self> {
        // A gateway that asks for usage on behalf of the caller puts that field before or after these.
        let mark = STREAM_MARK.trim_start_matches('{').as_bytes();
        let digits = request.get(memmem::find(request, mark)? + mark.len()..)?;
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number: u64 = std::str::from_utf8(&digits[..length]).ok()?.parse().ok()?;
        Some(Self {
            every_us: number / (STREAM_EVENTS + 1),
            events: number % (STREAM_EVENTS + 1),
        })
    }
}

/// Returns the head of a stream. Its `X-Accel-Buffering` makes nginx pass the body on as it comes.
#[must_use]
pub fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\
      X-Accel-Buffering: no\r\nx-request-id: req_bench\r\n\r\n"
        .to_vec()
}

/// Returns one event of a stream, as a chunk.
#[must_use]
pub fn stream_event() -> Vec<u8> {
    in_chunk(
        "data: {\"id\":\"chatcmpl-BENCHBENCHBENCHBENCHBENCHBENC\",\"object\":\"chat.completion.chunk\",\
         \"created\":1795214203,\"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\
         \"system_fingerprint\":\"fp_560af6e559\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" invoice\"},\
         \"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n",
    )
}

/// Returns the end of a stream, with the usage of [`wire::chat_answer`](crate::wire::chat_answer).
#[must_use]
pub fn stream_end() -> Vec<u8> {
    let usage = ANSWER_BODY
        .find("\"usage\":")
        .zip(ANSWER_BODY.find(",\"service_tier\""));
    let usage = usage
        .and_then(|(start, end)| ANSWER_BODY.get(start..end))
        .unwrap_or_default();
    let frame = format!(
        "data: {{\"id\":\"chatcmpl-BENCH\",\"object\":\"chat.completion.chunk\",\"choices\":[],{usage},\
         \"service_tier\":\"default\"}}\n\n"
    );
    let done = String::from_utf8_lossy(STREAM_END);
    [in_chunk(&frame), in_chunk(&done), b"0\r\n\r\n".to_vec()].concat()
}

fn in_chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Parser of a received stream, independent of the boundaries of reads and chunks.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Events with text so far.
    pub(crate) events: u64,
    /// Whether the last byte of the stream was received.
    pub(crate) has_ended: bool,
    /// The head, until it is complete.
    head: Vec<u8>,
    chunk: Chunk,
    /// The last bytes of the body so far: a mark may continue in the next chunk.
    tail: Vec<u8>,
    is_done: bool,
}

/// The expected part of an answer.
#[derive(Debug, Default, Clone, Copy)]
enum Chunk {
    #[default]
    Head,
    /// Further digits of a chunk's size; the size so far.
    Size(usize),
    /// Remaining bytes of a chunk's data.
    Data(usize),
    DataEnd,
    /// The line end after the last chunk.
    LastEnd,
}

impl Received {
    /// Parses another piece.
    ///
    /// # Errors
    /// [`Broken`]: the answer is no stream, or is malformed.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Broken> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.has_ended {
                return Err(Broken("something behind the end of a stream"));
            }
            bytes = match self.chunk {
                Chunk::Head => self.read_head(bytes)?,
                Chunk::Data(left) => self.read_data(bytes, left),
                _ => {
                    self.read_framing(byte)?;
                    rest
                }
            };
        }
        Ok(())
    }

    /// Reads bytes of the head, and checks it once it is complete. Returns the rest of the bytes.
    fn read_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Broken> {
        const END: &[u8] = b"\r\n\r\n";
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let Some(end) = memmem::find(&self.head, END) else {
            return Ok(&[]);
        };
        let end = end + END.len();
        let head = &self.head[..end];
        if status(head)? != 200 || memmem::find(head, b"text/event-stream").is_none() {
            return Err(Broken("an answer that is no stream"));
        }
        self.chunk = Chunk::Size(0);
        Ok(&bytes[end - before..])
    }

    /// Reads a byte of a size or of a line end.
    fn read_framing(&mut self, byte: u8) -> Result<(), Broken> {
        self.chunk = match (self.chunk, byte) {
            (same, b'\r') => same,
            (Chunk::Size(0), b'\n') => Chunk::LastEnd,
            (Chunk::Size(size), b'\n') => Chunk::Data(size),
            (Chunk::Size(size), digit) => {
                let digit = char::from(digit)
                    .to_digit(16)
                    .ok_or(Broken("a size that is none"))?;
                Chunk::Size(size * 16 + digit as usize)
            }
            (Chunk::DataEnd, b'\n') => Chunk::Size(0),
            (Chunk::LastEnd, b'\n') if self.is_done => {
                self.has_ended = true;
                Chunk::Head
            }
            _ => return Err(Broken("a stream that is not whole")),
        };
        Ok(())
    }

    /// Reads at most `left` bytes of a chunk. Returns the rest of the bytes.
    fn read_data<'a>(&mut self, bytes: &'a [u8], left: usize) -> &'a [u8] {
        let (data, rest) = bytes.split_at(left.min(bytes.len()));
        self.chunk = match left - data.len() {
            0 => Chunk::DataEnd,
            left => Chunk::Data(left),
        };
        self.tail.extend_from_slice(data);
        let mut from = 0;
        while let Some(at) = memmem::find(&self.tail[from..], EVENT_MARK) {
            self.events += 1;
            from += at + EVENT_MARK.len();
        }
        self.is_done |= memmem::find(&self.tail[from..], STREAM_END).is_some();
        let keep = self.tail.len().saturating_sub(STREAM_END.len()).max(from);
        self.tail.drain(..keep);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chat_request;

    fn read_all(answer: &[u8], size: usize) -> Result<Received, Broken> {
        let mut received = Received::default();
        for piece in answer.chunks(size) {
            assert!(!received.has_ended);
            received.read(piece)?;
        }
        Ok(received)
    }

    #[test]
    fn events_are_counted_wherever_pieces_and_chunks_end() {
        let body = [stream_event().repeat(3), stream_end()].concat();
        // The same body, as a proxy may divide it: chunks end anywhere.
        let mut plain = Received::default();
        plain.read(&[stream_head(), body.clone()].concat()).unwrap();
        assert!(plain.has_ended);
        let text = String::from_utf8(body.clone()).unwrap();
        let text: Vec<&str> = text.split("\r\n").filter(|line| line.contains("data:")).collect();
        for length in [1, 7, 100] {
            let chunks = text.concat().into_bytes();
            let chunks = chunks
                .chunks(length)
                .map(|chunk| in_chunk(std::str::from_utf8(chunk).unwrap()));
            let divided = [chunks.flatten().collect::<Vec<u8>>(), b"0\r\n\r\n".to_vec()].concat();
            for answer in [&body, &divided] {
                let answer = [stream_head().as_slice(), answer].concat();
                for size in [1, 2, 7, 100, answer.len()] {
                    let received = read_all(&answer, size).unwrap();
                    assert!(received.has_ended && received.events == 3, "{size}: {received:?}");
                }
            }
        }
    }

    #[test]
    fn an_answer_that_is_no_stream_or_not_whole_is_an_error() {
        let no_stream = Err(Broken("an answer that is no stream"));
        for answer in [
            crate::wire::chat_answer(),
            b"HTTP/1.1 402 Payment Required\r\n\r\n".to_vec(),
        ] {
            assert_eq!(read_all(&answer, 50).map(|_| ()), no_stream);
        }
        for body in [b"0\r\n\r\n".as_slice(), b"x\r\n"] {
            assert!(read_all(&[&stream_head(), &stream_event(), body].concat(), 50).is_err());
        }
        assert!(
            !read_all(&[stream_head(), stream_event()].concat(), 50)
                .unwrap()
                .has_ended
        );
        let mut more = Received::default();
        assert!(
            more.read(&[stream_head(), stream_end(), b"x".to_vec()].concat())
                .is_err()
        );
    }

    #[test]
    fn a_request_for_a_stream_says_how_fast_and_how_long() {
        let spec = StreamSpec {
            every_us: 2500,
            events: STREAM_EVENTS,
        };
        let body = spec.body(1024);
        let json: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(json["stream"], true);
        let request = chat_request("bench", "k", "r", &body);
        assert_eq!(StreamSpec::from_request(&request), Some(spec));
        let changed = body.replacen('{', "{\"stream_options\":{\"include_usage\":true},", 1);
        assert_eq!(StreamSpec::from_request(changed.as_bytes()), Some(spec));
        let short = StreamSpec {
            every_us: 0,
            events: 1,
        };
        assert_eq!(StreamSpec::from_request(short.body(1024).as_bytes()), Some(short));
        assert_eq!(StreamSpec::from_request(chat_body(1024).as_bytes()), None);
        let event = String::from_utf8(stream_event()).unwrap();
        assert_eq!(event.matches("\"delta\"").count(), 1);
        let end = String::from_utf8(stream_end()).unwrap();
        assert!(end.contains("\"usage\":{\"prompt_tokens\":231") && end.ends_with("[DONE]\n\n\r\n0\r\n\r\n"));
    }
}
