//! Names that callers choose: agent ids (decision D6) and run ids (specification §4.4). Neither can hold the `/`
//! that separates the parts of a store key.

/// Longest agent id.
pub const AGENT_ID_MAX: usize = 128;
/// Longest run id.
pub const RUN_ID_MAX: usize = 200;

/// Whether `name` has 1 to `longest` characters of `A-Z a-z 0-9 . _ : -`.
fn well_formed(name: &[u8], longest: usize) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-".contains(byte);
    (1..=longest).contains(&name.len()) && name.iter().all(allowed)
}

/// Whether this may name an agent. `user` names the account's own wallet and is reserved (D61).
pub fn is_agent_id(name: &str) -> bool {
    well_formed(name.as_bytes(), AGENT_ID_MAX) && name != "user"
}

/// Whether this may name a run.
pub fn is_run_id(name: &[u8]) -> bool {
    well_formed(name, RUN_ID_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_plain() {
        assert!(is_agent_id("my-bot") && is_agent_id("a:b.c_D9") && is_agent_id(&"x".repeat(128)));
        for bad in ["", "user", "a b", "a/b", "é", "a\n", "{x}", &"x".repeat(129)] {
            assert!(!is_agent_id(bad), "{bad:?}");
        }
        assert!(is_run_id(b"user") && is_run_id(&[b'r'; 200]));
        assert!(!is_run_id(b"") && !is_run_id(&[b'r'; 201]) && !is_run_id(b"a/b"));
    }
}
