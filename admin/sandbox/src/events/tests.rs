//! Tests of the events of both endpoints, in order, with every option that changes them.

use super::*;
use crate::completion::tests::request;
use serde_json::{Value, json};

fn events(endpoint: Endpoint, max_tokens: Option<u64>, asked: bool, options: &str) -> Vec<StreamEvent> {
    let mut request = request(endpoint, max_tokens);
    request.include_usage |= asked;
    let all = Events::new(request, 1, StreamPlan::parse(options).unwrap());
    all.map(|item| match item {
        StreamItem::Event(event) => event,
        other => panic!("{other:?}"),
    })
    .collect()
}

/// Returns the kind of each chat event: its delta's text, its reason, `usage` or its data.
fn kinds(events: &[StreamEvent]) -> Vec<String> {
    let kind = |event: &StreamEvent| {
        let Ok(data) = serde_json::from_str::<Value>(&event.data) else {
            return event.data.clone();
        };
        match data.pointer("/choices/0") {
            Some(choice) if choice["finish_reason"].is_string() => "finish".to_owned(),
            Some(choice) if choice["delta"]["role"].is_string() => "role".to_owned(),
            Some(_) => "text".to_owned(),
            None if data.get("error").is_some() => "error".to_owned(),
            None => "usage".to_owned(),
        }
    };
    events.iter().map(kind).collect()
}

#[test]
fn a_chat_stream_is_cut_and_counted_as_asked() {
    let asked = events(Endpoint::Chat, None, true, "events=2");
    assert!(asked[2].data.contains("chat.completion.chunk"));
    assert!(
        asked[2].data.contains("\"usage\":null"),
        "as the provider says where usage is asked for"
    );
    let without = events(Endpoint::Chat, None, false, "events=0");
    assert_eq!(kinds(&without), ["role", "role", "finish", "finish", "[DONE]"]);
    assert!(!without[0].data.contains("usage"));
    let limited = events(Endpoint::Chat, Some(3), false, "events=9");
    assert_eq!(kinds(&limited).iter().filter(|kind| *kind == "text").count(), 6);
    assert!(limited.iter().any(|event| event.data.contains("\"length\"")));
}

#[test]
fn usage_comes_at_the_requested_place() {
    for (options, expected) in [
        (
            "events=0",
            vec!["role", "role", "finish", "finish", "usage", "[DONE]"],
        ),
        (
            "events=0,usage=none",
            vec!["role", "role", "finish", "finish", "[DONE]"],
        ),
        (
            "events=0,usage=first",
            vec!["role", "role", "usage", "finish", "finish", "[DONE]"],
        ),
        (
            "events=0,usage=twice",
            vec!["role", "role", "finish", "finish", "usage", "usage", "[DONE]"],
        ),
        (
            "events=0,usage=after-done",
            vec!["role", "role", "finish", "finish", "[DONE]", "usage"],
        ),
        (
            "events=0,no-done",
            vec!["role", "role", "finish", "finish", "usage"],
        ),
        ("events=9,error=3", vec!["role", "role", "text", "error"]),
        ("events=9,end=3", vec!["role", "role", "text"]),
    ] {
        assert_eq!(
            kinds(&events(Endpoint::Chat, None, true, options)),
            expected,
            "{options}"
        );
    }
    let each = events(Endpoint::Chat, None, false, "events=2,usage=each");
    let counts: Vec<u64> = each
        .iter()
        .filter_map(|event| serde_json::from_str::<Value>(&event.data).ok())
        .map(|data| data["usage"]["completion_tokens"].as_u64().unwrap())
        .collect();
    assert!(counts.is_sorted() && counts.last() == Some(&4), "{counts:?}");
    let absurd = events(Endpoint::Chat, None, true, "events=0,usage=absurd");
    assert!(absurd[4].data.contains("1000000000000"));
}

#[test]
fn a_streamed_response_has_the_providers_events() {
    let all = events(Endpoint::Responses, None, false, "events=2");
    let names: Vec<&str> = all.iter().filter_map(|event| event.name).collect();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (number, event) in all.iter().enumerate() {
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(
            (&data["type"], &data["sequence_number"]),
            (&json!(event.name), &json!(number))
        );
    }
    let last: Value = serde_json::from_str(&all[9].data).unwrap();
    assert_eq!(last["response"]["usage"]["output_tokens"], 2);
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "né né ");
    let ends = |max_tokens, options| {
        let all = events(Endpoint::Responses, max_tokens, false, options);
        let last = all.into_iter().next_back().unwrap();
        (last.name.unwrap(), last.usage.is_some())
    };
    assert_eq!(ends(Some(1), "events=2"), ("response.incomplete", true));
    assert_eq!(ends(None, "events=2,usage=none"), ("response.completed", false));
    assert_eq!(
        ends(None, "events=2,no-done"),
        ("response.output_item.done", false)
    );
    assert_eq!(ends(None, "events=2,failed=5"), ("response.failed", true));
    assert_eq!(ends(None, "events=2,error=5"), ("error", false));
}

#[test]
fn faults_come_after_so_many_events() {
    for (options, cut) in [("events=5,cut=3", true), ("events=5,stall=3", false)] {
        let all: Vec<StreamItem> = Events::new(
            request(Endpoint::Chat, None),
            1,
            StreamPlan::parse(options).unwrap(),
        )
        .collect();
        assert_eq!(all.len(), 4, "{options}");
        assert_eq!(matches!(all[3], StreamItem::Cut), cut, "{options}");
        assert_eq!(matches!(all[3], StreamItem::Stall), !cut, "{options}");
    }
    let late = Events::new(
        request(Endpoint::Chat, None),
        1,
        StreamPlan::parse("events=0,cut=99").unwrap(),
    );
    assert_eq!(late.count(), 5, "a fault behind the end does not come");
}
