//! HTTP/2 connection with few requests whose keys are not known yet ([`Http2Requests`]). A further one is read only
//! while there is room, and while the caller reads its answers. Enforced below HTTP: the head of a request that must
//! wait stays unread, with all that is behind it.

use super::delegate::{delegate_connection, delegate_writing};
use super::frames::{FrameHead, Frames, HEADERS};
use crate::http2_requests::Http2Requests;
use pingora::protocols::Stream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Time in which the processing of a request begins. The library refuses malformed heads by itself, and of those it
/// never does.
const BEGINS_WITHIN: Duration = Duration::from_millis(100);
/// Longest wait of a further request; then the connection ends. While a request waits nothing is read, so nothing else
/// would show that the caller has left.
const WAITS_MAX: Duration = Duration::from_secs(30);

/// HTTP/2 connection with few requests of unknown keys.
pub struct UnknownKeysLimited {
    inner: Stream,
    requests: Arc<Http2Requests>,
    frames: Frames,
    /// The highest stream of a request.
    last_stream: u32,
    /// Heads of requests that were read, without those that the library refused.
    heads_read: usize,
    /// Deadline for the requests that were read to begin, while another waits.
    begins_by: Option<Pin<Box<Sleep>>>,
    /// End of the wait of a further request.
    waits_until: Option<Pin<Box<Sleep>>>,
    /// True while the edge waits for the caller to read an answer.
    is_write_pending: bool,
    /// Bytes that were received and not read.
    held: Vec<u8>,
    /// The head in `held` that must wait, with all behind it.
    waiting: Option<WaitingHead>,
}

impl std::fmt::Debug for UnknownKeysLimited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnknownKeysLimited").finish_non_exhaustive()
    }
}

/// Place of the head of a request that must wait, in received bytes.
#[derive(Clone, Copy)]
struct WaitingHead {
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
        }
    }
}

impl UnknownKeysLimited {
    pub const fn new(inner: Stream, requests: Arc<Http2Requests>) -> Self {
        Self {
            inner,
            requests,
            frames: Frames::new(),
            last_stream: 0,
            heads_read: 0,
            begins_by: None,
            waits_until: None,
            is_write_pending: false,
            held: Vec::new(),
            waiting: None,
        }
    }

    /// Returns whether a further request may be read.
    fn has_room(&self) -> bool {
        !self.is_write_pending && self.requests.has_room(self.heads_read)
    }

    /// Reads the frames of `bytes` from `at` on, up to the head of a request that must wait.
    fn read_frames(&mut self, bytes: &[u8], at: usize) -> Option<WaitingHead> {
        let mut rest = &bytes[at..];
        loop {
            // Less than a whole head if its first bytes were read before.
            let head_bytes = self.frames.head_left();
            let FrameHead { kind, stream } = self.frames.next_head(&mut rest)?;
            if kind == HEADERS && stream > self.last_stream {
                self.last_stream = stream;
                if !self.has_room() {
                    let ends = bytes.len() - rest.len();
                    let begins = ends - head_bytes;
                    return Some(WaitingHead { begins, ends });
                }
                self.count_head();
            }
        }
    }

    /// Counts a head that is read now.
    fn count_head(&mut self) {
        // One that was taken for refused may have begun.
        self.heads_read = self.heads_read.max(self.requests.begun()) + 1;
    }

    /// Waits until the head that waits may be read.
    ///
    /// # Errors
    /// It has waited for [`WAITS_MAX`].
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let until = self.waits_until.get_or_insert_with(|| Box::pin(sleep(WAITS_MAX)));
        if until.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.requests.wake_on_change(context.waker());
        if !self.has_room() && self.requests.begun() < self.heads_read {
            let begins_by = self
                .begins_by
                .get_or_insert_with(|| Box::pin(sleep(BEGINS_WITHIN)));
            ready!(begins_by.as_mut().poll(context));
            self.heads_read = self.requests.begun();
            self.begins_by = None;
        }
        match self.has_room() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// Reads the held bytes on, behind the head that waited.
    fn resume(&mut self, waited: WaitingHead) {
        self.begins_by = None;
        self.waits_until = None;
        self.count_head();
        let held = std::mem::take(&mut self.held);
        self.waiting = self.read_frames(&held, waited.ends);
        self.held = held;
    }

    /// Returns the number of held bytes that may be read.
    fn readable(&self) -> usize {
        self.waiting.map_or(self.held.len(), |waiting| waiting.begins)
    }

