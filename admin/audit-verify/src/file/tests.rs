//! Tests of valid and invalid exports. `tests/record` tests whole chains of 50 entries.

use super::super::end::Source;
use super::*;
use domain::chain::{GENESIS, entry_hash};
use domain::checkpoint::CheckpointEnd;
use domain::entry::Entry;
use domain::timestamp::ms_from_iso;
use serde_json::{Value, json};

/// Whatever was written, it is too young to be covered by a note.
const ANY: RangeInclusive<u64> = 0..=u64::MAX;
/// Everything should be covered.
const NONE: RangeInclusive<u64> = u64::MAX..=u64::MAX;

/// A chain of `count` entries.
fn chain(count: u64) -> Vec<String> {
    let mut previous = GENESIS.to_owned();
    let entry = |seq: u64| {
        let line = format!(
            r#"{seq} {} {{"type":"agent.updated","agentId":"b","actor":"k","data":{{"n":{seq},"é":[0.5,null]}}}}"#,
            1_795_000_000_000 + seq
        );
        let sealed = Entry::from_line(seq, line.as_bytes()).seal(&previous).unwrap();
        previous = hex::encode(sealed.hash);
        sealed.json
    };
    (1..=count).map(entry).collect()
}

fn verified(text: impl AsRef<[u8]>, after: u64) -> (ChainVerifier, Option<Broken>) {
    let mut verifier = ChainVerifier::starting_after(after);
    let broken = verify(text.as_ref(), &mut verifier).unwrap();
    (verifier, broken)
}

fn first_broken(text: impl AsRef<[u8]>) -> Option<u64> {
    let (_, broken) = verified(text, 0);
    broken.map(|broken| broken.seq.unwrap())
}

#[test]
fn blank_lines_are_skipped() {
    let chain = chain(3);
    for text in [
        chain.join("\n"),
        format!("{}\n", chain.join("\n")),
        chain.join("\r\n"),
        format!("\u{feff}{}\n", chain.join("\n\n \t\n")),
        format!("\u{feff}\r\n{}\n\n\n", chain.join("\n")),
    ] {
        let (verifier, broken) = verified(&text, 0);
        assert_eq!((verifier.seen(), broken), (3, None), "{text:?}");
    }
    assert_eq!(verified("", 0).0.seen(), 0);
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
    // Blanks of any length are ignored.
    assert_eq!(third(&long), None);
    let (_, broken) = verified(format!("{{\"x\":\"{}\"}}", "y".repeat(LINE_MAX as usize)), 0);
    assert_eq!(broken.unwrap().seq, Some(1), "a line that is too long is cut");
}

#[test]
fn an_entry_whose_line_could_not_be_read_is_a_break() {
    let sealed = Entry::from_line(1, b"nonsense").seal(GENESIS).unwrap();
    assert_eq!(first_broken(sealed.json), Some(1));
}

#[test]
fn a_part_is_taken_on_trust_at_its_beginning_only() {
    let chain = chain(6);
    let part = chain[3..].join("\n");
    assert_eq!(first_broken(&part), Some(1), "the beginning is missing");
    let (verifier, broken) = verified(&part, 3);
    assert_eq!((broken, verifier.seen(), verifier.end()), (None, 3, 6));
    let end = verifier.hash().unwrap();
    let known = KnownEnd {
        source: Source::Note,
        size: 6,
        hash: end,
        later: None,
    };
    let verdict = verdict(&verifier, None, vec![known], false, &ANY);
    assert!(verdict.ok() && verdict.end_proven, "{verdict:?}");
    assert!(verdict.warnings[0].contains("on trust"), "{verdict:?}");
    assert_eq!(verified(&part, 2).1.unwrap().seq, Some(3));
    assert_eq!(verified(&part, 4).1.unwrap().seq, Some(5));
    // The hash before it is known from its first entry.
    let before: Value = serde_json::from_str(&chain[2]).unwrap();
    assert_eq!(
        verifier.hash_of(3).map(hex::encode),
        Some(before["hash"].as_str().unwrap().to_owned())
    );
}

/// Returns the verdict on a part, marked as the command marks it, compared with a known end at its beginning.
fn judged_part(text: &str, after: u64, size: u64, hash: [u8; 32]) -> Verdict {
    let known = KnownEnd {
        source: Source::Archive,
        size,
        hash,
        later: None,
    };
    let mut verifier = ChainVerifier::starting_after(after);
    verifier.mark(size);
    let broken = verify(text.as_bytes(), &mut verifier).unwrap();
    verdict(&verifier, broken, vec![known], false, &NONE)
}

#[test]
fn the_beginning_of_a_part_is_compared_with_a_checkpoint_that_ends_there() {
    let chain = chain(6);
    let part = chain[3..].join("\n");
    let hash = |count: usize| verified(chain[..count].join("\n"), 0).0.hash().unwrap();
    let good = judged_part(&part, 3, 3, hash(3));
    assert!(
        good.ok() && good.checkpoint.is_some() && !good.end_proven,
        "{good:?}"
    );
    let bad = judged_part(&part, 3, 3, [9; 32]);
    assert_eq!(bad.broken.and_then(|broken| broken.seq), Some(3));
}

#[test]
fn an_end_that_was_not_compared_is_not_reported_as_equal() {
    let chain = chain(6);
    let part = chain[3..].join("\n");
    for (text, after, size) in [(part.as_str(), 3, 2), ("", 3, 3)] {
        let verdict = judged_part(text, after, size, [9; 32]);
        assert!(verdict.ok() && !verdict.end_proven, "{verdict:?}");
        assert_eq!(verdict.checkpoint, None);
        assert!(!verdict.text().contains("agree"), "{}", verdict.text());
        assert!(verdict.warnings[0].contains("was not compared"), "{verdict:?}");
    }
    // A first entry without a previous hash cannot be compared, so it does not belong to a chain.
    let mut entry: serde_json::Map<String, Value> = serde_json::from_str(&chain[3]).unwrap();
    entry.remove("hash");
    entry.insert("previousHash".to_owned(), json!("nothing"));
    let hash = entry_hash("nothing", &entry).unwrap();
    entry.insert("hash".to_owned(), hash.into());
    let (_, broken) = verified(Value::Object(entry).to_string(), 3);
    assert_eq!(broken.unwrap().seq, Some(4));
}

