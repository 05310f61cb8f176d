//! Tests of entries from lines in the form that scripts write. Pinned results were hashed in existing trails and never
//! change.

use super::*;
use crate::call_record::CallRecord;
use crate::chain::{GENESIS, entry_hash};

const DENIED: &[u8] = b"7 1795000000123 D daily_limit allow_01KAH3V9J80123456789ABCDEF 750000000 \
    0:10:,3:120:,,9500000000:10000000000:1200000000,9500000000::,0:10:,7:: acct_1 bot run-1 vk_1 p1 gpt-4o mini";
const ENDED: &[u8] = b"8 1795000000456 A settled 123 allow_01KAH3V9J80123456789ABCDEG H 200 20775 202611 1 \
    0:10:,3::,5:100:,6::4,7::,1:10:,8:5000: acct_1 bot run-1 vk_1 p1 m";
const MEASURED: &[u8] = b"10 1795000000456 v2 A settled 123 allow_01KAH3V9J80123456789ABCDEG \
    chat.completions,0,,9,4,12,812,,completed,0 H 200 20775 202611 1 0:10:,3::,5:100:,6::4,7::,1:10:,8:5000: \
    acct_1 bot run-1 vk_1 p1 m";
const CHANGE: &[u8] = br#"9 1795000000789 {"type":"spend.requested","agentId":"bot","actor":"key_1","data":{"amountNanos":"5","intentId":"int_1"}} outcome=blocked reason=daily_limit intentId=int_2 low_nanos=1500000000 low_owner=bot"#;

fn sealed(seq: u64, line: &[u8]) -> String {
    Entry::from_line(seq, line).seal(GENESIS).unwrap().json
}

#[test]
fn a_denied_call_is_reported_in_full() {
    assert_eq!(
        sealed(7, DENIED),
        r#"{"actor":"vk_1","agentId":"bot","at":"2026-11-18T11:06:40.123Z","data":{"actualNanos":null,"actualUsd":null,"approved":false,"chargedNanos":"0","chargedUsd":0,"checks":[{"check":"plan_key_limit","held":null,"limit":10,"passes":true,"spent":0},{"check":"rate_limited","held":null,"limit":120,"passes":true,"spent":3},{"check":"daily_limit","held":1.2,"heldNanos":"1200000000","limit":10,"limitNanos":"10000000000","passes":false,"spent":9.5,"spentNanos":"9500000000"}],"estimateNanos":"750000000","estimateUsd":0.75,"keyId":"vk_1","model":"gpt-4o mini","outcome":"denied","priceVersion":"p1","reason":"daily_limit","runId":"run-1"},"id":"allow_01KAH3V9J80123456789ABCDEF","previousHash":"genesis","seq":7,"type":"decision.denied","hash":"152887c3e9ffc22dbfec510c58cf9d833deba7511bd74558545dc777dccbbc9f"}"#
    );
}

