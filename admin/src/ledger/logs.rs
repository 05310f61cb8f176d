//! Indexes that name records: the audit log, the lists of intents, holds by deadline, open escrows.

use super::book::Place;
use super::drive::{BATCH, Job, drive};
use super::join::{Join, Side};
use super::pass::Pass;
use super::violation::Invariant;
use shared::domain::intent::State;
use shared::store::keys::parse::{Key, ModeKey};
use shared::store::keys::{Bucket, IntentIndex, escrow_lookup};
use shared::store::read::Read;
use shared::store::script::reap::KEPT_LIFE;
use shared::store::{StoreError, server_clock};
use std::collections::BTreeSet;

impl Pass<'_> {
    /// Reads the audit logs and the lists of intents.
    pub(super) async fn read_logs(&mut self) -> Result<(), StoreError> {
        self.read_audit_sizes().await?;
        self.read_audit().await?;
        self.read_intent_lists().await
    }

    async fn read_audit_sizes(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let jobs = accounts.places().map(|place| {
            let keys = accounts.keys(place);
            let size = Read::list_length(keys.bucket(), keys.audit(place.mode));
            let seq = Read::field(keys.bucket(), keys.record(), &format!("{}_audit_seq", place.mode));
            Job {
                what: place,
                reads: vec![size, seq],
                weight: 2,
            }
        });
        drive(store, jobs, |place, mut answers| {
            let size = answers.read::<u64>();
            let now = answers.read::<Option<u64>>().flatten().unwrap_or(0);
            let given = self.page(place).audit_seq;
            if size.is_none_or(|size| size < given || size > now) {
                let key = accounts.keys(place).audit(place.mode);
                let size = size.map_or("no list of".to_owned(), |size| size.to_string());
                let detail = format!("{size} entries, and the last number given is {}", now.max(given));
                self.wrong(Invariant::AuditSequence, &[&key], detail);
            }
        })
        .await
    }

    async fn read_audit(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let sizes: Vec<(Place, u64)> = accounts
            .places()
            .map(|place| (place, self.page(place).audit_seq))
            .collect();
        let jobs = sizes.iter().flat_map(|(place, size)| {
            let keys = accounts.keys(*place);
            (0..*size).step_by(BATCH).map(move |first| {
                let count = (size - first).min(BATCH as u64);
                let reads = vec![Read::list(keys.bucket(), keys.audit(place.mode), first, count)];
                Job {
                    what: (*place, first),
                    reads,
                    weight: BATCH,
                }
            })
        });
        drive(store, jobs, |(place, first), mut answers| {
            let entries = answers.read::<Vec<Vec<u8>>>().unwrap_or_default();
            self.count(entries.len());
            let mut numbers = entries.iter().zip(first + 1..);
            if let Some((entry, number)) = numbers.find(|(entry, number)| leading(entry) != Some(*number)) {
                let key = accounts.keys(place).audit(place.mode);
                let is = leading(entry).map_or("none".to_owned(), |is| is.to_string());
                let detail = format!("in the place of entry {number} is {is}");
                self.wrong(Invariant::AuditSequence, &[&key], detail);
            }
        })
        .await
    }

    async fn read_intent_lists(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut lists = Vec::new();
        for place in accounts.places() {
            let prefix = accounts.keys(place).prefix();
            let names = self.page(place).intent_lists.iter();
            lists.extend(names.map(|name| (place, format!("{prefix}{name}"))));
        }
        let jobs = lists.into_iter().map(|(place, key)| {
            let bucket = accounts.keys(place).bucket();
            let reads = vec![match waits(&key) {
                true => Read::sorted_length(bucket, &key),
                false => Read::list_length(bucket, &key),
            }];
            Job {
                what: (place, key),
                reads,
                weight: 1,
            }
        });
        let mut sized = Vec::new();
        drive(store, jobs, |(place, key), mut answers| {
            match answers.read::<u64>() {
                Some(size) => sized.push((place, key, size)),
                None => self.wrong(Invariant::Intent, &[&key], "it is no list of intents"),
            }
        })
        .await?;
        let jobs = sized.iter().flat_map(|(place, key, size)| {
            let bucket = accounts.keys(*place).bucket();
            (0..*size).step_by(BATCH).map(move |first| {
                let count = BATCH as u64;
                let reads = vec![match waits(key) {
                    true => Read::sorted(bucket, key, first, count),
                    false => Read::list(bucket, key, first, count),
                }];
                Job {
                    what: (*place, key.as_str()),
                    reads,
                    weight: BATCH / 2,
                }
            })
        });
        drive(store, jobs, |(place, key), mut answers| {
            let ids: Vec<String> = match waits(key) {
                true => {
                    let scored = answers.read::<Vec<(String, f64)>>().unwrap_or_default();
                    scored.into_iter().map(|(id, _)| id).collect()
                }
                false => answers.read().unwrap_or_default(),
            };
            self.count(ids.len());
            let Some(Key::Mode(_, _, ModeKey::Intents(index))) = Key::parse(key) else {
                return;
            };
            let parts = match index {
                IntentIndex::All => ["all", ""],
                IntentIndex::Kind(kind) => ["kind", kind],
                IntentIndex::Agent(agent) => ["agent", agent],
                IntentIndex::State(state) => ["state", state],
            };
            for id in ids {
                self.join(Join::IntentList, Side::Match, (place, &id), &parts);
            }
        })
        .await
    }

    /// Whatever an index of holds names is a hold.
    pub(super) async fn read_hold_indexes(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let buckets: BTreeSet<Bucket> = accounts
            .places()
            .map(|place| accounts.keys(place).bucket())
            .collect();
        let kept_since = server_clock::now_ms(store)
            .await?
            .saturating_sub(ms(KEPT_LIFE.as_millis()));
        let indexes = buckets
            .into_iter()
            .flat_map(|bucket| [(bucket, false), (bucket, true)]);
        let jobs = indexes.map(|(bucket, kept)| {
            let index = if kept { bucket.kept() } else { bucket.due() };
            let reads = vec![Read::sorted(bucket, index, 0, u64::from(u32::MAX))];
            Job {
                what: (bucket, kept),
                reads,
                weight: 20,
            }
        });
        let mut listed = Vec::new();
        drive(store, jobs, |(bucket, kept), mut answers| {
            let index = if kept { bucket.kept() } else { bucket.due() };
            match answers.read::<Vec<(String, f64)>>() {
                None => self.wrong(Invariant::Holds, &[&index], "it is no index of holds"),
                Some(ids) => {
                    self.count(ids.len());
                    // The index of kept holds is cleared of those whose time is over with the next one.
                    let live = ids
                        .into_iter()
                        .filter(|(_, at)| !kept || *at > as_score(kept_since));
                    listed.extend(live.map(|(id, _)| (bucket, kept, index.clone(), id)));
                }
            }
        })
        .await?;
        let jobs = listed.into_iter().map(|(bucket, kept, index, id)| {
            let key = if kept {
                bucket.kept_hold(&id)
            } else {
                bucket.hold(&id)
            };
            let reads = vec![Read::text(bucket, &key), Read::score(bucket, &index, &id)];
            Job {
                what: (index, key),
                reads,
                weight: 2,
            }
        });
        drive(store, jobs, |(index, key), mut answers| {
            let text = answers.read::<Option<String>>().flatten();
            let still = answers.read::<Option<f64>>().flatten().is_some();
            // Resolved while we looked, it is in neither.
            if still && text.is_none_or(|text| text == "V") {
                self.wrong(
                    Invariant::Holds,
                    &[&index, &key],
                    "the index names a hold that is not there",
                );
            }
        })
        .await
    }

    /// Escrows that hold money are open for their wallets, and the sets of open ones have no others.
    pub(super) async fn read_open_escrows(&mut self) -> Result<(), StoreError> {
        self.read_held().await?;
        let (store, accounts) = (self.store, self.accounts);
        let mut sets = Vec::new();
        for place in accounts.places() {
            let owners = self.page(place).open_escrows.iter();
            sets.extend(owners.map(|owner| (place, owner.clone())));
        }
        let jobs = sets.into_iter().map(|(place, owner)| {
            let keys = accounts.keys(place);
            let reads = vec![Read::set(keys.bucket(), keys.open_escrows(place.mode, &owner))];
            Job {
                what: (place, owner),
                reads,
                weight: 20,
            }
        });
        let mut members = Vec::new();
        drive(store, jobs, |(place, owner), mut answers| {
            let key = accounts.keys(place).open_escrows(place.mode, &owner);
            match answers.read::<Vec<u64>>() {
                None => self.wrong(Invariant::EscrowState, &[&key], "it is no set of escrow numbers"),
                Some(numbers) => {
                    self.count(numbers.len());
                    members.extend(numbers.into_iter().map(|number| (place, owner.clone(), number)));
                }
            }
        })
        .await?;
        let fields = ["status", "from_owner", "to_account", "to_owner"].map(str::to_owned);
        let jobs = members.into_iter().map(|(place, owner, number)| {
            let keys = accounts.keys(place);
            let record = Read::fields(keys.bucket(), keys.escrow(place.mode, number), &fields);
            let reads = vec![record, Read::global(escrow_lookup(number))];
            Job {
                what: (place, owner, number),
                reads,
                weight: 2,
            }
        });
        drive(store, jobs, |(place, owner, number), mut answers| {
            let record = answers.read::<[Option<String>; 4]>().unwrap_or_default();
            let payer = answers.read::<Option<String>>().flatten();
            let [status, from, to_account, to] = record.each_ref().map(Option::as_deref);
            let elsewhere = payer
                .as_deref()
                .is_some_and(|payer| payer != accounts.word(place));
            let named =
                from == Some(&owner) || (to_account == Some(accounts.id(place)) && to == Some(&owner));
            // That of a payee may be a little more than is open, when the payer is in another account.
            if elsewhere && status.is_none() || named && matches!(status, Some("funded" | "disputed")) {
                return;
            }
            let keys = accounts.keys(place);
            let (set, escrow) = (
                keys.open_escrows(place.mode, &owner),
                keys.escrow(place.mode, number),
            );
            let status = status.unwrap_or("not there");
            let detail = match named {
                true => format!("escrow {number} is in the set of open ones, and is {status}"),
                false => format!("escrow {number} is in the set of open ones, and is not one of {owner}"),
            };
            self.wrong(Invariant::EscrowState, &[&set, &escrow], detail);
        })
        .await
    }

    async fn read_held(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut held = Vec::new();
        for place in accounts.places() {
            for escrow in std::mem::take(&mut self.page(place).held) {
                let payer = accounts.keys(place);
                let payee = shared::store::keys::AccountKeys::of(&escrow.to_account);
                let sets = [
                    (payer.bucket(), payer.open_escrows(place.mode, &escrow.from_owner)),
                    (payee.bucket(), payee.open_escrows(place.mode, &escrow.to_owner)),
                ];
                held.extend(sets.map(|(bucket, set)| (place, escrow.number, bucket, set)));
            }
        }
        let jobs = held.into_iter().map(|(place, number, bucket, set)| {
            let reads = vec![Read::is_member(bucket, &set, &number.to_string())];
            Job {
                what: (place, number, set),
                reads,
                weight: 1,
            }
        });
        let mut missing = Vec::new();
        drive(store, jobs, |what, mut answers| {
            if answers.read::<bool>() != Some(true) {
                missing.push(what);
            }
        })
        .await?;
        let jobs = missing.into_iter().map(|(place, number, set)| {
            let keys = accounts.keys(place);
            let key = keys.escrow(place.mode, number);
            let reads = vec![Read::field(keys.bucket(), &key, "status")];
            Job {
                what: (set, key),
                reads,
                weight: 1,
            }
        });
        drive(store, jobs, |(set, key), mut answers| {
            // It is resolved once and for ever: still unresolved, it was so when the set was read.
            if matches!(
                answers.read::<Option<String>>().flatten().as_deref(),
                Some("funded" | "disputed")
            ) {
                self.wrong(
                    Invariant::EscrowState,
                    &[&key, &set],
                    "it holds money, and is not in the set of open ones",
                );
            }
        })
        .await
    }
}

/// Whether it is the list of intents that wait for approval, which is a sorted set.
fn waits(key: &str) -> bool {
    key.strip_suffix(State::PendingApproval.as_str())
        .is_some_and(|rest| rest.ends_with("/intents/state/"))
}

/// The number that an entry begins with.
fn leading(entry: &[u8]) -> Option<u64> {
    let word = entry.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of our time are exact in a double"
)]
const fn as_score(at_ms: u64) -> f64 {
    at_ms as f64
}

fn ms(millis: u128) -> u64 {
    u64::try_from(millis).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_begins_with_its_number() {
        assert_eq!(leading(b"12 1795 {}"), Some(12));
        assert_eq!(leading(b"x 1795 {}"), None);
        assert_eq!(leading(b""), None);
    }

    #[test]
    fn an_agent_called_like_a_state_has_a_plain_list() {
        assert!(waits("{b0001}/acct_1/live/intents/state/pending_approval"));
        assert!(!waits("{b0001}/acct_1/live/intents/agent/pending_approval"));
        assert!(!waits("{b0001}/acct_1/live/intents/state/settled"));
    }
}
