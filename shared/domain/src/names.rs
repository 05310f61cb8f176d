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

/// Why [`is_dot_segment`] names nothing. Completes the sentence "agent …".
pub const NO_DOT_SEGMENT: &str =
    "must not be `.` or `..`: clients resolve these parts of a path before they send it";
/// The form of a name that is no dot segment, as a JSON Schema pattern that needs no look-ahead. Beside it stands the
/// longest length.
pub const NEW_NAME_PATTERN: &str = r"^(\.{0,2}[A-Za-z0-9_:-]|\.{3})[A-Za-z0-9._:-]*$";

/// Whether the name is a dot segment of a path (RFC 3986 §5.2.4). Clients resolve these, even as `%2e%2e`, so that no
/// path reaches what they name. They are refused where a name is taken in; records that have one stay readable.
pub fn is_dot_segment(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
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

    #[test]
    fn dot_segments_are_names_of_old_records_only() {
        for name in [".", ".."] {
            assert!(is_agent_id(name) && is_run_id(name.as_bytes()) && is_dot_segment(name.as_bytes()));
        }
    }

    #[test]
    fn the_pattern_of_a_new_name_is_the_rule() {
        let pattern = regex::Regex::new(NEW_NAME_PATTERN).unwrap();
        let alphabet = [".", "a", "-", ":", "/"];
        let mut names = vec![String::new()];
        for _ in 0..5 {
            let longer = names
                .iter()
                .flat_map(|name| alphabet.map(|c| format!("{name}{c}")));
            names = longer.chain([String::new()]).collect();
            for name in &names {
                let is_new = is_run_id(name.as_bytes()) && !is_dot_segment(name.as_bytes());
                assert_eq!(pattern.is_match(name), is_new, "{name:?}");
            }
        }
    }
}
