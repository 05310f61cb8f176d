//! The check that standard output is open, for commands that print a secret once.

use crate::failure::CommandFailure;
use std::path::Path;

/// Target of standard output, and its open flags.
const STDOUT: [&str; 2] = ["/proc/self/fd/1", "/proc/self/fdinfo/1"];
/// Device that the runtime opens in place of a standard output that was closed (`>&-`).
const NULL_DEVICE: &str = "/dev/null";
/// Bits of the flags for reading and writing; [`READ_AND_WRITE`] means both.
const ACCESS: u32 = 0o3;
const READ_AND_WRITE: u32 = 0o2;

/// Refuses a command whose secret nobody could see: standard output was closed before the start. The runtime has then
/// opened the null device in its place, for reading and writing. A program that starts this one with the same device
/// (Python's `DEVNULL`) would lose the secret in the same way. A shell's `> /dev/null` is opened only for writing, and
/// is intended.
pub(super) fn check() -> Result<(), CommandFailure> {
    let [link, about] = STDOUT;
    let is_null = std::fs::read_link(link).is_ok_and(|path| path == Path::new(NULL_DEVICE));
    let about = std::fs::read_to_string(about).unwrap_or_default();
    match is_null && is_read_and_write(&about) {
        true => Err(CommandFailure::refused(
            "OUTPUT",
            "standard output is closed or discarded, and the secret that is shown once would be lost: nothing was done",
        )),
        false => Ok(()),
    }
}

/// Parses the line `flags:` of a descriptor, which is an octal number.
fn is_read_and_write(about: &str) -> bool {
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    flags.is_some_and(|flags| flags & ACCESS == READ_AND_WRITE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_access_of_a_descriptor_is_read() {
        let about = |flags: &str| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t25\n");
        assert!(is_read_and_write(&about("0100002")));
        for flags in ["0100001", "0100000", "0100001\nino:\t2", ""] {
            assert!(!is_read_and_write(&about(flags)), "{flags}");
        }
        assert!(!is_read_and_write(""));
    }
}
