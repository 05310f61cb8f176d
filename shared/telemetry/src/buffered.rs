//! Buffers log lines for stderr and writes them together at least every [`EVERY`], to save a system call per decision.
//! Warnings and errors are written at once.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Longest delay of a line.
const EVERY: Duration = Duration::from_millis(50);
/// Most buffered bytes.
const WAITING_MAX: usize = 64 * 1024;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Writes the buffer.
pub fn flush() {
    write_out(&mut LINES.lock().unwrap_or_else(PoisonError::into_inner));
}

/// There is nowhere to report a failure of stderr.
fn write_out(lines: &mut Vec<u8>) {
    if !lines.is_empty() {
        drop(std::io::stderr().write_all(lines));
        lines.clear();
    }
}

/// Flushes the buffer periodically for the life of the process.
pub(super) fn start() -> std::io::Result<()> {
    let writer = std::thread::Builder::new().name("logs".to_owned());
    writer
        .spawn(|| {
            loop {
                std::thread::sleep(EVERY);
                flush();
            }
        })
        .map(drop)
}

/// Makes the writer of one event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collector;

/// The writer of one event.
#[derive(Debug)]
pub(super) struct Line {
    at_once: bool,
}

impl<'a> MakeWriter<'a> for Collector {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { at_once: true }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Line {
        Line {
            at_once: *event.level() <= Level::WARN,
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(bytes);
        if self.at_once || lines.len() >= WAITING_MAX {
            write_out(&mut lines);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
