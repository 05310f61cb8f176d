//! One pass over all records. It runs on a live system without a snapshot, so each part reads in an order in which the
//! compared data cannot disagree; where that is not possible, only findings that the next pass confirms count.

use super::book::{AccountMode, Accounts, Noted, Owner, RealmPage};
use super::drive::BATCH;
use super::emails::Emails;
use super::escrow_wallets::EscrowWallets;
use super::names::CollectedNames;
use super::pending::PendingChecks;
use super::reconcile::{
    ComparedKind, Comparison, Mismatch, MismatchWords, PARTITIONS, Reconciled, Reconciliation, Side, Suspects,
};
use super::texts::PassTexts;
use super::transfers::Transfers;
use super::transit::{Flow, Rows};
use super::violation::{Findings, Inconclusive, Invariant};
use archive::Archive;
use domain::mode::Mode;
use domain::period::Period;
use std::collections::HashSet;
use store::record_fields::FieldValues;
use store::{Store, StoreError, server_clock};

/// Called periodically with the number of records read so far.
pub type Progress = dyn Fn(u64);

/// A pass, with its data and findings so far.
pub(super) struct Pass<'a> {
    pub(super) store: &'a Store,
    pub(super) archive: &'a Archive,
    /// True if the records are compared with the audit trails.
    pub(super) with_trail: bool,
    /// Accounts and modes whose trail could not be read to its end: a record without its entry is then no violation.
    pub(super) incomplete: HashSet<AccountMode>,
    /// Why the archive did not answer, once it did not.
    pub(super) no_archive: Option<String>,
    /// Accounts and modes whose archived intents could not be read.
    pub(super) unread_intents: HashSet<AccountMode>,
    /// Number of entries of each trail, by its checkpoints in the archive.
    pub(super) noted: Vec<Noted>,
    pub(super) accounts: &'a Accounts,
    pub(super) progress: &'a Progress,
    pages: Vec<RealmPage>,
    /// The records of the accounts, in their order.
    pub(super) records: Vec<FieldValues>,
    pub(super) reconciliation: Reconciliation,
    pub(super) found: Findings,
    /// Invariants that could not be decided.
    pub(super) inconclusive: Vec<Inconclusive>,
    /// Records read.
    pub(super) checked: u64,
    /// The store's day and month when the pass began.
    pub(super) today: Period,
    pub(super) rows: Rows,
    pub(super) names: CollectedNames,
    pub(super) emails: Emails,
    pub(super) escrow_wallets: EscrowWallets,
    pub(super) transfers: Transfers,
    pub(super) texts: PassTexts,
    /// Checks of pending money that the previous pass left open, and those of this pass.
    pub(super) earlier_checks: PendingChecks,
    pub(super) pending_checks: PendingChecks,
    /// Money movements in live and test mode, for all accounts together.
    pub(super) flows: [Flow; 2],
}

/// Result of a pass.
pub(super) struct PassOutcome {
    pub(super) found: Findings,
    pub(super) inconclusive: Vec<Inconclusive>,
    pub(super) suspects: Suspects,
    /// Comparisons of which not all items could be stored.
    pub(super) left_out: Vec<Inconclusive>,
    pub(super) pending_checks: PendingChecks,
    pub(super) checked: u64,
}

impl<'a> Pass<'a> {
    /// Checks all records of `accounts`.
    pub(super) async fn run(
        (store, archive, with_trail): (&'a Store, &'a Archive, bool),
        accounts: &'a Accounts,
        (reconciliation, earlier_checks): (Reconciliation, PendingChecks),
        progress: &'a Progress,
    ) -> Result<PassOutcome, StoreError> {
        let mut pass = Self {
            store,
            archive,
            with_trail,
            incomplete: HashSet::new(),
            no_archive: None,
            unread_intents: HashSet::new(),
            noted: Vec::new(),
            accounts,
            progress,
            pages: accounts.account_modes().map(|_| RealmPage::default()).collect(),
            records: vec![FieldValues::new(); accounts.len()],
            reconciliation,
            found: Findings::default(),
            inconclusive: Vec::new(),
            checked: 0,
            today: Period::at(server_clock::now_ms(store).await?),
            rows: Rows::default(),
            names: CollectedNames::default(),
            emails: Emails::default(),
            escrow_wallets: EscrowWallets::default(),
            transfers: Transfers::default(),
            texts: PassTexts::default(),
            earlier_checks,
            pending_checks: PendingChecks::new(),
            flows: [Flow::default(), Flow::default()],
        };
        pass.read_all().await?;
        pass.finish().await
    }

