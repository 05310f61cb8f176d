//! Tests that the output equals the input, wherever its pieces end.

mod found;

use super::*;
use proptest::prelude::*;
use proptest::sample::Index;

const ROLE: &str =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"usage\":null}\n\n";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"h\u{e9}llo\"}}],\"usage\":null}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2},\"service_tier\":\"flex\"}\n\n";
const ERROR: &str = "data: {\"error\":{\"message\":\"Incorrect key sk-abc.\"}}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const COMMENT: &str = ": ping\n\n";
const DONE: &str = "data: [DONE]\n\n";
const COMPLETED: &str = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[],\"usage\":{\"input_tokens\":3}}}\n\n";
const DELTA: &str = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"abc\"}\n\n";
const FAILED: &str = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"sk-abc\"},\"usage\":{\"a\":1}}}\n\n";

fn redact() -> Redact {
    Box::new(|text| {
        let text = String::from_utf8_lossy(text);
        text.contains("sk-abc")
            .then(|| text.replace("sk-abc", "[redacted]").into_bytes())
    })
}

fn filter(format: Format, usage_passes: bool) -> StreamFilter {
    StreamFilter::new(format, usage_passes, (redact(), Box::new(found)))
}

/// Reads a usage of these tests: tokens count if there are any, and a cost of less than ten nano-USD.
fn found(json: &[u8]) -> FoundUsage {
    let text = std::str::from_utf8(json).unwrap();
    let cost = text
        .split_once("\"cost\":")
        .and_then(|(_, rest)| rest[..1].parse().ok());
    FoundUsage {
        has_tokens: text.len() > 2 && !text.starts_with("{\"cost\""),
        cost_nanos: cost,
    }
}

fn text(pieces: &[Bytes]) -> String {
    String::from_utf8(pieces.concat()).unwrap()
}

/// Returns the bytes that pass before the release, and with it.
fn passed(mut filter: StreamFilter, pieces: &[&[u8]]) -> (String, String, StreamFilter) {
    let mut out = Vec::new();
    for piece in pieces {
        filter.push(&Bytes::copy_from_slice(piece), &mut out);
    }
    let released = filter.release();
    (text(&out), text(&released), filter)
}

