//! Tests of decisions from lines in the form that scripts write.

use super::*;
use serde_json::json;

const ID: &str = "allow_01KAH3V9J80123456789ABCDEF";
const HOLD: &str = "H 750000000 20775 202611 1 0:10:,3:120:,0::0,100:10000000000:20,100::20,1:10:,8:: \
                    acct_1 bot run-1 vk_1 p1 gpt-4o mini";

fn line(seq: u64, rest: &str) -> RecordedEntry {
    let line = format!("{seq} 1795000000123 {rest}");
    RecordedEntry {
        entry: Entry::from_line(seq, line.as_bytes()),
        hash: format!("hash{seq}"),
    }
}

fn explanation(entries: &[RecordedEntry], is_open: bool) -> Value {
    serde_json::to_value(Explained::from_entries(entries, is_open).unwrap()).unwrap()
}

#[test]
fn the_record_of_a_rate_window_has_the_number_of_its_denials() {
    let window = "deny_01KAH3V9J80123456780000000";
    let rest = format!(
        r#"{{"type":"decisions.denied","agentId":"bot","actor":"vk_1","data":{{"decisionId":"{window}","approved":false,"reason":"rate_limited","outcome":"denied","keyId":"vk_1","count":27,"windowEndsAt":"2026-11-18T11:06:40.000Z"}}}}"#
    );
    let explained = explanation(&[line(7, &rest)], false);
    for (field, value) in [
        ("id", json!(window)),
        ("count", json!(27)),
        ("windowEndsAt", json!("2026-11-18T11:06:40.000Z")),
        ("resetsAt", json!("2026-11-18T11:06:40.000Z")),
        ("reason", json!("rate_limited")),
        ("outcome", json!("denied")),
        ("model", json!(null)),
        ("checks", json!([])),
    ] {
        assert_eq!(explained[field], value, "{field}");
    }
    assert_eq!(
        explained["message"],
        "27 more calls were denied in the minute of this virtual key that ends at 2026-11-18 11:06:40 UTC, behind the first 10, \
         which have a record each. This virtual key has used up its requests for this minute. Wait 60 seconds."
    );
    let open = explanation(&[line(7, &rest)], true);
    assert_eq!(
        (&open["outcome"], &open["auditSeq"]),
        (&json!("denied"), &json!(null))
    );
}

#[test]
fn a_denial_names_the_check_that_decided_with_its_numbers() {
    let rest = format!(
        "D daily_limit {ID} 750000000 0:10:,3:120:,,9500000000:10000000000:1200000000,,, acct_1 bot run-1 vk_1 p1 m"
    );
    let explained = explanation(&[line(7, &rest)], false);
    for (field, value) in [
        ("id", json!(ID)),
        ("approved", json!(false)),
        ("reason", json!("daily_limit")),
        ("outcome", json!("denied")),
        ("agentId", json!("bot")),
        ("keyId", json!("vk_1")),
        ("model", json!("m")),
        ("runId", json!("run-1")),
        ("estimateUsd", json!(0.75)),
        ("estimateNanos", json!("750000000")),
        ("actualUsd", json!(null)),
        ("chargedNanos", json!("0")),
        ("priceVersion", json!("p1")),
        ("at", json!("2026-11-18T11:06:40.123Z")),
        ("endedAt", json!(null)),
        ("resetsAt", json!("2026-11-19T00:00:00.000Z")),
        ("auditSeq", json!(7)),
    ] {
        assert_eq!(explained[field], value, "{field}");
    }
    assert_eq!(
        explained["message"],
        "The daily cap of 10.00 USD would be passed: 9.50 USD are spent today (of which 1.20 USD in calls under way), \
         this call is estimated at 0.75 USD. The day ends at 2026-11-19 00:00 UTC."
    );
    let daily = &explained["checks"][2];
    assert_eq!(
        (&daily["check"], &daily["passes"]),
        (&json!("daily_limit"), &json!(false))
    );
    assert_eq!(daily["resetsAt"], explained["resetsAt"]);
    assert_eq!(explained["checks"][0]["resetsAt"], json!(null));
}

#[test]
fn denials_without_numbers_have_a_sentence_too() {
    for denial in Denial::ALL {
        let rest = format!("D {} {ID} - ,,,,,, acct_1 bot - vk_1 - ", denial.reason());
        let explained = explanation(&[line(1, &rest)], false);
        let message = match denial {
            // The store decided: an estimate beyond any amount.
            Denial::ServiceUnavailable => "The estimate is beyond any amount that can be charged.",
            _ => denial.message(),
        };
        assert_eq!(explained["message"], json!(message), "{denial:?}");
        assert_eq!(explained["reason"], json!(denial.reason()));
        assert_eq!(explained["estimateUsd"], json!(null));
    }
    let rest = format!("D service_unavailable {ID} 9 ,,,,,, acct_1 bot r vk_1 p1 m");
    let explained = explanation(&[line(1, &rest)], false);
    assert_eq!(
        explained["message"],
        "The counters of the agent or its account cannot hold the sum."
    );
    let rest = format!("D rate_limited {ID} - 0:10:,120:120:,,,,, acct_1 bot - vk_1 - ");
    let explained = explanation(&[line(1, &rest)], false);
    assert_eq!(
        explained["message"],
        "The key has used up the 120 requests a minute that the plan allows. Its minute ends by 2026-11-18 11:07:41 UTC."
    );
    assert_eq!(explained["resetsAt"], "2026-11-18T11:07:40.123Z");
}

