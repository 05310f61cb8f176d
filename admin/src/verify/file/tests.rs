//! Exports as they can be and as they must not be. What happens to whole chains of 50 entries stands in `tests/record`.

use super::*;
use serde_json::{Value, json};
use shared::domain::chain::{GENESIS, entry_hash};
use shared::domain::entry::Entry;

/// A chain of `count` entries.
fn chain(count: u64) -> Vec<String> {
    let mut previous = GENESIS.to_owned();
    let entry = |seq: u64| {
        let line = format!(
            r#"{seq} {} {{"type":"agent.updated","agentId":"b","actor":"k","data":{{"n":{seq},"é":[0.5,null]}}}}"#,
            1_795_000_000_000 + seq
        );
        let sealed = Entry::of_line(seq, line.as_bytes()).seal(&previous).unwrap();
        previous = hex::encode(sealed.hash);
        sealed.json
    };
    (1..=count).map(entry).collect()
}

fn walked(text: impl AsRef<[u8]>, after: u64) -> (Walk, Option<Broken>) {
    let mut way = Walk::behind(after);
    let broken = walk(text.as_ref(), &mut way).unwrap();
    (way, broken)
}

fn first_broken(text: impl AsRef<[u8]>) -> Option<u64> {
    let (_, broken) = walked(text, 0);
    broken.map(|broken| broken.seq.unwrap())
}

#[test]
fn what_says_nothing_is_skipped() {
    let chain = chain(3);
    for text in [
        chain.join("\n"),
        format!("{}\n", chain.join("\n")),
        chain.join("\r\n"),
        format!("\u{feff}{}\n", chain.join("\n\n \t\n")),
        format!("\u{feff}\r\n{}\n\n\n", chain.join("\n")),
    ] {
        let (walk, broken) = walked(&text, 0);
        assert_eq!((walk.seen(), broken), (3, None), "{text:?}");
    }
    assert_eq!(walked("", 0).0.seen(), 0);
}

#[test]
fn another_way_to_write_the_same_is_the_same() {
    let chain = chain(2);
    let value: Value = serde_json::from_str(&chain[0]).unwrap();
    let spaced = serde_json::to_string_pretty(&value).unwrap().replace('\n', " ");
    let escaped = chain[0]
        .replace('é', "\\u00e9")
        .replace("0.5", "5e-1")
        .replace("\"n\":1", "\"n\":1.0");
    let mut fields: Vec<String> = value
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{}:{value}", json!(key)))
        .collect();
    fields.reverse();
    let turned = format!("{{{}}}", fields.join(","));
    for first in [spaced, escaped, turned] {
        assert_ne!(first, chain[0]);
        assert_eq!(first_broken(format!("{first}\n{}", chain[1])), None, "{first}");
    }
}

#[test]
fn lines_that_cannot_be_meant_are_named() {
    let chain = chain(3);
    let third = |line: &str| first_broken([&chain[0], &chain[1], line].join("\n"));
    assert_eq!(third(&chain[2]), None);
    let double = chain[2].replacen('{', "{\"seq\":3,", 1);
    let long = format!("{}{}", " ".repeat(LINE_MAX as usize), chain[2]);
    for line in [
        "x",
        "[]",
        "{}",
        "null",
        &double,
        &chain[2][..chain[2].len() - 1],
        &format!("{}{}", chain[2], chain[2]),
        &format!("\u{feff}{}", chain[2]),
        &chain[2].replace("\"seq\":3", "\"seq\":\"3\""),
        &chain[2].replace("\"seq\":3", "\"seq\":3.5"),
    ] {
        assert_eq!(third(line), Some(3), "{line}");
    }
    // Blanks of any length say nothing.
    assert_eq!(third(&long), None);
    let (_, broken) = walked(format!("{{\"x\":\"{}\"}}", "y".repeat(LINE_MAX as usize)), 0);
    assert_eq!(broken.unwrap().seq, Some(1), "a line that is too long is cut");
}

#[test]
fn an_entry_whose_line_could_not_be_read_is_a_break() {
    let sealed = Entry::of_line(1, b"nonsense").seal(GENESIS).unwrap();
    assert_eq!(first_broken(sealed.json), Some(1));
}

#[test]
fn a_part_is_taken_on_trust_at_its_beginning_only() {
    let chain = chain(6);
    let part = chain[3..].join("\n");
    assert_eq!(first_broken(&part), Some(1), "the beginning is missing");
    let (walk, broken) = walked(&part, 3);
    assert_eq!((broken, walk.seen(), walk.end()), (None, 3, 6));
    let end = walk.hash().unwrap();
    let verdict = verdict(
        &walk,
        None,
        Some(Known {
            source: Source::Note,
            size: 6,
            hash: end,
        }),
    );
    assert!(verdict.ok() && verdict.end_proven, "{verdict:?}");
    assert!(verdict.warnings[0].contains("on trust"), "{verdict:?}");
    assert_eq!(walked(&part, 2).1.unwrap().seq, Some(3));
    assert_eq!(walked(&part, 4).1.unwrap().seq, Some(5));
    // What came right before it is known from its first entry.
    let before: Value = serde_json::from_str(&chain[2]).unwrap();
    assert_eq!(
        walk.hash_of(3).map(hex::encode),
        Some(before["hash"].as_str().unwrap().to_owned())
    );
}

#[test]
fn the_end_must_be_the_known_one() {
    let chain = chain(5);
    let hash = |text: &str| walked(text, 0).0.hash().unwrap();
    let (five, four) = (chain.join("\n"), chain[..4].join("\n"));
    let known = |source, size, text: &str| {
        Some(Known {
            source,
            size,
            hash: hash(text),
        })
    };
    let judge = |text: &str, known: Option<Known>| {
        let mut way = Walk::behind(0);
        way.mark(known.as_ref().map_or(0, |known| known.size));
        let broken = walk(text.as_bytes(), &mut way).unwrap();
        let verdict = verdict(&way, broken, known);
        (
            verdict.broken.as_ref().map(|broken| broken.seq.unwrap()),
            verdict.end_proven,
        )
    };
    for source in [Source::Note, Source::Store, Source::Archive] {
        assert_eq!(judge(&five, known(source, 5, &five)), (None, true));
        assert_eq!(
            judge(&four, known(source, 5, &five)),
            (Some(5), false),
            "a cut tail"
        );
        assert_eq!(
            judge("", known(source, 5, &five)),
            (Some(1), false),
            "nothing is left"
        );
        assert_eq!(
            judge(&five, known(source, 4, &five)),
            (Some(4), false),
            "another hash"
        );
    }
    assert_eq!(
        judge(&five, known(Source::Note, 4, &four)),
        (Some(5), false),
        "an appended entry"
    );
    assert_eq!(judge(&five, known(Source::Store, 4, &four)), (Some(5), false));
    assert_eq!(
        judge(&five, known(Source::Archive, 4, &four)),
        (None, false),
        "it may be older"
    );
    assert_eq!(judge(&five, None), (None, false));
}

#[test]
fn a_hash_that_was_computed_again_breaks_the_next_link() {
    let mut chain = chain(4);
    let mut entry: serde_json::Map<String, Value> = serde_json::from_str(&chain[1]).unwrap();
    entry.remove("hash");
    entry.insert("actor".to_owned(), json!("other"));
    let previous = entry["previousHash"].as_str().unwrap().to_owned();
    let hash = entry_hash(&previous, &entry).unwrap();
    entry.insert("hash".to_owned(), hash.into());
    chain[1] = Value::Object(entry).to_string();
    assert_eq!(first_broken(chain.join("\n")), Some(3));
}
