//! Values on the command line, validated before anything is changed.

use api::PLAIN_REFERENCE;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use domain::blocked::parse_range;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::names;
use domain::permission::Permission;
use domain::price::PriceTable;
use domain::printable;
use domain::timestamp::day_from_date;
use domain::{self, amount};
use endpoint::WalletName;
use ipnet::IpNet;
use sandbox::DELAY_MAX;
use std::time::Duration;
use store::deposit::is_reference;

/// The longest time.
const TIME_MS_MAX: u64 = 3_600_000;
/// Sizes of bodies in a load test.
const BODY_BYTES: std::ops::RangeInclusive<usize> = 150..=8_388_608;
/// Longest id that is accepted.
const ID_MAX: usize = 64;
/// Longest name of an account.
const NAME_MAX: usize = 200;
/// Longest reason.
const REASON_MAX: usize = 200;

/// Parses an id created by Tollgate, such as `acct_…`. It cannot contain the separator of store key parts.
pub(super) fn id(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match (1..=ID_MAX).contains(&text.len()) && text.bytes().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("an id has 1 to 64 letters, digits and underscores".to_owned()),
    }
}

/// Parses the id of a decision.
pub(super) fn decision_id(text: &str) -> Result<String, String> {
    match IdKind::Allow.has_form(text) || IdKind::Deny.has_form(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("must be the id of a decision: allow_… or deny_… with 26 characters behind it".to_owned())
        }
    }
}

/// Parses a UTC day, such as 2026-11-28, in days since 1970.
pub(super) fn day(text: &str) -> Result<u64, String> {
    day_from_date(text).ok_or_else(|| "a day is written as 2026-11-28".to_owned())
}

/// Parses the version of a price table.
pub(super) fn price_version(text: &str) -> Result<String, String> {
    match PriceTable::is_version(text) {
        true => Ok(text.to_owned()),
        false => Err("a version has 16 digits of 0-9 and a-f, as priceVersion shows it".to_owned()),
    }
}

/// Parses an agent id (decision D6).
pub(super) fn agent_id(text: &str) -> Result<String, String> {
    match names::is_agent_id(text) {
        true => Ok(text.to_owned()),
        false => Err(
            "an agent id has 1 to 128 characters of A-Z a-z 0-9 . _ : - and is not `user`, `.` or `..`"
                .to_owned(),
        ),
    }
}

/// Returns whether this is one line of visible text: at most `longest` characters, at least one of them visible, no
/// control characters, and none that set the direction of text.
fn is_line(text: &str, longest: usize) -> bool {
    let bad = |c: char| c.is_control() || printable::is_direction(c);
    text.chars().count() <= longest && text.chars().any(printable::is_seen) && !text.chars().any(bad)
}

/// Parses a name for people.
pub(super) fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    match is_line(text, NAME_MAX) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 200 printable characters".to_owned()),
    }
}

/// Parses the reason of a change.
pub(super) fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match is_line(text, REASON_MAX) {
        true => Ok(text.to_owned()),
        false => Err(format!("a reason has 1 to {REASON_MAX} printable characters")),
    }
}

/// Parses an e-mail address, and converts it to lower case.
pub(super) fn email(text: &str) -> Result<String, String> {
    domain::email::parse(text).ok_or_else(|| "it must be an e-mail address".to_owned())
}

/// `live` or `test`.
pub(super) fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(Mode::as_str))
        .try_map(|text| Mode::parse(&text).ok_or("a mode is `live` or `test`"))
}

/// Parses one permission of a list such as `read,write`.
pub(super) fn permission() -> impl TypedValueParser<Value = Permission> {
    PossibleValuesParser::new(Permission::ALL.map(Permission::as_str))
        .try_map(|text| Permission::parse(&text).ok_or("a permission is `read`, `write` or `approve`"))
}

/// Parses a range of addresses, or a single address, into canonical form.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    parse_range(text).ok_or_else(|| "it must be an address or a CIDR range such as 10.0.0.0/8".to_owned())
}

/// Parses a moment in the future, in milliseconds since 1970.
pub(super) fn future(text: &str) -> Result<u64, String> {
    match domain::timestamp::ms_from_iso(text) {
        Some(domain::timestamp::LAST_MS..) => {
            Err("it must lie before 9999-12-30T22:00:00Z; leave it out for no end".to_owned())
        }
        Some(ms) if ms > clock::now_ms() => Ok(ms),
        Some(_) => Err("it must lie in the future".to_owned()),
        None => Err("it must be an ISO 8601 timestamp such as 2027-01-31T00:00:00Z".to_owned()),
    }
}

/// Parses a delay of the sandbox, in milliseconds.
pub(super) fn delay_ms(text: &str) -> Result<u64, String> {
    let most = u64::try_from(DELAY_MAX.as_millis()).unwrap_or(u64::MAX);
    let delay = text.parse().ok().filter(|delay| *delay <= most);
    delay.ok_or_else(|| format!("it must be a number of milliseconds up to {most}"))
}