#[test]
fn every_end_of_an_approved_call_is_explained() {
    for (outcome, cost, part) in [
        ("settled", 610_000_000, "estimated at 0.75 USD and cost 0.61 USD"),
        ("released", 0, "nothing is charged"),
        ("estimated", 750_000_000, "0.75 USD stays charged"),
        ("kept", 750_000_000, "unless it is corrected"),
        ("corrected", 1, "corrected to 0.000000001 USD"),
        ("voided", 0, "Nothing was forwarded"),
    ] {
        let explained = explanation(&[line(8, &format!("A {outcome} {cost} {ID} {HOLD}"))], false);
        assert!(
            explained["message"].as_str().unwrap().contains(part),
            "{outcome}: {explained}"
        );
        assert_eq!(explained["outcome"], json!(outcome));
        assert_eq!(explained["chargedNanos"], json!(cost.to_string()));
        assert_eq!(explained["endedAt"], "2026-11-18T11:06:40.123Z");
        let made = made_at_ms(ID).map(iso_from_ms);
        assert_eq!(explained["at"], json!(made), "an approval is as old as its id");
        assert_eq!(
            (&explained["reason"], &explained["resetsAt"]),
            (&json!(null), &json!(null))
        );
        assert_eq!(explained["model"], "gpt-4o mini");
    }
}

#[test]
fn a_kept_call_that_was_corrected_shows_both() {
    let entries = [
        line(8, &format!("A kept 750000000 {ID} {HOLD}")),
        line(12, &format!("A corrected 5 {ID} {HOLD}")),
    ];
    let explained = explanation(&entries, false);
    assert_eq!(
        (&explained["outcome"], &explained["auditSeq"]),
        (&json!("corrected"), &json!(12))
    );
    let history: Vec<_> = explained["history"].as_array().unwrap().iter().collect();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0]["outcome"], "kept");
    assert_eq!(history[0]["chargedNanos"], "750000000");
    assert_eq!(
        (&history[1]["auditSeq"], &history[1]["hash"]),
        (&json!(12), &json!("hash12"))
    );
}

#[test]
fn a_call_under_way_is_read_from_its_hold() {
    let entry = entry_of_hold(ID, "acct_1", HOLD).unwrap().unwrap();
    let hold = RecordedEntry {
        entry,
        hash: String::new(),
    };
    let explained = explanation(&[hold], true);
    assert_eq!(
        (&explained["outcome"], &explained["approved"]),
        (&json!("open"), &json!(true))
    );
    assert_eq!(
        (&explained["chargedNanos"], &explained["actualNanos"]),
        (&json!("750000000"), &json!(null))
    );
    assert_eq!(
        (&explained["auditSeq"], &explained["endedAt"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(explained["history"], json!([]));
    assert_eq!(explained["checks"].as_array().unwrap().len(), 7);

    assert_eq!(
        entry_of_hold(ID, "acct_2", HOLD).unwrap().map(|entry| entry.id),
        None,
        "another account's"
    );
    for malformed in ["H 750 x 202611 1 , acct_1 bot - vk_1 p1 m", "H 750 x", "H"] {
        entry_of_hold(ID, "acct_1", malformed).unwrap_err();
    }
}

#[test]
fn an_approved_call_resets_with_the_day_and_month_that_it_was_charged_to() {
    // Its id was made before midnight at the end of a month, and the store decided behind it; and the other way round.
    for (decided, day, daily, monthly) in [
        (
            "2027-03-31T23:59:59.758Z",
            "2027-04-01",
            "2027-04-02",
            "2027-05-01",
        ),
        (
            "2027-06-01T00:02:00.000Z",
            "2027-05-31",
            "2027-06-01",
            "2027-06-01",
        ),
        (
            "2027-05-31T12:00:00.000Z",
            "2027-05-31",
            "2027-06-01",
            "2027-06-01",
        ),
    ] {
        let day_ms = ms_from_iso(&format!("{day}T00:00:00Z")).unwrap();
        let id = domain::id::IdKind::Allow
            .mint(ms_from_iso(decided).unwrap())
            .unwrap();
        let month = day[..7].replace('-', "");
        let rest = format!(
            "A settled 5 {id} H 9 {} {month} 0 0:10:,3:120:,,0:9:0,0:99:,, acct_1 bot - vk_1 p1 m",
            day_ms / DAY_MS
        );
        let explained = explanation(&[line(7, &rest)], false);
        assert_eq!(explained["at"], decided);
        let checks = explained["checks"].as_array().unwrap();
        let resets = |name: &str| {
            let check = checks.iter().find(|check| check["check"] == name).unwrap();
            check["resetsAt"].as_str().unwrap().to_owned()
        };
        assert_eq!(
            resets("daily_limit"),
            format!("{daily}T00:00:00.000Z"),
            "{decided}"
        );
        assert_eq!(
            resets("monthly_limit"),
            format!("{monthly}T00:00:00.000Z"),
            "{decided}"
        );
    }
}