    fn written(&mut self, polled: &Poll<io::Result<usize>>) {
        self.is_write_pending |= polled.is_pending();
    }

    /// The library flushes whatever it writes.
    fn flushed(&mut self, polled: &Poll<io::Result<()>>) {
        if self.is_write_pending && polled.is_ready() {
            self.requests.wake_reader();
        }
        self.is_write_pending = polled.is_pending();
    }
}

impl AsyncRead for UnknownKeysLimited {
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
                ready!(this.poll_room(context))?;
                this.resume(waiting);
                continue;
            }
            this.held = Vec::new();
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
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

delegate_connection!(UnknownKeysLimited);
delegate_writing!(UnknownKeysLimited);

#[cfg(test)]
mod tests {
    use super::super::frames::DATA;
    use super::super::frames::FRAME_HEAD_BYTES;
    use super::super::frames::tests::frame;
    use super::*;
    use crate::http2_requests::UNKNOWN_MAX;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const BUFFER_BYTES: usize = 64 << 10;
    const SOON: Duration = Duration::from_secs(5);

    struct Fixture {
        requests: Arc<Http2Requests>,
        edge: UnknownKeysLimited,
        caller: DuplexStream,
    }

    fn fixture() -> Fixture {
        let requests = Arc::<Http2Requests>::default();
        let (caller, connection) = duplex(BUFFER_BYTES);
        Fixture {
            edge: UnknownKeysLimited::new(Box::new(connection), Arc::clone(&requests)),
            requests,
            caller,
        }
    }

    impl Fixture {
        /// Reads the bytes that are available, in pieces of at most `piece` bytes.
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

        /// Makes the caller known by a request that has ended.
        fn known_caller(&mut self) {
            self.edge.heads_read += 1;
            drop((self.requests.begin(), self.requests.key_is_known()));
        }
    }

    fn request(stream: u32) -> Vec<u8> {
        [frame(HEADERS, 4, stream, 50), frame(DATA, 1, stream, 3)].concat()
    }

