//! Whatever is wrong with the archive is an error that names it; and nothing leaves the store then.

use super::street::{EVERYTHING, Street, archive_at};
use archive::Archive;
use archive::segment::Manifest;
use domain::mode::Mode;
use domain::permission::Permission;
use harness::{Admin, AdminOptions};
use std::path::PathBuf;
use store::StoreError;
use store::audit::chain::Filter;
use store::page::Page;

/// 30 entries, of which 20 are archived; the files of the first segment.
async fn archived() -> (Street, Vec<String>, [PathBuf; 2]) {
    let street = Street::new().await;
    let ids = street.fill(30).await;
    for _ in 0..2 {
        assert_eq!(street.move_segment(10).await, 10);
    }
    street.forget().await;
    let base = format!("segments/{}/live/000000000001-000000000010", street.account.id);
    let files = [".jsonl.zst", ".json"].map(|end| street.root.path().join(format!("{base}{end}")));
    (street, ids, files)
}

fn named<T: std::fmt::Debug>(found: Result<T, StoreError>, file: &str) {
    let error = found.expect_err("what is damaged must not be passed over");
    assert!(matches!(error, StoreError::Archive(_)), "{error:?}");
    assert!(error.to_string().contains(file), "{error}");
}

/// Reads with an archive that has nothing in its caches.
async fn noticed(street: &Street, id: &str, segment_is_bad: bool) {
    let fresh = archive_at(street.root.path());
    let trail = history::trail::Trail::of(&street.store, &fresh, &street.account.id, Mode::Live);
    let everything = Page::at(0, 100);
    if segment_is_bad {
        named(
            trail.list(EVERYTHING, everything).await,
            "000000000001-000000000010.jsonl.zst",
        );
        named(trail.read(5).await, "000000000001-000000000010.jsonl.zst");
        named(trail.decision(id).await, "000000000001-000000000010.jsonl.zst");
        let across = Filter {
            from_ms: Some(street.at_ms(3)),
            ..EVERYTHING
        };
        named(
            trail.list(across, Page::at(0, 1)).await,
            "000000000001-000000000010",
        );
    } else {
        named(trail.decision(id).await, "000000000001-000000000010.json");
    }
    // The rest is not affected.
    assert_eq!(trail.read(11).await.unwrap().len(), 10);
    let part = trail.list(EVERYTHING, Page::at(0, 20)).await.unwrap();
    assert_eq!((part.records.len(), part.total), (20, 30));
}

/// A manifest without what it says of the segment's compression.
fn uncompressed(manifest: &[u8]) -> Option<Manifest> {
    let mut manifest: Manifest = serde_json::from_slice(manifest).ok()?;
    manifest.segment.sha256.clear();
    manifest.segment.bytes = 0;
    Some(manifest)
}

