//! `decision show`: a call in flight, one that was kept and corrected, and a denied one, as support reads them.

use crate::cli;
use crate::holds::{agent, hold};
use harness::{Redis, assert_fields, text};
use serde_json::json;
use std::time::Duration;
use store::call::reap;

/// The value of a field in the text of the command.
fn field<'a>(shown: &'a str, name: &str) -> &'a str {
    let mut lines = shown.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix("  "));
    value.unwrap_or_default().trim()
}

#[tokio::test]
async fn a_decision_is_shown_from_its_hold_and_then_from_its_records() {
    let redis = Redis::start();
    let store = redis.store();
    let bot = agent(&store).await;
    let id = hold(&bot, Duration::from_secs(100)).await;
    let show = |more: &[&str]| cli(&redis).run(&[&["decision", "show", "--id", &id][..], more].concat());
    // Another account is searched first or not at all.
    agent(&store).await;

    let open = show(&[]);
    assert_eq!(open.code, Some(0), "{open:?}");
    let explained = "Approved and under way: its estimate of 2.00 USD is charged until it ends.";
    assert!(open.stdout.starts_with(explained), "{open:?}");
    for (name, value) in [
        ("decision", &*id),
        ("account", &format!("{} (live)", bot.account.id)),
        ("outcome", "open"),
        ("agent", "bot"),
        ("model", "gpt-4o-mini"),
        ("estimate USD", "2"),
        ("charged USD", "2"),
        ("real cost USD", ""),
        ("ended", ""),
        (
            "record",
            "none yet: its call, or the minute that counts it, has not ended",
        ),
    ] {
        assert_eq!(field(&open.stdout, name), value, "{name}: {}", open.stdout);
    }
    assert!(
        open.stdout.contains("\nrate_limited "),
        "the checks: {}",
        open.stdout
    );

    bot.pass_deadlines().await;
    let kept = reap::sweep(&store, bot.account.keys.bucket(), clock::now_ms()).await;
    assert_eq!(kept.unwrap().len(), 1);
    assert_eq!(field(&show(&[]).stdout, "outcome"), "kept");
    cli(&redis).json(&["holds", "settle", "--id", &id, "--actual", "0.5"]);
    let corrected = show(&["--account", &bot.account.id]).stdout;
    for (name, value) in [
        ("outcome", "corrected"),
        ("estimate USD", "2"),
        ("charged USD", "0.5"),
        ("real cost USD", "0.5"),
    ] {
        assert_eq!(field(&corrected, name), value, "{name}: {corrected}");
    }
    assert!(field(&corrected, "record").ends_with("of the audit trail, in the store"));
    let steps = corrected.rsplit("\n\n").next().unwrap_or_default();
    assert!(steps.starts_with("ENTRY") && steps.contains("kept"), "{steps}");

    let document = cli(&redis).json(&["decision", "show", "--id", &id]);
    assert_fields!(document, { "accountId": bot.account.id, "mode": "live", "record": "store" });
    assert_fields!(document["decision"], {
        "id": id, "outcome": "corrected", "chargedNanos": "500000000", "estimateNanos": "2000000000",
    });
    assert_eq!(document["decision"]["history"].as_array().map(Vec::len), Some(2));

    let test_mode = show(&["--mode", "test"]);
    assert_eq!(test_mode.code, Some(1));
    let message = format!("there is no decision {id} in test mode");
    assert!(test_mode.stderr.contains(&message), "{test_mode:?}");
    let refused = cli(&redis).run(&["decision", "show", "--id", "req_1", "--json"]);
    let refused: serde_json::Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(refused["ok"], json!(false));
    assert!(
        text(&refused, "/error").contains("must be the id of a decision"),
        "{refused}"
    );
}
