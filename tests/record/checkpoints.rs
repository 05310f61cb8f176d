//! The last checkpoint of a trail, kept outside the store, and archived segments prove that entries were cut off or
//! exchanged.

use crate::audit_writer::{AuditWriter, lines};
use crate::fixture::{BINARY, Fixture, problem, success, text};
use crate::trail_fixture::{TrailFixture, audit, broken};
use archive::Archive;
use audit_verify::checkpoint::{self, NotSigned};
use domain::checkpoint::Checkpoint;
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Cli, assert_fields, until};
use history::trail::Trail;
use serde_json::{Value, json};
use settings::load_from;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::keys::Realm;

#[tokio::test]
async fn the_last_checkpoint_moves_on_and_shows_what_was_cut_off() {
    let fixture = TrailFixture::open().await;
    let options = AdminOptions::new(BINARY, fixture.redis.url())
        .env(
            "TOLLGATE_AUDIT__ARCHIVE",
            fixture.path("archive").display().to_string(),
        )
        .env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", "50");
    let admin = Admin::start(options.clone());
    let path = fixture
        .path("archive")
        .join("checkpoints")
        .join(&fixture.account.id)
        .join("live");
    let size = |path: &Path| -> Option<u64> {
        let note = std::fs::read_to_string(path).ok()?;
        note.lines().nth(1)?.parse().ok()
    };
    until("a checkpoint of 50", async || size(&path) == Some(50)).await;
    fixture.writer.write(&lines(5)).await;
    until("a checkpoint of 55", async || size(&path) == Some(55)).await;
    let verdict = fixture.verify(&[], 0);
    assert_fields!(verdict, { "checkpoint": { "source": "archive", "size": 55, "hash": verdict["hash"] } });
    assert_eq!(verdict["warnings"], json!([]));
    assert!(!path.with_file_name("test").exists(), "there is nothing to sign");

    // Cut off, and made to look whole.
    let (all, hashes) = (fixture.writer.lines().await, fixture.writer.hashes().await);
    fixture.writer.forge(&all[..48], &hashes[..48], 48).await;
    let refused = "tollgate_admin_audit_checkpoints_refused_total";
    until("a refusal", async || admin.metric::<u64>(refused) > Some(0)).await;
    broken(&fixture.verify(&[], 1), 49, "missing at the end");
    // An older note in the place of the last one hides nothing from a server that saw the last one.
    let (last, kept) = (std::fs::read(&path).unwrap(), path.with_file_name("live.kept"));
    let oldest = std::fs::read(kept.join("000000000050")).unwrap();
    std::fs::write(&path, &oldest).unwrap();
    fixture.writer.forge(&all[..50], &hashes[..50], 50).await;
    let before = admin.metric::<u64>(refused);
    until("refusals of the older note", async || {
        admin.metric(refused) > before.map(|n| n + 2)
    })
    .await;
    std::fs::write(&path, &last).unwrap();
    fixture.writer.forge(&all[..48], &hashes[..48], 48).await;
    // The trail grows again with other entries: the checkpoint is not moved over them either.
    fixture.writer.write(&lines(20)).await;
    let before = admin.metric::<u64>(refused);
    until("another refusal", async || admin.metric(refused) > before).await;
    broken(&fixture.verify(&[], 1), 55, "its hash differs");
    // A server that has never seen the checkpoint does not move it either.
    admin.kill9();
    let logged = admin.logs();
    assert_eq!(
        logged.matches("the checkpoint of a chain stays as it is").count(),
        1,
        "{logged}"
    );
    let fresh = Admin::start(options.clone());
    until("a refusal by a fresh server", async || {
        fresh.metric::<u64>(refused) > Some(0)
    })
    .await;
    assert_eq!(size(&path), Some(55), "the old note stays");
    fixture.writer.forge(&all, &hashes, 55).await;
    assert_eq!(fixture.verify(&[], 0)["ok"], json!(true));
    // The notes that a server keeps each day remain if the last note is removed or replaced. No server runs here, since
    // it would sign the end anew.
    fresh.kill9();
    std::fs::rename(&path, path.with_extension("moved")).unwrap();
    let verdict = fixture.verify(&[], 0);
    assert_fields!(verdict, { "ok": true, "endProven": false, "provenTo": 50 });
    assert!(
        verdict["warnings"]
            .to_string()
            .contains("it was removed or replaced"),
        "{verdict}"
    );
    std::fs::rename(path.with_extension("moved"), &path).unwrap();
    let _again = Admin::start(options);
    fixture.writer.write(&lines(1)).await;
    until("a checkpoint of 56", async || size(&path) == Some(56)).await;
    // A note with a foreign signature is refused.
    let note = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, note.replacen("\n56\n", "\n57\n", 1)).unwrap();
    broken(&fixture.verify(&[], 1), Value::Null, "signature does not fit");
    let _keep = &fixture.store;
}

