//! Accounts that lost an acknowledged change with the server that made it (decision D47).
//!
//! What an account had reached is known from its witness, on a cluster, and from what this process has seen. The
//! witness is told of changes alone, so less than it says is a lost change. This process may have seen calls as well,
//! which a failover may take back: less than that is a lost change where it is more than [`CALLS_MAX`].

use super::{AccountVersion, witness};
use crate::Store;
use crate::connection::batch::Batch;
use crate::connection::witness_of;
use crate::keys::AccountKeys;
use crate::read::Read;
use crate::script::change::VERSION_STEP;

/// Calls that an account may lack without having lost a change, and calls of an agent after a failover for which the
/// loss of a change is still found.
const CALLS_MAX: u64 = VERSION_STEP / 2;

/// Whether an account has all changes that were acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// As far as known.
    Sound,
    /// It lost a change.
    Lost {
        /// The generation that `store accept` raises.
        generation: u64,
        /// Whether the witness of the account was told to wait for that; without a cluster there is none to tell.
        is_witnessed: bool,
    },
}

/// How far an account had come before it was read.
#[derive(Debug, Clone, Copy)]
struct Floor {
    seen: AccountVersion,
    witnessed: Option<AccountVersion>,
}

/// Looks at each of `accounts`, in two rounds of reads. Those that could not be read or have no record are left out:
/// nothing can be done with an account that has none.
pub async fn check<'a>(
    store: &Store,
    batch: &Batch<'_>,
    accounts: &'a [String],
) -> Vec<(&'a String, Completeness)> {
    // In this order: a record that is read after its floor shows as much or more, unless the store lost writes.
    let floors = floors(store, batch, accounts).await;
    let records = accounts.iter().map(|account| {
        let keys = AccountKeys::new(account);
        let fields = ["generation", "version"].map(str::to_owned);
        Read::fields(keys.bucket(), keys.record(), &fields)
    });
    let mut answers = batch.many(&records.collect::<Vec<_>>()).await;
    let looked = accounts.iter().zip(floors).filter_map(|(account, floor)| {
        let record: Option<(Option<u64>, Option<u64>)> = answers.read();
        let (Some(generation), Some(version)) = record? else {
            return None;
        };
        Some((
            account,
            floor.completeness(AccountVersion { generation, version }, store.is_cluster()),
        ))
    });
    looked.collect()
}

async fn floors(store: &Store, batch: &Batch<'_>, accounts: &[String]) -> Vec<Floor> {
    let mut witnesses = None;
    if store.is_cluster() {
        let reads = accounts.iter().map(|account| {
            let bucket = witness_of(AccountKeys::new(account).bucket());
            Read::field(bucket, bucket.witnessed(), account)
        });
        witnesses = Some(batch.many(&reads.collect::<Vec<_>>()).await);
    }
    let floors = accounts.iter().map(|account| {
        let text = witnesses
            .as_mut()
            .and_then(|answers| answers.read::<Option<String>>().flatten());
        Floor {
            seen: store.versions().newest(account),
            witnessed: text.as_deref().and_then(witness::parse),
        }
    });
    floors.collect()
}

impl Floor {
    fn completeness(self, record: AccountVersion, is_cluster: bool) -> Completeness {
        let witnessed = self.witnessed.unwrap_or_default();
        let with_calls = AccountVersion {
            version: record.version.saturating_add(CALLS_MAX),
            ..record
        };
        if witnessed <= record && self.seen <= with_calls {
            return Completeness::Sound;
        }
        Completeness::Lost {
            generation: self.seen.generation.max(witnessed.generation),
            is_witnessed: !is_cluster || witnessed.is_until_accepted(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn view(generation: u64, version: u64) -> AccountVersion {
        AccountVersion { generation, version }
    }

    /// What was seen, what the witness says, and whether the account at version 7 of generation 3 lost a change.
    #[test]
    fn a_lost_change_is_reported_from_lost_calls() {
        for (seen, witnessed, generation) in [
            (view(0, 0), None, None),
            (view(3, 7), Some(view(3, 7)), None),
            (view(3, 7 + CALLS_MAX), None, None),
            (view(3, 8 + CALLS_MAX), None, Some(3)),
            (view(2, 900 + CALLS_MAX), Some(view(2, 900)), None),
            (view(3, 7), Some(view(3, 8)), Some(3)),
            (view(4, 1), None, Some(4)),
            (view(3, 7), Some(view(4, 1)), Some(4)),
            (AccountVersion::until_accepted(3), None, Some(3)),
            (
                AccountVersion::until_accepted(2),
                Some(AccountVersion::until_accepted(2)),
                None,
            ),
        ] {
            let floor = Floor { seen, witnessed };
            let expected = generation.map_or(Completeness::Sound, |generation| Completeness::Lost {
                generation,
                is_witnessed: false,
            });
            assert_eq!(floor.completeness(view(3, 7), true), expected, "{floor:?}");
        }
    }

    #[test]
    fn a_witness_is_reported_once() {
        let standing = |witnessed, is_cluster| {
            let seen = AccountVersion::until_accepted(3);
            Floor { seen, witnessed }.completeness(view(3, 7), is_cluster)
        };
        for (witnessed, is_cluster, is_witnessed) in [
            (Some(view(3, 8)), true, false),
            (Some(AccountVersion::until_accepted(3)), true, true),
            (None, false, true),
        ] {
            let expected = Completeness::Lost {
                generation: 3,
                is_witnessed,
            };
            assert_eq!(standing(witnessed, is_cluster), expected);
        }
    }
}