#[test]
fn a_usage_frame_that_the_caller_did_not_ask_for_is_dropped() {
    let all = [ROLE, TEXT, USAGE, DONE].concat();
    let (before, end, seen) = passed(filter(Format::Chat, false), &[all.as_bytes()]);
    assert_eq!((before, end.as_str()), ([ROLE, TEXT].concat(), DONE));
    assert_eq!(
        seen.usage(),
        Some(&br#"{"prompt_tokens":3,"completion_tokens":2}"#[..])
    );
    assert_eq!((seen.service_tier(), seen.text_bytes()), (Some("flex"), 6));
    let (before, end, _) = passed(filter(Format::Chat, true), &[all.as_bytes()]);
    assert_eq!((before, end.as_str()), ([ROLE, TEXT, USAGE].concat(), DONE));
}

/// Usage in a chunk with text covers the answer so far, and usage before the text covers nothing.
#[test]
fn usage_is_whole_behind_all_text() {
    let so_far = TEXT.replace("null", "{\"prompt_tokens\":3}");
    // The provider breaks off, its body ends properly, or the last event arrives.
    for (events, is_whole) in [
        (vec![TEXT], [false, false, false]),
        (vec![&so_far], [false, true, true]),
        (vec![&so_far, USAGE], [true, true, true]),
        (vec![TEXT, USAGE, FINISH], [true, true, true]),
        (vec![USAGE], [false, true, true]),
        (vec![FINISH, USAGE], [true, true, true]),
        (vec![USAGE, TEXT], [false, false, false]),
        (vec![TEXT, USAGE, TEXT, FINISH], [false, false, false]),
        (vec![USAGE, &so_far], [false, true, true]),
        (vec![&so_far, TEXT], [false, false, false]),
    ] {
        let mut seen = filter(Format::Chat, false);
        let mut out = Vec::new();
        seen.push(&Bytes::from(events.concat()), &mut out);
        let before = [seen.usage_is_whole(false), seen.usage_is_whole(true)];
        seen.push(&Bytes::from(DONE), &mut out);
        assert_eq!(
            [before[0], before[1], seen.usage_is_whole(false)],
            is_whole,
            "{events:?}"
        );
    }
}

/// Usage in an earlier event covers the response so far.
#[test]
fn usage_of_a_response_is_whole_in_its_last_event() {
    let so_far = COMPLETED.replace("completed", "in_progress");
    let without = COMPLETED.replace("{\"input_tokens\":3}", "null");
    for (events, is_whole) in [
        (vec![COMPLETED], true),
        (vec![FAILED], true),
        (vec![&*so_far], false),
        (vec![&so_far, DELTA], false),
        (vec![&so_far, &without], false),
        (vec![&so_far, DELTA, COMPLETED], true),
    ] {
        let mut seen = filter(Format::Responses, false);
        seen.push(&Bytes::from(events.concat()), &mut Vec::new());
        for is_complete in [false, true] {
            assert_eq!(seen.usage_is_whole(is_complete), is_whole, "{events:?}");
        }
        assert_eq!(seen.is_finished(), seen.is_at_end(), "{events:?}");
    }
}

/// The usage may also follow the last event. Everything after that event waits with it.
#[test]
fn usage_may_follow_the_last_event() {
    let mut filter = filter(Format::Chat, false);
    let mut out = Vec::new();
    filter.push(&Bytes::from([TEXT, DONE].concat()), &mut out);
    assert!(filter.is_at_end() && filter.usage().is_none());
    filter.push(&Bytes::from([USAGE, COMMENT].concat()), &mut out);
    assert!(filter.usage().is_some());
    assert_eq!(text(&out), TEXT);
    assert_eq!(text(&filter.release()), [DONE, COMMENT].concat());
    filter.push(&Bytes::from([DONE, COMMENT].concat()), &mut out);
    assert_eq!(
        text(&out),
        [TEXT, DONE, COMMENT].concat(),
        "nothing is held any more"
    );
}

/// For any boundaries of pieces, keys are removed and an unrequested usage frame is dropped.
#[test]
fn events_after_the_release_are_filtered_too() {
    let behind = [ERROR, USAGE, COMMENT, ERROR.trim_end()].concat();
    for cut in 0..=behind.len() {
        for released_at in [0, cut] {
            let mut filter = filter(Format::Chat, false);
            let mut out = Vec::new();
            filter.push(&Bytes::from([DONE, &behind[..released_at]].concat()), &mut out);
            out.extend(filter.release());
            filter.push(&Bytes::from(behind[released_at..cut].to_owned()), &mut out);
            filter.push(&Bytes::from(behind[cut..].to_owned()), &mut out);
            filter.close(&mut out);
            let clean = ERROR.replace("sk-abc", "[redacted]");
            let expected = [DONE, &clean, COMMENT, clean.trim_end()].concat();
            assert_eq!(text(&out), expected, "{cut} {released_at}");
        }
    }
}

#[test]
fn bytes_held_after_the_last_event_are_bounded() {
    let mut filter = filter(Format::Chat, true);
    let mut out = Vec::new();
    filter.push(&Bytes::from(DONE), &mut out);
    let fill = Bytes::from(COMMENT.repeat((HELD_BEHIND_END_MAX - DONE.len()) / COMMENT.len()));
    filter.push(&fill, &mut out);
    assert!(!filter.is_full());
    filter.push(&Bytes::from(COMMENT), &mut out);
    assert!(filter.is_full());
}

/// A provider can send each byte by itself: what is held of them must neither take more memory than their bytes, nor be
/// counted anew for each of them.
#[test]
fn short_pieces_after_the_last_event_are_held_as_one() {
    let mut filter = filter(Format::Chat, true);
    let mut out = Vec::new();
    filter.push(&Bytes::from(DONE), &mut out);
    let mut number = 0;
    while !filter.is_full() {
        filter.push(&Bytes::from_static(b"\n"), &mut out);
        number += 1;
    }
    assert_eq!(DONE.len() + number, HELD_BEHIND_END_MAX + 1);
    let released = filter.release();
    assert_eq!(released.len(), 1, "of {number} pieces");
    assert_eq!(released[0].len(), HELD_BEHIND_END_MAX + 1);
    assert!(out.is_empty());
}

#[test]
fn errors_are_redacted_whole() {
    for cut in 1..ERROR.len() {
        let (first, second) = ERROR.as_bytes().split_at(cut);
        let (before, _, _) = passed(filter(Format::Chat, false), &[ROLE.as_bytes(), first, second]);
        assert_eq!(
            before,
            [ROLE, &ERROR.replace("sk-abc", "[redacted]")].concat(),
            "{cut}"
        );
    }
    let named = "event: error\ndata: {\"message\":\"sk-abc\"}\n\n";
    for format in [Format::Chat, Format::Responses] {
        let (before, end, _) = passed(filter(format, false), &[named.as_bytes()]);
        assert!(!(before + &end).contains("sk-abc"));
    }
    let (before, end, seen) = passed(filter(Format::Responses, false), &[FAILED.as_bytes()]);
    assert_eq!(
        (before.as_str(), end),
        ("", FAILED.replace("sk-abc", "[redacted]"))
    );
    assert!(seen.usage().is_some());
}

/// The text of an answer belongs to the caller and may mention keys.
#[test]
fn only_errors_are_redacted() {
    let speaks = "data: {\"choices\":[{\"delta\":{\"content\":\"sk-abc\"}}]}\n\n";
    let (before, _, _) = passed(filter(Format::Chat, false), &[speaks.as_bytes()]);
    assert_eq!(before, speaks);
}

/// Errors have many shapes: anything that is not part of an answer may be one.
#[test]
fn events_outside_an_answer_are_searched_for_keys() {
    let chat = [
        "data: {\"object\":\"error\",\"message\":\"sk-abc\"}\n\n",
        "data: {\"errors\":[\"sk-abc\"]}\n\n",
        "data: [{\"error\":\"sk-abc\"}]\n\n",
        "data: {\"detail\":\"sk-abc\"}\n\n",
        "data: {\"choices\":[{}],\"\\u0065rror\":\"sk-abc\"}\n\n",
        "data: {\"choices\":[{}],\"error\":{\"message\":\"sk-abc\"}}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"error\":{\"message\":\"sk-abc\"}}]}\n\n",
        "data: sk-abc\n\n",
        ": sk-abc\n\n",
        "\u{feff}data: {\"error\":{\"message\":\"sk-abc\"}}\n\n",
    ];
    let responses = [
        "data: {\"type\":\"response.output_item.done\",\"error\":{\"message\":\"sk-abc\"}}\n\n",
        "data: {\"type\":\"response.incomplete\",\"response\":{\"error\":{\"message\":\"sk-abc\"}}}\n\n",
        "data: {\"type\":\"x\",\"delta\":\"sk-abc\"}\n\n",
    ];
    let of_chat = chat.iter().map(|event| (Format::Chat, event));
    let of_responses = responses.iter().map(|event| (Format::Responses, event));
    for (format, event) in of_chat.chain(of_responses) {
        for cut in 1..event.len() {
            let (first, second) = event.as_bytes().split_at(cut);
            let (before, end, _) = passed(filter(format, false), &[first, second]);
            assert_eq!(before + &end, event.replace("sk-abc", "[redacted]"), "{cut}");
        }
    }
}

/// A caller could read neither half an event nor the error after it.
#[test]
fn an_event_that_breaks_off_does_not_pass() {
    for (cut, whole) in [
        (6, false),
        (20, false),
        (TEXT.len() - 3, false),
        (TEXT.len() - 2, true),
    ] {
        let mut filter = filter(Format::Chat, false);
        let mut out = Vec::new();
        filter.push(&Bytes::from([ROLE, &TEXT[..cut]].concat()), &mut out);
        assert!(filter.is_between_events());
        filter.close(&mut out);
        out.extend(filter.release());
        let expected = if whole { &TEXT[..cut] } else { "" };
        assert_eq!(text(&out), [ROLE, expected].concat(), "{cut}");
    }
    let error = ERROR.trim_end();
    let mut filter = filter(Format::Chat, false);
    let mut out = Vec::new();
    filter.push(&Bytes::from(error), &mut out);
    filter.close(&mut out);
    assert_eq!(text(&out), error.replace("sk-abc", "[redacted]"));
}

#[test]
fn the_end_may_lack_its_line_ends() {
    let mut filter = filter(Format::Chat, false);
    let mut out = Vec::new();
    filter.push(&Bytes::from([TEXT, DONE.trim_end()].concat()), &mut out);
    assert!(!filter.is_at_end());
    filter.close(&mut out);
    assert!(filter.is_at_end());
    assert_eq!(
        (text(&out).as_str(), text(&filter.release())),
        (TEXT, DONE.trim_end().to_owned())
    );
}

#[test]
fn an_answer_is_finished_by_its_reason_its_usage_or_its_end() {
    let none = FINISH.replace("\"stop\"", "null");
    // Ollama and SGLang sent this in each chunk.
    let empty = FINISH.replace("\"stop\"", "\"\"");
    let elsewhere =
        "data: {\"choices\":[{\"delta\":{\"finish_reason\":\"stop\"}}],\"finish_reason\":\"stop\"}\n\n";
    for (event, is_finished) in [
        (TEXT, false),
        (&*none, false),
        (&*empty, false),
        (elsewhere, false),
        (FINISH, true),
        (USAGE, false),
        (&[TEXT, USAGE].concat(), true),
        (DONE, true),
    ] {
        for cut in 0..event.len() {
            let mut seen = filter(Format::Chat, false);
            let (first, second) = event.as_bytes().split_at(cut);
            for piece in [first, second] {
                seen.push(&Bytes::copy_from_slice(piece), &mut Vec::new());
            }
            assert_eq!(seen.is_finished(), is_finished, "{event} {cut}");
        }
    }
}

#[test]
fn a_usage_that_settles_nothing_replaces_none() {
    let empty = USAGE.replace("{\"prompt_tokens\":3,\"completion_tokens\":2}", "{}");
    let (before, _, seen) = passed(
        filter(Format::Chat, false),
        &[[TEXT, USAGE, &empty].concat().as_bytes()],
    );
    assert_eq!(
        seen.usage(),
        Some(&br#"{"prompt_tokens":3,"completion_tokens":2}"#[..])
    );
    assert!(seen.usage_is_whole(false));
    assert_eq!(before, TEXT, "it is no text either");
}

/// A second of audio is 64,000 bytes of base64.
#[test]
fn sound_and_pictures_count_by_their_length() {
    let sound = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"audio\":{{\"data\":\"{}\",\"transcript\":\"hi\"}}}}}}]}}\n\n",
        "A".repeat(64_000)
    );
    let (_, _, seen) = passed(filter(Format::Chat, false), &[sound.as_bytes()]);
    assert_eq!(seen.text_bytes(), 64_000 / MEDIA_BYTES_A_TEXT_BYTE + 2);
    let picture = sound.replace("\"audio\":{\"data\"", "\"images\":{\"url\"");
    let (_, _, seen) = passed(filter(Format::Chat, false), &[picture.as_bytes()]);
    assert_eq!(seen.text_bytes(), 64_000 / MEDIA_BYTES_A_TEXT_BYTE + 2);
    let event = format!(
        "data: {{\"type\":\"response.audio.delta\",\"delta\":\"{}\"}}\n\n",
        "A".repeat(512)
    );
    let (_, _, seen) = passed(filter(Format::Responses, false), &[event.as_bytes()]);
    assert_eq!(seen.text_bytes(), 512 / MEDIA_BYTES_A_TEXT_BYTE);
}

#[test]
fn a_long_event_passes_as_it_comes() {
    let long = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(1 << 20)
    );
    let mut long_one = filter(Format::Chat, false);
    let mut passed = 0;
    for piece in Bytes::from(long.clone()).chunks(1000) {
        let mut out = Vec::new();
        long_one.push(&Bytes::copy_from_slice(piece), &mut out);
        assert!(long_one.held.len() <= HELD_MAX);
        passed += out.iter().map(Bytes::len).sum::<usize>();
        assert_eq!(long_one.is_between_events(), passed == 0 || passed == long.len());
    }
    assert_eq!((passed, long_one.text_bytes()), (long.len(), 1 << 20));
    let unknown = format!("data: {{\"x\":\"{}\"}}\n\n", "x".repeat(2 * HELD_MAX));
    let mut filter = filter(Format::Chat, false);
    let mut out = Vec::new();
    for piece in unknown.as_bytes().chunks(100) {
        filter.push(&Bytes::copy_from_slice(piece), &mut out);
        assert!(filter.held.len() <= HELD_MAX);
    }
    assert_eq!(text(&out), unknown);
}