#[tokio::test]
async fn every_flipped_byte_cut_tail_and_missing_file_is_noticed() {
    let (street, ids, [segment, manifest]) = archived().await;
    for (file, is_segment) in [(&segment, true), (&manifest, false)] {
        let whole = std::fs::read(file).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(file, &bytes).unwrap();
            // A flipped bit that leaves every line as it was is none: headers have unused ones, and how a segment was
            // compressed is not what a manifest is asked for.
            let fresh = archive_at(street.root.path());
            let trail = history::trail::Trail::of(&street.store, &fresh, &street.account.id, Mode::Live);
            match is_segment {
                true => match trail.read(1).await {
                    Ok(read) => assert_eq!(read, street.trail().read(1).await.unwrap()),
                    Err(error) => named(Err::<(), _>(error), "000000000001-000000000010.jsonl.zst"),
                },
                false if uncompressed(&bytes) == uncompressed(&whole) => {
                    assert!(trail.decision(&ids[0]).await.is_ok_and(|found| found.len() == 1));
                }
                false => named(trail.decision(&ids[0]).await, "000000000001-000000000010.json"),
            }
        }
        std::fs::write(file, &whole[..whole.len() - 1]).unwrap();
        noticed(&street, &ids[0], is_segment).await;
        std::fs::write(file, b"").unwrap();
        noticed(&street, &ids[0], is_segment).await;
        std::fs::remove_file(file).unwrap();
        noticed(&street, &ids[0], is_segment).await;
        std::fs::write(file, whole).unwrap();
    }
    let fresh = archive_at(street.root.path());
    let trail = history::trail::Trail::of(&street.store, &fresh, &street.account.id, Mode::Live);
    assert_eq!(trail.decision(&ids[0]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn entries_that_were_changed_in_a_segment_are_noticed() {
    let (street, ids, [segment, _]) = archived().await;
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
        noticed(&street, &ids[0], true).await;
    }
    // A bomb is not blown up.
    let bomb = vec![b' '; 64 << 20];
    std::fs::write(&segment, zstd::encode_all(bomb.as_slice(), 19).unwrap()).unwrap();
    noticed(&street, &ids[0], true).await;
}

#[tokio::test]
async fn what_cannot_be_written_stays_in_the_store() {
    let street = Street::new().await;
    street.fill(20).await;
    let blocked = street.root.path().join("file");
    let archive = archive_at(&blocked.join("below"));
    std::fs::write(&blocked, "x").unwrap();
    let place = (street.account.id.as_str(), Mode::Live);
    let moving = archive.move_segment(&street.chain(), place, 20, 10).await;
    let error = moving.unwrap_err();
    assert!(error.to_string().starts_with("the archive cannot"), "{error}");
    untouched(&street, &archive, 20).await;
}

async fn untouched(street: &Street, archive: &Archive, count: u64) {
    let standing = street.chain().standing().await.unwrap();
    assert_eq!((standing.archived, standing.live), (0, count));
    let trail = history::trail::Trail::of(&street.store, archive, &street.account.id, Mode::Live);
    let part = trail.list(EVERYTHING, Page::at(0, 100)).await.unwrap();
    assert_eq!((part.records.len() as u64, part.total), (count, count));
}

#[tokio::test]
async fn indexes_changed_by_hand_stop_the_archiver() {
    let street = Street::new().await;
    street.fill(20).await;
    let index = street.account.keys.audit_index(Mode::Live, Some("ann"), None);
    let _: u64 = street.redis.command(&["LPUSH", &index, "3"]);
    let place = (street.account.id.as_str(), Mode::Live);
    let moving = street.archive.move_segment(&street.chain(), place, 20, 10).await;
    let error = moving.unwrap_err();
    assert!(matches!(error, StoreError::Nonsense(_)), "{error}");
    let _: String = street.redis.command(&["LPOP", &index]);
    untouched(&street, &street.archive, 20).await;
    assert_eq!(street.move_segment(10).await, 10);
}

#[tokio::test]
async fn leftovers_of_an_attempt_are_found_and_other_things_kept_beside() {
    let (_street, _, [segment, manifest]) = archived().await;
    let bytes = [&segment, &manifest].map(|file| std::fs::read(file).unwrap());
    // The same entries again, on a store that has not archived yet: as after a crash before the script ran.
    let again = Street::new().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_what_is_damaged_is_503_and_answered_again_when_it_is_back() {
    let (street, ids, [segment, _]) = archived().await;
    let key = street
        .account
        .issue(Mode::Live, &[Permission::Read], &[], None)
        .await;
    let archive = street.root.path().display().to_string();
    let options = AdminOptions::new(env!("CARGO_BIN_EXE_tollgate-admin"), street.redis.url());
    let admin = Admin::start(options.env("TOLLGATE_AUDIT__ARCHIVE", archive));
    let caller = admin.caller(&key.secret);
    let path = format!("/v1/decisions/{}", ids[0]);
    let whole = std::fs::read(&segment).unwrap();
    std::fs::remove_file(&segment).unwrap();
    let reply = caller.get(&path).await;
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(admin.logs().contains("000000000001-000000000010.jsonl.zst"));
    std::fs::write(&segment, whole).unwrap();
    let reply = caller.get(&path).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}
