//! HTTP/2 connection of an unknown caller: the edge reads its requests one at a time, until one of them has a known
//! key. A request takes memory before its key is looked up, and a stranger could otherwise have a hundred of them on
//! each connection, and leave their answers unread. Enforced below HTTP: the head of a further request stays unread,
//! with all that is behind it.

use super::delegate::{delegate_connection, delegate_writing};
use super::frames::{DATA, END_STREAM, FrameHead, Frames, HEADERS, RST_STREAM};
use connections::limit::Requests;
use pingora::protocols::Stream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// The requests of an HTTP/2 connection.
#[derive(Debug)]
pub struct ServedRequests {
    requests: Requests,
    being_served: AtomicUsize,
}

/// Counts a request as being served until it is dropped.
#[derive(Debug)]
pub struct BeingServed(Arc<ServedRequests>);

impl Drop for BeingServed {
    fn drop(&mut self) {
        self.0.being_served.fetch_sub(1, Ordering::AcqRel);
        self.0.requests.wake_reader();
    }
}

impl ServedRequests {
    /// Creates the count of a connection without requests.
    pub const fn new(requests: Requests) -> Self {
        Self {
            requests,
            being_served: AtomicUsize::new(0),
        }
    }

    /// Counts one more.
    pub fn begin(self: &Arc<Self>) -> BeingServed {
        self.being_served.fetch_add(1, Ordering::AcqRel);
        BeingServed(Arc::clone(self))
    }
}

/// HTTP/2 connection that is read one request at a time while its caller is unknown.
pub struct OneAtATime {
    inner: Stream,
    served: Arc<ServedRequests>,
    received: Frames,
    sent: Frames,
    /// The stream whose request was read and has no whole answer.
    unanswered: Option<u32>,
    /// The highest stream of a request.
    last: u32,
    /// Bytes that were received and not read.
    held: Vec<u8>,
    /// The head in `held` that must wait, with all behind it.
    waiting: Option<WaitingHead>,
}

impl std::fmt::Debug for OneAtATime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneAtATime").finish_non_exhaustive()
    }
}

/// The head of a request that must wait, and its place in received bytes.
#[derive(Clone, Copy)]
struct WaitingHead {
    stream: u32,
    /// Positions of the first byte of the head, and of the one behind it.
    begins: usize,
    ends: usize,
}

impl WaitingHead {
    /// Returns its place in the bytes from `start` on.
    const fn from(self, start: usize) -> Self {
        Self {
            begins: self.begins - start,
            ends: self.ends - start,
            ..self
        }
    }
}

impl OneAtATime {
    pub const fn new(inner: Stream, served: Arc<ServedRequests>) -> Self {
        Self {
            inner,
            served,
            received: Frames::of_client(),
            sent: Frames::of_server(),
            unanswered: None,
            last: 0,
            held: Vec::new(),
            waiting: None,
        }
    }

    /// Returns whether a further request may be read.
    fn is_open(&self) -> bool {
        let served = &self.served;
        let rests = || self.unanswered.is_none() && served.being_served.load(Ordering::Acquire) == 0;
        served.requests.is_known() || rests()
    }

    /// Reads the frames of `bytes` from `at` on, up to the head of a request that must wait.
    fn read_frames(&mut self, bytes: &[u8], at: usize) -> Option<WaitingHead> {
        let mut rest = &bytes[at..];
        loop {
            // Less than a whole head if its first bytes were read before.
            let head_bytes = self.received.head_left();
            let FrameHead { kind, stream, .. } = self.received.next_head(&mut rest)?;
            if kind == HEADERS && stream > self.last {
                self.last = stream;
                if !self.is_open() {
                    let ends = bytes.len() - rest.len();
                    return Some(WaitingHead {
                        stream,
                        begins: ends - head_bytes,
                        ends,
                    });
                }
                self.unanswered = Some(stream);
            } else if kind == RST_STREAM {
                self.ended(stream);
            }
        }
    }