/// For any boundaries of pieces, keys in a long event are found, even after a long text or in an event that began as an
/// answer.
#[test]
fn a_long_error_is_searched_as_it_comes() {
    for (head, filler) in [
        ("data: {\"error\":{\"message\":\"", "no "),
        ("data: {\"x\":\"", "xxx"),
        ("data: {\"choices\":[{}],\"x\":\"", "xxx"),
    ] {
        let long = format!(
            "{head}{}\",\"error\":{{\"message\":\"Incorrect sk-abc.\"}}}}\n\n",
            filler.repeat(HELD_MAX)
        );
        for cut in long.len() - 40..long.len() {
            let (first, second) = long.as_bytes().split_at(cut);
            let (before, end, _) = passed(filter(Format::Chat, false), &[first, second, TEXT.as_bytes()]);
            assert_eq!(
                before + &end,
                [&long.replace("sk-abc", "[redacted]"), TEXT].concat(),
                "{cut}"
            );
        }
    }
}

/// The last event of a response may be long. Only its end waits.
#[test]
fn the_end_of_a_response_waits() {
    let long = COMPLETED.replace("[]", &format!("[\"{}\"]", "x".repeat(200_000)));
    let mut out = Vec::new();
    let mut filter = filter(Format::Responses, false);
    for piece in [DELTA.as_bytes()].into_iter().chain(long.as_bytes().chunks(4096)) {
        filter.push(&Bytes::copy_from_slice(piece), &mut out);
    }
    let before = text(&out);
    assert!(filter.is_at_end() && filter.usage().is_some() && !before.ends_with('\n'));
    let end = text(&filter.release());
    assert!(end.len() <= 4096, "no more than a piece");
    assert_eq!(before + &end, [DELTA, &long].concat());
}

