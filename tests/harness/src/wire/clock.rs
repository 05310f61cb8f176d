//! The time in a store's replies: `INFO` has a line with microseconds, `TIME` replies with two texts, seconds first.

/// Start of the line of `INFO`.
const LINE: &[u8] = b"server_time_usec:";
/// Start of the reply to `TIME`, up to 2286.
const REPLY: &[u8] = b"*2\r\n$10\r\n";
/// Digits of the seconds.
const DIGITS: usize = 10;

/// Adds `seconds` to each time in `replies`.
pub(super) fn move_by(replies: &mut [u8], seconds: i64) {
    for at in 0..replies.len() {
        let Some(begin) = time_at(replies, at) else {
            continue;
        };
        let Some(digits) = replies.get_mut(begin..begin + DIGITS) else {
            return;
        };
        let text = std::str::from_utf8(digits).ok();
        if let Some(now) = text.and_then(|text| text.parse::<i64>().ok()) {
            let moved = format!("{:010}", now + seconds);
            digits.copy_from_slice(&moved.as_bytes()[..DIGITS]);
        }
    }
}

/// Whether `replies` end within a time, or right before it.
pub(super) fn is_cut(replies: &[u8]) -> bool {
    let from = replies.len().saturating_sub(LINE.len() + DIGITS);
    (from..replies.len()).any(|at| {
        let rest = &replies[at..];
        let begins = |mark: &[u8]| {
            let whole = rest.len() >= mark.len() + DIGITS;
            !whole && rest.iter().zip(mark).all(|(byte, expected)| byte == expected)
        };
        // A shorter part of a mark occurs in other replies, too; from this length on it is unambiguous.
        begins(LINE) && rest.len() > 6 || begins(REPLY) && rest.len() > 5
    })
}

/// The index of the seconds of a time whose mark begins at `at`.
fn time_at(replies: &[u8], at: usize) -> Option<usize> {
    let rest = &replies[at..];
    let mark = [LINE, REPLY].into_iter().find(|mark| rest.starts_with(mark))?;
    Some(at + mark.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_replies_are_moved_and_nothing_else() {
        let before = "$9\r\n# Server\r\nserver_time_usec:1764136423123456\r\nx:1764136423\r\n*2\r\n$10\r\n1764136423\r\n$6\r\n";
        let mut replies = before.as_bytes().to_vec();
        move_by(&mut replies, -86_400);
        let after = before.replace("1764136423123456", "1764050023123456");
        let after = after.replace("$10\r\n1764136423", "$10\r\n1764050023");
        assert_eq!(String::from_utf8(replies).unwrap(), after);
    }

    #[test]
    fn a_time_that_is_cut_is_noticed() {
        for (replies, cut) in [
            ("a:1\r\nserver_time_usec:176413", true),
            ("a:1\r\nserver_time", true),
            ("a:1\r\nserver_time_usec:1764136423", false),
            ("*2\r\n$10\r\n17", true),
            ("*2\r\n$10\r\n1764136423", false),
            ("$2\r\nok\r\n", false),
            ("*2\r\n$1\r\na\r\n", false),
        ] {
            assert_eq!(is_cut(replies.as_bytes()), cut, "{replies}");
        }
    }
}
