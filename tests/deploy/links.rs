//! The documents can be followed and read: links and anchors lead somewhere, decisions and sections that are cited are
//! there, and lines are no longer than an editor is wide.

use crate::documents::documents;
use crate::files::{all_below, path, text};
use std::collections::{BTreeMap, BTreeSet};

/// The longest line, in characters.
const LINE_MAX: usize = 120;
const README_LINES_MAX: usize = 120;
/// Folders whose files may cite decisions. With the documents this is everything that is written by hand.
const SOURCES: [&str; 7] = ["admin", "benches", "config", "deploy", "proxy", "shared", "tests"];
/// Folders whose comments have no limit of length: code of others.
const OTHER_CODE: [&str; 2] = ["/node_modules/", "/vendor/"];
/// The document of the decisions.
const DECISIONS: &str = "docs/reference/decisions.md";
/// Files without a limit of length: output of programs, and the history, which grows at its head.
const AS_IT_IS: [&str; 2] = ["docs/reference/cli.md", "CHANGELOG.md"];
/// Between these two lines a test writes tables.
const GENERATED: [&str; 2] = ["<!-- metrics: written by the test -->", "<!-- end of metrics -->"];

/// The lines of a document outside of its code blocks, by their number from 1 on.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    lines.map(|(at, line)| (at + 1, line)).collect()
}

/// Targets of a line's links: the part in round brackets behind `](`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let starts = line
        .match_indices("](")
        .map(|(at, sign)| &line[at + sign.len()..]);
    starts.filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// The text of a heading as people see it: without the addresses of its links.
fn shown(heading: &str) -> String {
    let mut parts = heading.split("](");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    shown
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let title = shown(title).trim().to_lowercase().replace(' ', "-");
        let is_kept = |letter: &char| letter.is_alphanumeric() || ['-', '_'].contains(letter);
        let anchor: String = title.chars().filter(is_kept).collect();
        let count = seen.entry(anchor.clone()).or_default();
        all.insert(if *count == 0 {
            anchor
        } else {
            format!("{anchor}-{count}")
        });
        *count += 1;
    }
    all
}

