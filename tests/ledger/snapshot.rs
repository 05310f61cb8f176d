//! The whole store, read in one step, and compared with the expected records.

pub use harness::scripts::Window;

use crate::world::ACCOUNT;
use harness::scripts::dump;
use redis::{Cmd, Pipeline};
use std::collections::BTreeMap;
use store::Store;

/// A value in a hash, or a score.
#[derive(Debug, Clone)]
pub enum Cell {
    Is(String),
    Within(Window),
}

impl Cell {
    pub fn new(value: impl ToString) -> Self {
        Self::Is(value.to_string())
    }

    fn agrees(&self, text: &str) -> bool {
        match self {
            Self::Is(expected) => expected == text,
            Self::Within(window) => window.has(text),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Is(text) => text.clone(),
            Self::Within(window) => window.from.to_string(),
        }
    }
}

/// The content of a key.
#[derive(Debug, Clone)]
pub enum Shape {
    Text(String),
    Hash(BTreeMap<String, Cell>),
    Zset(BTreeMap<String, Cell>),
    /// Counts of a hash whose fields begin with a moment: moment, the rest of the field, count.
    Counts(Vec<(Window, String, u64)>),
    /// Lines of an audit log: number, moment, the rest.
    Log(Vec<(u64, Window, String)>),
}

/// An expected key.
#[derive(Debug, Clone)]
pub struct Record {
    pub expires: Option<Window>,
    pub shape: Shape,
}

/// The expected content of the store, by key.
pub type Expected = BTreeMap<String, Record>;

/// Compares the whole store with `expected`.
pub async fn compare(store: &Store, expected: &Expected) -> Result<(), String> {
    let rows = dump(store).await?;
    let mut missing: Vec<&String> = expected.keys().collect();
    for row in &rows {
        let [key, kind, expires, items @ ..] = row.as_slice() else {
            return Err(format!("a row {row:?}"));
        };
        let Some(record) = expected.get(key) else {
            return Err(format!("unexpected key {key}: {items:?}"));
        };
        missing.retain(|name| *name != key);
        let expiry_agrees = match record.expires {
            None => expires == "-1",
            Some(window) => window.has(expires),
        };
        if !expiry_agrees {
            return Err(format!(
                "{key} expires at {expires}, expected {:?}",
                record.expires
            ));
        }
        if !agrees(&record.shape, kind, items) {
            return Err(format!("{key} is {items:?}, expected {:?}", record.shape));
        }
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("missing: {missing:?}"))
    }
}

fn agrees(shape: &Shape, kind: &str, items: &[String]) -> bool {
    match shape {
        Shape::Text(text) => kind == "string" && items == [text.as_str()],
        Shape::Hash(cells) => kind == "hash" && pairs_agree(cells, items),
        Shape::Zset(cells) => kind == "zset" && pairs_agree(cells, items),
        Shape::Counts(counts) => kind == "hash" && counts_agree(counts, items),
        Shape::Log(entries) => {
            kind == "list"
                && entries.len() == items.len()
                && entries.iter().zip(items).all(|((seq, at, rest), item)| {
                    let mut words = item.splitn(3, ' ');
                    words.next() == Some(&seq.to_string())
                        && words.next().is_some_and(|text| at.has(text))
                        && words.next() == Some(rest.as_str())
                })
        }
    }
}

fn counts_agree(counts: &[(Window, String, u64)], items: &[String]) -> bool {
    let same = |pair: &[String]| {
        let (moment, rest) = pair[0].split_once(' ').unwrap_or_default();
        let mut its = counts
            .iter()
            .filter(|(at, name, _)| at.has(moment) && name == rest);
        its.any(|(_, _, count)| count.to_string() == pair[1])
    };
    counts.len() * 2 == items.len() && items.chunks(2).all(same)
}

fn pairs_agree(cells: &BTreeMap<String, Cell>, items: &[String]) -> bool {
    let pairs = items.chunks(2);
    cells.len() == pairs.len()
        && pairs
            .into_iter()
            .all(|pair| cells.get(&pair[0]).is_some_and(|cell| cell.agrees(&pair[1])))
}

/// Empties the store and writes the `expected` records into it.
pub async fn install(store: &Store, expected: &Expected) -> Result<(), String> {
    store.versions().forget(ACCOUNT);
    let mut pipeline = Pipeline::new();
    pipeline.cmd("FLUSHDB");
    for (key, record) in expected {
        pipeline.add_command(write(key, &record.shape));
        if let Some(window) = record.expires {
            pipeline.cmd("PEXPIREAT").arg(key).arg(window.from);
        }
    }
    let done: Result<redis::Value, _> = store.pipeline(&pipeline).await;
    done.map(|_| ())
        .map_err(|error| format!("not installed: {error:?}"))
}

pub fn write(key: &str, shape: &Shape) -> Cmd {
    let mut command = Cmd::new();
    match shape {
        Shape::Text(text) => {
            command.arg("SET").arg(key).arg(text);
        }
        Shape::Hash(cells) => {
            command.arg("HSET").arg(key);
            for (field, cell) in cells {
                command.arg(field).arg(cell.text());
            }
        }
        Shape::Counts(counts) => {
            command.arg("HSET").arg(key);
            for (at, rest, count) in counts {
                command.arg(format!("{} {rest}", at.from)).arg(count);
            }
        }
        Shape::Zset(cells) => {
            command.arg("ZADD").arg(key);
            for (member, cell) in cells {
                command.arg(cell.text()).arg(member);
            }
        }
        Shape::Log(entries) => {
            command.arg("RPUSH").arg(key);
            for (seq, at, rest) in entries {
                command.arg(format!("{seq} {} {rest}", at.from));
            }
        }
    }
    command
}
