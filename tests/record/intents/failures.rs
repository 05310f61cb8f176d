//! Archivers that race or are cut off, and segments that were changed.

use super::fixture::{IntentFixture, MODE, age, archive_at, made_at};
use crate::fixture::problem;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::intent::IntentRecord;
use store::intent::archive::ArchivedIntents;

/// The files of the archived intents.
fn files(fixture: &IntentFixture) -> Vec<PathBuf> {
    let dir = fixture
        .root
        .path()
        .join(format!("intents/{}/{MODE}", fixture.account.id));
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort_unstable();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_archivers_that_race_or_are_cut_off_each_intent_leaves_once() {
    const COUNT: u64 = 24;
    let fixture = Arc::new(IntentFixture::build().await);
    for n in 0..COUNT {
        let agent = if n % 3 == 0 { "bob" } else { "ann" };
        fixture.settled(agent, n + 1, &n.to_string()).await;
    }
    let before = fixture.bodies().await;
    let newest = fixture.now_ms().await;
    let mut cuts: Vec<u64> = fixture.all().await.iter().map(made_at).collect();
    cuts.reverse();
    let cuts = Arc::new(cuts);
    // Archivers are cut off at any point.
    for step in 0..COUNT / 2 {
        let (cut_off, cuts) = (Arc::clone(&fixture), Arc::clone(&cuts));
        let moving = tokio::spawn(async move {
            let archive = archive_at(&cut_off.root);
            let realm = cut_off.account.keys.in_mode(MODE);
            let now_ms = cuts[usize::try_from(step).unwrap()];
            archive
                .move_intents(&cut_off.management.store, &realm, age(now_ms), 0)
                .await
        });
        tokio::time::sleep(Duration::from_micros(500 * step)).await;
        moving.abort();
        let _cut_off = moving.await;
    }
    let left = fixture.live();
    assert!(left > 0 && left <= COUNT, "{left}");
    let racers: Vec<_> = (0..5)
        .map(|racer| {
            let (fixture, cuts) = (Arc::clone(&fixture), Arc::clone(&cuts));
            tokio::spawn(async move {
                let archive = archive_at(&fixture.root);
                let realm = fixture.account.keys.in_mode(MODE);
                let mut moved = 0;
                // Racers see different intents as old enough, so their segments begin alike and differ.
                let mut turns = cuts
                    .iter()
                    .skip(racer)
                    .step_by(2)
                    .chain(std::iter::repeat(&newest));
                while fixture.live() > 0 {
                    let now_ms = *turns.next().unwrap();
                    let moving = archive.move_intents(&fixture.management.store, &realm, age(now_ms), 0);
                    moved += moving.await.unwrap().intents;
                }
                moved
            })
        })
        .collect();
    let mut moved = 0;
    for racer in racers {
        moved += racer.await.unwrap();
    }
    assert_eq!(moved, left);
    assert_eq!(fixture.all().await.len() as u64, COUNT);
    for (then, now) in before.iter().zip(fixture.bodies().await) {
        assert_eq!(then, &now, "{}", then.0);
    }
    fixture.check(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intent_that_is_not_what_was_archived_keeps_its_whole_batch_in_the_store() {
    let fixture = IntentFixture::build().await;
    let ids = [
        fixture.settled("ann", 1, "a").await,
        fixture.settled("bob", 2, "b").await,
    ];
    let (store, realm) = (&fixture.management.store, &fixture.account.keys.in_mode(MODE));
    let mut intents = Vec::new();
    for id in &ids {
        let found = IntentRecord::read(store, realm, id).await.unwrap();
        intents.push(found.unwrap());
    }
    let mut changed = intents.clone();
    changed[1].head = "another".to_owned();
    for (segments, intents) in [(0, &changed), (1, &intents)] {
        let archived = ArchivedIntents {
            segments,
            descriptor: "{}",
            intents,
        };
        assert!(!archived.execute(store, realm).await.unwrap());
        assert_eq!(fixture.live(), 2);
    }
    fixture.check(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_segment_is_503_named_and_harms_nothing_else() {
    let fixture = IntentFixture::build().await;
    let old = fixture.settled("ann", 1, "a").await;
    assert_eq!(fixture.move_all().await, 1);
    let young = fixture.settled("bob", 2, "b").await;
    let segment = files(&fixture)[1].clone();
    let name = segment.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.ends_with(".jsonl.zst"), "{name}");
    let whole = std::fs::read(&segment).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damage in [Some(flipped), Some(whole[..whole.len() - 1].to_vec()), None] {
        match damage {
            Some(bytes) => std::fs::write(&segment, bytes).unwrap(),
            None => std::fs::remove_file(&segment).unwrap(),
        }
        for path in [
            format!("/v1/intents/{old}"),
            format!("/v1/intents/{old}/export"),
            "/v1/intents".to_owned(),
        ] {
            assert_eq!(fixture.get(&path).await.status, 503, "{path}");
        }
        let page = fixture.get("/v1/intents?limit=1").await;
        assert_eq!((page.status, &page.json()["total"]), (200, &json!(2)));
        assert_eq!(fixture.get(&format!("/v1/intents/{young}")).await.status, 200);
        let violations = fixture.check(1).to_string();
        assert!(violations.contains(&name), "{violations}");
    }
    assert!(fixture.management.admin.logs().contains(&name));
    std::fs::write(&segment, &whole).unwrap();
    assert_eq!(fixture.get(&format!("/v1/intents/{old}")).await.status, 200);
    fixture.check(0);
    // A transaction whose intent is nowhere.
    let key = fixture.account.keys.in_mode(MODE).intent_segments();
    let _: u64 = fixture.management.redis.command(&["DEL", &key]);
    let violations: Value = fixture.check(1);
    assert!(violations.to_string().contains(&old), "{violations}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_was_changed_is_refused_in_the_archive_too() {
    let fixture = IntentFixture::build().await;
    let id = fixture.settled("ann", 1, "a").await;
    let key = fixture.account.keys.in_mode(MODE).intent(&id);
    let _: u64 = fixture.management.redis.command(&["HSET", &key, "amount", "7"]);
    for _ in 0..2 {
        let path = format!("/v1/intents/{id}");
        problem(&fixture.get(&path).await, 500, "INTERNAL");
        problem(&fixture.get(&format!("{path}/export")).await, 500, "INTERNAL");
        let violations = fixture.check(1).to_string();
        assert!(violations.contains(&id), "{violations}");
        fixture.move_all().await;
    }
    assert_eq!(fixture.live(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unwritable_segments_leave_entries_in_the_store() {
    let fixture = IntentFixture::build().await;
    let id = fixture.settled("ann", 1, "a").await;
    std::fs::write(fixture.root.path().join("intents"), "in the way").unwrap();
    let error = fixture.move_until(fixture.now_ms().await).await.unwrap_err();
    assert!(error.to_string().contains("intents/"), "{error}");
    assert_eq!(fixture.live(), 1);
    assert_eq!(fixture.get(&format!("/v1/intents/{id}")).await.status, 200);
    std::fs::remove_file(fixture.root.path().join("intents")).unwrap();
    assert_eq!(fixture.move_all().await, 1);
    assert_eq!(fixture.get(&format!("/v1/intents/{id}")).await.status, 200);
}