    /// Reads the held bytes on, behind the head that waited.
    fn go_on(&mut self, waited: WaitingHead) {
        self.unanswered = Some(waited.stream);
        let held = std::mem::take(&mut self.held);
        self.waiting = self.read_frames(&held, waited.ends);
        self.held = held;
    }

    /// Returns the number of held bytes that may be read.
    fn readable(&self) -> usize {
        self.waiting.map_or(self.held.len(), |waiting| waiting.begins)
    }

    /// Notes that a stream has ended. Returns whether it was the one that has no answer.
    fn ended(&mut self, stream: u32) -> bool {
        let was_unanswered = self.unanswered == Some(stream);
        if was_unanswered {
            self.unanswered = None;
        }
        was_unanswered
    }

    /// Reads the frames of answers, while the caller is unknown.
    fn written(&mut self, mut bytes: &[u8]) {
        if self.served.requests.is_known() {
            return;
        }
        while let Some(FrameHead { kind, flags, stream }) = self.sent.next_head(&mut bytes) {
            let is_last = matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
            if (is_last || kind == RST_STREAM) && self.ended(stream) {
                self.served.requests.wake_reader();
            }
        }
    }
}

impl AsyncRead for OneAtATime {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let readable = this.readable();
            if readable > 0 {
                let count = readable.min(buffer.remaining());
                buffer.put_slice(&this.held[..count]);
                this.held.drain(..count);
                this.waiting = this.waiting.map(|waiting| waiting.from(count));
                return Poll::Ready(Ok(()));
            }
            if let Some(waiting) = this.waiting {
                this.served.requests.wake_when_known(context);
                if !this.is_open() {
                    return Poll::Pending;
                }
                this.go_on(waiting);
                continue;
            }
            this.held = Vec::new();
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
            if this.served.requests.is_known() {
                return Poll::Ready(Ok(()));
            }
            let received = &buffer.filled()[before..];
            let Some(waiting) = this.read_frames(received, 0) else {
                return Poll::Ready(Ok(()));
            };
            let begins = waiting.begins;
            this.held = received[begins..].to_vec();
            this.waiting = Some(waiting.from(begins));
            buffer.set_filled(before + begins);
            if begins > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

delegate_connection!(OneAtATime);
delegate_writing!(OneAtATime);

#[cfg(test)]
mod tests {
    use super::super::frames::FRAME_HEAD_BYTES;
    use super::super::frames::tests::frame;
    use super::*;
    use connections::limit::ConnectionLimit;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const BUFFER_BYTES: usize = 64 << 10;
    const SOON: std::time::Duration = std::time::Duration::from_secs(5);

    struct Fixture {
        served: Arc<ServedRequests>,
        edge: OneAtATime,
        caller: DuplexStream,
    }

    async fn fixture() -> Fixture {
        let limit = ConnectionLimit::new(1, 1, Vec::new());
        let open = limit.admit([127, 0, 0, 1].into()).await.unwrap();
        let served = Arc::new(ServedRequests::new(open.requests()));
        let (caller, connection) = duplex(BUFFER_BYTES);
        Fixture {
            edge: OneAtATime::new(Box::new(connection), Arc::clone(&served)),
            served,
            caller,
        }
    }

    impl Fixture {
        /// Reads what can be read now, in pieces of at most `piece` bytes.
        async fn read(&mut self, piece: usize) -> Vec<u8> {
            let mut found = Vec::new();
            let mut buffer = vec![0; piece];
            loop {
                let read = std::pin::pin!(tokio::task::unconstrained(self.edge.read(&mut buffer)));
                match futures::poll!(read) {
                    Poll::Ready(count) => found.extend(&buffer[..count.unwrap()]),
                    Poll::Pending => return found,
                }
            }
        }

        /// Answers a request whole.
        async fn answer(&mut self, stream: u32) {
            let answer = [frame(HEADERS, 4, stream, 20), frame(DATA, END_STREAM, stream, 5)].concat();
            self.edge.write_all(&answer).await.unwrap();
        }
    }