#[tokio::test]
async fn a_checkpoint_that_another_server_moved_on_is_no_sign_of_tampering() {
    let fixture = TrailFixture::open().await;
    let archive = archive_of(&fixture);
    let (id, mode) = (fixture.account.id.as_str(), Mode::Live);
    let trail = Trail::new(&fixture.store, &archive, Realm::new(id, mode));
    let first = trail.seal().await.unwrap();
    assert_eq!(first.seq, 50);
    // Another server seals and signs more after this one read the chain, and before it reads the checkpoint.
    fixture.writer.write(&lines(20)).await;
    let last = checkpoint::of_head(&Realm::new(id, mode), trail.seal().await.unwrap());
    fixture.writer.write(&lines(5)).await;
    let head = checkpoint::end(&trail, Some(&last)).await.unwrap();
    assert_eq!(
        (last.size, head.seq),
        (70, 75),
        "sealed after the checkpoint was read"
    );
    let other = Checkpoint {
        hash: [9; 32],
        ..last.clone()
    };
    let refused = checkpoint::end(&trail, Some(&other)).await;
    assert!(matches!(refused, Err(NotSigned::Other(70))), "{refused:?}");
    let longer = Checkpoint {
        size: 76,
        ..last.clone()
    };
    let refused = checkpoint::end(&trail, Some(&longer)).await;
    assert!(
        matches!(refused, Err(NotSigned::Shorter { now: 75, noted: 76 })),
        "{refused:?}"
    );
    assert_eq!(checkpoint::end(&trail, None).await.unwrap(), head);
}

fn archive_of(fixture: &TrailFixture) -> Archive {
    let mut settings = load_from(None, std::iter::empty()).unwrap().audit;
    settings.archive = fixture.path("archive").display().to_string();
    Archive::from_settings(&settings).unwrap()
}

#[tokio::test]
async fn nothing_is_signed_that_contradicts_the_last_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("archive").display().to_string();
    let management = Fixture::start_with(|options| {
        options
            .env("TOLLGATE_AUDIT__ARCHIVE", &archive)
            .env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", "3600000")
    })
    .await;
    let cli = Cli::new(BINARY, management.redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", &archive);
    let (account, caller) = management.account("builder").await;
    let writer = AuditWriter::new(&management.store, &account, Mode::Live);
    writer.write(&lines(50)).await;
    let path = "/v1/audit/checkpoint";
    let first = success(&caller.get(path).await, 200);
    let noted = first["size"].as_u64().unwrap();
    let place = Path::new(&archive).join("checkpoints").join(&account.id);
    std::fs::create_dir_all(&place).unwrap();
    let put = || std::fs::write(place.join("live"), text(&first, "/note")).unwrap();
    put();
    writer.write(&lines(5)).await;
    let whole = success(&caller.get(path).await, 200);
    assert_eq!(whole["size"], json!(noted + 5));
    let (all, hashes) = (writer.lines().await, writer.hashes().await);
    for size in [0, 10, noted, noted + 3] {
        let earlier = success(&caller.get(&format!("{path}?size={size}")).await, 200);
        assert_eq!(earlier["size"], json!(size));
    }
    let reply = caller.get(&format!("{path}?size={}", noted + 6)).await;
    problem(&reply, 400, "VALIDATION");
    // The note of an earlier state, in the place of the last one, hides no cut: it names the end at its signing.
    let earlier = success(&caller.get(&format!("{path}?size=10")).await, 200);
    std::fs::write(place.join("live"), text(&earlier, "/note")).unwrap();
    writer.forge(&all[..10], &hashes[..10], 10).await;
    let message = problem(&caller.get(path).await, 409, "CONFLICT");
    assert!(message.contains("cut off"), "{message}");
    broken(
        &audit(&cli, &account.id, &["verify"], 1),
        11,
        "missing at the end",
    );
    writer.forge(&all, &hashes, all.len()).await;
    put();
    let out = dir.path().join("signed.jsonl").display().to_string();
    let note = format!("{out}.note");
    let export = ["export", "--out", &out, "--checkpoint", &note];
    let refused = async |query: &str, words: &str| {
        let reply = caller.get(&format!("{path}{query}")).await;
        let message = problem(&reply, 409, "CONFLICT");
        assert!(message.contains(words), "{message}");
    };

    // A trail written anew with all later hashes, and a trail cut off.
    let mut changed = all.clone();
    changed[22] = String::from_utf8(changed[22].clone())
        .unwrap()
        .replace("bot-", "bat-")
        .into_bytes();
    for (lines, kept, words) in [(&changed[..], 22, "written anew"), (&all[..40], 40, "cut off")] {
        writer.forge(lines, &hashes[..kept], lines.len()).await;
        refused("", words).await;
        refused("?size=30", words).await;
        let message = audit(&cli, &account.id, &export, 1);
        assert_eq!(message["code"], "CHECKPOINT", "{message}");
        assert!(text(&message, "/error").contains(words), "{message}");
        assert!(!Path::new(&out).exists() && !Path::new(&note).exists());
    }
    // Only the hash of an earlier entry differs: the end is unchanged, and the earlier state does not lead to it.
    let mut other = hashes.clone();
    other[9][0] ^= 1;
    writer.forge(&all, &other, all.len()).await;
    refused("?size=10", "does not lead to").await;

    // An unreadable checkpoint may contradict the trail, so nothing is signed.
    writer.forge(&all, &hashes, all.len()).await;
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::write(&place, "").unwrap();
    let message = problem(&caller.get(path).await, 503, "SERVICE_UNAVAILABLE");
    assert!(message.contains("No checkpoint is signed"), "{message}");
    audit(&cli, &account.id, &export, 1);
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir_all(&place).unwrap();
    put();
    success(&caller.get(path).await, 200);
    assert_eq!(audit(&cli, &account.id, &export, 0)["ok"], json!(true));
}

