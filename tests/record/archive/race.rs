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
    assert_eq!(fixture.objects().await, objects_of_segments(&fixture).await);
    assert_eq!(read_through(&fixture).await, all);
    assert_eq!(fixture.list(EVERYTHING, 0, 500).await.1, COUNT);
}

/// Names of the objects of all segments that the store knows.
async fn objects_of_segments(fixture: &Fixture) -> Vec<String> {
    let segments = archive_at(fixture.root.path());
    let segments = segments.segments(&fixture.chain()).await.unwrap();
    let paths = segments
        .iter()
        .map(|segment| segment.paths(fixture.chain().realm()));
    let mut names: Vec<String> = paths
        .flat_map(|(segment, manifest)| [segment, manifest])
        .collect();
    names.sort_unstable();
    names
}

/// An archiver was killed after it wrote its segment. Others, whose settings allow less or more, write the same one.
#[tokio::test]
async fn an_interrupted_attempt_leaves_no_unused_files() {
    for (killed, next) in [(10, 4), (4, 10)] {
        let fixture = Fixture::new().await;
        fixture.fill(20).await;
        let chain = fixture.chain();
        assert_eq!(chain.claim_segment(1, killed, None).await.unwrap(), Some(killed));
        let others = fixture.move_segment(usize::try_from(next).unwrap()).await;
        assert_eq!(others, killed, "as was claimed");
        assert_eq!(fixture.move_segment(7).await, 7);
        assert_eq!(fixture.objects().await, objects_of_segments(&fixture).await);
        assert_eq!(chain.claim_segment(1, 3, None).await.unwrap(), None, "archived");
    }
}

/// The store lost the entries up to which an archiver claimed, or they do not fit into a segment of this release.
#[tokio::test]
async fn a_claim_that_cannot_be_met_is_replaced() {
    let fixture = Fixture::new().await;
    fixture.fill(20).await;
    let chain = fixture.chain();
    assert_eq!(chain.claim_segment(1, 25, None).await.unwrap(), Some(25));
    assert_eq!(chain.claim_segment(1, 6, None).await.unwrap(), Some(25));
    assert_eq!(fixture.move_segment(6).await, 6);
    assert_eq!(chain.claim_segment(7, 9, None).await.unwrap(), Some(9));
    assert_eq!(
        chain.claim_segment(7, 8, Some(10)).await.unwrap(),
        Some(9),
        "not the one"
    );
    assert_eq!(chain.claim_segment(7, 8, Some(9)).await.unwrap(), Some(8));
    assert_eq!(fixture.move_segment(20).await, 2);
    assert_eq!(fixture.objects().await, objects_of_segments(&fixture).await);
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
        .map(|sealed| Entry::from_json(&sealed.json).unwrap().kind)
        .collect();
    assert_eq!(kinds, KINDS.map(str::to_owned).into());
}
