//! Tests of what a filter finds in the events, and of what it need not search.

use super::*;

/// An upstream that sends nothing but tiny events must not cost the edge more than one that sends an answer.
#[test]
fn tiny_events_pass_together_and_blank_ones_are_not_searched() {
    for (event, is_searched) in [
        ("\n", false),
        ("\r\n", false),
        (":\n\n", true),
        ("event: a\n\n", true),
    ] {
        for format in [Format::Chat, Format::Responses] {
            let searched = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let count = std::sync::Arc::clone(&searched);
            let redact: Redact = Box::new(move |_| {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                None
            });
            let mut filter = StreamFilter::new(format, false, (redact, Box::new(found)));
            let piece = Bytes::from(event.repeat(1000));
            let mut out = Vec::new();
            filter.push(&piece, &mut out);
            assert_eq!(out.concat(), piece, "{event:?}");
            assert!(out.len() <= 2, "{event:?}: {} pieces", out.len());
            let searched = searched.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!(searched > 0, is_searched, "{event:?}: {searched}");
        }
    }
}

/// Tokens and cost may come in different objects, in either order. None takes the place of the other.
#[test]
fn a_cost_and_the_tokens_of_another_usage_both_count() {
    const TOKENS: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n";
    const COST: &str = "data: {\"choices\":[],\"usage\":{\"cost\":7}}\n\n";
    const LESS: &str = "data: {\"choices\":[],\"usage\":{\"cost\":2}}\n\n";
    for (events, tokens, cost) in [
        (&[TEXT, TOKENS, COST, DONE][..], true, Some(7)),
        (&[TEXT, COST, TOKENS, DONE], true, Some(7)),
        (&[TEXT, COST, LESS, DONE], false, Some(7)),
        (&[TEXT, TOKENS, DONE], true, None),
        (&[TEXT, DONE], false, None),
    ] {
        let (.., seen) = passed(filter(Format::Chat, false), &[events.concat().as_bytes()]);
        assert_eq!(seen.usage().is_some(), tokens, "{events:?}");
        assert_eq!(seen.cost_nanos(), cost, "{events:?}");
        assert_eq!(seen.has_report(), tokens || cost.is_some());
        assert_eq!(seen.usage_is_whole(true), tokens, "{events:?}");
    }
}

/// Parsers differ in which `usage` they take, so none counts, and an earlier one is not that of the whole answer.
#[test]
fn a_repeated_or_long_usage_is_not_read() {
    const USAGES: &str = "\"usage\":{\"prompt_tokens\":3,\"cost\":7}";
    let tier = |tier: &str| format!("\"service_tier\":\"{tier}\"");
    let long = format!(
        "\"usage\":{{\"prompt_tokens\":3,\"cost\":7,\"x\":\"{}\"}}",
        "x".repeat(crate::USAGE_BYTES_MAX)
    );
    for (fields, is_read) in [
        (format!("{USAGES},{}", tier("a")), true),
        (format!("{USAGES},{USAGES}"), false),
        (format!("\"usage\":null,{USAGES}"), false),
        (format!("{USAGES},\"us\\u0061ge\":0"), false),
        (format!("{},{USAGES},{}", tier("a"), tier("b")), false),
        (long, false),
    ] {
        let shown = &fields[..fields.len().min(100)];
        let frame = format!("data: {{\"choices\":[],{fields}}}\n\n");
        for cut in [0, frame.len() / 2, frame.len()] {
            let (first, second) = frame.split_at(cut);
            let pieces = [TEXT, first, second, DONE].map(str::as_bytes);
            let (.., seen) = passed(filter(Format::Chat, true), &pieces);
            assert_eq!(seen.usage().is_some(), is_read, "{shown}");
            assert_eq!(seen.cost_nanos(), is_read.then_some(7), "{shown}");
            assert_eq!(seen.usage_is_whole(true), is_read, "{shown}");
            let pieces = [TEXT, USAGE, first, second, DONE].map(str::as_bytes);
            let (.., seen) = passed(filter(Format::Chat, true), &pieces);
            assert!(seen.usage().is_some());
            assert_eq!(seen.usage_is_whole(true), is_read, "{shown}");
        }
    }
}

/// The start of an event that the scan remembers has its keys too.
#[test]
fn a_repeated_tier_behind_a_remembered_start_is_found() {
    let start = "data: {\"service_tier\":\"a\",\"choices\":[{\"delta\":{\"content\":";
    let usage = "}}],\"usage\":{\"prompt_tokens\":3}";
    for (rest, is_read) in [("", true), (",\"service_tier\":\"b\"", false)] {
        let events = format!("{start}\"x\"}}}}]}}\n\n{start}\"y\"{usage}{rest}}}\n\n{DONE}");
        let (.., seen) = passed(filter(Format::Chat, true), &[events.as_bytes()]);
        assert_eq!(seen.text_bytes(), 2);
        assert_eq!(seen.usage_is_whole(true), is_read, "{rest}");
    }
}

/// Text counts wherever a provider puts it, but what only repeats the deltas does not count twice.
#[test]
fn text_outside_of_deltas_counts_if_no_delta_has_any() {
    let chat = |choice: &str| format!("data: {{\"choices\":[{{{choice}}}]}}\n\n");
    let response = |kind: &str, field: &str| {
        format!("data: {{\"type\":\"response.{kind}\",{field},\"item_id\":\"item\"}}\n\n")
    };
    for (format, events, expected) in [
        (Format::Chat, chat(r#""delta":{"content":"abc"}"#), 3),
        (Format::Chat, chat(r#""delta":"abcd""#), 4),
        (Format::Chat, chat(r#""text":"abcde""#), 5),
        (
            Format::Chat,
            chat(r#""message":{"role":"assistant","content":"abcdef"}"#),
            6,
        ),
        (
            Format::Chat,
            chat(
                r#""message":{"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"abcdef"}}]}"#,
            ),
            7,
        ),
        (
            Format::Chat,
            chat(r#""message":{"content":"abc"},"delta":{"content":"ab"}"#).repeat(2),
            4,
        ),
        (
            Format::Chat,
            chat(r#""logprobs":{"text":"abc"},"finish_reason":"stop""#),
            0,
        ),
        (
            Format::Chat,
            "data: {\"message\":\"abc\",\"text\":\"abc\",\"choices\":[]}\n\n".to_owned(),
            0,
        ),
        (
            Format::Responses,
            response("output_text.delta", r#""delta":"abc""#),
            3,
        ),
        (
            Format::Responses,
            response("output_text.done", r#""text":"abcd""#),
            4,
        ),
        (
            Format::Responses,
            response("function_call_arguments.done", r#""arguments":"abcde""#),
            5,
        ),
        (
            Format::Responses,
            response("output_text.delta", r#""delta":"abc""#)
                + &response("output_text.done", r#""text":"abcdef""#),
            3,
        ),
        (
            Format::Responses,
            response("content_part.done", r#""part":{"text":"abc"}"#),
            0,
        ),
    ] {
        let (.., seen) = passed(filter(format, false), &[events.as_bytes()]);
        assert_eq!(seen.text_bytes(), expected, "{events}");
    }
}
