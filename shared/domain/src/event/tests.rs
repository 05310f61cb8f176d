//! Tests of events from lines in the form that scripts write: one of each kind, and none from any other line.

mod complete;

use super::*;
use serde_json::json;

/// Returns the events of a line at position 7.
fn events(rest: &str) -> Vec<Event> {
    let entry = Entry::from_line(7, format!("7 1795000000123 {rest}").as_bytes());
    assert_ne!(entry.kind, crate::entry::UNREADABLE, "{rest}");
    let events = from_entry(&entry);
    let sealed = entry.seal("genesis").unwrap();
    let again = Entry::from_json(&sealed.json).unwrap();
    assert_eq!(from_entry(&again), events, "the same from the sealed form");
    events
}

/// Returns the only event of a line: its name and fields.
#[track_caller]
fn only(rest: &str) -> (&'static str, Value) {
    let events = events(rest);
    let [event] = events.as_slice() else {
        panic!("{rest}: {events:?}")
    };
    assert_eq!(event.data["agentId"], json!(event.agent));
    (event.name.as_str(), Value::Object(event.data.clone()))
}

fn change(kind: &str, agent: Option<&str>, data: &Value, words: &str) -> String {
    let entry = json!({ "type": kind, "agentId": agent, "actor": "key_1", "data": data });
    format!("{entry}{words}")
}

/// Returns the JSON of a spend's twin, as `store::spend` composes it.
fn spend(kind: &str, words: &str) -> String {
    let data = json!({ "intentId": "int_1", "amount": 12.5, "amountNanos": "12500000000", "currency": "USD",
        "recipient": "Books Ltd", "description": "A book", "runId": "run-1" });
    change(kind, Some("bot"), &data, words)
}

#[test]
fn names_are_those_of_the_specification() {
    let names: Vec<&str> = EventName::ALL.iter().map(|name| name.as_str()).collect();
    let expected = [
        "agent.run.completed",
        "agent.run.failed",
        "agent.frozen",
        "agent.approval_required",
        "wallet.deposit",
        "wallet.low_balance",
        "policy.violation",
        "audit.injection_detected",
    ];
    assert_eq!(names, expected);
    for name in EventName::ALL {
        assert_eq!(EventName::parse(name.as_str()), Some(*name));
    }
    assert_eq!(EventName::parse("webhook.test"), None, "nobody subscribes to it");
    assert_eq!(EventName::parse("agent.FROZEN"), None);
}

#[test]
fn a_run_that_ended() {
    for (kind, status) in [
        ("agent.run.completed", "completed"),
        ("agent.run.failed", "failed"),
    ] {
        let data = json!({ "runId": "run-1", "status": status });
        let line = change(
            kind,
            Some("bot"),
            &data,
            " calls=12 denied=3 spent_nanos=1500000001",
        );
        let expected = json!({ "agentId": "bot", "auditSeq": 7, "runId": "run-1", "status": status, "calls": 12,
            "denied": 3, "spentUsd": 1.500_000_001, "spentNanos": "1500000001" });
        assert_eq!(only(&line), (kind, expected));
    }
}

#[test]
fn a_frozen_agent() {
    let line = change("agent.frozen", Some("bot"), &json!({ "authority": "user" }), "");
    let expected = json!({ "agentId": "bot", "auditSeq": 7, "by": "key_1", "at": "2026-11-18T11:06:40.123Z",
        "authority": "user" });
    assert_eq!(only(&line), ("agent.frozen", expected));
}

#[test]
fn a_spend_that_waits() {
    let expected = json!({ "agentId": "bot", "auditSeq": 7, "intentId": "int_1", "amount": 12.5,
        "amountNanos": "12500000000", "currency": "USD", "recipient": "Books Ltd", "description": "A book",
        "runId": "run-1" });
    let line = spend("spend.requested", " outcome=pending_approval");
    assert_eq!(only(&line), ("agent.approval_required", expected));
}

#[test]
fn a_deposit_that_came_in() {
    let data = |state: Option<&str>| {
        let mut data = json!({ "walletId": 17, "owner": "user", "transactionId": "txn_1", "reference": "bank-4711",
            "amountNanos": "100000000000", "amount": 100, "currency": "USD" });
        if let Some(state) = state {
            data["state"] = state.into();
        }
        data
    };
    let expected = json!({ "agentId": null, "auditSeq": 7, "walletId": 17, "owner": "user", "transactionId": "txn_1",
        "reference": "bank-4711", "currency": "USD", "amount": 100, "amountNanos": "100000000000",
        "balance": 150.5, "balanceNanos": "150500000000" });
    for (kind, state, words) in [
        (
            "deposit.requested",
            Some("confirmed"),
            " outcome=settled balance_nanos=150500000000",
        ),
        ("deposit.confirmed", None, " balance_nanos=150500000000"),
    ] {
        let line = change(kind, None, &data(state), words);
        assert_eq!(only(&line), ("wallet.deposit", expected.clone()), "{kind}");
    }
    for (state, words) in [
        ("pending", " outcome=settled"),
        ("pending", " outcome=blocked reason=wallet_closed"),
        ("confirmed", " outcome=blocked reason=wallet_closed"),
    ] {
        let line = change("deposit.requested", None, &data(Some(state)), words);
        assert_eq!(events(&line), [], "{line}");
    }
}