#[test]
fn the_end_must_be_the_known_one() {
    let chain = chain(5);
    let hash = |text: &str| verified(text, 0).0.hash().unwrap();
    let (five, four) = (chain.join("\n"), chain[..4].join("\n"));
    let known = |source, size, text: &str| KnownEnd {
        source,
        size,
        hash: hash(text),
        later: None,
    };
    let judge = |text: &str, known: &[KnownEnd]| judged(text, known, false);
    for source in [Source::Note, Source::Store, Source::Archive] {
        let signed = source != Source::Store;
        assert_eq!(judge(&five, &[known(source, 5, &five)]), (None, signed));
        assert_eq!(
            judge(&four, &[known(source, 5, &five)]),
            (Some(5), false),
            "a cut tail"
        );
        assert_eq!(
            judge("", &[known(source, 5, &five)]),
            (Some(1), false),
            "nothing is left"
        );
        assert_eq!(
            judge(&five, &[known(source, 4, &five)]),
            (Some(4), false),
            "another hash"
        );
    }
    let appended = [known(Source::Note, 4, &four)];
    assert_eq!(judge(&five, &appended), (Some(5), false), "an appended entry");
    assert_eq!(judged(&five, &appended, true), (None, false), "said to be older");
    assert_eq!(judge(&five, &[known(Source::Store, 4, &four)]), (Some(5), false));
    let archived = known(Source::Archive, 4, &four);
    assert_eq!(
        judge(&five, std::slice::from_ref(&archived)),
        (None, false),
        "it may be older"
    );
    assert_eq!(judge(&five, &[]), (None, false));
    // The store has the end, and the note proves that the store was not rewritten.
    let store = known(Source::Store, 5, &five);
    assert_eq!(judge(&five, &[store.clone(), archived.clone()]), (None, true));
    assert_eq!(judge(&five, &[archived, store.clone()]), (None, true));
    let other = KnownEnd {
        hash: [9; 32],
        ..known(Source::Archive, 3, &four)
    };
    assert_eq!(judge(&five, &[store, other]), (Some(3), false));
}

/// A note that is older than two rounds of the checkpointer does not prove that the entries behind it are complete,
/// whatever the store says; and a note of an earlier state proves no end.
#[test]
fn an_old_note_proves_an_end_only_while_what_lies_behind_it_is_young() {
    let chain = chain(5);
    let (five, three) = (chain.join("\n"), chain[..3].join("\n"));
    let known = |source, size, text: &str| KnownEnd {
        source,
        size,
        hash: verified(text, 0).0.hash().unwrap(),
        later: None,
    };
    let (store, archived) = (known(Source::Store, 5, &five), known(Source::Archive, 3, &three));
    let judge = |known: &[KnownEnd], young: &RangeInclusive<u64>| {
        let mut verifier = ChainVerifier::starting_after(0);
        for one in known {
            one.mark(&mut verifier);
        }
        let broken = verify(five.as_bytes(), &mut verifier).unwrap();
        verdict(&verifier, broken, known.to_vec(), false, young)
    };
    let fourth: Value = serde_json::from_str(&chain[3]).unwrap();
    let at_ms = ms_from_iso(fourth["at"].as_str().unwrap()).unwrap();
    for (young, proven) in [
        (at_ms..=at_ms, true),
        (at_ms + 1..=u64::MAX, false),
        (0..=at_ms - 1, false),
    ] {
        let verdict = judge(&[store.clone(), archived.clone()], &young);
        assert!(verdict.ok());
        assert_eq!(
            (verdict.end_proven, verdict.proven_to),
            (proven, Some(3)),
            "{young:?}"
        );
        let said = verdict
            .warnings
            .iter()
            .any(|text| text.contains("entries 4 to 5 are covered by no signed"));
        assert_eq!(said, !proven, "{verdict:?}");
        assert_eq!(verdict.text().contains("NOT PROVEN behind entry 3"), !proven);
    }
    let verdict = judge(&[store, known(Source::Archive, 5, &five)], &NONE);
    assert_eq!((verdict.end_proven, verdict.proven_to), (true, Some(5)));
    // Signed of these five, when there were seven.
    let later = Some(CheckpointEnd {
        size: 7,
        hash: [7; 32],
    });
    let note = KnownEnd {
        later,
        ..known(Source::Note, 5, &five)
    };
    let verdict = judge(&[note], &ANY);
    assert_eq!(
        (verdict.ok(), verdict.end_proven, verdict.proven_to),
        (true, false, Some(5))
    );
    assert!(
        verdict.warnings[0].contains("the trail had 7 entries"),
        "{verdict:?}"
    );
}

/// The first broken entry of an export, and whether its end is proven.
fn judged(text: &str, known: &[KnownEnd], older: bool) -> (Option<u64>, bool) {
    let mut verifier = ChainVerifier::starting_after(0);
    for one in known {
        verifier.mark(one.size);
    }
    let broken = verify(text.as_bytes(), &mut verifier).unwrap();
    let verdict = verdict(&verifier, broken, known.to_vec(), older, &ANY);
    let proven = verdict.document()["endProven"].as_bool().unwrap();
    (verdict.broken.as_ref().map(|broken| broken.seq.unwrap()), proven)
}
