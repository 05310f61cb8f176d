//! The dashboard's words for reasons and checks are those of the table of reasons. It names every event of webhooks and
//! every outcome of a call.
//!
//! `TOLLGATE_REWRITE_DOCS=1 cargo test --workspace --test dashboard words` writes them anew.

use domain::call_record::DENIED;
use domain::entry::HoldOutcome;
use domain::event::EventName;
use domain::reason::{Denial, TITLES};
use harness::compare_written;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const FILE: &str = "admin/dashboard/web/js/reasons.js";
/// Outcome of a call that has not ended, which has no entry.
const OPEN: &str = "open";

fn module() -> String {
    let mut text = "/**\n * Labels for reasons and checks. Written by tests/dashboard/words.rs from shared/domain/src/reason.rs.\n */\n\n\
                    /** Labels of the reasons for denials. */\nexport const REASONS = {\n"
        .to_owned();
    for (word, title, _) in TITLES {
        writeln!(text, "  {word}: '{title}',").unwrap();
    }
    text.push_str("};\n\n/** Labels of the checks that differ from the label of their denial. */\nexport const CHECKS = {\n");
    for (word, title, check) in TITLES {
        if let Some(check) = check.filter(|check| check != title) {
            writeln!(text, "  {word}: '{check}',").unwrap();
        }
    }
    text.push_str("};\n\n/** The reasons that apply to calls. The others apply to spends and escrows. */\nexport const CALL_REASONS = [\n");
    for denial in Denial::ALL {
        writeln!(text, "  '{}',", denial.reason()).unwrap();
    }
    text.push_str("];\n");
    text
}

#[test]
fn the_dashboard_has_the_words_of_the_table() {
    compare_written(FILE, &module(), "--test dashboard words");
}

/// Returns the text between `start` and `end` in a module of the dashboard.
fn part_of(module: &str, start: &str, end: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/admin/dashboard/web/js/");
    let text = std::fs::read_to_string(format!("{folder}{module}")).unwrap();
    let (_, rest) = text.split_once(start).unwrap();
    rest.split_once(end).unwrap().0.to_owned()
}

#[test]
fn a_webhook_can_subscribe_to_every_event() {
    let list = part_of("pages/webhook/events.js", "EVENTS = [", "\n];");
    let rows = list.split("['").skip(1);
    let listed: Vec<&str> = rows.filter_map(|row| row.split('\'').next()).collect();
    let all: Vec<&str> = EventName::ALL.iter().map(|event| event.as_str()).collect();
    assert_eq!(listed, all);
}

#[test]
fn every_outcome_of_a_call_has_words_and_a_filter() {
    let ended = || {
        HoldOutcome::ALL
            .iter()
            .map(|outcome| outcome.as_str())
            .chain([DENIED])
    };
    let words = part_of("words.js", "OUTCOMES = {", "};");
    let words: BTreeSet<&str> = words
        .lines()
        .filter_map(|line| line.trim().split_once(':'))
        .map(|(word, _)| word)
        .collect();
    assert_eq!(words, ended().chain([OPEN]).collect());
    let filter = part_of("pages/calls/filters.js", "OUTCOMES = [", "];");
    let filter: BTreeSet<&str> = filter.split('\'').skip(1).step_by(2).collect();
    assert_eq!(filter, ended().collect());
}

/// Actors that are no record: the reference of the trail explains each, and the dashboard has a word for it.
#[test]
fn every_actor_without_a_record_is_explained() {
    let words = part_of("ui/who.js", "OTHERS = {", "};");
    let trail = include_str!("../../docs/reference/audit.md");
    let (_, explained) = trail.split_once("| `actor` |").unwrap();
    let (explained, _) = explained.split_once("\n").unwrap();
    for actor in ["operator", "worker", "payer", "payee", "another account"] {
        assert!(explained.contains(&format!("`{actor}`")), "audit.md: {actor}");
        let named = [format!(" {actor}: '"), format!(" '{actor}': '")];
        assert!(named.iter().any(|name| words.contains(name)), "who.js: {actor}");
    }
}