/// Parses a duration such as `500ms`, `90s` or `5m`, at most one hour.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: Option<u64> = number.parse().ok();
    let ms = match unit {
        "ms" => number,
        "s" => number.and_then(|number| number.checked_mul(1000)),
        "m" => number.and_then(|number| number.checked_mul(60_000)),
        _ => None,
    };
    let ms = ms.filter(|ms| *ms <= TIME_MS_MAX);
    ms.map(Duration::from_millis)
        .ok_or_else(|| "it must be a time such as 500ms, 90s or 5m, at most an hour".to_owned())
}

/// Parses a share, from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "it must be a number from 0 to 1".to_owned())
}

/// Parses the size of a body in a load test.
pub(super) fn body_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes| BODY_BYTES.contains(bytes));
    let (least, most) = (BODY_BYTES.start(), BODY_BYTES.end());
    bytes.ok_or_else(|| format!("a body has {least} to {most} bytes"))
}

/// Parses an amount of USD, including zero.
pub(super) fn usd(text: &str) -> Result<Nanos, String> {
    amount::parse_limit(text).map_err(|error| format!("the amount {error}"))
}

/// Parses a positive amount of USD to be moved (decision D4).
pub(super) fn amount(text: &str) -> Result<Nanos, String> {
    amount::parse_amount(text).map_err(|error| format!("the amount {error}"))
}

/// Parses a wallet: its number, its id, an agent's id, or `user` (decision D61).
pub(super) fn wallet(text: &str) -> Result<WalletName, String> {
    WalletName::from_word(text)
        .ok_or_else(|| "a wallet is named by its number, its id `wal_…`, an agent's id, or `user`".to_owned())
}

/// Parses a payment rail's reference of a deposit.
pub(super) fn reference(text: &str) -> Result<String, String> {
    match is_reference(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("a reference must be {PLAIN_REFERENCE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_could_leave_their_key_are_refused() {
        assert!(id("acct_01KAH3V9J8").is_ok());
        for bad in ["", "a/b", "a b", "{x}", "a\n", &"x".repeat(65)] {
            assert!(id(bad).is_err(), "{bad:?}");
        }
        assert!(agent_id("my-bot:1").is_ok());
        assert!(["user", "a/b", ".."].iter().all(|bad| agent_id(bad).is_err()));
    }

    #[test]
    fn a_name_has_something_to_see() {
        assert_eq!(name(" Büro 日本 🤖 "), Ok("Büro 日本 🤖".to_owned()));
        // Right-to-left names contain such marks; the API accepts them, too.
        for mark in ['\u{200e}', '\u{200f}', '\u{61c}'] {
            let right_to_left = format!("{mark}\u{5d0}\u{5d1}");
            assert_eq!(name(&right_to_left), Ok(right_to_left));
        }
        for bad in [
            "",
            " ",
            "a\u{7}",
            "\u{3164}",
            "\u{200b}\u{feff}",
            "ab\u{202e}ba",
            &"x".repeat(201),
        ] {
            assert!(name(bad).is_err() && reason(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_and_ranges_are_networks() {
        assert_eq!(network("10.1.2.3/8").unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(network("::1").unwrap().to_string(), "::1/128");
        assert_eq!(network("::ffff:10.1.2.3").unwrap().to_string(), "10.1.2.3/32");
        assert!(network("10.0.0.0/33").is_err() && network("host").is_err());
    }

    #[test]
    fn e_mails_are_kept_in_lower_case() {
        assert_eq!(email(" Ann@Example.com "), Ok("ann@example.com".to_owned()));
        for bad in [
            "",
            "ann",
            "@example.com",
            "ann@",
            "ann@host",
            "a b@example.com",
            "a@b@example.com",
        ] {
            assert!(email(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_end_in_the_past_is_refused() {
        assert!(future("2001-01-01T00:00:00Z").is_err() && future("soon").is_err());
        assert!(future("2999-01-01T00:00:00Z").is_ok() && future("9999-12-31T23:59:59Z").is_err());
    }

    #[test]
    fn times_have_units_and_shares_an_end() {
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("60m"), Ok(Duration::from_secs(3600)));
        for bad in ["", "5", "s", "61m", "1h", "-1s", "1.5s", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
        assert_eq!((share("0"), share("1")), (Ok(0.0), Ok(1.0)));
        assert!(share("1.01").is_err() && share("NaN").is_err() && share("-0.1").is_err());
        assert!(body_bytes("150").is_ok() && body_bytes("1").is_err() && body_bytes("8388609").is_err());
    }

    #[test]
    fn amounts_are_exact() {
        assert_eq!(usd("0.000000001").map(Nanos::get), Ok(1));
        assert!(usd("-1").unwrap_err().contains("negative"));
        assert!(usd("0").is_ok() && amount("0").is_err() && amount("0.1").is_ok());
    }

    #[test]
    fn wallets_have_four_kinds_of_names() {
        assert_eq!(wallet("17"), Ok(WalletName::Number(17)));
        assert_eq!(wallet("wal_01"), Ok(WalletName::Id("wal_01".to_owned())));
        assert_eq!(wallet("user"), Ok(WalletName::Owner("user".to_owned())));
        assert_eq!(wallet("my-bot"), Ok(WalletName::Owner("my-bot".to_owned())));
        for bad in ["", "a b", "wal_/", "a/b"] {
            assert!(wallet(bad).is_err(), "{bad:?}");
        }
    }
}
