//! What passes is what came, whatever the borders of its pieces.

use super::*;
use proptest::prelude::*;
use proptest::sample::Index;

const ROLE: &str =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"usage\":null}\n\n";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"h\u{e9}llo\"}}],\"usage\":null}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2},\"service_tier\":\"flex\"}\n\n";
const ERROR: &str = "data: {\"error\":{\"message\":\"Incorrect key sk-abc.\"}}\n\n";
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

fn filter(format: Format, usage_passes: bool) -> Filter {
    Filter::new(format, usage_passes, redact())
}

fn text(pieces: &[Bytes]) -> String {
    String::from_utf8(pieces.concat()).unwrap()
}

/// What passes before the release, and with it.
fn passed(mut filter: Filter, pieces: &[&[u8]]) -> (String, String, Filter) {
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

/// In a chunk with text it is of the answer so far.
#[test]
fn usage_is_final_in_a_frame_of_its_own() {
    let so_far = TEXT.replace("null", "{\"prompt_tokens\":3}");
    for (events, is_final) in [
        (vec![TEXT], false),
        (vec![&so_far], false),
        (vec![&so_far, USAGE], true),
        (vec![USAGE, &so_far], false),
    ] {
        let (_, _, seen) = passed(filter(Format::Chat, false), &[events.concat().as_bytes()]);
        assert_eq!(seen.usage_is_final(), is_final, "{events:?}");
    }
    for end in [COMPLETED, FAILED] {
        let (_, _, seen) = passed(filter(Format::Responses, false), &[end.as_bytes()]);
        assert!(seen.usage_is_final());
    }
}

/// The usage is looked for behind the last event, too; what follows waits with it.
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
    filter.push(&Bytes::from(USAGE), &mut out);
    assert_eq!(text(&out), [TEXT, USAGE].concat(), "nothing is held any more");
}

#[test]
fn what_waits_behind_the_last_event_has_a_bound() {
    let mut filter = filter(Format::Chat, true);
    let mut out = Vec::new();
    filter.push(&Bytes::from(DONE), &mut out);
    let fill = Bytes::from(COMMENT.repeat((HELD_BEHIND_END_MAX - DONE.len()) / COMMENT.len()));
    filter.push(&fill, &mut out);
    assert!(!filter.is_full());
    filter.push(&Bytes::from(COMMENT), &mut out);
    assert!(filter.is_full());
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

/// The text of an answer is the caller's: it may speak of keys.
#[test]
fn what_is_no_error_is_not_redacted() {
    let speaks = "data: {\"choices\":[{\"delta\":{\"content\":\"sk-abc\"}}]}\n\n";
    let (before, _, _) = passed(filter(Format::Chat, false), &[speaks.as_bytes()]);
    assert_eq!(before, speaks);
}

#[test]
fn an_error_that_is_too_long_is_replaced() {
    let long = |length: usize| {
        format!(
            "data: {{\"error\":{{\"message\":\"sk-abc{}\"}}}}\n\n",
            "x".repeat(length)
        )
    };
    let fits = long(HELD_MAX - long(0).len());
    let (head, tail) = fits.as_bytes().split_at(fits.len() - 1);
    let (before, _, _) = passed(filter(Format::Chat, false), &[head, tail]);
    assert_eq!(before, fits.replace("sk-abc", "[redacted]"));
    let exceeds = long(HELD_MAX);
    let (head, tail) = exceeds.as_bytes().split_at(HELD_MAX + 1);
    let (before, _, _) = passed(filter(Format::Chat, false), &[head, tail, TEXT.as_bytes()]);
    assert_eq!(before.as_bytes(), [LONG_ERROR, TEXT.as_bytes()].concat());
}

#[test]
fn a_long_event_passes_as_it_comes() {
    let long = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(1 << 20)
    );
    let mut filter = filter(Format::Chat, false);
    let mut passed = 0;
    for piece in Bytes::from(long.clone()).chunks(1000) {
        let mut out = Vec::new();
        filter.push(&Bytes::copy_from_slice(piece), &mut out);
        assert!(filter.held.len() <= 2, "only line ends are held");
        passed += out.iter().map(Bytes::len).sum::<usize>();
    }
    assert_eq!((passed, filter.text_bytes()), (long.len(), 1 << 20));
    // Without a choice it passes from a bound on.
    let unknown = format!("data: {{\"x\":\"{}\"}}\n\n", "x".repeat(2 * HELD_MAX));
    let mut out = Vec::new();
    for piece in unknown.as_bytes().chunks(100) {
        filter.push(&Bytes::copy_from_slice(piece), &mut out);
        assert!(filter.held.len() <= HELD_MAX);
    }
    assert_eq!(text(&out), unknown);
}

/// The last event of a response may be long: only its end waits.
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

#[test]
fn what_passed_ends_between_events_or_within_one() {
    let mut filter = filter(Format::Chat, false);
    assert!(filter.is_between_events());
    let (head, tail) = TEXT.split_at(TEXT.len() - 5);
    for (piece, between) in [(head, false), (tail, true), ("data: {\"id\"", true)] {
        filter.push(&Bytes::from(piece), &mut Vec::new());
        assert_eq!(filter.is_between_events(), between, "{piece}");
    }
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
