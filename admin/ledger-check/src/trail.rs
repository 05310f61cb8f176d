//! Compares balances, records and counters with the audit trail. Every change of money writes its entry in the same
//! step. So an edit that keeps all records of an account consistent still contradicts the trail, which is hash-chained.
//!
//! The trail is read once, in the archive and the store, and its hashes and links are verified. The compared records
//! are either read together with the number of the last entry, or compared again in the next pass. Memory grows with
//! agents, their days and wallets, not with entries.

mod charges;
mod legs;
mod matching;
mod records;
mod stated;
mod unreadable;

use super::book::{AccountMode, OwnerRecord};
use super::drive::{BATCH, Job, drive};
use super::pass::Pass;
use super::transactions::last_to_read;
use super::violation::Invariant;
use audit_verify::ChainVerifier;
use charges::{AgentSnapshot, Charges, RunSnapshot};
use domain::entry::Entry;
use domain::mode::Mode;
use history::trail::Trail;
use legs::{LegReader, key_of};
use matching::{LegMismatch, Unmatched};
use std::collections::{BTreeMap, HashSet, VecDeque};
use store::account::ModeField;
use store::keys::USER;
use store::read::{Answers, Read};
use store::record_fields::{FieldValues, RecordFields};
use store::transaction::Transaction;
use store::{StoreError, server_clock};

/// Maximum number of attempts to read a record between two entries of its account.
const READ_ATTEMPTS: usize = 100;

/// Transactions up to the cut, in the order of their numbers.
struct TransactionLines {
    /// The first number that was not read yet.
    next: u64,
    last: u64,
    read: VecDeque<(u64, Transaction)>,
}

/// State of the comparison of one account and mode.
struct Reading {
    reader: LegReader,
    matching: Unmatched,
    lines: TransactionLines,
    charges: Charges,
    /// Escrows whose settled intent an entry recorded before their money arrived, by type of the entry.
    waiting: HashSet<(String, u64)>,
    /// Number of the last entry when the number of the last transaction was read.
    cut: u64,
    /// Number of the first entry that moves money but lacks a field.
    incomplete: Option<u64>,
    /// True if the records of all agents could be read.
    is_sure: bool,
}

