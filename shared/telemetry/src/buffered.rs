//! Log lines for stderr. A thread writes them in batches at least every [`EVERY`], which saves a system call per
//! decision; warnings and errors are written at once. If the reader of stderr stops, or its disk is full, only log
//! lines are lost: logging only appends to a bounded buffer, and lines that do not fit are dropped and counted.

use super::registrar::raise;
use parking_lot::{Condvar, Mutex};
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Longest delay of a line.
const EVERY: Duration = Duration::from_millis(50);
/// Waiting bytes that are written without delay.
const WRITTEN_AT: usize = 256 << 10;
/// Maximum number of waiting bytes, about ten thousand lines.
const WAITING_MAX: usize = 8 << 20;
/// Longest wait of [`flush`].
const FLUSH_MAX: Duration = Duration::from_secs(1);
/// Pause before retrying a non-blocking stderr that accepts no bytes.
const PAUSE: Duration = Duration::from_millis(10);

domain::words! {
    /// Why a line was dropped.
    pub enum DropReason {
        /// [`WAITING_MAX`] bytes waited for stderr.
        Overflow = "overflow",
        /// Stderr refused the line.
        Failed = "failed",
    }
}

crate::metrics! {
    /// Metrics of the log.
    #[derive(Debug, Clone)]
    pub struct LogMetrics {
        /// Log lines dropped: overflow (stderr is not read), failed (stderr refused them: a full disk).
        dropped: counters("log_lines_dropped_total", "reason", DropReason::ALL.map(DropReason::as_str)),
    }
}

impl LogMetrics {
    /// Updates the counters at a scrape.
    pub fn refresh(&self) {
        for (counter, count) in self.dropped.iter().zip(&LINES.dropped) {
            raise(counter, count.load(Ordering::Relaxed));
        }
    }
}

static LINES: LineBuffer = LineBuffer::new();

/// Waits until everything logged so far is written to stderr, for at most one second.
pub fn flush() {
    LINES.flush();
}

/// Writes the lines for the life of the process.
pub(super) fn start() -> std::io::Result<()> {
    let writer = std::thread::Builder::new().name("logs".to_owned());
    writer.spawn(|| LINES.write_to(&mut std::io::stderr())).map(drop)
}

/// Buffer between the logging threads and the writing thread.
struct LineBuffer {
    waiting: Mutex<PendingLines>,
    /// Wakes the writer.
    urgent: Condvar,
    /// Wakes the threads that wait for the writer.
    written: Condvar,
    /// Lines that were dropped, by reason.
    dropped: [AtomicU64; DropReason::ALL.len()],
}

struct PendingLines {
    lines: Vec<u8>,
    is_urgent: bool,
    /// Number of bytes ever appended, and the number of those that the writer has finished.
    appended: u64,
    done: u64,
}

impl LineBuffer {
    const fn new() -> Self {
        Self {
            waiting: Mutex::new(PendingLines {
                lines: Vec::new(),
                is_urgent: false,
                appended: 0,
                done: 0,
            }),
            urgent: Condvar::new(),
            written: Condvar::new(),
            dropped: [const { AtomicU64::new(0) }; DropReason::ALL.len()],
        }
    }

    fn drop_lines(&self, reason: DropReason, count: u64) {
        self.dropped[reason as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// Appends a line, or drops it if too many wait.
    fn append(&self, line: &[u8], at_once: bool) {
        let mut waiting = self.waiting.lock();
        if waiting.lines.len() + line.len() > WAITING_MAX {
            drop(waiting);
            return self.drop_lines(DropReason::Overflow, 1);
        }
        waiting.lines.extend_from_slice(line);
        waiting.appended += line.len() as u64;
        if (at_once || waiting.lines.len() >= WRITTEN_AT) && !waiting.is_urgent {
            waiting.is_urgent = true;
            self.urgent.notify_one();
        }
    }

    fn flush(&self) {
        let mut waiting = self.waiting.lock();
        let wanted = waiting.appended;
        waiting.is_urgent = true;
        self.urgent.notify_one();
        let is_behind = |waiting: &mut PendingLines| waiting.done < wanted;
        self.written.wait_while_for(&mut waiting, is_behind, FLUSH_MAX);
    }

    /// Writes the appended lines, forever.
    fn write_to(&self, sink: &mut impl Write) -> ! {
        let (mut lines, mut is_torn) = (Vec::new(), false);
        loop {
            let mut waiting = self.waiting.lock();
            let rests = |waiting: &mut PendingLines| !waiting.is_urgent;
            self.urgent.wait_while_for(&mut waiting, rests, EVERY);
            std::mem::swap(&mut waiting.lines, &mut lines);
            waiting.is_urgent = false;
            drop(waiting);
            is_torn = self.write_lines(sink, &lines, is_torn);
            self.waiting.lock().done += lines.len() as u64;
            self.written.notify_all();
            lines.clear();
            lines.shrink_to(2 * WRITTEN_AT);
        }
    }

    /// Writes lines, after a line break if the previous line is incomplete. Returns whether the last line is
    /// incomplete.
    fn write_lines(&self, sink: &mut impl Write, lines: &[u8], was_torn: bool) -> bool {
        if lines.is_empty() {
            return was_torn;
        }
        if was_torn && write_all(sink, b"\n").is_err() {
            self.drop_lines(DropReason::Failed, count(lines));
            return true;
        }
        match write_all(sink, lines) {
            Ok(()) => false,
            Err(rest) => {
                self.drop_lines(DropReason::Failed, count(rest));
                !lines[..lines.len() - rest.len()].ends_with(b"\n") && rest.len() < lines.len()
            }
        }
    }
}

/// Writes all bytes. On failure returns the bytes that were not written. Retries a non-blocking sink.
fn write_all<'a>(sink: &mut impl Write, mut bytes: &'a [u8]) -> Result<(), &'a [u8]> {
    while !bytes.is_empty() {
        match sink.write(bytes) {
            Ok(written) if written > 0 => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(PAUSE),
            Ok(_) | Err(_) => return Err(bytes),
        }
    }
    Ok(())
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Creates the writer of one event.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineCollector;

/// The writer of one event.
#[derive(Debug)]
pub(super) struct LineWriter {
    at_once: bool,
}

impl<'a> MakeWriter<'a> for LineCollector {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> LineWriter {
        LineWriter { at_once: true }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> LineWriter {
        LineWriter {
            at_once: *event.level() <= Level::WARN,
        }
    }
}

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        LINES.append(line, self.at_once);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    fn dropped(buffer: &LineBuffer) -> [u64; 2] {
        [DropReason::Overflow, DropReason::Failed]
            .map(|reason| buffer.dropped[reason as usize].load(Ordering::Relaxed))
    }

