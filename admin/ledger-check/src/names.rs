//! Checks the look-ups of numbers, ids, keys and references of pending deposits: each names the one record that has it,
//! and each record has its look-up.
//!
//! A wallet or an escrow and the place of its number are written together, so both sides of their comparison
//! ([`Comparison::Place`]) must have equal numbers of each. This detects two records with one number, a place without a
//! record or with another one, and a record without a place.
//!
//! The look-ups of keys are compared in both directions: a record's hash leads to it, and a look-up that leads to a key
//! in force is that of its hash. Otherwise a hash of somebody else's secret would open the key.

mod lookups;
mod pass;

use super::drive::BATCH;
use domain::number::Number;
use std::collections::HashMap;
use store::keys::{AccountKeys, Bucket, Series};
use store::read::Read;

/// A record and its look-up.
pub(super) struct NamedRecord {
    record: String,
    lookup: String,
    content: LookupContent,
}

/// Required content of a look-up.
pub(super) enum LookupContent {
    /// Exactly this text.
    Text(String),
    /// This member, perhaps among others.
    Member(String),
}

/// The look-up of a key, and the key that it leads to.
struct KeyLookup {
    lookup: String,
    /// The record of the key.
    record: String,
    account: AccountKeys,
    /// The agent of a virtual key.
    agent: Option<String>,
}

/// Numbers and keys collected in a pass.
#[derive(Default)]
pub(super) struct CollectedNames {
    /// Look-ups outside the buckets that are to be read.
    outside: Vec<NamedRecord>,
    /// Look-ups of keys whose records are to be read.
    key_lookups: Vec<KeyLookup>,
    /// The highest place with a record, for each series and bucket.
    highest: HashMap<(Series, u16), u64>,
}

/// Kind of a key's record.
#[derive(Clone, Copy)]
pub(super) enum KeyRecordKind {
    Virtual,
    Api,
}

impl CollectedNames {
    /// Returns whether the collected look-ups should be read before more are collected.
    pub(super) const fn is_full(&self) -> bool {
        self.outside.len() >= BATCH || self.key_lookups.len() >= BATCH
    }
}

/// Returns the name of a number of a series in reports.
fn called(series: Series, number: u64) -> String {
    format!("{} {number}", series.as_str())
}

pub(super) fn place_read(series: Series, number: Number) -> Read {
    let key = match series {
        Series::Wallet => Bucket::wallet_place(number),
        Series::Escrow => Bucket::escrow_place(number),
    };
    Read::text(Bucket::from_number(number), key)
}
