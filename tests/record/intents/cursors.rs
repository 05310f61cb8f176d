//! Going through a list of intents by cursor while some of them leave the store for the archive, are decided, and are
//! made.

use super::fixture::{IntentFixture, made_at};
use crate::fixture::{success, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// Filters of the lists that are read.
const LISTS: [&str; 6] = [
    "",
    "&agentId=bob",
    "&agentId=bob&state=settled",
    "&kind=spend",
    "&state=settled",
    "&state=blocked",
];

/// A list whose reader has read some of its pages.
struct Reader {
    filter: &'static str,
    limit: usize,
    /// The cursor of the next page; none at the end.
    next: Option<String>,
    /// Number of times that each record was met.
    met: BTreeMap<String, usize>,
    pages: usize,
}

impl Reader {
    fn new(filter: &'static str, limit: usize) -> Self {
        Self {
            filter,
            limit,
            next: Some(String::new()),
            met: BTreeMap::new(),
            pages: 0,
        }
    }

    /// Reads the next page, if there is one.
    async fn read(&mut self, fixture: &IntentFixture) {
        let Some(cursor) = self.next.take() else { return };
        let (limit, filter) = (self.limit, self.filter);
        let reply = fixture
            .get(&format!("/v1/intents?limit={limit}{filter}{cursor}"))
            .await;
        let page = success(&reply, 200);
        let found = page["intents"].as_array().unwrap();
        assert!(found.len() <= limit);
        for intent in found {
            *self.met.entry(text(intent, "/intent_id").to_owned()).or_default() += 1;
        }
        self.next = page["nextCursor"].as_str().map(|next| format!("&cursor={next}"));
        self.pages += 1;
    }
}

async fn ids(fixture: &IntentFixture, filter: &str) -> Vec<String> {
    let page = success(&fixture.get(&format!("/v1/intents?limit=200{filter}")).await, 200);
    assert_eq!(page["nextCursor"], Value::Null);
    let found = page["intents"].as_array().unwrap();
    found
        .iter()
        .map(|one| text(one, "/intent_id").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn intents_archived_decided_or_created_meanwhile_are_listed_once() {
    let fixture = IntentFixture::build().await;
    let mut waiting = Vec::new();
    for round in 0..4 {
        fixture.make_some_of_each(round).await;
        waiting.push(fixture.waiting("bob", &format!("waits {round}")).await);
    }
    // One reader for each limit, so that changes meet readers at different places.
    let mut readers: Vec<Reader> = Vec::new();
    let mut before: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for filter in LISTS {
        before.insert(filter, ids(&fixture, filter).await);
        readers.extend([1, 2, 3, 5, 7, 11].map(|limit| Reader::new(filter, limit)));
    }
    let made: Vec<u64> = fixture.all().await.iter().rev().map(made_at).collect();
    let total = before[""].len();
    for step in 0..total + 3 {
        for reader in &mut readers {
            reader.read(&fixture).await;
        }
        match step {
            2 | 5 => drop(fixture.settled("bob", 3, &format!("later {step}")).await),
            // The waiting intents are decided after most newer ones have left.
            4 => fixture.decide(&waiting[0], "approve").await,
            7 => fixture.decide(&waiting[1], "deny").await,
            _ => {}
        }
        if step % 2 == 1 {
            let until = made[(step * 3).min(total - 1)];
            fixture.move_until(until).await.unwrap();
        }
    }
    assert!(
        fixture.live() < total as u64 / 2,
        "most are archived: {}",
        fixture.live()
    );
    for reader in readers {
        let name = format!("{} in pages of {}", reader.filter, reader.limit);
        assert_eq!(reader.next, None, "{name}: more pages");
        let twice: Vec<_> = reader.met.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "{name}: {twice:?}");
        let missed: Vec<_> = before[reader.filter]
            .iter()
            .filter(|id| !reader.met.contains_key(*id))
            .collect();
        assert!(
            missed.is_empty(),
            "{name}: {missed:?} of {}",
            before[reader.filter].len()
        );
    }
    fixture.check(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_by_cursor_are_the_list_wherever_the_intents_are() {
    let fixture = IntentFixture::build().await;
    for round in 0..3 {
        fixture.make_some_of_each(round).await;
    }
    let half = made_at(&fixture.all().await[12]);
    for step in 0..3 {
        for filter in LISTS {
            let whole = ids(&fixture, filter).await;
            for limit in [1, 3, whole.len(), whole.len() + 1] {
                let mut reader = Reader::new(filter, limit);
                let mut met = Vec::new();
                while reader.next.is_some() {
                    reader.met.clear();
                    let cursor = reader.next.clone().unwrap();
                    let page = fixture
                        .get(&format!("/v1/intents?limit={limit}{filter}{cursor}"))
                        .await;
                    let page = success(&page, 200);
                    let found = page["intents"].as_array().unwrap();
                    met.extend(found.iter().map(|one| text(one, "/intent_id").to_owned()));
                    reader.read(&fixture).await;
                }
                assert_eq!(met, whole, "{filter} in pages of {limit}, {step} moves");
                assert_eq!(reader.pages, whole.len().div_ceil(limit), "no page is empty");
            }
        }
        match step {
            0 => assert!(fixture.move_until(half).await.unwrap() > 0),
            _ => drop(fixture.move_all().await),
        }
    }
    assert_eq!(fixture.live(), 0);
}
