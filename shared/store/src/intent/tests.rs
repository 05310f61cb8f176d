//! Tests that records are read back as they were written, and that a changed record is detected.

use super::*;

const REASONS: &[Reason] = &[Reason::DailyLimit, Reason::InsufficientBalance];

fn new() -> NewIntent<'static> {
    NewIntent {
        kind: IntentKind::Spend,
        fingerprint: "f00",
        amount: Nanos::from_stored(120),
        currency: "USD",
        actor: "key_1",
        agent: "bot",
        at_ms: 1_795_214_203_120,
        note: Some("A book"),
        request: "{}",
        transaction: Some("txn_1"),
        escrow: None,
    }
}

/// Returns the record as the script would have written it.
fn stored(state: &str, reason: &str, heads: &str) -> HashMap<String, String> {
    let word = if reason.is_empty() { state } else { reason };
    let head = heads
        .split(' ')
        .find_map(|head| head.strip_prefix(&format!("{word}=")));
    let own = [
        ("id", "int_1"),
        ("state", state),
        ("first", state),
        ("reason", reason),
        ("seq", "1"),
    ];
    let mut fields: HashMap<String, String> = own
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    fields.insert("head".to_owned(), head.unwrap().to_owned());
    fields.extend(
        new()
            .fields()
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair[1].clone())),
    );
    fields
}

#[test]
fn each_outcome_has_the_head_of_its_timeline() {
    let heads = new().heads(true, REASONS);
    for (state, reason) in [
        ("settled", ""),
        ("pending_approval", ""),
        ("blocked", "daily_limit"),
        ("blocked", "insufficient_balance"),
    ] {
        let record = IntentRecord::from_fields(&stored(state, reason, &heads)).unwrap();
        assert!(record.is_intact(), "{state} {reason}");
        assert_eq!(record.timeline().len(), 2);
        assert_eq!(record.allowed_by(), (state == "settled").then_some("key_1"));
    }
}

#[test]
fn a_record_that_was_changed_shows() {
    let heads = new().heads(true, REASONS);
    let whole = stored("blocked", "daily_limit", &heads);
    for (field, value) in [
        ("amount", "121"),
        ("reason", "insufficient_balance"),
        ("note", "Two books"),
        ("at", "1795214203121"),
        ("head", "00"),
    ] {
        let mut changed = whole.clone();
        changed.insert(field.to_owned(), value.to_owned());
        assert!(
            !IntentRecord::from_fields(&changed).unwrap().is_intact(),
            "{field}"
        );
    }
}

#[test]
fn a_decision_continues_the_timeline() {
    let pending = stored("pending_approval", "", &new().heads(true, REASONS));
    let record = IntentRecord::from_fields(&pending).unwrap();
    for (granted, state, reason, events) in [
        (true, "settled", "", 4),
        (true, "blocked", "daily_limit", 4),
        (false, "blocked", "approval_denied", 3),
    ] {
        let decision = ApproverDecision {
            granted,
            by: "key_2".to_owned(),
            at_ms: 1_795_214_999_000,
        };
        let heads = record.heads_of(&decision, &[Reason::DailyLimit, Reason::ApprovalDenied]);
        let word = if reason.is_empty() { state } else { reason };
        let head = heads
            .split(' ')
            .find_map(|head| head.strip_prefix(&format!("{word}=")));
        let mut after = pending.clone();
        let word = if granted { "granted" } else { "denied" };
        for (field, value) in [
            ("state", state),
            ("reason", reason),
            ("head", head.unwrap()),
            ("decision", word),
            ("decided_by", "key_2"),
            ("decided_at", "1795214999000"),
        ] {
            after.insert(field.to_owned(), value.to_owned());
        }
        let after = IntentRecord::from_fields(&after).unwrap();
        assert!(after.is_intact(), "{state} {reason}");
        assert_eq!(after.timeline().len(), events);
        assert_eq!(
            after.timeline()[..2],
            record.timeline()[..],
            "what was exported stays true"
        );
        assert_eq!(after.allowed_by(), (state == "settled").then_some("key_2"));
        assert_eq!(after.updated_at_ms(), 1_795_214_999_000);
    }
}
