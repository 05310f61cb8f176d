//! Pages are bounded, and cursors lead into their own list alone.

use super::*;

const LIST: [&str; 3] = ["acct_1", "live", "agents"];

fn query(pairs: &[(&str, &str)]) -> Result<Paging, Problem> {
    let pairs = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Paging::from_query(&pairs.collect(), "agents", ListId::new(LIST))
}

#[test]
fn pages_are_bounded() {
    for (pairs, limit, offset) in [
        (&[][..], 50, 0),
        (&[("limit", "200"), ("offset", "3")], 200, 3),
        (&[("offset", "10000")], 50, OFFSET_MAX),
    ] {
        let paging = query(pairs).unwrap();
        assert_eq!(paging.page(), PageRequest::at(offset, limit));
        assert_eq!((paging.limit(), paging.offset()), (limit, offset));
    }
    for (name, bad) in [
        ("limit", "0"),
        ("limit", "201"),
        ("limit", ""),
        ("limit", "+5"),
        ("limit", "5.0"),
        ("limit", "99999999999999999999999"),
        ("offset", "-1"),
        ("offset", "x"),
        ("offset", "10001"),
        ("offset", "1000000000"),
        ("offset", "99999999999999999999999"),
    ] {
        let error = query(&[(name, bad)]).unwrap_err();
        assert!(error.message().starts_with(name), "{name}={bad}: {error:?}");
    }
    let deep = query(&[("offset", "10001")]).unwrap_err();
    assert!(
        deep.message().contains("10000") && deep.message().contains("cursor"),
        "{deep:?}"
    );
}

#[test]
fn a_cursor_leads_back_to_its_position() {
    for position in ["", "1764026629123 agent_1", "7", "live 1 2 3 4 5 int_1", "5 é"] {
        let cursor = ListId::new(LIST).cursor(position);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        assert!(cursor.bytes().all(plain), "{cursor}");
        let paging = query(&[("cursor", &cursor), ("limit", "7")]).unwrap();
        assert_eq!(paging.page(), PageRequest::after(position, 7));
        assert_eq!((paging.limit(), paging.offset()), (7, 0));
    }
}

#[test]
fn the_longest_position_fits() {
    let position = format!("1764026629123 {}", "r".repeat(200));
    let cursor = ListId::new(LIST).cursor(&position);
    assert!(cursor.len() <= CURSOR_MAX, "{}", cursor.len());
    assert!(query(&[("cursor", &cursor)]).is_ok());
}

#[test]
fn every_other_cursor_is_refused() {
    let position = "1764026629123 agent_1";
    let good = ListId::new(LIST).cursor(position);
    let mut bad: Vec<String> = ["", "x", "a+b/", "====", "AQ", "..", "bnVsbA"]
        .map(str::to_owned)
        .into();
    for other in [
        ["acct_2", "live", "agents"],
        ["acct_1", "test", "agents"],
        ["acct_1", "live", "escrows"],
        ["acct_1l", "ive", "agents"],
    ] {
        bad.push(ListId::new(other).cursor(position));
    }
    bad.push(format!("{good}A"));
    bad.push(format!("{good}="));
    bad.push("A".repeat(CURSOR_MAX + 1));
    for at in 0..good.len() {
        let mut changed = good.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        bad.push(String::from_utf8(changed).unwrap());
    }
    for cursor in bad {
        let error = query(&[("cursor", &cursor)]).unwrap_err();
        assert!(error.message().starts_with("cursor"), "{cursor}: {error:?}");
    }
}

#[test]
fn a_page_starts_at_one_place() {
    let cursor = ListId::new(LIST).cursor("7");
    for offset in ["5", "x", "00"] {
        let error = query(&[("cursor", &cursor), ("offset", offset)]).unwrap_err();
        assert!(error.message().starts_with("cursor and offset"), "{error:?}");
    }
    let paging = query(&[("cursor", &cursor), ("offset", "0")]).unwrap();
    assert!(
        matches!(paging.page().start, PageStart::After("7")),
        "as generated clients send it"
    );
}
