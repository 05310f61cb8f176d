//! A damaged archive is an error that names the object, and nothing leaves the store.

use super::fixture::{EVERYTHING, Fixture, archive_at};
use archive::Archive;
use archive::segment::Manifest;
use domain::mode::Mode;
use domain::permission::Permission;
use harness::{Admin, AdminOptions, Caller};
use serde_json::{Value, json};
use std::path::PathBuf;
use store::StoreError;
use store::audit::chain::EntryFilter;
use store::page::PageRequest;

/// 30 entries, of which 20 are archived; the files of the first segment.
async fn archived() -> (Fixture, Vec<String>, [PathBuf; 2]) {
    let fixture = Fixture::new().await;
    let ids = fixture.fill(30).await;
    for _ in 0..2 {
        assert_eq!(fixture.move_segment(10).await, 10);
    }
    fixture.forget().await;
    let base = format!("segments/{}/live/000000000001-000000000010", fixture.account.id);
    let files = [".jsonl.zst", ".json"].map(|end| fixture.root.path().join(format!("{base}{end}")));
    (fixture, ids, files)
}

fn named<T: std::fmt::Debug>(found: Result<T, StoreError>, file: &str) {
    let error = found.expect_err("what is damaged must not be passed over");
    assert!(matches!(error, StoreError::Archive(_)), "{error:?}");
    assert!(error.to_string().contains(file), "{error}");
}

/// Asserts that an archive with empty caches reports the damage.
async fn noticed(fixture: &Fixture, id: &str, segment_is_bad: bool) {
    let fresh = archive_at(fixture.root.path());
    let trail = history::trail::Trail::new(&fixture.store, &fresh, fixture.account.keys.live());
    let everything = PageRequest::at(0, 100);
    if segment_is_bad {
        named(
            trail.list(EVERYTHING, everything).await,
            "000000000001-000000000010.jsonl.zst",
        );
        named(trail.read(5).await, "000000000001-000000000010.jsonl.zst");
        named(trail.decision(id).await, "000000000001-000000000010.jsonl.zst");
        let across = EntryFilter {
            from_ms: Some(fixture.at_ms(3)),
            ..EVERYTHING
        };
        named(
            trail.list(across, PageRequest::at(0, 1)).await,
            "000000000001-000000000010",
        );
    } else {
        named(trail.decision(id).await, "000000000001-000000000010.json");
    }
    // The rest is not affected.
    assert_eq!(trail.read(11).await.unwrap().len(), 10);
    let part = trail.list(EVERYTHING, PageRequest::at(0, 20)).await.unwrap();
    assert_eq!((part.records.len(), part.total), (20, 30));
}

/// A manifest without the description of the segment's compression.
fn uncompressed(manifest: &[u8]) -> Option<Manifest> {
    let mut manifest: Manifest = serde_json::from_slice(manifest).ok()?;
    manifest.segment.sha256.clear();
    manifest.segment.bytes = 0;
    Some(manifest)
}

