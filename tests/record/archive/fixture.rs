//! An account with audit lines as scripts write them.

use archive::Archive;
use archive::location::ArchiveLocation;
use domain::entry::Sealed;
use domain::id::IdKind;
use harness::{Redis, Seed, SeedAccount, Store};
use history::trail::Trail;
use serde_json::Value;
use settings::load_from;
use std::path::Path;
use store::audit::chain::{Chain, EntryFilter};
use store::page::PageRequest;
use tempfile::TempDir;

/// Appends a line as the scripts do: its number and the line in one step.
const APPEND: &str = "local seq = redis.call('HINCRBY', KEYS[1], 'live_audit_seq', 1) \
    redis.call('RPUSH', KEYS[2], seq .. ' ' .. ARGV[1]) return seq";
pub const AGENTS: [&str; 3] = ["ann", "bob", "carl"];
/// Time between two lines, in milliseconds.
pub const STEP_MS: u64 = 20_000;
pub const EVERYTHING: EntryFilter<'static> = EntryFilter {
    agent: None,
    kind: None,
    from_ms: None,
    to_ms: None,
};

pub struct Fixture {
    pub redis: Redis,
    pub store: Store,
    pub account: SeedAccount,
    pub root: TempDir,
    pub archive: Archive,
    pub start_ms: u64,
}

impl Fixture {
    pub async fn new() -> Self {
        Self::on(Redis::start()).await
    }

    pub async fn on(redis: Redis) -> Self {
        let store = redis.store();
        let account = Seed::new(&store).await.account("builder").await;
        let root = tempfile::tempdir().unwrap();
        Self {
            archive: archive_at(root.path()),
            redis,
            store,
            account,
            root,
            start_ms: 1_795_000_000_000,
        }
    }

    pub fn trail(&self) -> Trail<'_> {
        Trail::new(&self.store, &self.archive, self.account.keys.live())
    }

    pub fn chain(&self) -> Chain<'_> {
        Chain::new(&self.store, self.account.keys.live())
    }

    /// Time of the line `n`, in Unix milliseconds.
    pub fn at_ms(&self, n: u64) -> u64 {
        self.start_ms + n * STEP_MS
    }

    /// Writes the line `n`. Returns the decision's id, if it is one.
    pub async fn append(&self, n: u64) -> Option<String> {
        let (line, id) = line(n, self.at_ms(n));
        append(&self.store, &self.account, &line).await.unwrap();
        id
    }

    /// Writes the lines from 0 to before `count`, and seals them. Returns the decisions' ids.
    pub async fn fill(&self, count: u64) -> Vec<String> {
        let mut ids = Vec::new();
        for n in 0..count {
            ids.extend(self.append(n).await);
        }
        self.chain().seal().await.unwrap();
        ids
    }

    /// Moves one segment of at most `entries`. Returns how many moved.
    pub async fn move_segment(&self, entries: usize) -> u64 {
        let last = self.chain().backlog().await.unwrap().movable;
        let moving = self.archive.move_segment(&self.chain(), last, entries).await;
        moving.unwrap()
    }

    /// Deletes the look-ups of archived decisions.
    pub async fn forget(&self) {
        let forgotten = self.chain().backlog().await.unwrap().forgotten;
        let forgetting = self.archive.forget_decisions(&self.chain(), forgotten).await;
        forgetting.unwrap();
    }

    pub async fn list(&self, filter: EntryFilter<'_>, offset: usize, limit: usize) -> (Vec<Sealed>, u64) {
        let page = PageRequest::at(offset, limit);
        let part = self.trail().list(filter, page).await.unwrap();
        (part.records, part.total)
    }

    /// The list of a filter by cursor, in pages of `limit`. Calls `between` before each page but the first.
    pub async fn pages(
        &self,
        filter: EntryFilter<'_>,
        limit: usize,
        between: impl AsyncFn(usize),
    ) -> Vec<Vec<Sealed>> {
        let mut pages = Vec::new();
        let mut position: Option<String> = None;
        loop {
            let page = match &position {
                None => PageRequest::at(0, limit),
                Some(position) => PageRequest::after(position, limit),
            };
            let part = self.trail().list(filter, page).await.unwrap();
            pages.push(part.records);
            position = part.next;
            if position.is_none() {
                return pages;
            }
            between(pages.len()).await;
        }
    }

    pub async fn objects(&self) -> Vec<String> {
        self.archive.location().list("segments").await.unwrap()
    }
}

pub fn archive_at(root: &Path) -> Archive {
    Archive::at(location_of(&[("ARCHIVE", &root.display().to_string())]))
}

/// The location that these settings name.
pub fn location_of(settings: &[(&str, &str)]) -> ArchiveLocation {
    let variables = settings
        .iter()
        .map(|(key, value)| (format!("TOLLGATE_AUDIT__{key}"), (*value).to_owned()));
    ArchiveLocation::from_settings(&load_from(None, variables).unwrap().audit).unwrap()
}

pub async fn append(store: &Store, account: &SeedAccount, line: &str) -> Result<u64, store::StoreError> {
    let mut run = redis::cmd("EVAL");
    run.arg(APPEND)
        .arg(2)
        .arg(account.keys.record())
        .arg(account.keys.live().audit());
    store.command(run.arg(line)).await
}

/// The audit line of step `n`: calls that are approved, denied, kept and corrected, and changes with and without an
/// agent.
pub fn line(n: u64, at_ms: u64) -> (String, Option<String>) {
    let agent = AGENTS[usize::try_from(n * n / 3 % 3).unwrap()];
    let id = IdKind::Allow.mint(at_ms - 3 * (n % 40) * 1000).unwrap();
    match n % 5 {
        0 => {
            let change = format!(
                r#"{at_ms} {{"type":"agent.frozen","agentId":"{agent}","actor":"key_{n}","data":{{"n":{n},"ä\n":"é"}}}}"#
            );
            (change, None)
        }
        1 => {
            let change = format!(
                r#"{at_ms} {{"type":"policy.set","agentId":null,"actor":"operator","data":{{}}}} policyId=pol_{n}"#
            );
            (change, None)
        }
        2 => {
            let denied = format!(
                "{at_ms} D daily_limit {id} {} 0:10:,3:120:,,95:100:12,,, acct_1 {agent} run-{n} vk_1 p1 gpt-4o mini",
                n * 1000
            );
            (denied, Some(id))
        }
        _ => {
            let outcome = if n.is_multiple_of(4) { "kept" } else { "settled" };
            let ended = format!(
                "{at_ms} A {outcome} {n} {id} H {n} 20775 202611 1 0:10:,3::,5:100:2,6::4,7::4,1:10:,8:5000:0 acct_1 {agent} - vk_1 - m"
            );
            (ended, Some(id))
        }
    }
}

/// The number in an entry's own text.
pub fn number(entry: &Sealed) -> u64 {
    let value: Value = serde_json::from_str(&entry.json).unwrap();
    value["seq"].as_u64().unwrap()
}
