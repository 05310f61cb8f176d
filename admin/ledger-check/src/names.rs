//! Numbers, ids, keys and references of pending deposits: each leads to the one record that has it, and each record is
//! led to.
//!
//! A wallet or an escrow and the place of its number are written together, so they are compared as what must agree in
//! equal numbers ([`Comparison::Place`]): two records that claim a number, a place that leads nowhere or elsewhere, and
//! a record without one differ from it alike. What an earlier version made has look-ups outside the buckets instead.
//! Those were written before the record: one that leads nowhere is what a crash left, and says nothing.

mod pass;

use super::drive::BATCH;
use domain::number::Number;
use std::collections::HashMap;
use store::keys::{Bucket, Series};
use store::read::Read;

/// A record and the look-ups that must lead to it.
pub(super) struct Led {
    record: String,
    lookup: String,
    says: Says,
}

/// Required content of a look-up.
pub(super) enum Says {
    /// This text and nothing else.
    Text(String),
    /// This member, perhaps among others.
    Member(String),
}

/// What a pass knows of numbers and keys.
#[derive(Default)]
pub(super) struct Names {
    /// Look-ups outside the buckets that are to be read.
    outside: Vec<Led>,
    /// The highest place that has a record, of each series and bucket.
    highest: HashMap<(Series, u16), u64>,
}

/// Which key a record is of.
#[derive(Clone, Copy)]
pub(super) enum KeyKind {
    Virtual,
    Api,
}

impl Names {
    /// Whether the look-ups noted so far should be read before more are.
    pub(super) const fn is_full(&self) -> bool {
        self.outside.len() >= BATCH
    }
}

/// What a number of a series is called in a report.
fn called(series: Series, number: u64) -> String {
    format!("{} {number}", series.as_str())
}

/// Reads where a number leads.
pub(super) fn place_read(series: Series, number: Number) -> Read {
    let key = match series {
        Series::Wallet => Bucket::wallet_place(number),
        Series::Escrow => Bucket::escrow_place(number),
    };
    Read::text(Bucket::from_number(number), key)
}