#[test]
fn a_wallet_that_fell_below_its_threshold() {
    let low = " outcome=settled low_nanos=50000000000 balance_nanos=49999999999 low_owner=";
    let transfer = json!({ "from": 17, "to": 18, "amount": 5, "amountNanos": "5000000000" });
    for (kind, owner, line) in [
        (
            "spend.requested",
            "bot",
            spend("spend.requested", &format!("{low}bot")),
        ),
        (
            "spend.approved",
            "bot",
            spend("spend.approved", &format!("{low}bot")),
        ),
        (
            "transfer.requested",
            "user",
            change("transfer.requested", None, &transfer, &format!("{low}user")),
        ),
        (
            "escrow.fund",
            "bot",
            change("escrow.fund", Some("bot"), &transfer, &format!("{low}bot")),
        ),
    ] {
        let agent = Some(owner).filter(|owner| *owner != "user");
        let expected = json!({ "agentId": agent, "auditSeq": 7, "owner": owner, "balance": 49.999_999_999,
            "balanceNanos": "49999999999", "threshold": 50, "thresholdNanos": "50000000000", "cause": kind });
        assert_eq!(only(&line), ("wallet.low_balance", expected));
    }
}

#[test]
fn a_call_that_cap_denied() {
    let call = |reason: &str, checks: &str| {
        format!(
            "D {reason} allow_01KAH3V9J80123456789ABCDEF 750000000 {checks} acct_1 bot run-1 vk_1 p1 gpt-4o mini"
        )
    };
    let (name, data) = only(&call(
        "daily_limit",
        "0:10:,3:120:,,9500000000:10000000000:1200000000,,,",
    ));
    let expected = json!({ "agentId": "bot", "auditSeq": 7, "source": "call",
        "decisionId": "allow_01KAH3V9J80123456789ABCDEF", "reason": "daily_limit",
        "message": Denial::DailyLimit.message(), "keyId": "vk_1", "model": "gpt-4o mini", "runId": "run-1",
        "estimateUsd": 0.75, "estimateNanos": "750000000", "limit": 10, "limitNanos": "10000000000", "spent": 9.5,
        "spentNanos": "9500000000", "held": 1.2, "heldNanos": "1200000000" });
    assert_eq!((name, data), ("policy.violation", expected));
    let agents = only(&call("plan_agent_limit", ",,,,,10:10:,")).1;
    assert_eq!(
        (&agents["limit"], &agents["limitNanos"], &agents["spent"]),
        (&json!(10), &Value::Null, &json!(10))
    );
    for denial in Denial::ALL {
        let events = events(&call(denial.reason(), ",,,,,,"));
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let expected: &[&str] = match denial.stage() {
            DenialStage::BeforeCap => &[],
            DenialStage::Cap | DenialStage::Plan => &["policy.violation"],
        };
        assert_eq!(names, expected, "{denial:?}");
    }
}

#[test]
fn a_spend_that_a_policy_blocked() {
    let words =
        " outcome=blocked reason=daily_limit intentId=int_2 limit_nanos=50000000000 spent_nanos=40000000000";
    let expected = json!({ "agentId": "bot", "auditSeq": 7, "intentId": "int_2", "amount": 12.5,
        "amountNanos": "12500000000", "currency": "USD", "runId": "run-1", "reason": "daily_limit",
        "message": Reason::DailyLimit.sentence(), "source": "spend", "recipient": "Books Ltd", "limit": 50,
        "limitNanos": "50000000000", "spent": 40, "spentNanos": "40000000000" });
    for kind in ["spend.requested", "spend.approved"] {
        assert_eq!(only(&spend(kind, words)), ("policy.violation", expected.clone()));
    }
    let words = " outcome=blocked reason=plan_agent_limit intentId=int_1 limit_agents=10 spent_agents=11";
    let data = only(&spend("spend.requested", words)).1;
    assert_eq!((&data["limit"], &data["spent"]), (&json!(10), &json!(11)));
    for reason in Reason::ALL {
        let words = format!(" outcome=blocked reason={} intentId=int_1", reason.as_str());
        let events = events(&spend("spend.requested", &words));
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let expected: &[&str] = match reason {
            Reason::InjectionDetected => &["audit.injection_detected"],
            reason if reason.is_violation() => &["policy.violation"],
            _ => &[],
        };
        assert_eq!(names, expected, "{reason:?}");
    }
}

#[test]
fn a_text_that_instructs_the_agent() {
    let data = json!({ "intentId": "int_1", "amount": 12.5, "amountNanos": "12500000000", "currency": "USD",
        "recipient": null, "description": null, "runId": null,
        "injection": { "field": "description", "pattern": "ignore_previous" } });
    let words = " outcome=blocked reason=injection_detected intentId=int_1";
    let expected = json!({ "agentId": "bot", "auditSeq": 7, "intentId": "int_1", "amount": 12.5,
        "amountNanos": "12500000000", "currency": "USD", "runId": null, "reason": "injection_detected",
        "message": Reason::InjectionDetected.sentence(), "field": "description", "pattern": "ignore_previous" });
    let line = change("spend.requested", Some("bot"), &data, words);
    assert_eq!(only(&line), ("audit.injection_detected", expected));
}

#[test]
fn a_test_of_a_webhook() {
    let line = change("webhook.tested", None, &json!({ "webhookId": "wh_1" }), "");
    let expected = json!({ "agentId": null, "auditSeq": 7, "webhookId": "wh_1" });
    assert_eq!(only(&line), ("webhook.test", expected));
}
