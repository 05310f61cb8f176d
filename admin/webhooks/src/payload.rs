//! The body of a delivery. Every attempt generates the same bytes from the audit entry (decision D41).

use bytes::Bytes;
use domain::entry::Entry;
use domain::event::{self, Event};
use domain::timestamp::iso_from_ms;
use serde_json::{Value, json};
use store::webhook::delivery::DeliveryEvent;

/// Names of the envelope. No field of an event has one of these names.
pub const RESERVED: [&str; 4] = ["type", "event", "timestamp", "data"];

/// Builds the body of an event of `entry`; `None` if the event does not follow from the entry.
pub fn body(entry: &Entry, delivery: &DeliveryEvent) -> Option<Bytes> {
    let events = event::from_entry(entry);
    let event = events.into_iter().find(|found| found.name == delivery.event)?;
    let event = match delivery.coalesced {
        Some(coalesced) => coalesced.payload_of(event),
        None => event,
    };
    Some(write(&event, entry.at_ms))
}

/// `{ type, event, timestamp, data: { …fields }, …the same fields }`
fn write(event: &Event, at_ms: u64) -> Bytes {
    let name = event.name.as_str();
    let mut body = format!(
        r#"{{"type":{name:?},"event":{name:?},"timestamp":{:?},"data":{}"#,
        iso_from_ms(at_ms),
        Value::Object(event.data.clone()),
    );
    let fields = event.data.iter();
    for (name, value) in fields.filter(|(name, _)| !RESERVED.contains(&name.as_str())) {
        body = format!("{body},{}:{value}", json!(name));
    }
    body.push('}');
    body.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::event::EventName;
    use domain::event::violations::Coalesced;
    use serde_json::Map;

    #[test]
    fn the_fields_stand_in_data_and_beside_it() {
        let mut data = Map::new();
        data.insert("agentId".to_owned(), json!("bot \"x\""));
        data.insert("amount".to_owned(), json!(0.1));
        data.insert("none".to_owned(), Value::Null);
        let event = Event {
            name: EventName::AgentFrozen,
            agent: None,
            data,
        };
        let body = write(&event, 1_700_000_000_123);
        let text = std::str::from_utf8(&body).unwrap();
        assert!(
            text.starts_with(r#"{"type":"agent.frozen","event":"agent.frozen","timestamp":"2023-11-14T22:13:20.123Z","data":{"#),
            "{text}"
        );
        let parsed: Value = serde_json::from_slice(&body).unwrap();
        for field in ["agentId", "amount", "none"] {
            assert_eq!(parsed[field], parsed["data"][field], "{field}");
        }
        assert_eq!(parsed["data"]["agentId"], json!("bot \"x\""));
        assert_eq!(body, write(&event, 1_700_000_000_123), "the same bytes each time");
    }

    #[test]
    fn a_field_cannot_take_the_place_of_the_envelope() {
        let data: Map<String, Value> = RESERVED
            .iter()
            .map(|name| ((*name).to_owned(), json!("x")))
            .collect();
        let event = Event {
            name: EventName::WalletDeposit,
            agent: None,
            data,
        };
        let text = String::from_utf8(write(&event, 0).to_vec()).unwrap();
        assert_eq!(
            text.matches(r#""type":"#).count(),
            2,
            "in the envelope and in data: {text}"
        );
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["type"], json!("wallet.deposit"));
        assert!(parsed["data"].is_object());
    }

    #[test]
    fn coalesced_violations_say_how_many_and_since_when() {
        let line =
            "9 120005 D daily_limit allow_01KAH3V9J800000000000000AA 5 ,,,1:2:,,, acct_1 bot - vk_1 - m";
        let entry = Entry::from_line(9, line.as_bytes());
        let coalesced = Coalesced {
            count: 4,
            first_seq: 3,
            first_ms: 120_001,
            last_ms: 120_005,
            of_many: false,
        };
        let of = |coalesced: Option<Coalesced>| {
            let reported = DeliveryEvent {
                coalesced,
                ..DeliveryEvent::new(9, EventName::PolicyViolation)
            };
            let body = body(&entry, &reported).unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        let (one, all) = (of(None), of(Some(coalesced)));
        assert_eq!(one["data"].get("count"), None);
        for (name, value) in [
            ("count", json!(4)),
            ("firstAt", json!("1970-01-01T00:02:00.001Z")),
            ("lastAt", json!("1970-01-01T00:02:00.005Z")),
            ("firstAuditSeq", json!(3)),
            ("auditSeq", json!(9)),
            ("agentId", json!("bot")),
        ] {
            assert_eq!((&all[name], &all["data"][name]), (&value, &value), "{name}");
        }
        let many = of(Some(Coalesced {
            of_many: true,
            ..coalesced
        }));
        assert_eq!(many["agentId"], Value::Null);
        for (name, value) in one["data"].as_object().unwrap() {
            assert_eq!(all["data"][name], *value, "as of the last one: {name}");
        }
    }

    /// The entries of every event, with the fields that each can have.
    #[test]
    fn no_event_has_a_field_of_the_envelopes_names() {
        let lines = [
            r#"1 5 {"type":"agent.frozen","agentId":"bot","actor":"key_1","data":{"authority":"user"}}"#,
            r#"1 5 {"type":"agent.run.completed","agentId":"bot","actor":"key_1","data":{"runId":"r","status":"completed"}}"#,
            r#"1 5 {"type":"agent.run.failed","agentId":"bot","actor":"key_1","data":{"runId":"r","status":"failed"}}"#,
            r#"1 5 {"type":"deposit.confirmed","agentId":null,"actor":"operator","data":{"reference":"r"}}"#,
            r#"1 5 {"type":"webhook.tested","agentId":null,"actor":"key_1","data":{"webhookId":"wh_1"}}"#,
            r#"1 5 {"type":"spend.requested","agentId":"bot","actor":"key_1","data":{}} outcome=pending_approval"#,
            r#"1 5 {"type":"spend.requested","agentId":"bot","actor":"key_1","data":{}} outcome=blocked reason=injection_detected"#,
            r#"1 5 {"type":"spend.requested","agentId":"bot","actor":"key_1","data":{}} outcome=blocked reason=daily_limit low_owner=bot"#,
            "1 5 D daily_limit allow_01KAH3V9J800000000000000AA 5 ,,,1:2:,,, acct_1 bot - vk_1 - m",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for line in lines {
            let entry = Entry::from_line(1, line.as_bytes());
            for event in event::from_entry(&entry) {
                for name in RESERVED {
                    assert!(!event.data.contains_key(name), "{name} in {event:?}");
                }
                assert!(body(&entry, &DeliveryEvent::new(1, event.name)).is_some());
                seen.insert(event.name);
            }
        }
        assert!(seen.len() >= 7, "{seen:?}");
    }
}
