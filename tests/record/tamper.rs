//! Verification finds every edit, removal, insertion and swap in a chain of fifty, in an export and in the store.

use crate::audit_writer::{AuditWriter, chain, lines};
use archive::Archive;
use archive::location::ArchiveLocation;
use audit_verify::{Broken, ChainVerifier, KnownEnd, Source, file, online, young};
use domain::chain::entry_hash;
use domain::mode::Mode;
use harness::{Redis, Seed, SeedAccount, Store};
use serde_json::{Map, Value, json};
use settings::load_from;
use std::time::Duration;

const SIZE: usize = 50;
/// Interval of signing checkpoints.
const ROUND: Duration = Duration::from_secs(60);

/// An export, and its checkpoint.
struct Export {
    lines: Vec<String>,
    known: KnownEnd,
}

impl Export {
    fn new() -> Self {
        let texts = (1_u64..).zip(lines(SIZE as u64));
        let lines: Vec<Vec<u8>> = texts
            .map(|(seq, (at, rest))| format!("{seq} {at} {rest}").into_bytes())
            .collect();
        let chain = chain(&lines);
        let known = KnownEnd {
            source: Source::Note,
            size: SIZE as u64,
            hash: chain[SIZE - 1].1.hash,
            later: None,
        };
        Self {
            lines: chain.into_iter().map(|(_, sealed)| sealed.json).collect(),
            known,
        }
    }

    /// The first entry that a verification of these lines reports.
    fn first_broken(&self, lines: &[String]) -> Option<u64> {
        let mut verifier = ChainVerifier::starting_after(0);
        verifier.mark(self.known.size);
        let broken = file::verify(lines.join("\n").as_bytes(), &mut verifier).unwrap();
        let verdict = file::verdict(
            &verifier,
            broken,
            vec![self.known.clone()],
            false,
            &young(0, ROUND),
        );
        assert_eq!(verdict.ok(), verdict.broken.is_none());
        verdict.broken.map(|Broken { seq, .. }| seq.unwrap())
    }

    #[track_caller]
    fn found(&self, lines: &[String], at: usize) {
        assert_eq!(self.first_broken(lines), Some(at as u64), "{}", lines.join("\n"));
    }
}

/// All variants of `value` that differ in one place: another leaf, another name, or one element less.
fn edits(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![json!(""), json!(0)],
        Value::Bool(flag) => vec![json!(!flag), Value::Null],
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            vec![json!(number + 1.0), json!(number.to_string()), Value::Null]
        }
        Value::String(text) => vec![
            json!(format!("{text} ")),
            json!(text.replacen(|_| true, "X", 1)),
            Value::Null,
        ],
        Value::Array(items) => {
            let mut found = vec![json!({})];
            for (at, item) in items.iter().enumerate() {
                for edit in edits(item) {
                    let mut items = items.clone();
                    items[at] = edit;
                    found.push(items.into());
                }
                let mut items = items.clone();
                items.remove(at);
                found.push(items.into());
            }
            found
        }
        Value::Object(object) => {
            let mut found = Vec::new();
            let put = |object: &Map<String, Value>, key: &str, value: Option<Value>| {
                let mut object = object.clone();
                match value {
                    Some(value) => drop(object.insert(key.to_owned(), value)),
                    None => drop(object.remove(key)),
                }
                Value::Object(object)
            };
            for (key, value) in object {
                found.extend(edits(value).into_iter().map(|edit| put(object, key, Some(edit))));
                found.push(put(object, key, None));
                let renamed = put(object, key, None);
                found.push(put(
                    renamed.as_object().unwrap(),
                    &format!("{key}x"),
                    Some(value.clone()),
                ));
            }
            found.push(put(object, "one more", Some(Value::Null)));
            found
        }
    }
}

#[test]
fn the_export_itself_is_in_order() {
    let export = Export::new();
    assert_eq!(export.first_broken(&export.lines), None);
}

#[test]
fn every_edit_of_an_entry_of_an_export_names_it() {
    let export = Export::new();
    let mut count = 0;
    for at in 0..SIZE {
        let entry: Value = serde_json::from_str(&export.lines[at]).unwrap();
        for edit in edits(&entry) {
            let mut lines = export.lines.clone();
            lines[at] = edit.to_string();
            // The later lines cannot be reached and are not read.
            lines.truncate(at + 3);
            export.found(&lines, at + 1);
            count += 1;
        }
    }
    assert!(count > SIZE * 30, "{count}");
}

