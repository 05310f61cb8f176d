//! Reading and comparing numbers, ids and keys.

use super::{KeyRecordKind, LookupContent, NamedRecord, called};
use crate::book::AccountMode;
use crate::drive::{BATCH, Job, drive};
use crate::pass::Pass;
use crate::reconcile::{Comparison, Side};
use crate::violation::Invariant;
use domain::number::Number;
use store::StoreError;
use store::keys::{self, Bucket, Series};
use store::lookup::{ApiKeyOwner, VirtualKeyOwner};
use store::read::{Answers, Read};

impl Pass<'_> {
    /// Processes the place of a number.
    pub(crate) fn placed(&mut self, series: Series, number: Number, mut answers: Answers) {
        let Some(text) = answers.text() else {
            return;
        };
        let account = text.split(' ').next().unwrap_or_default();
        if self.accounts.find(account).is_none() && self.accounts.partial {
            return;
        }
        let highest = self.names.highest.entry((series, number.bucket())).or_default();
        *highest = number.count().max(*highest);
        let name = called(series, number.get());
        self.reconcile_across(Comparison::Place, Side::Match, &name, &[&text]);
    }

    /// Processes a wallet, which may be closed.
    pub(crate) fn named_wallet(&mut self, account_mode: AccountMode, owner: &str, (number, id): (u64, &str)) {
        let name = called(Series::Wallet, number);
        let content = format!("{} {owner} {id}", self.accounts.word(account_mode));
        self.reconcile_across(Comparison::Place, Side::Record, &name, &[&content]);
    }

    /// Processes an escrow: its number, and the parties whose lists must contain it.
    pub(crate) fn named_escrow(&mut self, account_mode: AccountMode, number: u64, to_account: Option<&str>) {
        let payer = self.accounts.word(account_mode);
        let name = called(Series::Escrow, number);
        self.reconcile_across(Comparison::Place, Side::Record, &name, &[payer]);
        let text = number.to_string();
        self.reconcile_across(Comparison::EscrowList, Side::Record, &text, &[payer]);
        let elsewhere = to_account.filter(|account| *account != self.accounts.id(account_mode));
        if let Some(to_account) = elsewhere.filter(|account| self.accounts.find(account).is_some()) {
            let payee = format!("{to_account} {}", account_mode.mode);
            self.reconcile_across(Comparison::EscrowList, Side::Record, &text, &[&payee]);
        }
    }

    /// Processes the record of an issued key: the look-up of its hash names it until it is revoked.
    pub(crate) fn named_key(
        &mut self,
        kind: KeyRecordKind,
        (account, id, record): (&str, &str, String),
        mut answers: Answers,
    ) {
        let fields = answers.read::<[Option<String>; 4]>().unwrap_or_default();
        // Revoked, or removed between the scan and the read.
        let [hash, agent, None, Some(_)] = fields else {
            return;
        };
        let Some(hash) = hash else {
            return self.add_violation(Invariant::Names, &[&record], "it has no hash of its secret");
        };
        let (lookup, content) = match kind {
            KeyRecordKind::Virtual => {
                let owner = VirtualKeyOwner::new(account, &agent.unwrap_or_default(), id);
                (keys::virtual_key_lookup(&hash), owner.as_stored().to_owned())
            }
            KeyRecordKind::Api => {
                let owner = ApiKeyOwner {
                    account: account.to_owned(),
                    key_id: id.to_owned(),
                };
                (keys::api_key_lookup(&hash), owner.to_stored())
            }
        };
        let content = LookupContent::Text(content);
        self.names.outside.push(NamedRecord {
            record,
            lookup,
            content,
        });
    }

    /// Processes a pending deposit, which an operator finds by its reference.
    pub(crate) fn named_deposit(&mut self, account_mode: AccountMode, key: &str, reference: &str) {
        self.names.outside.push(NamedRecord {
            record: key.to_owned(),
            lookup: keys::deposit_lookup(reference),
            content: LookupContent::Member(self.accounts.word(account_mode).to_owned()),
        });
    }

    /// Reads the collected look-ups outside the buckets, and the records that look-ups of keys lead to.
    pub(crate) async fn read_outside(&mut self) -> Result<(), StoreError> {
        let outside = std::mem::take(&mut self.names.outside);
        let jobs = outside.into_iter().map(|named| {
            Job::new(
                [match &named.content {
                    LookupContent::Text(_) => Read::global(&named.lookup),
                    LookupContent::Member(member) => Read::global_member(&named.lookup, member),
                }],
                named,
            )
        });
        drive(self.store, jobs, |named, mut answers| {
            let detail = match &named.content {
                LookupContent::Text(content) => {
                    let found = answers.text();
                    (found.as_ref() != Some(content)).then(|| {
                        let found = found.as_deref().unwrap_or("nothing");
                        format!("its look-up names {found} instead of {content}")
                    })
                }
                LookupContent::Member(member) => {
                    let is_named = answers.read::<bool>().unwrap_or_default();
                    (!is_named).then(|| format!("its look-up does not name {member}"))
                }
            };
            if let Some(detail) = detail {
                self.add_violation(Invariant::Names, &[&named.record, &named.lookup], detail);
            }
        })
        .await?;
        self.read_looked_up_keys().await
    }

    /// Checks that no number with a record is above the last one drawn: it would be drawn again. The counters are read
    /// last.
    pub(crate) async fn read_counters_of_numbers(&mut self) -> Result<(), StoreError> {
        let highest = std::mem::take(&mut self.names.highest);
        let jobs = highest.into_iter().filter_map(|((series, bucket), highest)| {
            let bucket = Bucket::from_number(Number::new(highest, bucket)?);
            let counter = bucket.counter(series);
            Some(Job::new([Read::text(bucket, &counter)], (counter, highest)))
        });
        drive(self.store, jobs, |(counter, highest), mut answers| {
            let last = answers.number();
            if last.is_none_or(|last| last < highest) {
                let last = last.map_or("none".to_owned(), |last| last.to_string());
                let detail = format!("the last place drawn is {last}, but {highest} has a record");
                self.add_violation(Invariant::Names, &[&counter], detail);
            }
        })
        .await
    }

    pub(crate) async fn read_escrow_lists(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let jobs = accounts.account_modes().map(|account_mode| {
            let realm = accounts.realm(account_mode);
            let list = realm.escrows();
            Job::new([Read::sorted_length(realm.bucket(), &list)], (account_mode, list))
        });
        let mut lists = Vec::new();
        drive(store, jobs, |(account_mode, list), mut answers| {
            match answers.read::<u64>() {
                Some(length) => lists.push((account_mode, list, length)),
                None => self.add_violation(Invariant::Names, &[&list], "it is not a list of escrows"),
            }
        })
        .await?;
        let jobs = lists.iter().flat_map(|(account_mode, list, length)| {
            let bucket = accounts.realm(*account_mode).bucket();
            (0..*length).step_by(BATCH).map(move |first| {
                Job::new([Read::sorted(bucket, list, first, BATCH as u64)], *account_mode).with_weight(BATCH)
            })
        });
        drive(store, jobs, |account_mode, mut answers| {
            let numbers = answers.read::<Vec<(String, f64)>>().unwrap_or_default();
            self.count(numbers.len());
            for (number, _) in numbers {
                let party = [accounts.word(account_mode)];
                self.reconcile_across(Comparison::EscrowList, Side::Match, &number, &party);
            }
        })
        .await
    }

    /// Records an escrow that the list of its payee will soon contain.
    pub(crate) fn will_be_listed(&mut self, number: u64, to_account: &str, mode: &str) {
        let (number, payee) = (number.to_string(), format!("{to_account} {mode}"));
        self.reconcile_across(Comparison::EscrowList, Side::InTransit, &number, &[&payee]);
    }
}
