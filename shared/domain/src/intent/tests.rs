//! Tests that the texts are distinct, and that hashed timelines verify.

use super::*;
use serde_json::{Value, json};
use std::collections::HashSet;

#[test]
fn words_are_distinct_and_read_back() {
    let words: HashSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(words.len(), Reason::ALL.len());
    for reason in Reason::ALL {
        assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(
            reason.as_str().chars().all(plain),
            "a word of the heads: {reason:?}"
        );
    }
    assert_eq!(IntentState::parse("settled"), Some(IntentState::Settled));
    assert_eq!(IntentKind::parse("refund"), None);
}

#[test]
fn a_timeline_can_be_verified_by_anyone() {
    let amount = Nanos::new(100_000_000).unwrap();
    let event = |kind, reasoning: &str| TimelineEvent {
        at_ms: 1_795_214_203_120,
        kind,
        reasoning: reasoning.to_owned(),
        amount,
    };
    let chained = timeline(&[
        event(EventType::SpendRequested, "A book"),
        event(EventType::SpendBlocked, Reason::DailyLimit.sentence()),
    ]);
    let mut previous = GENESIS.to_owned();
    for entry in &chained {
        let mut shown: Value = serde_json::from_str(&serde_json::to_string(entry).unwrap()).unwrap();
        let hash = shown.as_object_mut().unwrap().remove("entry_hash").unwrap();
        assert_eq!(shown["previous_entry_hash"], json!(previous));
        assert_eq!(
            Some(hash.as_str().unwrap().to_owned()),
            entry_hash(&previous, &shown)
        );
        previous = entry.hash().to_owned();
    }
    // Pinned: exports that were handed out must verify forever.
    assert_eq!(
        chained.iter().map(TimelineEntry::hash).collect::<Vec<_>>(),
        [
            "e8f07202d8da0ac91e443c5185bd64052b3b75e6c5511b245a7f2c309ef6a7d2",
            "d737879659481e0acbd17eca1665f7de9d77f3cbf257fd6b6cb445e14322194f",
        ]
    );
}

/// Sorting the keys of an export and keeping its numbers unchanged yields the canonical form.
#[test]
fn an_amount_is_shown_as_it_is_hashed() {
    for (nanos, text) in [
        (10_000_000_000, "10"),
        (9_000_000_000_000_000, "9000000"),
        (12_500_000_000, "12.5"),
        (1_000, "0.000001"),
        (9_999, "0.000009999"),
        (1, "1e-9"),
        (0, "0"),
    ] {
        let event = TimelineEvent {
            at_ms: 1_795_214_203_120,
            kind: EventType::SpendRequested,
            reasoning: String::new(),
            amount: Nanos::new(nanos).unwrap(),
        };
        let shown = serde_json::to_string(&timeline(&[event])).unwrap();
        assert!(
            shown.contains(&format!(r#""amount":{text},"amountNanos":"{nanos}""#)),
            "{shown}"
        );
    }
}