    /// Reads the records, each part in an order in which the compared data cannot disagree.
    async fn read_all(&mut self) -> Result<(), StoreError> {
        self.read_checkpoints().await;
        self.read_rows().await?;
        self.read_text_counters().await?;
        self.scan().await?;
        self.check_texts().await?;
        self.read_escrow_wallets().await?;
        self.read_archived_intents().await?;
        self.finish_earlier_checks();
        let witnesses = self.read_witnesses().await?;
        self.read_snapshots().await?;
        self.check_escrow_wallets();
        self.end_of_waiting_transfers();
        self.check_versions(witnesses);
        self.check_checkpoints();
        self.check_held().await?;
        self.check_policies().await?;
        self.read_hold_indexes().await?;
        self.read_run_indexes().await?;
        self.read_transactions().await?;
        self.read_lists().await?;
        self.read_logs().await?;
        self.read_trails().await?;
        self.read_open_escrows().await?;
        self.read_escrow_lists().await?;
        self.read_outside().await?;
        self.read_email_lookups().await?;
        self.read_counters_of_numbers().await?;
        self.check_transit();
        Ok(())
    }

    /// Ends the comparisons and reports their findings.
    async fn finish(self) -> Result<PassOutcome, StoreError> {
        let (mut found, accounts) = (self.found, self.accounts);
        let Reconciled {
            suspects,
            mut mismatch,
            left_out,
        } = self.reconciliation.finish();
        mismatch.retain(|mismatch| {
            let account_mode = account_mode_named(accounts, &mismatch.account_mode);
            let is_unread = mismatch.comparison.is_of_trail()
                && account_mode.is_some_and(|account_mode| self.incomplete.contains(&account_mode));
            !is_unread && !may_be_archived(mismatch, account_mode, &self.unread_intents)
        });
        for mismatch in foreign_left_out(self.store, accounts, mismatch).await? {
            report(&mut found, accounts, &mismatch);
        }
        Ok(PassOutcome {
            found,
            inconclusive: self.inconclusive,
            suspects,
            left_out: left_out.into_iter().map(incomplete_comparison).collect(),
            pending_checks: self.pending_checks,
            checked: self.checked,
        })
    }

    /// Counts records that were read.
    pub(super) fn count(&mut self, records: usize) {
        let before = self.checked / BATCH as u64;
        self.checked += records as u64;
        if self.checked / BATCH as u64 != before {
            (self.progress)(self.checked);
        }
    }

    pub(super) fn page(&mut self, account_mode: AccountMode) -> &mut RealmPage {
        &mut self.pages[account_mode.index()]
    }

    pub(super) fn owner(&mut self, account_mode: AccountMode, owner: &str) -> &mut Owner {
        let owners = &mut self.page(account_mode).owners;
        if !owners.contains_key(owner) {
            owners.insert(owner.to_owned(), Owner::default());
        }
        owners.entry(owner.to_owned()).or_default()
    }

    /// Adds an item of one side of a comparison within one account and mode.
    pub(super) fn reconcile(
        &mut self,
        comparison: Comparison,
        side: Side,
        (account_mode, key): (AccountMode, &str),
        parts: &[&str],
    ) {
        self.reconciliation
            .add(comparison, side, (self.accounts.word(account_mode), key), parts);
    }

    /// Like [`Self::reconcile`], if the sides may belong to different accounts.
    pub(super) fn reconcile_across(&mut self, comparison: Comparison, side: Side, key: &str, parts: &[&str]) {
        self.reconciliation.add(comparison, side, ("", key), parts);
    }

    /// Adds a violation between records that must agree at any time.
    pub(super) fn add_violation(
        &mut self,
        invariant: Invariant,
        records: &[&str],
        detail: impl Into<String>,
    ) {
        self.found.add(invariant, records, detail);
    }

