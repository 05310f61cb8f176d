//! Reads return the same before, while and after entries are archived.

use super::fixture::{AGENTS, EVERYTHING, Fixture, archive_at, number};
use archive::segment::{Descriptor, Manifest, Segment};
use domain::entry::{Entry, Sealed};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use store::audit::chain::EntryFilter;

pub const KINDS: [&str; 4] = [
    "agent.frozen",
    "policy.set",
    "decision.approved",
    "decision.denied",
];

/// Every filter: agent, type, and spans of time whose ends lie on, before and between lines.
fn filters(fixture: &Fixture, count: u64) -> Vec<EntryFilter<'static>> {
    let edges = [0, 1, count / 3, count / 2, count - 1, count + 5];
    let mut spans = vec![(None, None)];
    for (at, from) in edges.iter().enumerate() {
        let from_ms = fixture.at_ms(*from) - (at as u64 % 2);
        spans.push((Some(from_ms), None));
        spans.push((None, Some(from_ms)));
        for to in &edges[at..] {
            spans.push((Some(from_ms), Some(fixture.at_ms(*to) + 1)));
        }
    }
    let agents = AGENTS
        .iter()
        .map(|agent| Some(*agent))
        .chain([None, Some("nobody")]);
    let mut all = Vec::new();
    for agent in agents {
        for kind in KINDS
            .iter()
            .map(|kind| Some(*kind))
            .chain([None, Some("nothing")])
        {
            all.extend(spans.iter().map(|(from_ms, to_ms)| EntryFilter {
                agent,
                kind,
                from_ms: *from_ms,
                to_ms: *to_ms,
            }));
        }
    }
    all
}

/// Sealed entries, each with what it says.
fn opened(all: &[Sealed]) -> Vec<(Sealed, Entry)> {
    let opened = all.iter().map(|sealed| {
        let entry = Entry::from_json(&sealed.json).unwrap();
        (sealed.clone(), entry)
    });
    opened.collect()
}

/// Entries that match a filter, computed by hand.
fn expected(all: &[(Sealed, Entry)], filter: EntryFilter<'_>) -> Vec<Sealed> {
    let fits = |entry: &Entry| {
        filter
            .agent
            .is_none_or(|agent| entry.agent.as_deref() == Some(agent))
            && filter.kind.is_none_or(|kind| entry.kind == kind)
            && filter.from_ms.is_none_or(|from_ms| entry.at_ms >= from_ms)
            && filter.to_ms.is_none_or(|to_ms| entry.at_ms < to_ms)
    };
    let matches = all.iter().rev().filter(|(_, entry)| fits(entry));
    matches.map(|(sealed, _)| sealed.clone()).collect()
}

#[tokio::test]
async fn every_filter_and_page_is_the_same_wherever_the_entries_are() {
    const COUNT: u64 = 60;
    let fixture = Fixture::new().await;
    let ids = fixture.fill(COUNT).await;
    let all = fixture.trail().read(1).await.unwrap();
    assert_eq!(all.len() as u64, COUNT);
    let entries = opened(&all);
    let filters = filters(&fixture, COUNT);
    let mut left = COUNT;
    for round in 0.. {
        // A third of the filters in each round: each of them twice, at different ends of the trail.
        for (nth, filter) in filters.iter().enumerate().skip(round % 3).step_by(3) {
            let wanted = expected(&entries, *filter);
            for (offset, limit) in [(0, 100), (0, 1), (3, 5), (11, 20), (wanted.len(), 3)] {
                let (page, total) = fixture.list(*filter, offset, limit).await;
                assert_eq!(total, wanted.len() as u64, "{filter:?} with {left} left");
                let part = wanted.iter().skip(offset).take(limit);
                assert!(
                    page.iter().eq(part),
                    "{filter:?} {offset} {limit} with {left} left"
                );
            }
            // One size in each round, since pages of one entry take long.
            let sizes = [1, 7, 13, wanted.len().max(1)];
            let limit = sizes[(nth + round) % sizes.len()];
            let pages = fixture.pages(*filter, limit, async |_| {}).await;
            assert!(
                pages.concat() == wanted,
                "{filter:?} in pages of {limit} with {left} left"
            );
        }
        for id in &ids {
            let found = fixture.trail().decision(id).await.unwrap();
            assert_eq!(found.len(), 1, "{id}");
            assert!(found[0].json.contains(id.as_str()) && all.contains(&found[0]));
        }
        assert_eq!(fixture.trail().seal().await.unwrap().seq, COUNT);
        assert_eq!(read_through(&fixture).await, all);
        if left == 0 {
            break;
        }
        let moved = fixture.move_segment(13).await;
        assert_eq!(moved, left.min(13));
        left -= moved;
        if left.is_multiple_of(2) {
            fixture.forget().await;
        }
    }
    // The keys that the store keeps of a fully archived chain.
    fixture.forget().await;
    let keys: Vec<String> = fixture.redis.command(&["KEYS", "*/audit*"]);
    let prefix = fixture.account.keys.prefix();
    let names = keys.iter().filter_map(|key| key.strip_prefix(prefix));
    // Statistics stay, as long as a day is kept.
    let left: BTreeSet<&str> = names
        .filter(|name| !name.starts_with("/live/audit/day/") && *name != "/live/audit/kept")
        .collect();
    assert_eq!(
        left,
        BTreeSet::from(["/live/audit/archived", "/live/audit/base", "/live/audit/segments"])
    );
    fixture.append(COUNT).await;
    let (page, total) = fixture.list(EVERYTHING, 0, 2).await;
    assert_eq!(
        (number(&page[0]), number(&page[1]), total),
        (COUNT + 1, COUNT, COUNT + 1)
    );
}

