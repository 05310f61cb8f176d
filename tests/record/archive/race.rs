//! Archivers and sealers at once.

use super::fixture::{EVERYTHING, Fixture, archive_at};
use super::model::{KINDS, read_through};
use domain::entry::Entry;
use std::collections::BTreeSet;
use std::sync::Arc;

#[tokio::test]
async fn of_archivers_that_race_one_wins() {
    const COUNT: u64 = 120;
    let fixture = Arc::new(Fixture::new().await);
    fixture.fill(COUNT).await;
    let all = fixture.trail().read(1).await.unwrap();
    let racers: Vec<_> = (0..6)
        .map(|racer| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                let archive = archive_at(fixture.root.path());
                let mut moved = 0;
                for turn in 0..200 {
                    let backlog = fixture.chain().backlog().await.unwrap();
                    if backlog.archived == COUNT {
                        break;
                    }
                    let entries = 5 + (racer + turn) % 4;
                    let moving = archive
                        .move_segment(&fixture.chain(), backlog.movable, entries)
                        .await;
                    moved += moving.unwrap();
                }
                moved
            })
        })
        .collect();
    let mut moved = 0;
    for racer in racers {
        moved += racer.await.unwrap();
    }
    assert_eq!(moved, COUNT, "every entry left the store once");
    assert_eq!(read_through(&fixture).await, all);
    assert_eq!(fixture.list(EVERYTHING, 0, 500).await.1, COUNT);
}

/// Lists get shorter in front while sealers read them: a line must never be taken for another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealing_and_archiving_at_once_keep_every_entry_what_it_is() {
    const COUNT: u64 = 600;
    let fixture = Arc::new(Fixture::new().await);
    let sealers: Vec<_> = (0..2)
        .map(|_| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move { while fixture.chain().seal().await.unwrap().seq < COUNT {} })
        })
        .collect();
    let archiver = {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move {
            while fixture.chain().backlog().await.unwrap().archived < COUNT {
                fixture.move_segment(3).await;
            }
        })
    };
    for n in 0..COUNT {
        fixture.append(n).await;
    }
    for task in sealers.into_iter().chain([archiver]) {
        task.await.unwrap();
    }
    let all = read_through(&fixture).await;
    assert_eq!(all.len() as u64, COUNT);
    let kinds: BTreeSet<String> = all
        .iter()
        .map(|sealed| Entry::of_json(&sealed.json).unwrap().kind)
        .collect();
    assert_eq!(kinds, KINDS.map(str::to_owned).into());
}