    /// Records that these records could not be compared.
    pub(super) fn add_inconclusive(
        &mut self,
        invariant: Invariant,
        records: &[&str],
        reason: impl Into<String>,
    ) {
        self.inconclusive.push(Inconclusive {
            invariant,
            records: records.iter().map(|record| (*record).to_owned()).collect(),
            reason: reason.into(),
        });
    }
}

/// Returns whether archived intents that could not be read, those of `unread`, may explain a mismatch.
fn may_be_archived(
    mismatch: &Mismatch,
    account_mode: Option<AccountMode>,
    unread: &HashSet<AccountMode>,
) -> bool {
    match mismatch.comparison {
        Comparison::IntentTransaction | Comparison::TrailIntent => {
            account_mode.is_some_and(|account_mode| unread.contains(&account_mode))
        }
        // The intent may be another account's.
        Comparison::EscrowWinner => !unread.is_empty(),
        _ => false,
    }
}

/// Removes mismatches of escrows that another account pays, if that account is not checked. A check of the whole store
/// compares those.
async fn foreign_left_out(
    store: &Store,
    accounts: &Accounts,
    mismatch: Vec<Mismatch>,
) -> Result<Vec<Mismatch>, StoreError> {
    let mut kept = Vec::with_capacity(mismatch.len());
    for mismatch in mismatch {
        let of_escrow = matches!(
            mismatch.comparison,
            Comparison::EscrowMoney | Comparison::EscrowWinner | Comparison::EscrowList
        );
        let number = mismatch
            .key
            .parse()
            .ok()
            .filter(|_| of_escrow && accounts.partial);
        let payer = match number {
            None => None,
            Some(number) => store::escrow::Escrow::read(store, number).await.unwrap_or(None),
        };
        if payer.is_none_or(|escrow| accounts.find(&escrow.payer.account).is_some()) {
            kept.push(mismatch);
        }
    }
    Ok(kept)
}

/// Reports a mismatch as a violation.
fn report(found: &mut Findings, accounts: &Accounts, mismatch: &Mismatch) {
    let MismatchWords {
        invariant,
        subject,
        records,
        matches,
    } = mismatch.comparison.report();
    let list = |items: &[String]| match items.join(", ") {
        none if none.is_empty() => "nothing".to_owned(),
        items => items,
    };
    let detail = format!(
        "{records} {}; {matches} {}",
        list(&mismatch.records),
        list(&mismatch.matches)
    );
    let account_mode = account_mode_named(accounts, &mismatch.account_mode);
    let key = match (subject, account_mode) {
        (ComparedKind::Intent, Some(account_mode)) => accounts.realm(account_mode).intent(&mismatch.key),
        (ComparedKind::Deposit, _) => format!("deposit {}", mismatch.key),
        (ComparedKind::Escrow, _) => format!("escrow {}", mismatch.key),
        (ComparedKind::Intent | ComparedKind::Key, _) => mismatch.key.clone(),
    };
    if !mismatch.comparison.is_of_trail() {
        return found.add(invariant, &[&key], detail);
    }
    let mut records = vec![key];
    if let Some(account_mode) = account_mode {
        let audit = accounts.realm(account_mode).audit();
        records.extend(mismatch.entries.iter().map(|seq| format!("{audit} {seq}")));
    }
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    // Records are read before the entries, and the next pass sees both.
    found.add_moving(invariant, &records, detail.as_str(), detail.as_str());
}

/// Returns the result of a comparison of which `parts` could not be stored.
fn incomplete_comparison((comparison, parts): (Comparison, usize)) -> Inconclusive {
    let MismatchWords {
        invariant,
        records,
        matches,
        ..
    } = comparison.report();
    Inconclusive {
        invariant,
        records: vec!["all accounts".to_owned()],
        reason: format!(
            "more differs than can be compared at once, so {parts} of {PARTITIONS} parts were not: \
             \"{records} ...; {matches} ...\""
        ),
    }
}

/// Returns account and mode for the word of a comparison.
fn account_mode_named(accounts: &Accounts, word: &str) -> Option<AccountMode> {
    let (account, mode) = word.split_once(' ')?;
    Some(AccountMode {
        account: accounts.find(account)?,
        mode: Mode::parse(mode)?,
    })
}
