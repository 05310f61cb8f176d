//! A server with its store, accounts and API keys.

use harness::{AdminBinary, AdminFixture};

pub use harness::{READ_AND_WRITE as FULL, problem, success, text};

pub const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");

/// The program of this build.
pub struct Binary;

impl AdminBinary for Binary {
    const PATH: &'static str = BINARY;
}

pub type Fixture = AdminFixture<Binary>;

/// Checks that a text is a fresh ISO 8601 UTC timestamp.
#[track_caller]
pub fn fresh(timestamp: &str) {
    let at =
        domain::timestamp::ms_from_iso(timestamp).unwrap_or_else(|| panic!("{timestamp} is no timestamp"));
    assert!(
        timestamp.ends_with('Z') && at.abs_diff(clock::now_ms()) < 60_000,
        "{timestamp}"
    );
}

/// Checks that a text is an id of ours with this prefix.
#[track_caller]
pub fn minted(id: &str, prefix: &str) {
    let rest = id
        .strip_prefix(prefix)
        .unwrap_or_else(|| panic!("{id} does not start with {prefix}"));
    assert!(
        rest.len() == 26 && rest.bytes().all(|b| b.is_ascii_alphanumeric()),
        "{id}"
    );
}
