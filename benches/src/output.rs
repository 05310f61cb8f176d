//! Runs a program to completion and captures its output.

use std::error::Error;
use std::process::{Command, Stdio};

/// Runs a program to completion. Returns what it printed on stdout and stderr; an exit code other than 0 is an error.
pub fn output(program: &str, args: &[&str]) -> Result<String, Box<dyn Error>> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).trim().to_owned();
    if output.status.success() {
        Ok(printed)
    } else {
        Err(format!("{program} {args:?}: {} {printed}", output.status).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_or_missing_program_is_an_error() {
        assert!(output("false", &[]).is_err() && output("no-such-program", &[]).is_err());
        assert_eq!(output("echo", &["a"]).unwrap(), "a");
    }
}
