//! Names that callers choose: agent ids (decision D6) and run ids (specification §4.4). Neither can contain `/`, which
//! separates the parts of a store key.

use crate::id::{IdKind, RANDOM_LEN};

/// Longest agent id.
pub const AGENT_ID_MAX: usize = 128;
/// Longest run id.
pub const RUN_ID_MAX: usize = 200;

/// Returns whether `name` has 1 to `longest` characters of `A-Z a-z 0-9 . _ : -`.
fn well_formed(name: &[u8], longest: usize) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-".contains(byte);
    (1..=longest).contains(&name.len()) && name.iter().all(allowed)
}

/// Why a [dot segment](is_dot_segment) is refused as a name. Completes the sentence "agent …".
pub const NO_DOT_SEGMENT: &str =
    "must not be `.` or `..`: clients resolve these parts of a path before they send it";
/// Pattern of a name that is not a dot segment, for JSON Schema without look-ahead. The schema also has the longest
/// length.
pub const NAME_PATTERN: &str = r"^(\.{0,2}[A-Za-z0-9_:-]|\.{3})[A-Za-z0-9._:-]*$";

/// Returns whether the name is a dot segment of a path (RFC 3986 §5.2.4). Clients resolve these, even as `%2e%2e`, so
/// that no path reaches an object of this name.
pub fn is_dot_segment(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// Why [`looks_like_an_id`] names no new agent. Completes the sentence "agent …".
pub const NO_ID: &str = "must not begin with `wal_`, or look like the id of another record (`pol_…`) or the number of a wallet (14 \
     to 16 digits): where either can stand, it would be taken for that";
/// The names of which [`looks_like_an_id`] is true, as a JSON Schema pattern.
pub const ID_PATTERN: &str = "^([1-9][0-9]{13,15}|wal_.*|(acct|usr|ses|inv|key|pol|pk|vk|allow|deny|req|int|txn|aud|wh|whd)_[0-9A-Za-z]{26})$";

/// Returns whether the name looks like an id that Tollgate makes of something else than an agent, or like a wallet's
/// number: who chooses such a name would get the money that was meant for that record. Any name with the prefix of a
/// wallet's id names a wallet in a payment, so that none would reach an agent of this name (decision D61).
pub fn looks_like_an_id(name: &str) -> bool {
    let is_random =
        |text: &str| text.len() == RANDOM_LEN && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_number = (14..=16).contains(&name.len())
        && !name.starts_with('0')
        && name.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        || name.starts_with(IdKind::Wallet.prefix())
        || IdKind::ALL
            .iter()
            .filter(|kind| **kind != IdKind::Agent)
            .any(|kind| name.strip_prefix(kind.prefix()).is_some_and(is_random))
}

/// Returns whether this may name an agent. `user` names the account's own wallet and is reserved (D61).
pub fn is_agent_id(name: &str) -> bool {
    well_formed(name.as_bytes(), AGENT_ID_MAX) && !is_dot_segment(name.as_bytes()) && name != "user"
}

/// Returns whether this may name a run.
pub fn is_run_id(name: &[u8]) -> bool {
    is_request_id(name) && !is_dot_segment(name)
}

/// Returns whether this may be the caller's id of a request, which is part of no path.
pub fn is_request_id(name: &[u8]) -> bool {
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
    fn dot_segments_name_no_agent_and_no_run() {
        for name in [".", ".."] {
            assert!(!is_agent_id(name) && !is_run_id(name.as_bytes()) && is_request_id(name.as_bytes()));
        }
    }

    #[test]
    fn names_of_other_records_are_those_of_the_pattern() {
        let pattern = regex::Regex::new(ID_PATTERN).unwrap();
        let random = "01KAH3V9J8ABCDEFGHJKMNPQRS";
        let mut names = Vec::new();
        for kind in &IdKind::ALL {
            let id = format!("{}{random}", kind.prefix());
            assert_eq!(looks_like_an_id(&id), *kind != IdKind::Agent, "{id}");
            let short = format!("{}6802", kind.prefix());
            assert_eq!(looks_like_an_id(&short), *kind == IdKind::Wallet, "{short}");
            names.extend([
                id[..id.len() - 1].to_owned(),
                format!("{id}0"),
                format!("x{id}"),
                id,
            ]);
        }
        // The lowest is of April 2026; earlier ones, of 13 digits, would be moments in ms.
        let numbers = [10_u64.pow(13), crate::number::LAST].map(|number| number.to_string());
        assert!(numbers.iter().all(|number| looks_like_an_id(number)));
        let others = [
            "1764288000000",
            "10000000000000000",
            "09999999999999",
            "17642880000000x",
            "wal",
            "wallet_1",
            "bot",
            "17",
        ];
        assert!(others.iter().all(|name| !looks_like_an_id(name)));
        names.extend(others.map(str::to_owned));
        names.extend(numbers);
        for name in names {
            assert_eq!(pattern.is_match(&name), looks_like_an_id(&name), "{name}");
        }
    }

    #[test]
    fn the_pattern_of_a_name_is_the_rule() {
        let pattern = regex::Regex::new(NAME_PATTERN).unwrap();
        let alphabet = [".", "a", "-", ":", "/"];
        let mut names = vec![String::new()];
        for _ in 0..5 {
            let longer = names
                .iter()
                .flat_map(|name| alphabet.map(|c| format!("{name}{c}")));
            names = longer.chain([String::new()]).collect();
            for name in &names {
                assert_eq!(pattern.is_match(name), is_run_id(name.as_bytes()), "{name:?}");
            }
        }
    }
}
