//! A trail of fifty entries, commands about it, and their output.

use crate::audit_writer::{AuditWriter, lines};
use crate::fixture::{BINARY, text};
use domain::chain::entry_hash;
use domain::mode::Mode;
use harness::{Cli, Redis, Seed, SeedAccount, Store};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// A trail of fifty entries, with commands about it and their output.
pub struct TrailFixture {
    pub redis: Redis,
    pub store: Store,
    pub account: SeedAccount,
    pub writer: AuditWriter,
    pub cli: Cli,
    pub dir: tempfile::TempDir,
}

impl TrailFixture {
    pub async fn open() -> Self {
        let redis = Redis::start();
        let store = redis.store();
        let account = Seed::new(&store).await.account("builder").await;
        let writer = AuditWriter::new(&store, &account, Mode::Live);
        writer.write(&lines(50)).await;
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("archive").display().to_string();
        let cli = Cli::new(BINARY, redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", archive);
        Self {
            redis,
            store,
            account,
            writer,
            cli,
            dir,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The archive's file of the last checkpoint.
    pub fn note(&self) -> PathBuf {
        let checkpoints = self.path("archive").join("checkpoints");
        checkpoints.join(&self.account.id).join("live")
    }

    /// Writes an export and its checkpoint.
    pub fn export(&self, name: &str) -> (String, String) {
        let (file, note) = (self.path(name), self.path(&format!("{name}.note")));
        let (file, note) = (file.display().to_string(), note.display().to_string());
        let made = self.audit(&["export", "--out", &file, "--checkpoint", &note], 0);
        assert_eq!(made["ok"], json!(true));
        (file, note)
    }

    pub fn audit(&self, args: &[&str], code: i32) -> Value {
        audit(&self.cli, &self.account.id, args, code)
    }

    pub fn verify(&self, args: &[&str], code: i32) -> Value {
        self.audit(&[&["verify"], args].concat(), code)
    }

    pub fn key(&self) -> String {
        text(&self.cli.json(&["audit", "key"]), "/publicKey").to_owned()
    }

    /// Commands with an unreachable store.
    pub fn alone(&self) -> Cli {
        self.cli.clone().env("TOLLGATE_STORE__URL", "redis://127.0.0.1:1")
    }
}

#[track_caller]
pub fn audit(cli: &Cli, account: &str, args: &[&str], code: i32) -> Value {
    cli.json_exit(&[&["audit"], args, &["--account", account]].concat(), code)
}

#[track_caller]
pub fn broken(verdict: &Value, seq: impl Into<Value>, words: &str) {
    assert_eq!(verdict["ok"], json!(false), "{verdict}");
    assert_eq!(verdict["firstBroken"], seq.into(), "{verdict}");
    assert_eq!(verdict["endProven"], json!(false), "{verdict}");
    assert!(text(verdict, "/problem").contains(words), "{verdict}");
}

pub fn rewrite(path: &str, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines: Vec<String> = std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    change(&mut lines);
    std::fs::write(path, lines.join("\n")).unwrap();
}

/// Changes an entry and computes all hashes behind it again.
pub fn forge(lines: &mut [String], at: usize) {
    let mut previous: Option<Value> = None;
    for line in &mut lines[at..] {
        let mut entry: Map<String, Value> = serde_json::from_str(line).unwrap();
        match previous {
            None => entry.insert("actor".to_owned(), json!("somebody else")),
            Some(previous) => entry.insert("previousHash".to_owned(), previous),
        };
        entry.remove("hash");
        let before = entry["previousHash"].as_str().unwrap().to_owned();
        let hash = json!(entry_hash(&before, &entry).unwrap());
        entry.insert("hash".to_owned(), hash.clone());
        previous = Some(hash);
        *line = Value::Object(entry).to_string();
    }
}