#[test]
fn an_ended_call_has_its_cost() {
    let entry = Entry::from_line(8, ENDED);
    assert_eq!(entry.kind, "decision.approved");
    assert_eq!(entry.id, "allow_01KAH3V9J80123456789ABCDEG");
    for (field, value) in [
        ("approved", json!(true)),
        ("outcome", json!("settled")),
        ("estimateNanos", json!("200")),
        ("chargedUsd", json!(1.23e-7)),
        ("actualNanos", json!("123")),
        ("day", json!(20_775)),
        ("month", json!(202_611)),
    ] {
        assert_eq!(entry.data[field], value, "{field}");
    }
    let checks = entry.data["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 7);
    assert!(checks.iter().all(|check| check["passes"] == json!(true)));
    assert_eq!(checks[1]["limit"], Value::Null, "no limit");
    assert_eq!(checks[2]["heldNanos"], Value::Null, "of a run nothing is said");
    assert_eq!(checks[3]["heldNanos"], json!("4"));
    assert_eq!(checks[4]["heldNanos"], json!("4"), "said with the day");
    for (outcome, actual) in [
        ("released", json!("123")),
        ("estimated", Value::Null),
        ("kept", Value::Null),
        ("corrected", json!("123")),
        ("voided", json!("123")),
        ("unsent", json!("123")),
    ] {
        let line = String::from_utf8(ENDED.to_vec())
            .unwrap()
            .replace("settled", outcome);
        let entry = Entry::from_line(8, line.as_bytes());
        assert_eq!(entry.data["actualNanos"], actual, "{outcome}");
        assert_eq!(entry.kind == "decision.voided", outcome == "voided");
        let reason = (outcome == "unsent").then_some("service_unavailable");
        assert_eq!(entry.data["reason"], json!(reason), "{outcome}");
        assert_eq!(entry.data["approved"], json!(reason.is_none()), "{outcome}");
        assert_eq!(entry.kind == "decision.denied", outcome == "unsent");
        let prefix = if outcome == "unsent" { "deny" } else { "allow" };
        assert_eq!(
            entry.id,
            format!("{prefix}_01KAH3V9J80123456789ABCDEG"),
            "{outcome}"
        );
    }
}

/// Earlier entries were hashed without this object, so only entries of measured calls have it.
#[test]
fn measurements_of_a_call_are_an_object_of_its_entry() {
    assert_eq!(
        sealed(10, MEASURED),
        r#"{"actor":"vk_1","agentId":"bot","at":"2026-11-18T11:06:40.456Z","data":{"actualNanos":"123","actualUsd":1.23e-7,"approved":true,"call":{"cachedTokens":4,"end":"completed","endpoint":"chat.completions","extensions":0,"firstByteMs":null,"inputTokens":9,"latencyMs":812,"outputTokens":12,"stream":false,"upstream":null},"chargedNanos":"123","chargedUsd":1.23e-7,"checks":[{"check":"plan_key_limit","held":null,"limit":10,"passes":true,"spent":0},{"check":"rate_limited","held":null,"limit":null,"passes":true,"spent":3},{"check":"per_run_limit","held":null,"heldNanos":null,"limit":1e-7,"limitNanos":"100","passes":true,"spent":5e-9,"spentNanos":"5"},{"check":"daily_limit","held":4e-9,"heldNanos":"4","limit":null,"limitNanos":null,"passes":true,"spent":6e-9,"spentNanos":"6"},{"check":"monthly_limit","held":4e-9,"heldNanos":"4","limit":null,"limitNanos":null,"passes":true,"spent":7e-9,"spentNanos":"7"},{"check":"plan_agent_limit","held":null,"limit":10,"passes":true,"spent":1},{"check":"plan_limit","held":null,"heldNanos":null,"limit":0.000005,"limitNanos":"5000","passes":true,"spent":8e-9,"spentNanos":"8"}],"day":20775,"estimateNanos":"200","estimateUsd":2e-7,"keyId":"vk_1","model":"m","month":202611,"outcome":"settled","priceVersion":"p1","reason":null,"runId":"run-1"},"id":"allow_01KAH3V9J80123456789ABCDEG","previousHash":"genesis","seq":10,"type":"decision.approved","hash":"05709d077a5185654754f3ced6b3d7e69c8567792afe713340a91281008cf867"}"#
    );
    let text = String::from_utf8(MEASURED.to_vec()).unwrap();
    let word = "chat.completions,0,,9,4,12,812,,completed,0 ";
    assert!(!Entry::from_line(8, ENDED).data.contains_key("call"));
    for (line, is_readable) in [
        (text.clone(), true),
        (text.replacen(word, "", 1), true),
        (text.replacen("v2 ", "", 1), false),
        (text.replacen("v2 ", "v1 ", 1), false),
        (text.replacen(word, &word.repeat(2), 1), false),
        (text.replacen("completed", "perfect", 1), false),
        (text.replacen(word, " ", 1), false),
    ] {
        let entry = Entry::from_line(10, line.as_bytes());
        assert_eq!(entry.kind != UNREADABLE, is_readable, "{line}");
    }
}

/// Lines of an earlier version were hashed without these details, so only words that have some show them.
#[test]
fn details_of_a_charge_are_in_lines_of_the_fourth_version() {
    let plain = String::from_utf8(MEASURED.to_vec()).unwrap();
    let line = |version: &str, ended_by: &str, details: &str| {
        let id = "allow_01KAH3V9J80123456789ABCDEG ";
        let line = plain.replacen("v2 ", version, 1);
        let line = line.replacen(id, &format!("{id}{ended_by}"), 1);
        line.replacen("completed,0", &format!("completed,0{details}"), 1)
    };
    let entry = |version: &str, ended_by: &str, details: &str| {
        Entry::from_line(10, line(version, ended_by, details).as_bytes())
    };
    assert_eq!(
        entry("v4 ", "", ""),
        Entry::from_line(10, MEASURED),
        "it is the same"
    );
    for (version, ended_by) in [
        ("", ""),
        ("v1 ", ""),
        ("v2 ", ""),
        ("v3 ", ""),
        ("v3 ", "operator "),
    ] {
        assert_eq!(
            entry(version, ended_by, ",tier=flex").kind,
            UNREADABLE,
            "{version}"
        );
    }
    assert_eq!(entry("v4 ", "", ",flex").kind, UNREADABLE);
    let tier = entry("v4 ", "", ",tier=flex,reasoning=3");
    assert_eq!(
        tier.data["call"]["billing"],
        json!({"reasoningTokens": 3, "tierReported": "flex"})
    );
    let both = entry("v4 ", "operator ", ",tier=flex,reasoning=3");
    assert_eq!((both.actor.as_str(), &both.data), ("operator", &tier.data));
    assert_eq!(
        CallRecord::from_entry(&tier)
            .unwrap()
            .measures
            .billing
            .reasoning_tokens,
        3
    );
    let sealed = sealed(10, line("v4 ", "", ",tier=flex,reasoning=3").as_bytes());
    assert!(sealed.contains(
        r#""call":{"billing":{"reasoningTokens":3,"tierReported":"flex"},"cachedTokens":4,"end":"completed","#
    ));
    let hash = "bae60bc648454bc0bd269e0ea2a7a87eaaab10c7c6fdb1b192be12230d60e744";
    assert!(sealed.ends_with(&format!("\"hash\":\"{hash}\"}}")), "{sealed}");
}

/// A hold that another than its edge ended names that one as the actor; the key stays in the details. Lines of an
/// earlier version were hashed with the key as the actor.
#[test]
fn the_process_that_ended_a_hold_for_its_edge_is_the_actor() {
    let plain = String::from_utf8(ENDED.to_vec()).unwrap();
    let id = "allow_01KAH3V9J80123456789ABCDEG ";
    let marked = |version: &str, word: &str| {
        let line = plain.replacen("A settled", &format!("{version}A corrected"), 1);
        Entry::from_line(8, line.replacen(id, &format!("{id}{word}"), 1).as_bytes())
    };
    for (word, actor, reason) in [
        ("worker ", "worker", None),
        ("operator ", "operator", None),
        ("operator:invoice%2017 ", "operator", Some("invoice 17")),
        ("", "vk_1", None),
    ] {
        let entry = marked("v3 ", word);
        assert_eq!(
            (entry.kind.as_str(), entry.actor.as_str()),
            ("decision.approved", actor),
            "{word}"
        );
        assert_eq!(entry.data["keyId"], "vk_1");
        assert_eq!(
            entry.data.get("operatorReason").and_then(Value::as_str),
            reason,
            "{word}"
        );
        let mut without = entry.clone();
        without.data.remove("operatorReason");
        without.actor = "vk_1".to_owned();
        assert_eq!(without, marked("", ""), "everything else is as it was");
        assert_eq!(marked("v2 ", word).kind == UNREADABLE, !word.is_empty(), "{word}");
    }
    assert_eq!(marked("v3 ", "somebody ").kind, UNREADABLE);
    let both = "operator chat.completions,0,,9,4,12,812,,completed,0 ";
    assert!(marked("v3 ", both).data.contains_key("call"));
    let kept = sealed(
        8,
        b"8 1795000000456 v3 A kept 200 allow_01KAH3V9J80123456789ABCDEG worker H 200 20775 202611 1 ,,,,,, \
        acct_1 bot run-1 vk_1 p1 m",
    );
    let hash = "5ce1164582507a4d2132b8ec4314076a32c5fb26c477b6d473726f991f520a00";
    assert!(kept.ends_with(&format!("\"hash\":\"{hash}\"}}")), "{kept}");
}

/// The line says everything that stood there; the entry shows what was looked at.
#[test]
fn a_denial_shows_the_checks_up_to_the_one_that_decided() {
    const LINE: &str = "7 5 D daily_limit allow_1 1 0:1:,1:2:,2::,3:4:5,6:7:,8:9:,10:11: a b c d e f";
    for (reason, shown) in [
        ("plan_key_limit", 1),
        ("rate_limited", 2),
        ("no_provider_key", 0),
        ("frozen", 2),
        ("cap_disabled", 2),
        ("per_run_limit", 3),
        ("daily_limit", 4),
        ("monthly_limit", 5),
        ("plan_agent_limit", 6),
        ("plan_limit", 7),
    ] {
        let line = LINE.replace("daily_limit", reason);
        let entry = Entry::from_line(7, line.as_bytes());
        let checks = entry.data["checks"].as_array().unwrap();
        assert_eq!(checks.len(), shown, "{reason}");
        let failed = checks.iter().filter(|check| check["passes"] == json!(false));
        let decided = checks.last().is_some_and(|check| check["check"] == json!(reason));
        assert_eq!(failed.count(), usize::from(decided), "{reason}");
    }
}

#[test]
fn the_words_of_the_script_join_what_its_twin_said() {
    let entry = Entry::from_line(9, CHANGE);
    assert_eq!(
        (entry.kind.as_str(), entry.actor.as_str()),
        ("spend.requested", "key_1")
    );
    assert!(entry.id.starts_with("aud_"));
    assert_eq!(
        Value::Object(entry.data),
        json!({ "amountNanos": "5", "intentId": "int_2", "outcome": "blocked", "reason": "daily_limit",
            "lowNanos": "1500000000", "lowUsd": 1.5, "lowOwner": "bot" })
    );
}

#[test]
fn the_hash_is_the_documented_one_and_the_json_is_read_back() {
    for (seq, line) in [(7, DENIED), (8, ENDED), (9, CHANGE), (10, MEASURED)] {
        let entry = Entry::from_line(seq, line);
        let sealed = entry.seal("00ff").unwrap();
        let mut value: Map<String, Value> = serde_json::from_str(&sealed.json).unwrap();
        let hash = value.remove("hash").unwrap();
        assert_eq!(
            Some(hash.as_str().unwrap().to_owned()),
            entry_hash("00ff", &value)
        );
        assert_eq!(value["previousHash"], json!("00ff"));
        let again = Entry::from_json(&sealed.json).unwrap();
        assert_eq!(again.seal("00ff"), Some(sealed));
        assert_eq!(
            (again.seq, again.at_ms, again.id),
            (entry.seq, entry.at_ms, entry.id)
        );
    }
}

/// A line of a later release yields no entry here, and is distinguished from a damaged one.
#[test]
fn a_line_says_its_version() {
    const REST: &str = "D frozen allow_1 1 ,,,,,, a b c d e f";
    let entry = |version: &str| Entry::from_line(7, format!("7 5 {version}{REST}").as_bytes());
    assert_eq!(entry(""), entry("v1 "), "without one it is the first");
    let next = format!("v{} ", LINE_VERSION + 1);
    assert_eq!(entry(&next).kind, UNREADABLE);
    for (line, is_later) in [
        (format!("7 5 {REST}"), false),
        (format!("7 5 v{LINE_VERSION} {REST}"), false),
        (format!("7 5 {next}{REST}"), true),
        (format!("7 5 {next}{{\"type\":\"a\"}}"), true),
        (format!("7 5 v{} x", u64::MAX), true),
        ("7 5 v x".to_owned(), false),
        ("7 5 vx x".to_owned(), false),
        ("7 5 v9".to_owned(), false),
        ("v2 5 x".to_owned(), false),
        (String::new(), false),
    ] {
        assert_eq!(is_of_later_release(line.as_bytes()), is_later, "{line}");
    }
    assert!(!is_of_later_release(b"7 5 v9 \xff"));
}

#[test]
fn no_line_stops_the_chain() {
    for line in [
        &b""[..],
        b"7",
        b"7 x {}",
        b"7 5 {\"type\":\"a\"}",
        b"7 5 {\"type\":\"a\",\"actor\":\"b\",\"data\":{}} word",
        b"7 5 X y",
        b"7 5 D no_such_reason allow_1 1 ,,,,,, a b c d e f",
        b"7 5 D frozen allow_1 1 ,,,,, a b c d e f",
        b"7 5 A settled x allow_1 H 1 2 3 1 ,,,,,, a b c d e f",
        b"8 5 D frozen allow_1 1 ,,,,,, a b c d e f",
        b"\xff\xfe",
    ] {
        let entry = Entry::from_line(7, line);
        assert_eq!(entry.kind, UNREADABLE, "{:?}", String::from_utf8_lossy(line));
        assert!(entry.seal(GENESIS).is_some());
    }
    let fine = b"7 5 D frozen allow_1 1 ,,,,,, a b c d e f";
    assert_eq!(Entry::from_line(7, fine).kind, "decision.denied");
    let before_cap = b"7 5 D rate_limited allow_1 - ,1:2:,,,,, a b - d - ";
    let entry = Entry::from_line(7, before_cap);
    assert_eq!(entry.id, "deny_1");
    assert_eq!(
        (&entry.data["runId"], &entry.data["model"]),
        (&Value::Null, &Value::Null)
    );
    let in_a_run_called_none = b"7 5 D frozen allow_1 1 ,,,,,, a b % d - f";
    assert_eq!(Entry::from_line(7, in_a_run_called_none).data["runId"], "-");
}

#[test]
fn an_entry_stands_in_the_indexes_of_agent_and_type() {
    let indexes: Vec<_> = Entry::from_line(7, DENIED)
        .indexes()
        .map(|(agent, kind)| (agent.map(str::to_owned), kind.map(str::to_owned)))
        .collect();
    let (bot, kind) = (Some("bot".to_owned()), Some("decision.denied".to_owned()));
    assert_eq!(indexes, [(None, kind.clone()), (bot.clone(), None), (bot, kind)]);
}
