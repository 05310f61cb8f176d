//! Detects accounts that lost an acknowledged change with the server that made it (decision D47).
//!
//! The acknowledged version comes from the witness, on a cluster, and from this process: versions that it read in
//! requests, that its own changes returned, and that earlier checks read (these include changes of other servers and of
//! the command line). The witness only records changes, so any older version means a lost change. This process may also
//! have recorded calls, which a failover may lose: an older version means a lost change only if it is older by more
//! than [`CALLS_MAX`].

use super::{AccountVersion, Versions, witness};
use crate::Store;
use crate::connection::batch::Batch;
use crate::connection::witness_of;
use crate::keys::AccountKeys;
use crate::read::Read;
use crate::script::change::VERSION_STEP;

/// Maximum number of lost calls that do not count as a lost change, and of calls after a failover within which a lost
/// change is still detected.
const CALLS_MAX: u64 = VERSION_STEP / 2;

/// Completeness of an account's acknowledged changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// Complete, as far as known.
    Sound,
    /// A change is lost.
    Lost {
        /// Generation that `store accept` will increment.
        generation: u64,
        /// True if the witness has recorded the loss. False without a cluster.
        is_witnessed: bool,
    },
}

/// Acknowledged version of an account before it was read.
#[derive(Debug, Clone, Copy)]
struct Floor {
    seen: AccountVersion,
    witnessed: Option<AccountVersion>,
}

/// Checks each of `accounts`, in two batches of reads. Skips those that could not be read or have no record, since
/// nothing can be done about them. `checked` has the versions that earlier checks read, and gets those of this one.
/// They are apart from the versions of requests, which allow for no lost calls.
pub async fn check<'a>(
    store: &Store,
    batch: &Batch<'_>,
    accounts: &'a [String],
    checked: &Versions,
) -> Vec<(&'a String, Completeness)> {
    // In this order: a record read after its floor has the same version or a newer one, unless the store lost writes.
    let floors = floors(store, batch, accounts, checked).await;
    let fields = ["generation", "version"].map(str::to_owned);
    let mut answers = batch.many(&Read::for_accounts(accounts, &fields)).await;
    let checked = accounts.iter().zip(floors).filter_map(|(account, floor)| {
        let record: Option<(Option<u64>, Option<u64>)> = answers.read();
        let (Some(generation), Some(version)) = record? else {
            return None;
        };
        let record = AccountVersion { generation, version };
        checked.record(account, record);
        Some((account, floor.completeness(record, store.is_cluster())))
    });
    checked.collect()
}

async fn floors(store: &Store, batch: &Batch<'_>, accounts: &[String], checked: &Versions) -> Vec<Floor> {
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
            seen: store.versions().newest(account).max(checked.newest(account)),
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

    /// The known version, the witness's version, and whether the account at version 7 of generation 3 lost a change.
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
        let completeness = |witnessed, is_cluster| {
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
            assert_eq!(completeness(witnessed, is_cluster), expected);
        }
    }
}