impl Pass<'_> {
    /// Compares every account and mode with its trail, if requested.
    pub(super) async fn read_trails(&mut self) -> Result<(), StoreError> {
        if self.with_trail {
            for account_mode in self.accounts.account_modes() {
                match self.read_trail(account_mode).await {
                    Err(StoreError::MalformedData { source, .. }) => {
                        self.malformed_trail(account_mode, &source).await?
                    }
                    read => read?,
                }
            }
        }
        Ok(())
    }

    async fn read_trail(&mut self, account_mode: AccountMode) -> Result<(), StoreError> {
        let realm = self.accounts.realm(account_mode);
        let page = self.page(account_mode);
        let mut reading = Reading {
            matching: Unmatched::new(page.user_wallet()),
            reader: LegReader::new(
                page.wallets.keys().copied().collect(),
                page.closed.iter().copied().collect(),
            ),
            lines: TransactionLines {
                next: 1,
                last: 0,
                read: VecDeque::new(),
            },
            charges: Charges::default(),
            waiting: HashSet::new(),
            cut: 0,
            incomplete: None,
            is_sure: true,
        };
        let goal = self.read_agents(account_mode, &mut reading).await?;
        // After the agents: a hold of an earlier month that is still open now was also open when its agent was read.
        let now_ms = server_clock::now_ms(self.store).await?;
        // One command: the numbers of the last entry and transaction and the tracked USD belong together.
        let (bucket, key) = (realm.bucket(), realm.record());
        let size = Read::hash_length(bucket, realm.transactions());
        let mut answers = self.store.many(&[Read::hash(bucket, key), size]).await?;
        let record = answers.read::<FieldValues>().unwrap_or_default();
        let number = |name: &str| RecordFields(&record).number(name).unwrap_or(0);
        let size = answers.read::<u64>().unwrap_or(0);
        reading.lines.last = last_to_read(number(&format!("{}_txn_seq", account_mode.mode)), size);
        reading.cut = number(&ModeField::AuditSeq.name(account_mode.mode));
        reading.charges.set_until(reading.cut, now_ms);
        let goal = goal.max(reading.cut);
        let goal = self.read_runs(account_mode, &mut reading).await?.max(goal);
        let is_read = self.verify(account_mode, &mut reading, goal).await?;
        self.check_revoked_keys(account_mode).await?;
        if !is_read {
            self.incomplete.insert(account_mode);
            return Ok(());
        }
        self.rest_of_transactions(account_mode, &mut reading).await?;
        self.end_of_trail(account_mode, reading, &record);
        Ok(())
    }

    /// Reads the counters of all agents. Returns the highest number of a last entry.
    async fn read_agents(
        &mut self,
        account_mode: AccountMode,
        reading: &mut Reading,
    ) -> Result<u64, StoreError> {
        let realm = self.accounts.realm(account_mode);
        let owners = self.page(account_mode).owners.keys();
        let agents: Vec<String> = owners.filter(|owner| owner.as_str() != USER).cloned().collect();
        let reads = |agent: &String| vec![Read::hash(realm.bucket(), realm.agent(agent))];
        let (highest, is_sure) = self
            .read_between_entries(account_mode, agents, reads, |agent, until, mut answers| {
                let fields = answers.read::<FieldValues>().unwrap_or_default();
                let OwnerRecord { held, counters, .. } = OwnerRecord::from_fields(0, &fields);
                let snapshot = AgentSnapshot {
                    until,
                    counters,
                    held: held.unwrap_or(0),
                };
                reading.charges.add(agent, snapshot);
            })
            .await?;
        if !is_sure {
            reading.is_sure = false;
            self.trail_is_inconclusive(
                account_mode,
                "the counters of its agents changed during each read".to_owned(),
            );
        }
        Ok(highest)
    }

    /// Reads the spent amount of each run and its agent's held amount. Returns the highest number of a last entry.
    async fn read_runs(
        &mut self,
        account_mode: AccountMode,
        reading: &mut Reading,
    ) -> Result<u64, StoreError> {
        let realm = self.accounts.realm(account_mode);
        let runs: Vec<(String, String)> = std::mem::take(&mut self.page(account_mode).runs)
            .into_iter()
            .collect();
        let fields = ["spent", "first", "last"].map(str::to_owned);
        let reads = |(agent, run): &(String, String)| {
            let record = Read::fields(realm.bucket(), realm.run(agent, run), &fields);
            let held = Read::field(realm.bucket(), realm.agent(agent), "held");
            vec![record, held]
        };
        let (highest, is_sure) = self
            .read_between_entries(account_mode, runs, reads, |(agent, run), until, mut answers| {
                let record = answers.read::<(Option<i128>, Option<u64>, Option<u64>)>();
                let held = answers.number().unwrap_or(0);
                let first_ms = match record {
                    // Its amount is invalid, which the check of its record reports, or its record has expired.
                    None | Some((_, None, None)) => return,
                    Some((_, Some(first), last)) if last.is_none_or(|last| first <= last) => first,
                    // No script leaves a run without its first time: every entry of the run counts.
                    Some(_) => 0,
                };
                let spent = record.and_then(|(spent, ..)| spent).unwrap_or(0);
                reading
                    .charges
                    .add_run(agent, run, RunSnapshot::new(until, first_ms, (spent, held)));
            })
            .await?;
        if !is_sure {
            self.trail_is_inconclusive(account_mode, "its runs changed during each read".to_owned());
        }
        Ok(highest)
    }

    /// Reads records of an account, each together with the number of the account's last entry. Repeats the reads during
    /// which an entry was written. Returns the highest of the numbers, and whether every record could be read.
    pub(super) async fn read_between_entries<T>(
        &self,
        account_mode: AccountMode,
        mut wanted: Vec<T>,
        reads: impl Fn(&T) -> Vec<Read>,
        mut fold: impl FnMut(T, u64, Answers),
    ) -> Result<(u64, bool), StoreError> {
        let realm = self.accounts.realm(account_mode);
        let last = ModeField::AuditSeq.name(account_mode.mode);
        let seq = || Read::field(realm.bucket(), realm.record(), &last);
        let mut highest = 0;
        for _ in 0..READ_ATTEMPTS {
            let jobs = wanted.drain(..).map(|record| {
                let records = reads(&record);
                let count = records.len();
                let reads: Vec<Read> = [seq()].into_iter().chain(records).chain([seq()]).collect();
                Job::new(reads, (record, count))
            });
            let mut again = Vec::new();
            drive(self.store, jobs, |(record, count), mut answers| {
                let before = answers.number().unwrap_or(0);
                let records = answers.split(count);
                if answers.number().unwrap_or(0) != before {
                    return again.push(record);
                }
                highest = before.max(highest);
                fold(record, before, records);
            })
            .await?;
            wanted = again;
            if wanted.is_empty() {
                break;
            }
        }
        Ok((highest, wanted.is_empty()))
    }

    /// Verifies and compares the trail up to entry `goal`. Returns false if that is not possible.
    async fn verify(
        &mut self,
        account_mode: AccountMode,
        reading: &mut Reading,
        goal: u64,
    ) -> Result<bool, StoreError> {
        let (realm, archive) = (self.accounts.realm(account_mode), self.archive);
        let trail = Trail::new(self.store, archive, realm.clone());
        let mut sealed = None;
        let mut verifier = ChainVerifier::starting_after(0);
        if self.lacks_archive(account_mode, &trail).await? {
            return Ok(false);
        }
        while verifier.end() < goal {
            let next = verifier.end() + 1;
            let entries = match trail.read(next).await {
                Err(error) => return self.unreadable(account_mode, next, error).map(|()| false),
                Ok(entries) => entries,
            };
            if entries.is_empty() {
                // Seals the remaining lines. One call may seal only a part of them.
                let end = match trail.seal().await {
                    Err(StoreError::UnexpectedReply(why)) => {
                        self.broken(account_mode, next, &format!("it cannot be sealed: {why}"));
                        return Ok(false);
                    }
                    Err(error) => return self.unreadable(account_mode, next, error).map(|()| false),
                    Ok(end) => end,
                };
                // Nothing more was sealed: the line of `next` is lost.
                if sealed == Some(end.seq) {
                    let why = "its line is missing, or a later release wrote it";
                    self.trail_is_inconclusive(
                        account_mode,
                        format!("the trail ends before entry {next}: {why}"),
                    );
                    return Ok(false);
                }
                sealed = Some(end.seq);
                continue;
            }
            self.count(entries.len());
            let wanted = usize::try_from(goal - verifier.end()).unwrap_or(usize::MAX);
            for sealed in entries.iter().take(wanted) {
                let entry = match verifier.step(sealed.json.as_bytes()) {
                    Ok(()) => Entry::from_json(&sealed.json),
                    Err(broken) => {
                        self.broken(account_mode, next.max(verifier.end() + 1), &broken.problem);
                        return Ok(false);
                    }
                };
                let Some(entry) = entry else {
                    self.broken(account_mode, verifier.end(), "it is not an audit entry");
                    return Ok(false);
                };
                self.entry(account_mode, reading, &entry).await?;
            }
        }
        Ok(true)
    }

    /// Processes one entry.
    async fn entry(
        &mut self,
        account_mode: AccountMode,
        reading: &mut Reading,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        self.trail_key(account_mode, entry).await?;
        let mut is_complete = reading.charges.add_entry(entry).is_ok();
        if entry.seq <= reading.cut {
            let records = records::stated_by(entry, &mut reading.waiting);
            is_complete &= records.is_ok();
            for record in records.unwrap_or_default() {
                self.reconcile_record(account_mode, &record, Some(entry.seq));
            }
            let legs = reading.reader.legs(entry);
            is_complete &= legs.is_ok();
            for leg in legs.unwrap_or_default() {
                self.read_lines(account_mode, &mut reading.lines).await?;
                let next = reading.lines.read.front().map(|(_, next)| key_of(next));
                let is_tracked_only = leg.optional && next.as_ref() != Some(&leg.key);
                reading.matching.leg(entry.seq, leg, next.as_ref());
                if is_tracked_only {
                    continue;
                }
                if let Some((number, transaction)) = reading.lines.read.pop_front() {
                    reading.matching.transaction(number, transaction);
                }
            }
        }
        if !is_complete && reading.incomplete.is_none() {
            reading.incomplete = Some(entry.seq);
        }
        Ok(())
    }

    /// Reads the next transactions if none are left. Skips malformed ones, which the replay reports.
    async fn read_lines(
        &mut self,
        account_mode: AccountMode,
        lines: &mut TransactionLines,
    ) -> Result<(), StoreError> {
        let realm = self.accounts.realm(account_mode);
        while lines.read.is_empty() && lines.next <= lines.last {
            let first = lines.next;
            let last = lines.last.min(first + BATCH as u64 - 1);
            let numbers: Vec<String> = (first..=last).map(|number| number.to_string()).collect();
            let read = Read::fields(realm.bucket(), realm.transactions(), &numbers);
            let mut answers = self.store.many(&[read]).await?;
            let texts = answers.read::<Vec<Option<String>>>().unwrap_or_default();
            let numbered = (first..).zip(texts);
            let parsed = numbered.filter_map(|(number, text)| Some((number, Transaction::parse(&text?)?)));
            lines.read.extend(parsed);
            lines.next = last + 1;
        }
        Ok(())
    }

    async fn rest_of_transactions(
        &mut self,
        account_mode: AccountMode,
        reading: &mut Reading,
    ) -> Result<(), StoreError> {
        loop {
            self.read_lines(account_mode, &mut reading.lines).await?;
            if reading.lines.read.is_empty() || reading.matching.is_full {
                return Ok(());
            }
            for (number, transaction) in reading.lines.read.drain(..) {
                reading.matching.transaction(number, transaction);
            }
        }
    }

    /// Reports all mismatches, once everything is read.
    fn end_of_trail(&mut self, account_mode: AccountMode, mut reading: Reading, record: &FieldValues) {
        if let Some(seq) = reading.incomplete {
            self.incomplete.insert(account_mode);
            let why = format!("entry {seq} moves money but lacks a field of its type");
            self.trail_is_inconclusive(account_mode, why);
        } else {
            reading.matching.end();
        }
        if reading.matching.is_full {
            let why = "too many entries and transactions have no counterpart";
            self.trail_is_inconclusive(account_mode, why.to_owned());
        }
        for mismatch in &reading.matching.mismatches {
            self.mismatch(account_mode, mismatch);
        }
        if reading.incomplete.is_some() || !reading.is_sure {
            return;
        }
        // Records of agents and runs were read between two entries, so that the sums up to there are exact. Only an
        // agent or a run that is made during the pass lacks its record, which the next pass sees.
        let realm = self.accounts.realm(account_mode);
        for (agent, field, detail) in reading.charges.agents_differ(self.today) {
            let record = format!("{} {field}", realm.agent(&agent));
            self.found.add(Invariant::Trail, &[&record], detail);
        }
        for (agent, run, detail) in reading.charges.runs_differ() {
            let record = format!("{} spent", realm.run(&agent, &run));
            self.found.add(Invariant::Trail, &[&record], detail);
        }
        if account_mode.mode == Mode::Live {
            for (field, apart, detail) in reading.charges.account_differs(&tracked(record), self.today) {
                let record = format!("{} {field}", realm.record());
                self.found
                    .add_moving(Invariant::Trail, &[&record], apart.to_string(), detail);
            }
        }
    }

    fn mismatch(&mut self, account_mode: AccountMode, mismatch: &LegMismatch) {
        let realm = self.accounts.realm(account_mode);
        let transaction = mismatch
            .transaction
            .map(|n| format!("{} {n}", realm.transactions()));
        let entry = mismatch.entry.map(|seq| format!("{} {seq}", realm.audit()));
        let records: Vec<&str> = transaction.iter().chain(&entry).map(String::as_str).collect();
        self.add_violation(Invariant::Trail, &records, mismatch.detail.as_str());
    }

    fn broken(&mut self, account_mode: AccountMode, seq: u64, problem: &str) {
        let key = self.accounts.realm(account_mode).audit();
        let detail = format!("the trail is broken here, so nothing was compared with it: {problem}");
        self.add_violation(Invariant::Trail, &[&format!("{key} {seq}")], detail);
    }

    fn trail_is_inconclusive(&mut self, account_mode: AccountMode, reason: String) {
        let audit = self.accounts.realm(account_mode).audit();
        self.add_inconclusive(Invariant::Trail, &[&audit], reason);
    }
}

/// Returns the tracked USD of each month in an account's record.
fn tracked(record: &FieldValues) -> BTreeMap<u64, i128> {
    let fields = record.iter().filter_map(|(name, value)| {
        let month = name.strip_prefix('t')?.parse().ok()?;
        Some((month, value.parse().ok()?))
    });
    fields.collect()
}