#[test]
fn an_edit_whose_hash_was_computed_again_breaks_the_link_behind_it() {
    let export = Export::new();
    for at in 0..SIZE {
        let mut lines = export.lines.clone();
        let mut entry: Map<String, Value> = serde_json::from_str(&lines[at]).unwrap();
        entry.insert("actor".to_owned(), json!("somebody else"));
        lines[at] = again(entry);
        export.found(&lines, (at + 2).min(SIZE));
    }
    // With all later hashes recomputed, only the checkpoint shows the change, and it covers the whole trail.
    let mut lines = export.lines.clone();
    let mut previous = None;
    for line in lines.iter_mut().skip(20) {
        let mut entry: Map<String, Value> = serde_json::from_str(line).unwrap();
        match previous {
            None => entry.insert("actor".to_owned(), json!("somebody else")),
            Some(previous) => entry.insert("previousHash".to_owned(), previous),
        };
        *line = again(entry);
        let entry: Value = serde_json::from_str(line).unwrap();
        previous = Some(entry["hash"].clone());
    }
    export.found(&lines, SIZE);
}

/// The entry with its hash recomputed.
fn again(mut entry: Map<String, Value>) -> String {
    entry.remove("hash");
    let previous = entry["previousHash"].as_str().unwrap().to_owned();
    entry.insert("hash".to_owned(), entry_hash(&previous, &entry).unwrap().into());
    Value::Object(entry).to_string()
}

#[test]
fn removals_insertions_swaps_and_cut_tails_of_an_export_are_found() {
    let export = Export::new();
    for at in 0..SIZE {
        let mut lines = export.lines.clone();
        lines.remove(at);
        export.found(&lines, at + 1);
        export.found(&export.lines[..at], at + 1);
        for other in at + 1..SIZE {
            let mut lines = export.lines.clone();
            lines.swap(at, other);
            export.found(&lines, at + 1);
        }
    }
    for at in 0..=SIZE {
        for copied in [0, at.saturating_sub(1), at.min(SIZE - 1), SIZE - 1] {
            let mut lines = export.lines.clone();
            lines.insert(at, export.lines[copied].clone());
            // A copy next to the original: the second of the two is in the wrong place.
            let wrong = if copied == at { at + 2 } else { at + 1 };
            export.found(&lines, wrong);
        }
    }
    // A foreign entry that fits the chain in every other way.
    for at in 0..=SIZE {
        let mut lines = export.lines.clone();
        let mut entry: Map<String, Value> = serde_json::from_str(&lines[at.min(SIZE - 1)]).unwrap();
        if at == SIZE {
            let last: Value = serde_json::from_str(&lines[SIZE - 1]).unwrap();
            entry.insert("previousHash".to_owned(), last["hash"].clone());
            entry.insert("seq".to_owned(), json!(SIZE + 1));
        }
        entry.insert("actor".to_owned(), json!("somebody else"));
        lines.insert(at, again(entry));
        export.found(&lines, if at == SIZE { SIZE + 1 } else { at + 2 });
    }
}

/// The same fifty entries in a store.
struct Kept {
    _redis: Redis,
    store: Store,
    account: SeedAccount,
    writer: AuditWriter,
    archive: Archive,
    _dir: tempfile::TempDir,
    lines: Vec<Vec<u8>>,
    hashes: Vec<Vec<u8>>,
    known: KnownEnd,
}

impl Kept {
    async fn new() -> Self {
        let redis = Redis::start();
        let store = redis.store();
        let account = Seed::new(&store).await.account("builder").await;
        let writer = AuditWriter::new(&store, &account, Mode::Live);
        writer.write(&lines(SIZE as u64)).await;
        let dir = tempfile::tempdir().unwrap();
        let mut settings = load_from(None, std::iter::empty()).unwrap().audit;
        settings.archive = dir.path().display().to_string();
        let archive = Archive::at(ArchiveLocation::from_settings(&settings).unwrap());
        let verdict = online(
            &store,
            &archive,
            &account.keys.live(),
            Vec::new(),
            ROUND,
            |_, _| {},
        )
        .await
        .unwrap();
        assert_eq!(
            (verdict.ok(), verdict.entries),
            (true, SIZE as u64),
            "{verdict:?}"
        );
        let (lines, hashes) = (writer.lines().await, writer.hashes().await);
        let known = KnownEnd {
            source: Source::Archive,
            size: SIZE as u64,
            hash: verdict.hash.unwrap(),
            later: None,
        };
        Self {
            _redis: redis,
            store,
            account,
            writer,
            archive,
            _dir: dir,
            lines,
            hashes,
            known,
        }
    }

    /// The first entry that a verification reports if the store holds these lines and hashes.
    async fn first_broken(&self, lines: &[Vec<u8>], hashes: &[Vec<u8>], last: usize) -> Option<u64> {
        self.writer.forge(lines, hashes, last).await;
        let (known, realm) = (vec![self.known.clone()], self.account.keys.live());
        let verdict = online(&self.store, &self.archive, &realm, known, ROUND, |_, _| {});
        let verdict = verdict.await.unwrap();
        verdict.broken.map(|broken| broken.seq.unwrap())
    }

