//! Writes the initial records of a case into a store.

use crate::model::ACCOUNTS;
use crate::names::Names;
use crate::snapshot::{Entry, Expected, Shape};
use redis::Pipeline;
use std::collections::{BTreeMap, HashMap};
use store::Store;
use store::intent::IntentRecord;

/// Empties the store and writes the `expected` records into it. Every name in it has a value.
pub async fn install(store: &Store, expected: &Expected, names: &Names) -> Result<(), String> {
    for account in ACCOUNTS {
        store.versions().forget(account);
    }
    let mut pipeline = Pipeline::new();
    pipeline.cmd("FLUSHDB");
    for (key, record) in expected {
        let key = names.show(key);
        write(&mut pipeline, &key, &record.shape, names);
        if let Some(window) = record.expires {
            pipeline.cmd("PEXPIREAT").arg(&key).arg(window.from);
        }
    }
    let done: Result<redis::Value, _> = store.pipeline(&pipeline).await;
    done.map(|_| ())
        .map_err(|error| format!("not installed: {error:?}"))
}

fn write(pipeline: &mut Pipeline, key: &str, shape: &Shape, names: &Names) {
    let pairs = |cells: &BTreeMap<String, String>| -> Vec<(String, String)> {
        let shown = cells
            .iter()
            .map(|(name, value)| (names.show(name), names.show(value)));
        shown.collect()
    };
    match shape {
        Shape::Text(text) => pipeline.cmd("SET").arg(key).arg(names.show(text)),
        Shape::Hash(cells) => pipeline.cmd("HSET").arg(key).arg(pairs(cells)),
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
            pipeline.cmd("HSET").arg(key).arg(fields)
        }
        Shape::Zset(cells) => {
            pipeline.cmd("ZADD").arg(key);
            for (member, score) in pairs(cells) {
                pipeline.arg(score).arg(member);
            }
            pipeline
        }
        Shape::Set(members) => {
            let members: Vec<String> = members.iter().map(|member| names.show(member)).collect();
            pipeline.cmd("SADD").arg(key).arg(members)
        }
        Shape::List(items) => {
            let items: Vec<String> = items.iter().map(|item| names.show(item)).collect();
            pipeline.cmd("RPUSH").arg(key).arg(items)
        }
        Shape::Rows(_) => unreachable!("nothing is in transit when a store is laid out"),
        Shape::Log(entries) => {
            pipeline.cmd("RPUSH").arg(key);
            for (at, entry) in entries.iter().enumerate() {
                pipeline.arg(names.show(&entry.line(at + 1)));
            }
            pipeline
        }
    };
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
