//! Agent ids in requests, and names that may stand in a path.

use crate::problem::Problem;
use domain::names::{NO_DOT_SEGMENT, NO_ID, is_agent_id, is_dot_segment, looks_like_an_id};

/// Refuses an invalid agent id.
///
/// # Errors
/// 400 with a message that begins with `what`.
pub fn require_agent_id(what: &str, id: &str) -> Result<(), Problem> {
    if is_agent_id(id) {
        return Ok(());
    }
    require_no_dot_segment(what, id)?;
    let message = format!(
        "{what} must be 1 to 128 characters of A-Z a-z 0-9 . _ : - and not the reserved word `user`."
    );
    Err(Problem::validation(message))
}

/// Refuses an id that is not allowed for a new agent.
///
/// # Errors
/// 400 with a message that begins with `what`.
pub fn require_new_agent_id(what: &str, id: &str) -> Result<(), Problem> {
    require_agent_id(what, id)?;
    match looks_like_an_id(id) {
        true => Err(Problem::validation(format!("{what} {NO_ID}."))),
        false => Ok(()),
    }
}

/// Refuses names that cannot occur in a path.
pub(super) fn require_no_dot_segment(what: &str, name: &str) -> Result<(), Problem> {
    match is_dot_segment(name.as_bytes()) {
        true => Err(Problem::validation(format!("{what} {NO_DOT_SEGMENT}."))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_segment_names_no_agent() {
        for dots in [".", ".."] {
            let problem = require_agent_id("agentId", dots).unwrap_err();
            assert_eq!(problem.message(), format!("agentId {NO_DOT_SEGMENT}."));
        }
        for (id, is_new) in [
            ("...", true),
            (".a", true),
            ("user", false),
            ("a/b", false),
            ("29197305186529", false),
            ("wal_01KAH3V9J8ABCDEFGHJKMNPQRS", false),
            ("agent_01KAH3V9J8ABCDEFGHJKMNPQRS", true),
        ] {
            assert_eq!(require_new_agent_id("agentId", id).is_ok(), is_new, "{id}");
        }
    }
}
