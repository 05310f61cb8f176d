//! The content of expected keys: how it is compared.

pub use harness::scripts::Record;

use crate::layout;
use crate::names::{Names, OPEN};
use harness::scripts::{Checked, Content};
use redis::Cmd;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::intent::IntentRecord;

/// An entry of an audit log as it should be.
#[derive(Debug, Clone)]
pub struct Entry {
    pub at: String,
    pub kind: String,
    pub agent: Option<String>,
    pub actor: String,
    /// The amount, where money moves.
    pub nanos: Option<u64>,
    /// Words that the script adds.
    pub words: Option<String>,
}

/// The content of a key.
#[derive(Debug, Clone)]
pub enum Shape {
    Text(String),
    Hash(BTreeMap<String, String>),
    /// The record of a request: a hash, whose `head` must be that of its timeline.
    Intent(BTreeMap<String, String>),
    /// Members and scores.
    Zset(BTreeMap<String, String>),
    Set(BTreeSet<String>),
    List(Vec<String>),
    /// Rows in transit, by id.
    Rows(BTreeMap<String, Row>),
    Log(Vec<Entry>),
}

/// A row in transit, reduced to the parts that the receiver uses.
pub type Row = Vec<(&'static str, String)>;

/// The expected content of the store, by key.
pub type Expected = harness::scripts::Expected<Shape>;

type Items<'a> = &'a [String];

/// Names have values: those that a comparison finds, or that were settled before.
impl Content<Shape> for Names {
    fn key(&self, key: &str) -> String {
        self.show(key)
    }

    fn depends(&self, key: &str) -> bool {
        key.contains(OPEN)
    }

    fn check(&mut self, shape: &Shape, kind: &str, items: &[String]) -> Checked {
        check(shape, kind, items, self)
    }

    fn write(&self, shape: &Shape, key: &str) -> Cmd {
        layout::write(shape, key, self)
    }
}

fn check(shape: &Shape, kind: &str, items: Items<'_>, names: &mut Names) -> Result<(), String> {
    let agrees = match shape {
        Shape::Text(text) => kind == "string" && names.agree(text, &items[0]),
        Shape::Hash(cells) => kind == "hash" && pairs_agree(cells, items, names),
        Shape::Intent(cells) => return intent(cells, items, names),
        Shape::Zset(cells) => kind == "zset" && pairs_agree(cells, items, names),
        Shape::Set(members) => {
            let members: BTreeSet<String> = members.iter().map(|member| names.show(member)).collect();
            kind == "set" && items.iter().cloned().collect::<BTreeSet<_>>() == members
        }
        Shape::List(all) => {
            let mut both = all.iter().zip(items);
            kind == "list"
                && all.len() == items.len()
                && both.all(|(expected, item)| names.agree(expected, item))
        }
        Shape::Rows(rows) => return waiting(rows, items, names),
        Shape::Log(entries) => return log(entries, items, names),
    };
    match agrees {
        true => Ok(()),
        false => Err(format!(
            "is {items:?}, expected {}",
            names.show(&format!("{shape:?}"))
        )),
    }
}

fn pairs_agree(cells: &BTreeMap<String, String>, items: Items<'_>, names: &mut Names) -> bool {
    let found: BTreeMap<&str, &str> = items
        .chunks(2)
        .map(|pair| (pair[0].as_str(), pair[1].as_str()))
        .collect();
    cells.len() == found.len()
        && cells.iter().all(|(field, cell)| {
            let field = names.show(field);
            found
                .get(field.as_str())
                .is_some_and(|text| names.agree(cell, text))
        })
}

/// An intent: all its fields, and the hash of its timeline.
fn intent(cells: &BTreeMap<String, String>, items: Items<'_>, names: &mut Names) -> Result<(), String> {
    let mut fields: HashMap<String, String> = items
        .chunks(2)
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect();
    let record = IntentRecord::from_fields(&fields).ok_or_else(|| format!("no record: {fields:?}"))?;
    if !record.is_intact() {
        return Err(format!("not intact: {record:?}"));
    }
    fields.remove("head");
    let rest: Vec<String> = fields
        .into_iter()
        .flat_map(|(name, value)| [name, value])
        .collect();
    match pairs_agree(cells, &rest, names) {
        true => Ok(()),
        false => Err(format!(
            "is {rest:?}, expected {}",
            names.show(&format!("{cells:?}"))
        )),
    }
}

/// The parts of a row by JSON pointer.
fn waiting(rows: &BTreeMap<String, Row>, items: Items<'_>, names: &mut Names) -> Result<(), String> {
    if rows.len() != items.len() / 2 {
        return Err(format!("is {items:?}, expected {rows:?}"));
    }
    for (id, row) in rows {
        let of_row = |pair: &[String], names: &mut Names| {
            let json: serde_json::Value = serde_json::from_str(&pair[1]).ok()?;
            let all = row.iter().all(|(pointer, expected)| {
                let text = match json.pointer(pointer) {
                    None | Some(serde_json::Value::Null) => "-".to_owned(),
                    Some(serde_json::Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                names.agree(expected, &text)
            });
            (all && names.agree(id, &pair[0])).then_some(())
        };
        // Only a row that matches completely sets names.
        let fitting = items.chunks(2).find_map(|pair| {
            let mut learned = names.clone();
            of_row(pair, &mut learned).map(|()| learned)
        });
        *names = fitting.ok_or_else(|| format!("is {items:?}, expected {id} {row:?}"))?;
    }
    Ok(())
}

fn log(entries: &[Entry], items: Items<'_>, names: &mut Names) -> Result<(), String> {
    if entries.len() != items.len() {
        return Err(format!(
            "{} entries, expected {}: {items:?}",
            items.len(),
            entries.len()
        ));
    }
    for (at, (entry, item)) in entries.iter().zip(items).enumerate() {
        let wrong = || format!("{item:?}, expected {} {entry:?}", at + 1);
        let (head, rest) = item.split_at(item.find('{').ok_or_else(wrong)?);
        let mut parsed = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
        let json = parsed.next().and_then(Result::ok).ok_or_else(wrong)?;
        let words = rest[parsed.byte_offset()..].strip_prefix(' ');
        let nanos = json["data"]["amountNanos"].as_str();
        let right = names.agree(&format!("{} {} ", at + 1, entry.at), head)
            && json["type"] == entry.kind
            && json["agentId"].as_str() == entry.agent.as_deref()
            && json["actor"] == entry.actor
            && nanos == entry.nanos.map(|nanos| nanos.to_string()).as_deref()
            && match (&entry.words, words) {
                (None, None) => true,
                (Some(expected), Some(words)) => names.agree(expected, words),
                _ => false,
            };
        if !right {
            return Err(names.show(&wrong()));
        }
    }
    Ok(())
}
