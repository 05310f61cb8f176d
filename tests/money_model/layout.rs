//! Form of the content of an expected key.

use crate::names::Names;
use crate::snapshot::{Entry, Shape};
use redis::Cmd;
use std::collections::{BTreeMap, HashMap};
use store::intent::IntentRecord;

/// The command that writes the content of a key. Every name in it has a value.
pub fn write(shape: &Shape, key: &str, names: &Names) -> Cmd {
    let show = |text: &String| names.show(text);
    let pairs = |cells: &BTreeMap<String, String>| -> Vec<(String, String)> {
        cells
            .iter()
            .map(|(name, value)| (show(name), show(value)))
            .collect()
    };
    let flat = |(name, value)| [name, value];
    let (command, words): (&str, Vec<String>) = match shape {
        Shape::Text(text) => ("SET", vec![show(text)]),
        Shape::Hash(cells) => ("HSET", pairs(cells).into_iter().flat_map(flat).collect()),
        Shape::Intent(cells) => {
            let mut fields: HashMap<String, String> = pairs(cells).into_iter().collect();
            fields.insert("head".to_owned(), String::new());
            let record = IntentRecord::from_fields(&fields).expect("an intent");
            let head = record
                .timeline()
                .last()
                .map_or("", |entry| entry.hash())
                .to_owned();
            fields.insert("head".to_owned(), head);
            ("HSET", fields.into_iter().flat_map(flat).collect())
        }
        Shape::Zset(cells) => {
            let scored = pairs(cells).into_iter().map(|(member, score)| (score, member));
            ("ZADD", scored.flat_map(flat).collect())
        }
        Shape::Set(members) => ("SADD", members.iter().map(show).collect()),
        Shape::List(items) => ("RPUSH", items.iter().map(show).collect()),
        Shape::Rows(_) => unreachable!("nothing is in transit when a store is laid out"),
        Shape::Log(entries) => {
            let lines = entries.iter().zip(1..).map(|(entry, seq)| show(&entry.line(seq)));
            ("RPUSH", lines.collect())
        }
    };
    let mut all = redis::cmd(command);
    all.arg(key).arg(words);
    all
}

impl Entry {
    fn line(&self, seq: usize) -> String {
        let nanos = self.nanos.map(|nanos| nanos.to_string());
        let json = serde_json::json!({ "type": self.kind, "agentId": self.agent, "actor": self.actor,
            "data": { "amountNanos": nanos } });
        let words = self.words.as_ref().map(|words| format!(" {words}"));
        format!("{seq} {} {json}{}", self.at, words.unwrap_or_default())
    }
}
