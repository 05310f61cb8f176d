//! A server with its store and users.

use harness::{AdminBinary, AdminFixture, Reply};
use serde_json::Value;

pub use harness::{problem, text};

pub const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");

/// The program of this build.
pub struct Binary;

impl AdminBinary for Binary {
    const PATH: &'static str = BINARY;
}

pub type World = AdminFixture<Binary>;

/// The body of a 200.
#[track_caller]
pub fn success(reply: &Reply) -> Value {
    harness::success(reply, 200)
}
