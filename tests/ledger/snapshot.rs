//! The content of expected keys: how it is written and compared.

pub use harness::scripts::{Record, Window};

use harness::scripts::{Checked, Content};
use redis::Cmd;
use std::collections::BTreeMap;

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

/// The expected content of the store, by key.
pub type Expected = harness::scripts::Expected<Shape>;

/// Compares texts and moments as they are.
pub struct Plain;

impl Content<Shape> for Plain {
    fn check(&mut self, shape: &Shape, kind: &str, items: &[String]) -> Checked {
        match agrees(shape, kind, items) {
            true => Ok(()),
            false => Err(format!("is {items:?}, expected {shape:?}")),
        }
    }

    fn write(&self, shape: &Shape, key: &str) -> Cmd {
        write(key, shape)
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

/// The command that writes the content of a key.
pub fn write(key: &str, shape: &Shape) -> Cmd {
    let (command, words): (&str, Vec<String>) = match shape {
        Shape::Text(text) => ("SET", vec![text.clone()]),
        Shape::Hash(cells) => {
            let pairs = cells
                .iter()
                .flat_map(|(field, cell)| [field.clone(), cell.text()]);
            ("HSET", pairs.collect())
        }
        Shape::Counts(counts) => {
            let pairs = counts
                .iter()
                .flat_map(|(at, rest, count)| [format!("{} {rest}", at.from), count.to_string()]);
            ("HSET", pairs.collect())
        }
        Shape::Zset(cells) => {
            let pairs = cells
                .iter()
                .flat_map(|(member, cell)| [cell.text(), member.clone()]);
            ("ZADD", pairs.collect())
        }
        Shape::Log(entries) => {
            let lines = entries
                .iter()
                .map(|(seq, at, rest)| format!("{seq} {} {rest}", at.from));
            ("RPUSH", lines.collect())
        }
    };
    let mut all = redis::cmd(command);
    all.arg(key).arg(words);
    all
}