    /// A sink that blocks in each write until the test releases it.
    struct Blocked {
        go_on: Receiver<()>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.go_on.recv().is_err() {
                // The test has ended.
                loop {
                    sleep(FLUSH_MAX);
                }
            }
            drop(self.written.send(bytes.to_vec()));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stops_costs_lines_and_no_time() {
        let buffer = Arc::new(LineBuffer::new());
        let (lets_go, go_on) = channel();
        let (sends, written) = channel();
        let (writer, mut sink) = (
            Arc::clone(&buffer),
            Blocked {
                go_on,
                written: sends,
            },
        );
        std::thread::spawn(move || writer.write_to(&mut sink));

        buffer.append(b"first\n", true);
        while !buffer.waiting.lock().lines.is_empty() {
            sleep(PAUSE);
        }
        // The writer is blocked with the first line; the others fill the buffer to its last byte.
        let line = [&[b'a'; 1023][..], b"\n"].concat();
        for _ in 0..WAITING_MAX / line.len() {
            buffer.append(&line, false);
        }
        assert_eq!(
            (buffer.waiting.lock().lines.len(), dropped(&buffer)),
            (WAITING_MAX, [0, 0])
        );
        buffer.append(b"\n", true);
        buffer.append(&line, false);
        assert_eq!(
            (buffer.waiting.lock().lines.len(), dropped(&buffer)),
            (WAITING_MAX, [2, 0])
        );
        let began = Instant::now();
        buffer.flush();
        assert!(began.elapsed() >= FLUSH_MAX, "nothing was written");

        lets_go.send(()).unwrap();
        assert_eq!(written.recv().unwrap(), b"first\n");
        lets_go.send(()).unwrap();
        assert_eq!(written.recv().unwrap().len(), WAITING_MAX);
        buffer.append(b"last\n", false);
        lets_go.send(()).unwrap();
        buffer.flush();
        assert_eq!(written.try_recv().unwrap(), b"last\n");
        let waiting = buffer.waiting.lock();
        assert_eq!(waiting.appended, waiting.done);
    }

    /// A disk with a limited number of free bytes.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let taken = self.room.min(bytes.len());
            if taken == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.room -= taken;
            self.bytes.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Full at each byte of three lines, and then with room again.
    #[test]
    fn a_line_behind_a_torn_one_stands_alone() {
        const LINES: &[u8] = b"one\ntwo\nthree\n";
        for room in 0..=LINES.len() {
            let buffer = LineBuffer::new();
            let mut disk = Disk {
                bytes: Vec::new(),
                room,
            };
            let is_torn = buffer.write_lines(&mut disk, LINES, false);
            let whole = LINES[..room].iter().filter(|byte| **byte == b'\n').count() as u64;
            assert_eq!(dropped(&buffer), [0, 3 - whole], "{room}");
            assert_eq!(is_torn, room > 0 && LINES[room - 1] != b'\n', "{room}");
            // Still full.
            let is_torn = buffer.write_lines(&mut disk, b"lost\n", is_torn);
            assert_eq!(dropped(&buffer), [0, 4 - whole], "{room}");
            disk.room = 100;
            assert!(!buffer.write_lines(&mut disk, b"next\n", is_torn));
            let text = String::from_utf8(disk.bytes).unwrap();
            assert_eq!(text.lines().last(), Some("next"), "{room}: {text}");
        }
    }
}
