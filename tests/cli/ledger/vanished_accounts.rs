//! Accounts that are gone from the store, or shorter, while the archive has their checkpoints.

use crate::account;
use harness::{Cli, Redis};
use serde_json::Value;
use std::path::{Path, PathBuf};
use store::account::ModeField;
use store::keys::{ACCOUNTS, AccountKeys};

/// Three accounts with a deposit each, all of them noted in the archive.
struct Vanished {
    redis: Redis,
    cli: Cli,
    dir: tempfile::TempDir,
    ids: Vec<String>,
}

impl Vanished {
    fn build() -> Self {
        let redis = Redis::start();
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("archive").display().to_string();
        let cli = crate::ready(&redis).env("TOLLGATE_AUDIT__ARCHIVE", archive);
        let ids: Vec<String> = (0..3).map(|_| account(&cli)).collect();
        let fixture = Self { redis, cli, dir, ids };
        for id in &fixture.ids {
            let deposit = ["deposit", "--account", id, "--wallet", "user", "--amount", "5"];
            fixture.cli.json(&[&deposit[..], &["--reference", id]].concat());
            fixture.note(id);
        }
        fixture
    }

    fn folder(&self, id: &str) -> PathBuf {
        self.dir.path().join("archive/checkpoints").join(id)
    }

    /// Puts a note of the trail where the server's worker puts it.
    fn note(&self, id: &str) {
        let (out, note) = (self.dir.path().join("export"), self.folder(id).join("live"));
        std::fs::create_dir_all(self.folder(id)).unwrap();
        let text = |path: &Path| path.display().to_string();
        let export = ["audit", "export", "--account", id];
        let files = ["--out", &text(&out), "--checkpoint", &text(&note)];
        self.cli.json(&[&export[..], &files].concat());
    }

    #[track_caller]
    fn found(&self) -> Value {
        self.cli.json_exit(&["ledger", "check", "--trail"], 1)["violations"].clone()
    }
}

#[test]
fn accounts_of_the_archive_must_be_in_the_store() {
    let fixture = Vanished::build();
    let check = |args: &[&str]| fixture.cli.run(&[&["ledger", "check"], args].concat()).code;
    assert_eq!(check(&["--trail"]), Some(0));
    // A whole account, with everything in its bucket that names it.
    let id = &fixture.ids[0];
    let gone: i64 = fixture.redis.command(&["SREM", ACCOUNTS, id]);
    assert_eq!(gone, 1);
    let bucket = AccountKeys::new(id)
        .record()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let keys: Vec<String> = fixture.redis.command(&["KEYS", &format!("{bucket}/*")]);
    for key in keys {
        let _: i64 = fixture.redis.command(&["DEL", &key]);
    }
    assert_eq!(check(&[]), Some(0), "the store alone does not say so");
    assert_eq!(check(&["--trail", "--account", &fixture.ids[1]]), Some(0));
    let found = fixture.found();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    let path = format!("checkpoints/{id}/live");
    assert_eq!(
        (&found[0]["invariant"], &found[0]["records"][0]),
        (&"trail".into(), &path.into()),
        "{found}"
    );
    std::fs::remove_dir_all(fixture.folder(id)).unwrap();
    assert_eq!(check(&["--trail"]), Some(0));

    // An account that is shorter than its kept note says: entries are missing at its end.
    let id = &fixture.ids[1];
    let kept = fixture.folder(id).join("live.kept");
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::rename(fixture.folder(id).join("live"), kept.join("000000000099")).unwrap();
    let found = fixture.found();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    let said = found.to_string();
    assert!(
        said.contains("live.kept/000000000099") && said.contains("99 entries"),
        "{found}"
    );
    std::fs::remove_dir_all(&kept).unwrap();

    let id = &fixture.ids[2];
    let record = AccountKeys::new(id).record();
    let field = ModeField::AuditSeq.name(domain::mode::Mode::Live);
    let _: i64 = fixture.redis.command(&["HINCRBY", &record, &field, "-1"]);
    let live = AccountKeys::new(id).live();
    for list in [live.audit(), live.audit_hashes()] {
        let _: Vec<u8> = fixture.redis.command(&["RPOP", &list]);
    }
    let said = fixture.found().to_string();
    assert!(said.contains(&format!("checkpoints/{id}/live")), "{said}");
}
