//! Tests of completeness: every type of entry is listed as causing events or not, and the documentation shows each
//! event.

use super::*;
use std::collections::BTreeSet;

/// The documentation has an example of each event, with exactly the fields that are sent.
#[test]
fn the_documentation_shows_what_is_reported() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(folder.join("../../docs/reference/webhooks.md")).unwrap();
    let mut shown = BTreeSet::new();
    let mut heading = "";
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            heading = title;
        } else if line.starts_with("{\"agentId\"") {
            let example: Map<String, Value> = serde_json::from_str(line).unwrap();
            let fields: BTreeSet<String> = example.keys().cloned().collect();
            shown.extend(heading.split(", ").map(|name| (name.to_owned(), fields.clone())));
        }
    }
    let low = "low_nanos=5 balance_nanos=4 low_owner=bot";
    let blocked = |reason: &str| spend("spend.requested", &format!(" outcome=blocked reason={reason}"));
    let none = json!({});
    let lines = [
        change("agent.run.completed", Some("bot"), &none, ""),
        change("agent.run.failed", Some("bot"), &none, ""),
        change("agent.frozen", Some("bot"), &none, ""),
        spend("spend.requested", " outcome=pending_approval"),
        change("deposit.confirmed", None, &none, ""),
        spend("spend.requested", &format!(" outcome=settled {low}")),
        "D daily_limit allow_1 5 ,,,,,, acct_1 bot run-1 vk_1 p1 m".to_owned(),
        blocked("daily_limit"),
        blocked("injection_detected"),
        change("webhook.tested", None, &none, ""),
    ];
    let documented = lines.iter().map(|line| {
        let (name, data) = only(line);
        let fields = data.as_object().unwrap().keys().cloned().collect();
        (name.to_owned(), fields)
    });
    let mut documented: BTreeSet<(String, BTreeSet<String>)> = documented.collect();
    // A coalesced event has additional fields.
    let (name, data) = only("D daily_limit allow_1 5 ,,,,,, acct_1 bot run-1 vk_1 p1 m");
    let fields = data.as_object().unwrap().keys().cloned();
    let more = ["count", "firstAt", "lastAt", "firstAuditSeq"].map(str::to_owned);
    documented.insert((name.to_owned(), fields.chain(more).collect()));
    assert_eq!(shown, documented);
}

/// All types of entries that scripts write and that cause no event.
const SILENT: &[&str] = &[
    "account.created",
    "account.plan_set",
    "agent.created",
    "agent.deleted",
    "agent.unfrozen",
    "agent.updated",
    "api_key.created",
    "api_key.revoked",
    "deposit.cancelled",
    "escrow.create",
    "escrow.dispute",
    "escrow.disputed",
    "escrow.fund",
    "escrow.refunded",
    "escrow.release",
    "escrow.released",
    "escrow.resolve",
    "hold.kept",
    "keys.rotated",
    "policy.deleted",
    "policy.set",
    "provider_key.stored",
    "spend.denied",
    "store.accepted",
    "transfer.received",
    "transfer.requested",
    "user.created",
    "user.invitation_revoked",
    "user.invited",
    "user.joined",
    "user.reset_issued",
    "virtual_key.created",
    "virtual_key.revoked",
    "wallet.opened",
    "webhook.created",
    "webhook.deleted",
    "webhook.redelivered",
    "webhook.updated",
];
/// All types of entries that can cause an event.
const WITH_EVENT: &[&str] = &[
    "agent.frozen",
    "agent.run.completed",
    "agent.run.failed",
    "deposit.confirmed",
    "deposit.requested",
    "spend.approved",
    "spend.requested",
    "webhook.tested",
];

#[test]
fn nothing_else_makes_an_event() {
    let data = json!({ "intentId": "int_1", "amountNanos": "5", "state": "confirmed" });
    for kind in SILENT {
        for words in [
            "",
            " outcome=settled",
            " outcome=blocked reason=frozen intentId=int_1",
            " outcome=blocked reason=injection_detected intentId=int_1",
        ] {
            assert_eq!(
                events(&change(kind, Some("bot"), &data, words)),
                [],
                "{kind}{words}"
            );
        }
    }
    for line in [
        spend("spend.requested", " outcome=settled"),
        spend("spend.approved", " outcome=settled"),
        spend("spend.requested", ""),
        spend("spend.requested", " outcome=blocked reason=unheard_of"),
        spend("spend.requested", " outcome=blocked"),
    ] {
        assert_eq!(events(&line), [], "{line}");
    }
    for outcome in crate::entry::HoldOutcome::ALL {
        let line = format!(
            "A {} 5 allow_1 H 5 20775 202611 1 ,,,,,, acct_1 bot run-1 vk_1 p1 m",
            outcome.as_str()
        );
        assert_eq!(events(&line), [], "{outcome:?}");
    }
    assert_eq!(from_entry(&Entry::from_line(7, b"no line")), []);
}

/// A new type of entry must be added to one of the lists: the sources of the scripts' twins contain no other type.
#[test]
fn every_type_of_entry_is_known_here() {
    let known: BTreeSet<&str> = SILENT.iter().chain(WITH_EVENT).copied().collect();
    assert_eq!(known.len(), SILENT.len() + WITH_EVENT.len(), "none twice");
    let scripts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/src");
    let mut found = BTreeSet::new();
    let mut folders = vec![scripts];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs")
                && !path.ends_with("lint.rs")
                && !path.ends_with("tests.rs")
            {
                let text = std::fs::read_to_string(path).unwrap();
                found.extend(text.split('"').filter(|word| is_type(word)).map(str::to_owned));
            }
        }
    }
    let unknown: Vec<&String> = found
        .iter()
        .filter(|word| !known.contains(word.as_str()))
        .collect();
    assert!(
        unknown.is_empty(),
        "in SILENT or WITH_EVENT, with an event or a test that there is none: {unknown:?}"
    );
    assert!(found.len() > 25, "the types were found: {found:?}");
}

/// Returns whether these are words separated by dots, and not a file name.
fn is_type(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let plain =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    parts.len() > 1 && parts.iter().all(plain) && parts.last() != Some(&"lua")
}
