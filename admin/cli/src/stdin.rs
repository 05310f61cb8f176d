//! Reads one line from standard input: secrets, which every process could read on the command line.

use crate::failure::CommandFailure;
use secrecy::SecretString;
use std::io::{self, BufRead, IsTerminal};
use std::sync::mpsc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Longest wait for the line: a pipe whose other end never writes would block a script forever.
const WAIT: Duration = Duration::from_secs(60);

/// Reads the first line of standard input, without its end. `what` names it in errors; it may have at most `most`
/// bytes.
pub(super) fn line(what: &str, most: usize) -> Result<SecretString, CommandFailure> {
    if io::stdin().is_terminal() {
        let message =
            format!("{what} is read from a pipe or a file, not from the terminal, which would show it");
        return Err(CommandFailure::usage(message));
    }
    line_of(io::BufReader::new(io::stdin()), what, most, WAIT)
}

fn line_of(
    from: impl BufRead + Send + 'static,
    what: &str,
    most: usize,
    wait: Duration,
) -> Result<SecretString, CommandFailure> {
    let (sender, receiver) = mpsc::channel();
    // The thread stays if no line arrives, and ends with the process.
    std::thread::spawn(move || sender.send(read(from, most)));
    let line = receiver.recv_timeout(wait).map_err(|_| {
        let seconds = wait.as_secs();
        CommandFailure::usage(format!(
            "{what} did not come on standard input within {seconds} seconds"
        ))
    })?;
    let bytes = line.map_err(|error| {
        CommandFailure::usage(format!("{what} on standard input cannot be read: {error}"))
    })?;
    let text = str::from_utf8(&bytes)
        .map_err(|_| CommandFailure::usage(format!("{what} on standard input is no UTF-8 text")))?;
    Ok(text.lines().next().unwrap_or_default().into())
}

/// Reads at most one byte more than allowed, besides the line's end, which is enough to detect a line that is too long.
fn read(from: impl BufRead, most: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(2);
    let mut bytes = Zeroizing::new(Vec::with_capacity(most.saturating_add(2)));
    from.take(limit).read_until(b'\n', &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;
    use std::io::{BufReader, Write};
    use std::time::Duration;

    /// Longer than any of these tests needs.
    const LONG: Duration = Duration::from_secs(60);

    fn text(bytes: &'static [u8]) -> Result<String, String> {
        let line = line_of(bytes, "the password", 8, LONG);
        line.map(|line| line.expose_secret().to_owned())
            .map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn the_first_line_counts() {
        assert_eq!(text(b"secret\nmore").as_deref(), Ok("secret"));
        assert_eq!(text(b"secret\r\n").as_deref(), Ok("secret"));
        assert_eq!(text(b"").as_deref(), Ok(""));
        assert_eq!(
            text(b"0123456789abc").map(|line| line.len()),
            Ok(10),
            "no further than it must"
        );
        assert!(text(b"\xff\n").unwrap_err().contains("UTF-8"));
    }

    /// A person or program that keeps its end open has finished with the line.
    #[test]
    fn a_line_is_enough_and_an_end_is_not_waited_for() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"secret\n").unwrap();
        let line = line_of(BufReader::new(reader), "the password", 8, LONG).unwrap();
        assert_eq!(line.expose_secret(), "secret");
        drop(writer);
    }

    #[test]
    fn a_line_that_never_comes_is_not_waited_for_for_ever() {
        let (reader, writer) = io::pipe().unwrap();
        let failure = line_of(
            BufReader::new(reader),
            "the password",
            8,
            Duration::from_millis(1),
        )
        .unwrap_err();
        assert!(failure.message().contains("did not come"), "{failure:?}");
        drop(writer);
    }
}
