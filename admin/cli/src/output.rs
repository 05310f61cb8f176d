//! Writes one line to standard output or standard error.

use std::io::{self, Write};

/// Writes one line to standard output.
pub(super) fn write_stdout(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes one line with the program's name to standard error. A failure is ignored: it could not be reported.
pub(super) fn write_stderr(text: &str) {
    let _unwritable = writeln!(io::stderr().lock(), "tollgate-admin: {text}");
}
