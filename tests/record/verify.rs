//! `tollgate-admin audit`: what it says of trails and exports that are whole, cut, changed, or cannot be compared; and the
//! checkpoints that make a cut tail visible.

use crate::scribe::{Scribe, lines};
use crate::world::{BINARY, World, text};
use harness::{Admin, AdminOptions, Cli, Redis, Seed, SeedAccount, Store, eventually};
use serde_json::{Map, Value, json};
use shared::domain::chain::entry_hash;
use shared::domain::mode::Mode;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A trail of fifty entries, and commands with an archive of their own.
struct Office {
    redis: Redis,
    store: Store,
    account: SeedAccount,
    scribe: Scribe,
    cli: Cli,
    dir: tempfile::TempDir,
}

impl Office {
    async fn open() -> Self {
        let redis = Redis::start();
        let store = redis.store();
        let account = Seed::new(&store).await.account("builder").await;
        let scribe = Scribe::of(&store, &account, Mode::Live);
        scribe.write(&lines(50)).await;
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("archive").display().to_string();
        let cli = Cli::new(BINARY, redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", archive);
        Self {
            redis,
            store,
            account,
            scribe,
            cli,
            dir,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes an export and its checkpoint.
    fn export(&self, name: &str) -> (String, String) {
        let (file, note) = (self.path(name), self.path(&format!("{name}.note")));
        let (file, note) = (file.display().to_string(), note.display().to_string());
        let made = self.audit(&["export", "--out", &file, "--checkpoint", &note], 0);
        assert_eq!(made["ok"], json!(true));
        (file, note)
    }

    fn audit(&self, args: &[&str], code: i32) -> Value {
        audit(&self.cli, &self.account.id, args, code)
    }

    fn verify(&self, args: &[&str], code: i32) -> Value {
        self.audit(&[&["verify"], args].concat(), code)
    }

    fn key(&self) -> String {
        text(&self.cli.json(&["audit", "key"]), "/publicKey").to_owned()
    }

    /// Commands whose store is not there.
    fn alone(&self) -> Cli {
        self.cli.clone().env("TOLLGATE_STORE__URL", "redis://127.0.0.1:1")
    }
}

#[track_caller]
fn audit(cli: &Cli, account: &str, args: &[&str], code: i32) -> Value {
    let args = [&["audit"], args, &["--account", account, "--json"]].concat();
    let output = cli.run(&args);
    assert_eq!(output.code, Some(code), "{args:?}: {output:?}");
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[track_caller]
fn broken(verdict: &Value, seq: impl Into<Value>, words: &str) {
    assert_eq!(verdict["ok"], json!(false), "{verdict}");
    assert_eq!(verdict["firstBroken"], seq.into(), "{verdict}");
    assert_eq!(verdict["endProven"], json!(false), "{verdict}");
    assert!(text(verdict, "/problem").contains(words), "{verdict}");
}

fn rewrite(path: &str, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines: Vec<String> = std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    change(&mut lines);
    std::fs::write(path, lines.join("\n")).unwrap();
}

/// Changes an entry and computes all hashes behind it again.
fn forge(lines: &mut [String], at: usize) {
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

#[tokio::test]
async fn a_trail_in_order_is_said_to_be() {
    let office = Office::open().await;
    let verdict = office.verify(&[], 0);
    for (field, value) in [
        ("ok", json!(true)),
        ("entries", json!(50)),
        ("firstBroken", Value::Null),
        ("problem", Value::Null),
        ("checkpoint", Value::Null),
        ("endProven", json!(true)),
    ] {
        assert_eq!(verdict[field], value, "{field}: {verdict}");
    }
    assert!(
        text(&verdict, "/warnings/0").contains("no signed checkpoint"),
        "{verdict}"
    );
    let (file, note) = office.export("export.jsonl");
    let online = office.verify(&["--checkpoint", &note], 0);
    assert_eq!(online["checkpoint"]["source"], "note");
    for (args, source) in [
        (&["--file", &file][..], "store"),
        (&["--file", &file, "--checkpoint", &note], "note"),
    ] {
        let verdict = office.verify(args, 0);
        assert_eq!(
            (&verdict["ok"], &verdict["entries"], &verdict["endProven"]),
            (&json!(true), &json!(50), &json!(true))
        );
        assert_eq!(
            verdict["checkpoint"],
            json!({ "source": source, "size": 50, "hash": verdict["hash"] })
        );
        assert_eq!(verdict["warnings"], json!([]));
    }
    assert_eq!(office.verify(&["--mode", "test"], 0)["entries"], json!(0));
    let told = office
        .cli
        .run(&["audit", "verify", "--account", &office.account.id]);
    assert!(told.stdout.contains("Entries 1 to 50 are in order."), "{told:?}");
    let plain = office
        .cli
        .run(&["audit", "export", "--account", &office.account.id]);
    assert_eq!(plain.stdout, std::fs::read_to_string(&file).unwrap());
}

#[tokio::test]
async fn an_export_is_verified_without_a_store() {
    let office = Office::open().await;
    let (file, note) = office.export("export.jsonl");
    let (key, alone, id) = (office.key(), office.alone(), &office.account.id);
    let verify =
        |args: &[&str], code| audit(&alone, id, &[&["verify", "--file", &file], args].concat(), code);
    let proven = verify(&["--checkpoint", &note, "--key", &key], 0);
    assert_eq!(
        (&proven["ok"], &proven["endProven"]),
        (&json!(true), &json!(true))
    );
    let nothing = verify(&[], 0);
    assert_eq!(
        (&nothing["ok"], &nothing["endProven"], &nothing["checkpoint"]),
        (&json!(true), &json!(false), &Value::Null)
    );
    assert!(
        nothing["warnings"]
            .to_string()
            .contains("nothing was there to compare"),
        "{nothing}"
    );
    let unchecked = verify(&["--checkpoint", &note], 2);
    assert!(text(&unchecked, "/error").contains("--key"), "{unchecked}");
    // The archive's note does where the store cannot be asked.
    let path = office.path("archive").join("checkpoints").join(id).join("live");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(&note, &path).unwrap();
    let archived = verify(&["--key", &key], 0);
    assert_eq!(
        (&archived["checkpoint"]["source"], &archived["endProven"]),
        (&json!("archive"), &json!(true))
    );
    rewrite(&file, |lines| lines.truncate(41));
    broken(&verify(&["--key", &key], 1), 42, "missing at the end");
    broken(
        &verify(&["--checkpoint", &note, "--key", &key], 1),
        42,
        "missing at the end",
    );
    assert_eq!(verify(&[], 0)["endProven"], json!(false), "nobody knows");
    rewrite(&file, |lines| lines[6] = lines[6].replace("vk_", "vk-"));
    broken(&verify(&[], 1), 7, "does not have its hash");
    assert_eq!(audit(&alone, id, &["verify"], 1)["code"], "STORE");
}

#[tokio::test]
async fn notes_and_keys_must_be_the_right_ones() {
    let office = Office::open().await;
    let (file, note) = office.export("export.jsonl");
    let verify = |args: &[&str], code| office.verify(&[&["--file", &file], args].concat(), code);
    let good = std::fs::read_to_string(&note).unwrap();
    let bad = office.path("bad.note").display().to_string();
    let put = |text: &str| std::fs::write(&bad, text).unwrap();
    put(&good.replacen("\n50\n", "\n49\n", 1));
    broken(
        &verify(&["--checkpoint", &bad], 1),
        Value::Null,
        "signature does not fit",
    );
    put("nonsense");
    broken(&verify(&["--checkpoint", &bad], 1), Value::Null, "no signed note");
    broken(
        &office.verify(&["--checkpoint", &bad], 1),
        Value::Null,
        "no signed note",
    );
    let other = Redis::start();
    let stranger = Seed::new(&other.store()).await.account("builder").await;
    let cli = Cli::new(BINARY, other.url());
    let key = text(&cli.json(&["audit", "key"]), "/publicKey").to_owned();
    broken(
        &verify(&["--checkpoint", &note, "--key", &key], 1),
        Value::Null,
        "no signature of the expected key",
    );
    let theirs = ["verify", "--file", &file, "--checkpoint", &note];
    broken(
        &audit(&cli, &stranger.id, &theirs, 1),
        Value::Null,
        "another chain",
    );
    for args in [
        &["--key", "x"][..],
        &["--after", "-1"],
        &["--file", "/nowhere"],
        &["--checkpoint", "/nowhere"],
    ] {
        let output = office
            .cli
            .run(&[&["audit", "verify", "--account", &office.account.id], args].concat());
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
    }
    assert_eq!(
        audit(&office.cli, "acct_none", &["verify"], 1)["code"],
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn an_export_must_be_what_the_store_has() {
    let office = Office::open().await;
    let (file, note) = office.export("export.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    let verify = |code| office.verify(&["--file", &file], code);
    // All hashes behind the changed entry are right again, and it is named all the same.
    rewrite(&file, |lines| forge(lines, 22));
    broken(&verify(1), 23, "another entry than in the store");
    broken(
        &office.verify(&["--file", &file, "--checkpoint", &note], 1),
        50,
        "another hash",
    );
    rewrite(&file, |lines| {
        lines.truncate(30);
        lines.push("x".to_owned());
    });
    broken(&verify(1), 23, "another entry than in the store");
    std::fs::write(&file, whole.lines().take(20).collect::<Vec<_>>().join("\n")).unwrap();
    broken(&verify(1), 21, "--checkpoint");
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(verify(0)["ok"], json!(true));
    // An export of yesterday is proven with the checkpoint of yesterday.
    office.scribe.write(&lines(3)).await;
    broken(&verify(1), 51, "--checkpoint");
    let old = office.verify(&["--file", &file, "--checkpoint", &note], 0);
    assert_eq!(old["endProven"], json!(true));
    let (newer, _) = office.export("newer.jsonl");
    broken(
        &office.verify(&["--file", &newer, "--checkpoint", &note], 1),
        51,
        "behind the end",
    );
    // A part of it.
    let part = office.path("part.jsonl").display().to_string();
    let made = office.audit(&["export", "--out", &part, "--after", "40"], 0);
    assert_eq!(made["entries"], json!(13));
    broken(
        &office.verify(&["--file", &part], 1),
        1,
        "entry 41 stands in its place",
    );
    let verdict = office.verify(&["--file", &part, "--after", "40"], 0);
    assert_eq!(
        (&verdict["entries"], &verdict["endProven"]),
        (&json!(13), &json!(true))
    );
    assert!(verdict["warnings"].to_string().contains("on trust"), "{verdict}");
}

#[tokio::test]
async fn a_store_that_was_changed_is_named() {
    let office = Office::open().await;
    let (_, note) = office.export("export.jsonl");
    let (lines, hashes) = (office.scribe.lines().await, office.scribe.hashes().await);
    let mut changed = lines.clone();
    changed[11] = b"12 5 nonsense".to_vec();
    office.scribe.forge(&changed, &hashes, 50).await;
    broken(&office.verify(&[], 1), 12, "cannot be read");
    office.scribe.forge(&lines[..45], &hashes[..45], 50).await;
    broken(&office.verify(&[], 1), 46, "the account's record counts them");
    office.scribe.forge(&lines[..45], &hashes[..45], 45).await;
    assert_eq!(
        office.verify(&[], 0)["entries"],
        json!(45),
        "the store alone cannot tell"
    );
    broken(
        &office.verify(&["--checkpoint", &note], 1),
        46,
        "missing at the end",
    );
    office.scribe.forge(&lines, &hashes, 50).await;
    assert_eq!(office.verify(&["--checkpoint", &note], 0)["ok"], json!(true));
    let told = office
        .cli
        .run(&["audit", "verify", "--account", &office.account.id]);
    assert_eq!(told.code, Some(0), "{told:?}");
}

fn metric(admin: &Admin, name: &str) -> u64 {
    let (_, metrics) = admin.ops("/metrics").unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().parse().unwrap()
}

async fn until(what: &str, mut look: impl FnMut() -> bool) {
    eventually(what, Duration::from_secs(30), async || look().then_some(())).await;
}

#[tokio::test]
async fn the_last_checkpoint_moves_on_and_shows_what_was_cut_off() {
    let office = Office::open().await;
    let options = AdminOptions::new(BINARY, office.redis.url())
        .env(
            "TOLLGATE_AUDIT__ARCHIVE",
            office.path("archive").display().to_string(),
        )
        .env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", "50");
    let admin = Admin::start(options.clone());
    let path = office
        .path("archive")
        .join("checkpoints")
        .join(&office.account.id)
        .join("live");
    let size = |path: &Path| -> Option<u64> {
        let note = std::fs::read_to_string(path).ok()?;
        note.lines().nth(1)?.parse().ok()
    };
    until("a checkpoint of 50", || size(&path) == Some(50)).await;
    office.scribe.write(&lines(5)).await;
    until("a checkpoint of 55", || size(&path) == Some(55)).await;
    let verdict = office.verify(&[], 0);
    assert_eq!(
        verdict["checkpoint"],
        json!({ "source": "archive", "size": 55, "hash": verdict["hash"] })
    );
    assert_eq!(verdict["warnings"], json!([]));
    assert!(!path.with_file_name("test").exists(), "there is nothing to sign");

    // Cut off, and made to look whole.
    let (all, hashes) = (office.scribe.lines().await, office.scribe.hashes().await);
    office.scribe.forge(&all[..48], &hashes[..48], 48).await;
    let refused = "tollgate_admin_audit_checkpoints_refused_total ";
    until("a refusal", || metric(&admin, refused) > 0).await;
    broken(&office.verify(&[], 1), 49, "missing at the end");
    // Grown again with other entries: it is not moved over them either.
    office.scribe.write(&lines(20)).await;
    let before = metric(&admin, refused);
    until("another refusal", || metric(&admin, refused) > before).await;
    broken(&office.verify(&[], 1), 55, "another hash");
    // Nor by a server that has never seen it.
    admin.kill9();
    let logged = admin.logs();
    assert_eq!(
        logged.matches("the checkpoint of a chain stays as it is").count(),
        1,
        "{logged}"
    );
    let fresh = Admin::start(options);
    until("a refusal by a fresh server", || metric(&fresh, refused) > 0).await;
    assert_eq!(size(&path), Some(55), "the old note stays");
    office.scribe.forge(&all, &hashes, 55).await;
    assert_eq!(office.verify(&[], 0)["ok"], json!(true));
    office.scribe.write(&lines(1)).await;
    until("a checkpoint of 56", || size(&path) == Some(56)).await;
    // A note that somebody else wrote is not believed.
    let note = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, note.replacen("\n56\n", "\n57\n", 1)).unwrap();
    broken(&office.verify(&[], 1), Value::Null, "signature does not fit");
    let _keep = &office.store;
}

#[tokio::test]
async fn a_trail_is_verified_through_its_archived_segments() {
    let office = Office::open().await;
    let archive = office.path("archive");
    let options = AdminOptions::new(BINARY, office.redis.url())
        .env("TOLLGATE_AUDIT__ARCHIVE", archive.display().to_string())
        .env("TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES", "12")
        .env("TOLLGATE_AUDIT__SEGMENT_ENTRIES", "10");
    let (file, note) = office.export("before.jsonl");
    let before = std::fs::read_to_string(&file).unwrap();
    let admin = Admin::start(options);
    until("most entries leave the store", || {
        let key = office.account.keys.audit(Mode::Live);
        office.redis.command::<u64>(&["LLEN", &key]) <= 20
    })
    .await;
    drop(admin);
    let verdict = office.verify(&["--checkpoint", &note], 0);
    assert_eq!(verdict["entries"], json!(50));
    let (file, note) = office.export("after.jsonl");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(
        office.verify(&["--file", &file, "--checkpoint", &note], 0)["ok"],
        json!(true)
    );
    let mut segments = Vec::new();
    find(&archive, &mut segments);
    assert!(segments.len() >= 3, "{segments:?}");
    for segment in segments {
        let bytes = std::fs::read(&segment).unwrap();
        let mut flipped = bytes.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        std::fs::write(&segment, &flipped).unwrap();
        let args = ["audit", "verify", "--account", &office.account.id, "--json"];
        let output = office.cli.run(&args);
        let verdict: Value = serde_json::from_str(&output.stdout).unwrap();
        let whole = verdict["ok"] == json!(true);
        // A manifest is not needed to read the entries.
        let manifest = segment.to_string_lossy().contains("manifest")
            || segment.extension().is_some_and(|end| end == "json");
        assert_eq!(whole, manifest, "{}: {output:?}", segment.display());
        std::fs::write(&segment, &bytes).unwrap();
    }
    assert_eq!(office.verify(&[], 0)["ok"], json!(true));
}

fn find(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => find(&path, found),
            false => found.push(path),
        }
    }
}

#[tokio::test]
async fn the_key_survives_the_rotation_of_the_master_key() {
    let world = World::start().await;
    let cli = Cli::new(BINARY, world.redis.url());
    let key = cli.json(&["audit", "key"])["publicKey"].clone();
    let new = "FxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxc=";
    let name = "TOLLGATE_SECRETS__MASTER_KEY";
    let both = cli
        .clone()
        .env(name, format!("{new},{}", harness::TEST_MASTER_KEY));
    assert_eq!(both.json(&["keys", "rotate"])["checkpointKey"], "reencrypted");
    assert_eq!(both.json(&["keys", "rotate"])["checkpointKey"], "current");
    let renewed = cli.clone().env(name, new);
    assert_eq!(renewed.json(&["audit", "key"])["publicKey"], key);
    let lost = cli.run(&["audit", "key", "--json"]);
    assert_eq!(lost.code, Some(1), "{lost:?}");
    let rotated = cli.run(&["keys", "rotate", "--json"]);
    let rotated: Value = serde_json::from_str(&rotated.stdout).unwrap();
    assert_eq!(rotated["checkpointKey"], "unopenable");
}
