//! The last checkpoint of a trail, outside the store, and segments that left it: what was cut off or exchanged shows.

use crate::office::{Office, broken};
use crate::scribe::lines;
use crate::world::{BINARY, text};
use harness::{Admin, AdminOptions, eventually};
use serde_json::{Value, json};
use shared::domain::mode::Mode;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
        let verdict = office.verify(&[], 1);
        assert!(text(&verdict, "/problem").contains("archive"), "{verdict}");
        let first = segment.file_name().unwrap().to_string_lossy()[..12]
            .parse::<u64>()
            .unwrap();
        assert_eq!(verdict["firstBroken"], json!(first), "{}", segment.display());
        std::fs::write(&segment, &bytes).unwrap();
    }
    assert_eq!(office.verify(&[], 0)["ok"], json!(true));
}

fn find(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => find(&path, found),
            // Not what a server that was killed had not finished, nor the manifests, which are not needed to read entries.
            false if path.to_string_lossy().ends_with(".zst") => found.push(path),
            false => {}
        }
    }
}
