//! Tests of the bounds of a segment, and of its description.

use super::*;
use domain::chain::GENESIS;
use domain::entry::{Entry, Sealed};
use domain::mode::Mode;
use store::audit::archive::LISTS_MAX;
use store::audit::chain::ChainHead;

fn realm() -> Realm {
    Realm::new("acct_1", Mode::Live)
}

/// Returns a chain of entries with these agents and this text.
fn chain(agents: impl Iterator<Item = String>, text: &str) -> Vec<Sealed> {
    let mut before = GENESIS.to_owned();
    (1..)
        .zip(agents)
        .map(|(seq, agent)| {
            let line = format!(
                r#"{seq} {} {{"type":"agent.frozen","agentId":"{agent}","actor":"key_1","data":{{"text":"{text}"}}}}"#,
                seq * 1000
            );
            let sealed = Entry::from_line(seq, line.as_bytes()).seal(&before).unwrap();
            before = hex::encode(sealed.hash);
            sealed
        })
        .collect()
}

fn filled(entries: &[Sealed], entries_max: usize) -> Draft {
    let mut draft = Draft::behind(ChainHead::default(), entries_max);
    for entry in entries {
        if !draft.add(entry).unwrap() {
            break;
        }
    }
    draft
}

/// The record of a rate window is found by the id of its denials' record, and other entries by their own id.
#[test]
fn a_manifest_finds_the_record_of_a_rate_window() {
    let window = "deny_01KAH3V9J80123456780000000";
    let of_kind = |kind: &str| {
        let line = format!(
            r#"1 1000 {{"type":"{kind}","agentId":"bot","actor":"vk_1","data":{{"decisionId":"{window}","count":3}}}}"#
        );
        let sealed = Entry::from_line(1, line.as_bytes()).seal(GENESIS).unwrap();
        let built = filled(&[sealed], 10).build(&realm()).unwrap().unwrap();
        let manifest: Manifest = serde_json::from_slice(&built.manifest).unwrap();
        manifest.find(window)
    };
    assert_eq!(of_kind("decisions.denied"), [1]);
    assert_eq!(of_kind("agent.updated"), Vec::<u64>::new());
}

#[test]
fn a_segment_is_cut_before_it_has_to_do_with_too_many_lists() {
    let entries = chain((0..600).map(|n| format!("agent-{n}")), "");
    let draft = filled(&entries, 10_000);
    assert_eq!(draft.next(), 500, "one list of the type, and two for each agent");
    let built = draft.build(&realm()).unwrap().unwrap();
    assert_eq!(
        (built.descriptor.entries, built.lists.len()),
        (499, LISTS_MAX - 1)
    );
    assert_eq!(built.descriptor.counts["*/agent.frozen"], 499);
    assert_eq!(built.descriptor.count(Some("agent-7"), None), 1);
}

#[test]
fn a_segment_is_cut_before_it_gets_too_long_and_one_entry_always_fits() {
    let long = "x".repeat(9 << 20);
    let entries = chain((0..5).map(|_| "bot".to_owned()), &long);
    assert_eq!(filled(&entries, 10_000).next(), 4);
    let endless = "x".repeat(40 << 20);
    let entries = chain((0..2).map(|_| "bot".to_owned()), &endless);
    assert_eq!(filled(&entries, 10_000).next(), 2);
    assert_eq!(filled(&entries, 1).next(), 2);
}

#[test]
fn the_same_entries_give_the_same_bytes_and_others_are_refused() {
    let entries = chain((0..9).map(|n| format!("agent-{}", n % 2)), "é");
    let build = || {
        let draft = filled(&entries, 7);
        draft.build(&realm()).unwrap().unwrap()
    };
    let (one, other) = (build(), build());
    assert_eq!((&one.segment, &one.manifest), (&other.segment, &other.manifest));
    let opened = Segment::open(&one.descriptor, &one.segment).unwrap();
    assert_eq!(opened.from(1, 100), entries[..7]);
    assert_eq!(opened.from(6, 1), entries[5..6]);
    assert_eq!((one.descriptor.from_ms, one.descriptor.to_ms), (1000, 7000));
    let mut draft = Draft::behind(ChainHead::default(), 7);
    assert_eq!(draft.add(&entries[1]), None, "it is not the next one");
    assert!(draft.build(&realm()).unwrap().is_none());
    let manifest = Manifest::open(&one.descriptor, &one.manifest).unwrap();
    assert_eq!(manifest.segment.manifest, "");
    assert_eq!(
        one.descriptor.paths(&realm()).1,
        "segments/acct_1/live/000000000001-000000000007.json"
    );
}