/// The whole trail, read from the beginning on.
pub async fn read_through(fixture: &Fixture) -> Vec<Sealed> {
    let mut all = Vec::new();
    loop {
        let part = fixture.trail().read(all.len() as u64 + 1).await.unwrap();
        if part.is_empty() {
            return all;
        }
        all.extend(part);
    }
}

#[tokio::test]
async fn a_chain_is_verified_from_its_segments_and_manifests_alone() {
    let fixture = Fixture::new().await;
    fixture.fill(40).await;
    while fixture.move_segment(7).await > 0 {}
    let objects = fixture.objects().await;
    let manifests: Vec<&String> = objects.iter().filter(|path| path.ends_with(".json")).collect();
    assert_eq!((objects.len(), manifests.len()), (12, 6));
    let (mut before, mut next) = ("genesis".to_owned(), 1);
    for path in manifests {
        let place = fixture.archive.location();
        let bytes = place.get(path).await.unwrap().unwrap();
        let manifest: Manifest = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            (manifest.account.as_str(), manifest.mode.as_str()),
            (fixture.account.id.as_str(), "live")
        );
        let (segment_path, manifest_path) = manifest.segment.paths(&fixture.account.keys.live());
        assert_eq!(&manifest_path, path);
        let bytes = place.get(&segment_path).await.unwrap().unwrap();
        let opened = Segment::open(&manifest.segment, &bytes).unwrap();
        assert_eq!(manifest.segment.previous_hash, before);
        for line in opened.from(next, u64::MAX) {
            let entry = Entry::from_json(&line.json).unwrap();
            assert_eq!((entry.seq, entry.seal(&before).unwrap()), (next, line.clone()));
            before = hex::encode(line.hash);
            next += 1;
        }
        assert_eq!(manifest.segment.hash, before);
    }
    assert_eq!(next, 41);
}

#[tokio::test]
async fn the_same_entries_compressed_otherwise_are_still_themselves() {
    let fixture = Fixture::new().await;
    fixture.fill(5).await;
    assert_eq!(fixture.move_segment(5).await, 5);
    let (_, texts) = fixture.chain().segments(0).await.unwrap();
    let descriptor: Descriptor = serde_json::from_str(&texts[0]).unwrap();
    let (path, _) = descriptor.paths(&fixture.account.keys.live());
    let bytes = fixture.archive.location().get(&path).await.unwrap().unwrap();
    let text = archive::segment::decompress(&bytes, descriptor.content_bytes).unwrap();
    let otherwise = zstd::encode_all(text.as_bytes(), 19).unwrap();
    assert_ne!(otherwise, bytes);
    let opened = Segment::open(&descriptor, &otherwise).unwrap();
    assert_eq!(
        opened.from(1, 9),
        Segment::open(&descriptor, &bytes).unwrap().from(1, 9)
    );
}

