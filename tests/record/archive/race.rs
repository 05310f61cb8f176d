//! Archivers and sealers at once.

use super::model::{KINDS, read_through};
use super::street::{EVERYTHING, Street, archive_at};
use domain::entry::Entry;
use domain::mode::Mode;
use std::collections::BTreeSet;
use std::sync::Arc;

#[tokio::test]
async fn of_archivers_that_race_one_wins() {
    const COUNT: u64 = 120;
    let street = Arc::new(Street::new().await);
    street.fill(COUNT).await;
    let all = street.trail().read(1).await.unwrap();
    let racers: Vec<_> = (0..6)
        .map(|racer| {
            let street = Arc::clone(&street);
            tokio::spawn(async move {
                let archive = archive_at(street.root.path());
                let mut moved = 0;
                for turn in 0..200 {
                    let place = (street.account.id.as_str(), Mode::Live);
                    let standing = street.chain().standing().await.unwrap();
                    if standing.archived == COUNT {
                        break;
                    }
                    let entries = 5 + (racer + turn) % 4;
                    let moving = archive
                        .move_segment(&street.chain(), place, standing.movable, entries)
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
    assert_eq!(read_through(&street).await, all);
    assert_eq!(street.list(EVERYTHING, 0, 500).await.1, COUNT);
}

/// Lists get shorter in front while sealers read them: a line must never be taken for another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealing_and_archiving_at_once_keep_every_entry_what_it_is() {
    const COUNT: u64 = 600;
    let street = Arc::new(Street::new().await);
    let sealers: Vec<_> = (0..2)
        .map(|_| {
            let street = Arc::clone(&street);
            tokio::spawn(async move { while street.chain().seal().await.unwrap().seq < COUNT {} })
        })
        .collect();
    let archiver = {
        let street = Arc::clone(&street);
        tokio::spawn(async move {
            while street.chain().standing().await.unwrap().archived < COUNT {
                street.move_segment(3).await;
            }
        })
    };
    for n in 0..COUNT {
        street.append(n).await;
    }
    for task in sealers.into_iter().chain([archiver]) {
        task.await.unwrap();
    }
    let all = read_through(&street).await;
    assert_eq!(all.len() as u64, COUNT);
    let kinds: BTreeSet<String> = all
        .iter()
        .map(|sealed| Entry::of_json(&sealed.json).unwrap().kind)
        .collect();
    assert_eq!(kinds, KINDS.map(str::to_owned).into());
}