#[tokio::test]
async fn a_trail_is_verified_through_its_archived_segments() {
    let fixture = TrailFixture::open().await;
    let archive = fixture.path("archive");
    let options = AdminOptions::new(BINARY, fixture.redis.url())
        .env("TOLLGATE_AUDIT__ARCHIVE", archive.display().to_string())
        .env("TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES", "12")
        .env("TOLLGATE_AUDIT__SEGMENT_ENTRIES", "10");
    let (file, note) = fixture.export("before.jsonl");
    let before = std::fs::read_to_string(&file).unwrap();
    let admin = Admin::start(options);
    until("most entries leave the store", async || {
        let key = fixture.account.keys.live().audit();
        fixture.redis.command::<u64>(&["LLEN", &key]) <= 20
    })
    .await;
    // The worker finishes its round first: nobody would read a segment that the store does not know yet.
    admin.term();
    assert_eq!(
        admin.wait_exit(Duration::from_secs(60)),
        Some(0),
        "{}",
        admin.logs()
    );
    let verdict = fixture.verify(&["--checkpoint", &note], 0);
    assert_eq!(verdict["entries"], json!(50));
    let (file, note) = fixture.export("after.jsonl");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_fields!(fixture.verify(&["--file", &file, "--checkpoint", &note], 0), { "ok": true });
    let mut segments = Vec::new();
    find(&archive, &mut segments);
    assert!(segments.len() >= 3, "{segments:?}");
    for segment in &segments {
        let bytes = std::fs::read(segment).unwrap();
        let mut flipped = bytes.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        std::fs::write(segment, &flipped).unwrap();
        let verdict = fixture.verify(&[], 1);
        assert!(text(&verdict, "/problem").contains("archive"), "{verdict}");
        assert_eq!(verdict["firstBroken"], first_of(segment), "{}", segment.display());
        std::fs::write(segment, &bytes).unwrap();
    }
    assert_eq!(fixture.verify(&[], 0)["ok"], json!(true));
    manifests_are_verified_and_made_again(&fixture, &segments);
}

/// The number of a segment's first entry.
fn first_of(segment: &Path) -> Value {
    let name = segment.file_name().unwrap().to_string_lossy();
    json!(name[..12].parse::<u64>().unwrap())
}

/// A lost or changed manifest is reported even if the trail is in order, and is made again from its segment.
fn manifests_are_verified_and_made_again(fixture: &TrailFixture, segments: &[PathBuf]) {
    for segment in segments {
        let manifest = PathBuf::from(segment.to_string_lossy().replace(".jsonl.zst", ".json"));
        let bytes = std::fs::read(&manifest).unwrap();
        let mut changed = bytes.clone();
        *changed.iter_mut().rev().nth(2).unwrap() ^= 1;
        for damaged in [None, Some(changed)] {
            match &damaged {
                None => std::fs::remove_file(&manifest).unwrap(),
                Some(changed) => std::fs::write(&manifest, changed).unwrap(),
            }
            let verdict = fixture.verify(&[], 1);
            broken(&verdict, first_of(segment), "manifest");
            let name = manifest.file_name().unwrap().to_string_lossy();
            assert!(text(&verdict, "/problem").contains(&*name), "{verdict}");
            let made = fixture.audit(&["manifests"], 0);
            assert_fields!(made, { "ok": true, "segments": segments.len(), "failed": [] });
            assert_eq!(made["made"].as_array().unwrap().len(), 1, "{made}");
            assert!(std::fs::read(&manifest).unwrap() == bytes, "to the byte");
            assert_eq!(fixture.verify(&[], 0)["ok"], json!(true));
        }
    }
    // A manifest without its segment cannot be made.
    let segment = &segments[0];
    let manifest = segment.to_string_lossy().replace(".jsonl.zst", ".json");
    std::fs::remove_file(segment).unwrap();
    std::fs::remove_file(manifest).unwrap();
    let failed = fixture.audit(&["manifests"], 1);
    assert_eq!(failed["failed"].as_array().unwrap().len(), 1, "{failed}");
}

fn find(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => find(&path, found),
            // Skips what a killed server left unfinished, and the manifests, which are not needed to read entries.
            false if path.to_string_lossy().ends_with(".zst") => found.push(path),
            false => {}
        }
    }
}