    async fn found(&self, lines: &[Vec<u8>], hashes: &[Vec<u8>], last: usize, at: usize) {
        let found = self.first_broken(lines, hashes, last).await;
        assert_eq!(found, Some(at as u64));
    }
}

/// All variants of the line with one word changed, except words that are not part of the entry.
fn line_edits(line: &[u8]) -> Vec<Vec<u8>> {
    let text = std::str::from_utf8(line).unwrap();
    let words: Vec<&str> = text.split(' ').collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        // The account's id, and whether the run was named.
        let unused = *word == "acct_x" || (*word == "1" && words.contains(&"H"));
        if word.is_empty() || unused {
            continue;
        }
        let last = word.len() - 1;
        let changed = match word.as_bytes()[last] {
            byte @ (b'0'..=b'8' | b'a'..=b'y') => char::from(byte + 1).to_string(),
            _ => "0".to_owned(),
        };
        let edit = format!("{}{changed}", &word[..last]);
        let edited: Vec<&str> = words
            .iter()
            .enumerate()
            .map(|(i, word)| if i == at { &edit } else { *word })
            .collect();
        found.push(edited.join(" ").into_bytes());
    }
    found
}

#[tokio::test]
async fn every_edit_in_the_store_names_the_entry() {
    let kept = Kept::new().await;
    let mut count = 0;
    for at in 0..SIZE {
        for edit in line_edits(&kept.lines[at]) {
            let mut lines = kept.lines.clone();
            lines[at] = edit;
            kept.found(&lines, &kept.hashes, SIZE, at + 1).await;
            count += 1;
        }
        for byte in [0, 31] {
            let mut hashes = kept.hashes.clone();
            hashes[at][byte] ^= 1;
            kept.found(&kept.lines, &hashes, SIZE, at + 1).await;
        }
        let mut hashes = kept.hashes.clone();
        hashes[at].truncate(31);
        kept.found(&kept.lines, &hashes, SIZE, at + 1).await;
        // An edit with all later hashes recomputed: only the checkpoint shows it.
        let mut lines = kept.lines.clone();
        lines[at] = String::from_utf8(lines[at].clone())
            .unwrap()
            .replace("bot-", "bat-")
            .into_bytes();
        let hashes: Vec<Vec<u8>> = chain(&lines)
            .iter()
            .map(|(_, sealed)| sealed.hash.to_vec())
            .collect();
        kept.found(&lines, &hashes, SIZE, SIZE).await;
    }
    assert!(count > SIZE * 8, "{count}");
    assert_eq!(kept.first_broken(&kept.lines, &kept.hashes, SIZE).await, None);
}

#[tokio::test]
async fn removals_insertions_swaps_and_cut_tails_in_the_store_are_found() {
    let kept = Kept::new().await;
    let Kept { lines, hashes, .. } = &kept;
    let without = |list: &[Vec<u8>], at: usize| {
        let mut list = list.to_vec();
        list.remove(at);
        list
    };
    for at in 0..SIZE {
        kept.found(&without(lines, at), &without(hashes, at), SIZE, at + 1)
            .await;
        kept.found(&without(lines, at), &without(hashes, at), SIZE - 1, at + 1)
            .await;
        kept.found(&without(lines, at), hashes, SIZE, at + 1).await;
        // A missing last hash is recomputed, and is the same.
        let lost = kept.first_broken(lines, &without(hashes, at), SIZE).await;
        assert_eq!(lost, (at + 1 < SIZE).then_some(at as u64 + 1));
        for last in [at, SIZE] {
            kept.found(&lines[..at], &hashes[..at], last, at + 1).await;
            kept.found(&lines[..at], hashes, last, at + 1).await;
        }
        for other in at + 1..SIZE {
            let (mut swapped, mut swapped_hashes) = (lines.clone(), hashes.clone());
            swapped.swap(at, other);
            if other % 3 == 0 {
                swapped_hashes.swap(at, other);
            }
            kept.found(&swapped, &swapped_hashes, SIZE, at + 1).await;
        }
    }
    for at in 0..=SIZE {
        let (mut more, mut more_hashes) = (lines.clone(), hashes.clone());
        more.insert(at, lines[(at + 7) % SIZE].clone());
        more_hashes.insert(at, hashes[(at + 7) % SIZE].clone());
        for last in [SIZE, SIZE + 1] {
            kept.found(&more, &more_hashes, last, at + 1).await;
        }
    }
    // A line after the counted end.
    let mut more = lines.clone();
    more.push(
        format!(
            "51 1795000099000 {}",
            r#"{"type":"x","agentId":null,"actor":"y","data":{}}"#
        )
        .into_bytes(),
    );
    kept.found(&more, hashes, SIZE, SIZE + 1).await;
    assert_eq!(kept.first_broken(lines, hashes, SIZE).await, None);
}