    fn request(stream: u32) -> Vec<u8> {
        [frame(HEADERS, 4, stream, 50), frame(DATA, END_STREAM, stream, 3)].concat()
    }

    #[tokio::test]
    async fn a_further_request_waits_for_the_answer_or_for_a_known_key() {
        let mut fixture = fixture().await;
        let [first, second, third, ping] = [request(1), request(3), request(5), frame(6, 0, 0, 8)];
        let sent = [PREFACE, &first, &second, &ping, &third].concat();
        fixture.caller.write_all(&sent).await.unwrap();
        assert_eq!(fixture.read(BUFFER_BYTES).await, [PREFACE, &first].concat());
        let being_served = fixture.served.begin();
        fixture.answer(1).await;
        assert!(fixture.read(BUFFER_BYTES).await.is_empty(), "it is still served");
        drop(being_served);
        assert_eq!(fixture.read(BUFFER_BYTES).await, [&second[..], &ping].concat());
        // A request that the library refuses by itself is never served.
        let reset = frame(RST_STREAM, 0, 3, 4);
        fixture.edge.write_all(&reset).await.unwrap();
        assert_eq!(fixture.read(BUFFER_BYTES).await, third);
        let more: Vec<u8> = (3..50).flat_map(|number| request(2 * number + 1)).collect();
        fixture.caller.write_all(&more).await.unwrap();
        assert!(fixture.read(BUFFER_BYTES).await.is_empty());
        let _kept = fixture.served.requests.begin().unwrap();
        assert_eq!(fixture.read(7).await, more, "the key is known");
        fixture.caller.write_all(&more).await.unwrap();
        assert_eq!(fixture.read(BUFFER_BYTES).await, more);
    }

    /// The task that reads is woken by each of the three.
    #[tokio::test]
    async fn a_request_that_waits_is_read_as_soon_as_it_may() {
        for event in 0..3 {
            let mut fixture = fixture().await;
            let sent = [PREFACE, &request(1), &request(3)].concat();
            fixture.caller.write_all(&sent).await.unwrap();
            fixture.read(BUFFER_BYTES).await;
            let being_served = fixture.served.begin();
            let Fixture { served, edge, .. } = fixture;
            let (mut reader, mut writer) = tokio::io::split(edge);
            if event == 0 {
                writer.write_all(&frame(DATA, END_STREAM, 1, 0)).await.unwrap();
            }
            let mut head = [0; 9];
            let reading = tokio::spawn(async move { reader.read_exact(&mut head).await.map(|_| head) });
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(!reading.is_finished());
            let _kept = match event {
                0 => {
                    drop(being_served);
                    None
                }
                1 => {
                    drop(being_served);
                    writer.write_all(&frame(RST_STREAM, 0, 1, 4)).await.unwrap();
                    None
                }
                _ => served.requests.begin(),
            };
            let head = tokio::time::timeout(SOON, reading).await.expect("woken");
            assert_eq!(head.unwrap().unwrap()[..], request(3)[..9], "{event}");
        }
    }

    proptest! {
        /// However the bytes arrive and are read: nothing is lost, and only one request is unanswered.
        #[test]
        fn bytes_pass_unchanged_and_one_request_at_a_time(
            requests in 1_u32..6,
            sent_in in 1_usize..200,
            read_in in 1_usize..200,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut fixture = fixture().await;
                let all = (0..requests).map(|number| request(2 * number + 1));
                let sent = [PREFACE.to_vec(), all.collect::<Vec<_>>().concat()].concat();
                for piece in sent.chunks(sent_in) {
                    fixture.caller.write_all(piece).await.unwrap();
                }
                let mut read = Vec::new();
                for number in 0..requests {
                    read.extend(fixture.read(read_in).await);
                    // The first bytes of the next head may be read, but never all of them.
                    let whole = PREFACE.len() + (number as usize + 1) * request(1).len();
                    assert!((whole..whole + FRAME_HEAD_BYTES).contains(&read.len()));
                    fixture.answer(2 * number + 1).await;
                }
                assert_eq!(read, sent);
            });
        }
    }
}