    fn requests(numbers: std::ops::Range<u32>) -> Vec<u8> {
        numbers.flat_map(|number| request(2 * number + 1)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_further_request_waits_until_the_one_before_has_ended() {
        let mut fixture = fixture();
        let [first, second, third, ping] = [request(1), request(3), request(5), frame(6, 0, 0, 8)];
        let sent = [PREFACE, &first, &second, &ping, &third].concat();
        fixture.caller.write_all(&sent).await.unwrap();
        assert_eq!(fixture.read(BUFFER_BYTES).await, [PREFACE, &first].concat());
        let in_progress = fixture.requests.begin();
        assert!(fixture.read(BUFFER_BYTES).await.is_empty());
        drop(in_progress);
        assert_eq!(fixture.read(BUFFER_BYTES).await, [&second[..], &ping].concat());
        // A request that the library refuses by itself never begins.
        assert!(fixture.read(BUFFER_BYTES).await.is_empty());
        tokio::time::sleep(BEGINS_WITHIN).await;
        assert_eq!(fixture.read(BUFFER_BYTES).await, third);
    }

    #[tokio::test(start_paused = true)]
    async fn a_known_caller_has_few_requests_of_unknown_keys() {
        const FEW: u32 = UNKNOWN_MAX as u32;
        let mut fixture = fixture();
        fixture.known_caller();
        fixture.caller.write_all(PREFACE).await.unwrap();
        fixture.caller.write_all(&requests(0..90)).await.unwrap();
        let read = fixture.read(BUFFER_BYTES).await;
        assert_eq!(read, [PREFACE, &requests(0..FEW)].concat());
        let mut unknown: Vec<_> = (0..FEW).map(|_| fixture.requests.begin()).collect();
        tokio::time::sleep(SOON).await;
        assert!(fixture.read(7).await.is_empty(), "they have begun");
        let _known = fixture.requests.key_is_known();
        assert_eq!(fixture.read(7).await, request(2 * FEW + 1));
        // One that was taken for refused begins late.
        tokio::time::sleep(BEGINS_WITHIN).await;
        unknown.pop();
        let read = fixture.read(BUFFER_BYTES).await;
        assert_eq!(read, requests(FEW + 1..FEW + 2));
        unknown.push(fixture.requests.begin());
        unknown.push(fixture.requests.begin());
        unknown.truncate(1);
        let read = fixture.read(BUFFER_BYTES).await;
        assert_eq!(
            read,
            requests(FEW + 2..2 * FEW + 2),
            "in spite of it, as many as ever"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_requests_wait_for_too_long_ends() {
        let mut fixture = fixture();
        let sent = [PREFACE, &requests(0..3)].concat();
        fixture.caller.write_all(&sent).await.unwrap();
        fixture.read(BUFFER_BYTES).await;
        for _ in 0..2 {
            let in_progress = fixture.requests.begin();
            tokio::time::sleep(WAITS_MAX - Duration::from_millis(1)).await;
            assert!(fixture.read(BUFFER_BYTES).await.is_empty(), "it waits");
            drop(in_progress);
            if fixture.requests.begun() == 1 {
                assert_eq!(fixture.read(BUFFER_BYTES).await, request(3), "a wait of its own");
            }
        }
        let _in_progress = fixture.requests.begin();
        fixture.caller.write_all(&requests(3..5)).await.unwrap();
        drop(fixture.caller);
        tokio::time::sleep(WAITS_MAX).await;
        let ended = fixture.edge.read(&mut [0; 9]).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn nothing_more_is_read_from_a_caller_who_does_not_read() {
        let mut fixture = fixture();
        fixture.known_caller();
        fixture.caller.write_all(PREFACE).await.unwrap();
        assert_eq!(fixture.read(BUFFER_BYTES).await, PREFACE);
        let mut answers = vec![0; BUFFER_BYTES + 1];
        let written = fixture.edge.write(&answers).await.unwrap();
        let rest = std::pin::pin!(fixture.edge.write(&answers[written..]));
        assert!(futures::poll!(rest).is_pending());
        fixture.caller.write_all(&request(1)).await.unwrap();
        assert!(fixture.read(BUFFER_BYTES).await.is_empty());
        fixture.caller.read_exact(&mut answers[..written]).await.unwrap();
        fixture.edge.flush().await.unwrap();
        assert_eq!(fixture.read(BUFFER_BYTES).await, request(1));
    }

    /// The task that reads is woken by each of these.
    #[tokio::test]
    async fn a_request_that_waits_is_read_as_soon_as_it_may() {
        for event in ["ends", "key is known", "answers are read"] {
            let mut fixture = fixture();
            let sent = [PREFACE, &request(1), &request(3)].concat();
            fixture.caller.write_all(&sent).await.unwrap();
            fixture.read(BUFFER_BYTES).await;
            let in_progress = fixture.requests.begin();
            let Fixture {
                requests,
                mut edge,
                mut caller,
            } = fixture;
            let mut in_progress = Some(in_progress);
            if event == "answers are read" {
                in_progress = None;
                let all = vec![0; BUFFER_BYTES];
                edge.write_all(&all).await.unwrap();
                let more = std::pin::pin!(edge.write(&all));
                assert!(futures::poll!(more).is_pending());
            }
            let (mut reader, mut writer) = tokio::io::split(edge);
            let mut head = [0; 9];
            let reading = tokio::spawn(async move { reader.read_exact(&mut head).await.map(|_| head) });
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(!reading.is_finished());
            let mut known = None;
            match event {
                "ends" => in_progress = None,
                "key is known" => known = Some(requests.key_is_known()),
                _ => {
                    caller.read_exact(&mut vec![0; BUFFER_BYTES]).await.unwrap();
                    writer.flush().await.unwrap();
                }
            }
            let head = tokio::time::timeout(SOON, reading).await.expect("woken");
            assert_eq!(head.unwrap().unwrap()[..], request(3)[..9], "{event}");
            drop((in_progress, known));
        }
    }

    proptest! {
        /// However the bytes arrive and are read: nothing is lost, and only one request has not ended.
        #[test]
        fn bytes_pass_unchanged_and_one_request_at_a_time(
            count in 1_u32..6,
            sent_in in 1_usize..200,
            read_in in 1_usize..200,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let mut fixture = fixture();
                let sent = [PREFACE, &requests(0..count)].concat();
                for piece in sent.chunks(sent_in) {
                    fixture.caller.write_all(piece).await.unwrap();
                }
                let mut read = Vec::new();
                for number in 0..count {
                    read.extend(fixture.read(read_in).await);
                    // The first bytes of the next head may be read, but never all of them.
                    let whole = PREFACE.len() + (number as usize + 1) * request(1).len();
                    assert!((whole..whole + FRAME_HEAD_BYTES).contains(&read.len()));
                    drop(fixture.requests.begin());
                }
                assert_eq!(read, sent);
            });
        }
    }
}