/// The place in the repository that a link of a document names.
fn place(document: &str, file: &str) -> String {
    if file.is_empty() {
        return document.to_owned();
    }
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The defect of a link, if it has one.
fn mistake(document: &str, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let place = place(document, file);
    if !path(&place).exists() {
        return Some(format!("{document}: {target} is not there"));
    }
    let has_anchors = place.ends_with(".md") && !anchor.is_empty();
    (has_anchors && !anchors(&text(&place)).contains(anchor))
        .then(|| format!("{document}: {target} has no such heading"))
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for document in documents() {
        for (_, line) in prose(&text(&document)) {
            for target in targets(line).filter(|target| !target.contains("://")) {
                seen += 1;
                wrong.extend(mistake(&document, target));
            }
        }
    }
    assert!(seen > 400, "{seen}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn links_are_judged() {
    let text = "# A `b` [c d](e.md)\n## Twice\n```\n# no heading\n```\n## Twice\n";
    let expected = ["a-b-c-d", "twice", "twice-1"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
    assert_eq!(place("docs/guides/a.md", "../b.md"), "docs/b.md");
    assert_eq!(mistake("docs/README.md", "../README.md#two-commands"), None);
    for broken in ["nowhere.md", "../README.md#no-such-heading", "#no-such-heading"] {
        assert!(mistake("docs/README.md", broken).is_some(), "{broken}");
    }
}

/// The decisions that a text cites: a D and a number, as a word of its own.
fn cited(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(move |letter| !is_part(letter)).filter(|word| {
        let digits = word.strip_prefix('D').unwrap_or_default();
        (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[test]
fn every_decision_that_is_cited_is_written_down() {
    let decisions = text(DECISIONS);
    let titles = decisions.lines().filter_map(|line| line.strip_prefix("### "));
    let written: BTreeSet<&str> = titles
        .filter_map(|title| Some(title.split_once(':')?.0))
        .collect();
    let sources = SOURCES.iter().flat_map(|folder| all_below(folder));
    let sources = sources.filter(|file| !file.contains("/node_modules/"));
    let mut missing = BTreeSet::new();
    let mut seen = 0;
    for file in sources.chain(documents()) {
        let Ok(text) = std::fs::read_to_string(path(&file)) else {
            // Pictures and packed files.
            continue;
        };
        for decision in cited(&text) {
            seen += 1;
            if !written.contains(decision) {
                missing.insert(format!("{file}: {decision}"));
            }
        }
    }
    assert!(seen > 300, "{seen}");
    assert!(missing.is_empty(), "not in {DECISIONS}: {missing:#?}");
}

/// A text without its line breaks, and without the signs of comments at the beginnings of lines.
fn unbroken(text: &str) -> String {
    let signs = ['/', '!', '#', '-', '*', ' '];
    let lines = text.lines().map(|line| line.trim_start_matches(signs).trim_end());
    lines.collect::<Vec<_>>().join(" ")
}

/// The documents that a text names with a section: `docs/a.md, Section` or `docs/a.md#section`. Each with the text from
/// the section on.
fn cited_sections(text: &str) -> Vec<(&str, &str)> {
    let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || ['_', '-', '.', '/'].contains(&letter);
    let ends = text.match_indices(".md").map(|(at, end)| at + end.len());
    let named = ends.filter_map(|end| {
        let start = text[..end]
            .rfind(|letter| !is_of_path(letter))
            .map_or(0, |at| at + 1);
        let (document, rest) = (&text[start..end], &text[end..]);
        let begins = |sign: &str, is_section: fn(char) -> bool| {
            rest.strip_prefix(sign)
                .is_some_and(|rest| rest.starts_with(is_section))
        };
        let is_named = begins("#", char::is_alphanumeric) || begins(", ", char::is_uppercase);
        (is_named && path(document).is_file()).then_some((document, rest))
    });
    named.collect()
}

/// Returns whether a document has the section that `citation` begins with, in one of the two forms.
fn has_section(document: &str, citation: &str) -> bool {
    if let Some(anchor) = citation.strip_prefix('#') {
        let is_of_anchor = |letter: char| letter.is_alphanumeric() || ['-', '_'].contains(&letter);
        let end = anchor.find(|letter| !is_of_anchor(letter));
        return anchors(&text(document)).contains(&anchor[..end.unwrap_or(anchor.len())]);
    }
    let section = citation.trim_start_matches([',', ' ']);
    let document = text(document);
    let headings = prose(&document).into_iter().filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| shown(title).trim().to_owned())
    });
    // A longer heading that begins alike is another one.
    let ends = |rest: &str| !rest.starts_with(char::is_alphanumeric);
    headings
        .filter(|title| !title.is_empty())
        .any(|title| section.strip_prefix(&*title).is_some_and(ends))
}

#[test]
fn every_section_that_is_cited_is_there() {
    let sources = SOURCES.iter().flat_map(|folder| all_below(folder));
    let sources = sources.filter(|file| !OTHER_CODE.iter().any(|other| file.contains(other)));
    let mut missing = BTreeSet::new();
    let mut seen = 0;
    for file in sources.chain(documents()) {
        if file == file!() {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(path(&file)) else {
            // Pictures and packed files.
            continue;
        };
        for (document, citation) in cited_sections(&unbroken(&text)) {
            seen += 1;
            if !has_section(document, citation) {
                let citation: String = citation.chars().take(60).collect();
                missing.insert(format!("{file}: {document}{citation}"));
            }
        }
    }
    assert!(seen > 60, "{seen}");
    assert!(missing.is_empty(), "no such section: {missing:#?}");
}

#[test]
fn cited_sections_are_judged() {
    let text = unbroken(
        "/// See (docs/guides/runbook.md,\n/// TollgateStoreClock), docs/no.md, X, docs/README.md, or",
    );
    let found = [(
        "docs/guides/runbook.md",
        ", TollgateStoreClock), docs/no.md, X, docs/README.md, or",
    )];
    assert_eq!(cited_sections(&text), found);
    let runbook = "docs/guides/runbook.md";
    for (citation, is_there) in [
        (", TollgateStoreClock).", true),
        ("#tollgatestoreclock).", true),
        (", TollgateStoreClocks", false),
        (", TollgateStore", false),
        ("#tollgatestore", false),
        (", No such section", false),
    ] {
        assert_eq!(has_section(runbook, citation), is_there, "{citation}");
    }
}

#[test]
fn lines_can_be_read() {
    let mut long = Vec::new();
    for document in documents() {
        if AS_IT_IS.contains(&document.as_str()) {
            continue;
        }
        let mut generated = false;
        for (number, line) in prose(&text(&document)) {
            match line {
                begin if begin == GENERATED[0] => generated = true,
                end if end == GENERATED[1] => generated = false,
                line if generated || line.starts_with('|') => {}
                line if line.chars().count() > LINE_MAX && line.trim().contains(' ') => {
                    long.push(format!("{document}:{number}"));
                }
                _ => {}
            }
        }
    }
    assert!(long.is_empty(), "over {LINE_MAX} characters: {long:#?}");
    assert!(text("README.md").lines().count() <= README_LINES_MAX);
}

/// Returns whether a line of a file is a comment; not a row of a table of rustdoc or a command, which cannot be broken.
fn is_comment(file: &str, line: &str) -> bool {
    let sign = match file.rsplit_once('.') {
        Some((_, "rs" | "js" | "mjs")) => "//",
        Some((_, "lua")) => "--",
        _ => "#",
    };
    let comment = line.trim_start().strip_prefix(sign);
    comment.is_some_and(|comment| {
        let text = comment.trim_start_matches(['/', '!', ' ']);
        let is_row = file.ends_with(".rs") && text.starts_with('|') && text.ends_with('|');
        // A command to copy.
        !is_row && !comment.starts_with("   ")
    })
}

#[test]
fn comments_can_be_read() {
    let all = SOURCES.iter().flat_map(|folder| all_below(folder));
    let ends = [
        ".rs", ".lua", ".toml", ".js", ".mjs", ".sh", ".yml", ".yaml", ".conf", ".acl",
    ];
    let is_ours = |file: &String| !OTHER_CODE.iter().any(|other| file.contains(other));
    let all = all.filter(|file| is_ours(file) && ends.iter().any(|end| file.ends_with(end)));
    let (mut seen, mut long) = (0, Vec::new());
    for file in all {
        for (at, line) in text(&file).lines().enumerate() {
            if is_comment(&file, line) {
                seen += 1;
                if line.chars().count() > LINE_MAX {
                    long.push(format!("{file}:{}", at + 1));
                }
            }
        }
    }
    assert!(seen > 10_000, "{seen}");
    assert!(long.is_empty(), "over {LINE_MAX} characters: {long:#?}");
}
