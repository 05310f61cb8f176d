//! The frames that a client of HTTP/2 sends, in the bytes of its connection, wherever the borders of the pieces fall.

/// Length of the preface of HTTP/2, which precedes the first frame of a client.
const PREFACE_BYTES: u64 = 24;
pub const FRAME_HEAD_BYTES: usize = 9;
/// Types of frames.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const CONTINUATION: u8 = 9;
/// The highest bit of a stream's number is reserved.
const STREAM_BITS: u32 = u32::MAX >> 1;

/// Head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    pub kind: u8,
    pub stream: u32,
}

/// Position between the frames.
#[derive(Debug)]
pub struct Frames {
    /// Bytes of a payload, or of the preface, that are still to come.
    payload_left: u64,
    /// The head of the next frame, as far as it was received.
    head: [u8; FRAME_HEAD_BYTES],
    received: usize,
}

impl Frames {
    /// The frames behind the preface.
    pub const fn new() -> Self {
        Self {
            payload_left: PREFACE_BYTES,
            head: [0; FRAME_HEAD_BYTES],
            received: 0,
        }
    }

    /// Reads until the head of a frame is complete, and leaves the bytes behind it in `bytes`.
    pub fn next_head(&mut self, bytes: &mut &[u8]) -> Option<FrameHead> {
        let skipped = usize::try_from(self.payload_left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.payload_left -= skipped as u64;
        *bytes = &bytes[skipped..];
        let taken = bytes.len().min(self.head_left());
        self.head[self.received..self.received + taken].copy_from_slice(&bytes[..taken]);
        self.received += taken;
        *bytes = &bytes[taken..];
        if self.received < FRAME_HEAD_BYTES {
            return None;
        }
        let [a, b, c, kind, _flags, stream @ ..] = self.head;
        self.payload_left = u32::from_be_bytes([0, a, b, c]).into();
        self.received = 0;
        Some(FrameHead {
            kind,
            stream: u32::from_be_bytes(stream) & STREAM_BITS,
        })
    }

    /// Returns the number of bytes of the next head that are still to come.
    pub const fn head_left(&self) -> usize {
        FRAME_HEAD_BYTES - self.received
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
        let length = u32::try_from(payload).unwrap().to_be_bytes();
        let mut frame = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        frame.resize(FRAME_HEAD_BYTES + payload, 7);
        frame
    }

    #[test]
    fn heads_are_found_however_their_bytes_arrive() {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let sent = [
            (4, 0, 0, 18),
            (1, 4, 1, 300),
            (0, 1, 1, 70_000),
            (6, 0, 0, 8),
            (99, 0, 3, 0),
            (4, 1, 0, 0),
        ];
        for (kind, flags, stream, payload) in sent {
            bytes.extend(frame(kind, flags, stream, payload));
        }
        for piece in [1, 2, 9, 10, 1000, bytes.len()] {
            let mut frames = Frames::new();
            let mut found = Vec::new();
            for mut piece in bytes.chunks(piece) {
                while let Some(head) = frames.next_head(&mut piece) {
                    found.push((head.kind, head.stream));
                }
                assert!(piece.is_empty());
            }
            let expected = sent.map(|(kind, _, stream, _)| (kind, stream));
            assert_eq!(found, expected, "in pieces of {piece}");
        }
    }
}