#[tokio::test]
async fn every_flipped_byte_cut_tail_and_missing_file_is_noticed() {
    let (fixture, ids, [segment, manifest]) = archived().await;
    for (file, is_segment) in [(&segment, true), (&manifest, false)] {
        let whole = std::fs::read(file).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(file, &bytes).unwrap();
            // A flipped bit that leaves every line as it was is no damage: headers have unused bits, and these reads
            // do not use a manifest's description of the compression.
            let fresh = archive_at(fixture.root.path());
            let trail = history::trail::Trail::new(&fixture.store, &fresh, fixture.account.keys.live());
            match is_segment {
                true => match trail.read(1).await {
                    Ok(read) => assert_eq!(read, fixture.trail().read(1).await.unwrap()),
                    Err(error) => named(Err::<(), _>(error), "000000000001-000000000010.jsonl.zst"),
                },
                false if uncompressed(&bytes) == uncompressed(&whole) => {
                    assert!(trail.decision(&ids[0]).await.is_ok_and(|found| found.len() == 1));
                }
                false => named(trail.decision(&ids[0]).await, "000000000001-000000000010.json"),
            }
        }
        std::fs::write(file, &whole[..whole.len() - 1]).unwrap();
        noticed(&fixture, &ids[0], is_segment).await;
        std::fs::write(file, b"").unwrap();
        noticed(&fixture, &ids[0], is_segment).await;
        std::fs::remove_file(file).unwrap();
        noticed(&fixture, &ids[0], is_segment).await;
        std::fs::write(file, whole).unwrap();
    }
    let fresh = archive_at(fixture.root.path());
    let trail = history::trail::Trail::new(&fixture.store, &fresh, fixture.account.keys.live());
    assert_eq!(trail.decision(&ids[0]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn entries_that_were_changed_in_a_segment_are_noticed() {
    let (fixture, ids, [segment, _]) = archived().await;
    let whole = std::fs::read(&segment).unwrap();
    let text = String::from_utf8(zstd::decode_all(whole.as_slice()).unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let changed = [
        text.replacen("\"key_0\"", "\"key_1\"", 1),
        [&lines[1..], &lines[..1]].concat().join("\n") + "\n",
        lines[..9].join("\n") + "\n",
        text.replacen("\"seq\":1,", "\"seq\":2,", 1),
        text.replacen("\"n\":0", "\"n\":00", 1),
        format!("{text}\n"),
    ];
    for changed in changed {
        assert_ne!(changed, text);
        std::fs::write(&segment, zstd::encode_all(changed.as_bytes(), 5).unwrap()).unwrap();
        noticed(&fixture, &ids[0], true).await;
    }
    // A decompression bomb is not expanded.
    let bomb = vec![b' '; 64 << 20];
    std::fs::write(&segment, zstd::encode_all(bomb.as_slice(), 19).unwrap()).unwrap();
    noticed(&fixture, &ids[0], true).await;
}

#[tokio::test]
async fn unwritable_segments_leave_entries_in_the_store() {
    let fixture = Fixture::new().await;
    fixture.fill(20).await;
    let blocked = fixture.root.path().join("file");
    let archive = archive_at(&blocked.join("below"));
    std::fs::write(&blocked, "x").unwrap();
    let moving = archive.move_segment(&fixture.chain(), 20, 10).await;
    let error = moving.unwrap_err();
    assert!(error.to_string().starts_with("the archive cannot"), "{error}");
    untouched(&fixture, &archive, 20).await;
}

async fn untouched(fixture: &Fixture, archive: &Archive, count: u64) {
    let backlog = fixture.chain().backlog().await.unwrap();
    assert_eq!((backlog.archived, backlog.live), (0, count));
    let trail = history::trail::Trail::new(&fixture.store, archive, fixture.account.keys.live());
    let part = trail.list(EVERYTHING, PageRequest::at(0, 100)).await.unwrap();
    assert_eq!((part.records.len() as u64, part.total), (count, count));
}

#[tokio::test]
async fn indexes_changed_by_hand_stop_the_archiver() {
    let fixture = Fixture::new().await;
    fixture.fill(20).await;
    let index = fixture.account.keys.live().audit_index(Some("ann"), None);
    let _: u64 = fixture.redis.command(&["LPUSH", &index, "3"]);
    let moving = fixture.archive.move_segment(&fixture.chain(), 20, 10).await;
    let error = moving.unwrap_err();
    assert!(matches!(error, StoreError::UnexpectedReply(_)), "{error}");
    let _: String = fixture.redis.command(&["LPOP", &index]);
    untouched(&fixture, &fixture.archive, 20).await;
    assert_eq!(fixture.move_segment(10).await, 10);
}

#[tokio::test]
async fn leftovers_of_an_attempt_are_found_and_other_things_kept_beside() {
    let (_street, _, [segment, manifest]) = archived().await;
    let bytes = [&segment, &manifest].map(|file| std::fs::read(file).unwrap());
    // The same entries again, on a store that has not archived yet: as after a crash before the script ran.
    let again = Fixture::new().await;
    for n in 0..10 {
        again.append(n).await;
    }
    again.chain().seal().await.unwrap();
    let base = again
        .root
        .path()
        .join(format!("segments/{}/live", again.account.id));
    std::fs::create_dir_all(&base).unwrap();
    let other = base.join("000000000001-000000000010.jsonl.zst");
    std::fs::write(&other, &bytes[0]).unwrap();
    assert_eq!(again.move_segment(10).await, 10);
    assert_eq!(again.trail().read(1).await.unwrap().len(), 10);
    let names = again.objects().await;
    let kept: Vec<&String> = names.iter().filter(|name| name.contains(".replaced-")).collect();
    assert_eq!(kept.len(), 1, "{names:?}");
    let kept = again.root.path().join(kept[0]);
    assert_eq!(std::fs::read(kept).unwrap(), bytes[0]);
}

/// A management server with the fixture's archive, and a caller who may read.
async fn served(fixture: &Fixture) -> (Admin, Caller) {
    let key = fixture
        .account
        .issue(Mode::Live, &[Permission::Read], &[], None)
        .await;
    let archive = fixture.root.path().display().to_string();
    let options = AdminOptions::new(env!("CARGO_BIN_EXE_tollgate-admin"), fixture.redis.url());
    let admin = Admin::start(options.env("TOLLGATE_AUDIT__ARCHIVE", archive));
    let caller = admin.caller(&key.secret);
    (admin, caller)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_a_damaged_segment_is_503_until_it_is_restored() {
    let (fixture, ids, [segment, _]) = archived().await;
    let (admin, caller) = served(&fixture).await;
    let path = format!("/v1/decisions/{}", ids[0]);
    let whole = std::fs::read(&segment).unwrap();
    std::fs::remove_file(&segment).unwrap();
    for path in [path.as_str(), "/v1/audit/export", "/v1/calls/export"] {
        let reply = caller.get(path).await;
        assert_eq!(reply.status, 503, "{reply:?}");
        assert!(
            reply
                .text()
                .contains("The archive of older entries cannot be read"),
            "{reply:?}"
        );
    }
    assert!(admin.logs().contains("000000000001-000000000010.jsonl.zst"));
    std::fs::write(&segment, whole).unwrap();
    let reply = caller.get(&path).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_over_http_reads_the_archive_and_not_what_was_read_before() {
    let (fixture, _, [segment, _]) = archived().await;
    let (_admin, caller) = served(&fixture).await;
    let whole = std::fs::read(&segment).unwrap();
    let text = String::from_utf8(zstd::decode_all(whole.as_slice()).unwrap()).unwrap();
    let forged = text.replacen("\"key_0\"", "\"key_1\"", 1);
    assert_ne!(forged, text);
    let forged = zstd::encode_all(forged.as_bytes(), 5).unwrap();
    for damaged in [None, Some(&whole[..whole.len() - 10]), Some(&forged)] {
        std::fs::write(&segment, &whole).unwrap();
        let read = caller.get("/v1/audit/export").await;
        assert_eq!(read.status, 200, "{read:?}");
        assert_eq!(verdict(&caller).await["ok"], json!(true));
        match damaged {
            None => std::fs::remove_file(&segment).unwrap(),
            Some(bytes) => std::fs::write(&segment, bytes).unwrap(),
        }
        let found = verdict(&caller).await;
        assert_eq!(
            (&found["ok"], &found["endProven"]),
            (&json!(false), &json!(false)),
            "{found}"
        );
        assert_eq!(found["firstBroken"]["seq"], json!(1), "{found}");
    }
}

/// The last line of `GET /audit/verify`.
async fn verdict(caller: &Caller) -> Value {
    let reply = caller.get("/v1/audit/verify").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    serde_json::from_str(reply.text().lines().last().unwrap()).unwrap()
}

/// An empty mount point in place of the archive, or the archive of another store.
#[tokio::test]
async fn nothing_is_written_to_another_archive() {
    let fixture = Fixture::new().await;
    fixture.fill(30).await;
    let [empty, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    std::fs::write(other.path().join("archive-id"), "archive_of_others\n").unwrap();
    assert_eq!(fixture.move_segment(10).await, 10);
    let chain = fixture.chain();
    for root in [&empty, &other] {
        let before = std::fs::read_dir(root.path()).unwrap().count();
        let archive = archive_at(root.path());
        for written in [
            archive.move_segment(&chain, 20, 10).await.map(drop),
            archive.keep_price_table(&fixture.store, "v", "{}").await,
        ] {
            let error = written.unwrap_err();
            assert!(matches!(error, StoreError::ArchiveUnavailable(_)), "{error:?}");
            assert!(
                error.to_string().contains("`archive-id` is not `archive_"),
                "{error}"
            );
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), before);
    }
    assert_eq!(
        chain.extent().await.unwrap().archived.seq,
        10,
        "nothing left the store"
    );
    // A store that knows no archive yet takes the one that is there.
    let another = Fixture::new().await;
    another.fill(30).await;
    let moved = fixture.archive.move_segment(&another.chain(), 10, 10).await;
    assert_eq!(moved.unwrap(), 10);
    assert_eq!(fixture.move_segment(10).await, 10);
}