/// Two archivers with different versions of the compressor: the first one's description counts, and the files are the
/// second one's.
#[tokio::test]
async fn a_segment_overwritten_with_another_compression_is_read() {
    let fixture = Fixture::new().await;
    let ids = fixture.fill(5).await;
    assert_eq!(fixture.move_segment(5).await, 5);
    fixture.forget().await;
    let (_, texts) = fixture.chain().segments(0).await.unwrap();
    let descriptor: Descriptor = serde_json::from_str(&texts[0]).unwrap();
    let (segment_path, manifest_path) = descriptor.paths(&fixture.account.keys.live());
    let place = fixture.archive.location();
    let bytes = place.get(&segment_path).await.unwrap().unwrap();
    let otherwise = zstd::encode_all(zstd::decode_all(&*bytes).unwrap().as_slice(), 19).unwrap();
    let bytes = place.get(&manifest_path).await.unwrap().unwrap();
    let mut manifest: Manifest = serde_json::from_slice(&bytes).unwrap();
    manifest.segment.sha256 = hex::encode(Sha256::digest(&otherwise));
    manifest.segment.bytes = otherwise.len() as u64;
    place.put(&segment_path, otherwise).await.unwrap();
    let write_over = async |manifest: &Manifest| {
        let bytes = serde_json::to_vec(manifest).unwrap();
        place.put(&manifest_path, bytes).await.unwrap();
        archive_at(fixture.root.path())
    };
    let fresh = write_over(&manifest).await;
    let trail = history::trail::Trail::new(&fixture.store, &fresh, fixture.account.keys.live());
    assert_eq!(trail.decision(&ids[0]).await.unwrap().len(), 1);
    assert_eq!(trail.read(1).await.unwrap().len(), 5);
    // Only the compression may differ: a manifest of other entries does not belong to this segment.
    manifest.segment.entries += 1;
    let fresh = write_over(&manifest).await;
    let trail = history::trail::Trail::new(&fixture.store, &fresh, fixture.account.keys.live());
    let error = trail.decision(&ids[0]).await.unwrap_err();
    assert!(error.to_string().contains(&manifest_path), "{error}");
}

#[tokio::test]
async fn the_archive_waits_for_no_webhook() {
    let fixture = Fixture::new().await;
    fixture.fill(20).await;
    let record = fixture.account.keys.record();
    let set = |reported: &str| -> i64 {
        fixture
            .redis
            .command(&["HSET", &record, "live_webhooks", "1", "live_dispatched", reported])
    };
    set("12");
    let backlog = fixture.chain().backlog().await.unwrap();
    assert_eq!((backlog.live, backlog.movable), (20, 20));
    assert_eq!(fixture.move_segment(50).await, 20);
    // A late reader finds them in the archive.
    let trail = fixture.trail();
    assert!(trail.read_live(13).await.unwrap().is_none());
    assert_eq!(trail.read(13).await.unwrap().len(), 8);
}

#[tokio::test]
async fn lines_that_are_not_sealed_stay() {
    let fixture = Fixture::new().await;
    fixture.fill(3).await;
    fixture.append(3).await;
    assert_eq!(fixture.move_segment(50).await, 3);
    assert_eq!(fixture.list(EVERYTHING, 0, 9).await.1, 4);
    let live: u64 = fixture
        .redis
        .command(&["LLEN", &fixture.account.keys.live().audit()]);
    assert_eq!(live, 1);
}

#[tokio::test]
async fn a_decision_corrected_after_it_was_archived_has_both_entries() {
    let fixture = Fixture::new().await;
    let ids = fixture.fill(10).await;
    assert_eq!(fixture.move_segment(10).await, 10);
    let late = format!(
        "{} A corrected 5 {} H 9 20775 202611 1 ,,,,,, acct_1 ann - vk_1 - m",
        fixture.at_ms(90),
        ids[0]
    );
    super::fixture::append(&fixture.store, &fixture.account, &late)
        .await
        .unwrap();
    fixture.chain().seal().await.unwrap();
    // The decision's look-up has a live record now, and stays.
    fixture.forget().await;
    for _ in 0..2 {
        let found = fixture.trail().decision(&ids[0]).await.unwrap();
        assert_eq!(found.iter().map(number).collect::<Vec<_>>(), [3, 11]);
        fixture.move_segment(10).await;
        fixture.forget().await;
    }
    let keys: Vec<String> = fixture.redis.command(&["KEYS", "*/audit/decisions/*"]);
    assert_eq!(keys, Vec::<String>::new());
}

/// Entries are archived and added while a list is read by cursor.
#[tokio::test]
async fn going_through_by_cursor_is_not_disturbed() {
    const COUNT: u64 = 80;
    let fixture = Fixture::new().await;
    fixture.fill(COUNT).await;
    let all = opened(&fixture.trail().read(1).await.unwrap());
    let whole = filters(&fixture, COUNT)
        .into_iter()
        .filter(|filter| filter.from_ms.is_none() && filter.to_ms.is_none());
    for (filter, limit) in whole.zip((1..9).cycle()) {
        let wanted = expected(&all, filter);
        let pages = fixture.pages(filter, limit, async |page| {
            if page % 3 == 1 {
                fixture.fill(1).await;
            }
            fixture.move_segment(1).await;
        });
        let met = pages.await.concat();
        // An entry added before the first page of this filter is at its beginning.
        assert!(met.ends_with(&wanted), "{filter:?} in pages of {limit}");
    }
}
