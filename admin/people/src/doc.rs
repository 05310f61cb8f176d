//! OpenAPI documentation of the user API.

mod session;
mod team;

use endpoint::doc::Section;
use endpoint::doc::field::{email, is};

/// Returns the documentation of all operations.
pub fn sections() -> [Section; 3] {
    let signing_in = "How people sign in, and what they do about themselves. A login sets a cookie, which `X-CSRF-Token` guards.";
    let factor =
        "The optional second factor: codes of an app (RFC 6238), and recovery codes for the day it is lost.";
    let team = "The users of the account, and the links by which people join it.";
    [
        Section::new("Signing in", signing_in, session::docs()).param("id", is("SessionId"), "The session."),
        Section::new("Second factor", factor, session::totp()),
        Section::new("Team", team, team::docs()).param("id", is("UserId"), "The user."),
    ]
}

/// Returns the e-mail address in examples.
fn example_email() -> openapi::Json {
    email().example("grace@example.com")
}