fn events(format: Format) -> impl Strategy<Value = Vec<&'static str>> {
    let all: &[&str] = match format {
        Format::Chat => &[
            ROLE,
            TEXT,
            USAGE,
            ERROR,
            COMMENT,
            "data: hello\n\n",
            "\n",
            "id: 1\nevent: x\n\n",
            "data: {\ndata: \"choices\":[{}]}\n\n",
        ],
        Format::Responses => &[
            DELTA,
            COMMENT,
            "event: error\ndata: {\"message\":\"sk-abc\"}\n\n",
            "data: {}\n\n",
        ],
    };
    proptest::collection::vec(proptest::sample::select(all), 0..8)
}

fn check(format: Format, events: &[&str], last: &str, line_end: &str, cuts: &[Index], usage_passes: bool) {
    let all = [&events.concat(), last].concat().replace('\n', line_end);
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len().max(1))).collect();
    at.extend([0, all.len()]);
    at.sort_unstable();
    let pieces: Vec<&[u8]> = at
        .windows(2)
        .map(|ends| &all.as_bytes()[ends[0]..ends[1]])
        .collect();
    let (before, end, seen) = passed(filter(format, usage_passes), &pieces);
    let (before_whole, end_whole, seen_whole) = passed(filter(format, usage_passes), &[all.as_bytes()]);
    assert_eq!(seen.usage(), seen_whole.usage());
    assert_eq!(seen.text_bytes(), seen_whole.text_bytes());
    assert_eq!(before + &end, before_whole + &end_whole);
    if usage_passes {
        let expected = all.replace("sk-abc", "[redacted]");
        let (before, end, _) = passed(filter(format, true), &pieces);
        assert_eq!(before + &end, expected);
    }
}

proptest! {
    #[test]
    fn borders_of_pieces_change_nothing_of_a_chat(events in events(Format::Chat), done: bool, line_end in proptest::sample::select(&["\n", "\r\n", "\r"][..]), cuts in proptest::collection::vec(any::<Index>(), 0..12), usage_passes: bool) {
        check(Format::Chat, &events, if done { DONE } else { "" }, line_end, &cuts, usage_passes);
    }

    #[test]
    fn borders_of_pieces_change_nothing_of_a_response(events in events(Format::Responses), last in proptest::sample::select(&[COMPLETED, FAILED, ""][..]), line_end in proptest::sample::select(&["\n", "\r\n", "\r"][..]), cuts in proptest::collection::vec(any::<Index>(), 0..12)) {
        check(Format::Responses, &events, last, line_end, &cuts, true);
    }
}
