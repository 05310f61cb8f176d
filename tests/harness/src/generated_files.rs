//! Files of the repository that a test writes: compared with what the code says, or written anew.

use crate::net::REPOSITORY;
use std::fs;

/// Environment variable. Set to anything, it makes tests write their files instead of comparing them.
pub const REWRITE_DOCS: &str = "TOLLGATE_REWRITE_DOCS";

/// Returns whether [`REWRITE_DOCS`] is set.
pub fn rewrites_docs() -> bool {
    std::env::var_os(REWRITE_DOCS).is_some()
}

/// Compares the file at `path`, relative to the repository, with `expected`, or writes it anew.
///
/// # Panics
/// Panics with the first line that differs and the command `cargo test --workspace {tests}` that writes the file.
#[track_caller]
pub fn compare_written(path: &str, expected: &str, tests: &str) {
    let file = format!("{REPOSITORY}/{path}");
    if rewrites_docs() {
        fs::write(&file, expected).unwrap_or_else(|error| panic!("{file}: {error}"));
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let mut lines = kept.lines().zip(expected.lines()).enumerate();
    let different = lines.find(|(_, (kept, expected))| kept != expected);
    assert!(
        kept == expected,
        "{path} is not what the code says; the first line that differs: {different:?}. If the code is right, write the \
         file anew:\n    {REWRITE_DOCS}=1 cargo test --workspace {tests}"
    );
}
