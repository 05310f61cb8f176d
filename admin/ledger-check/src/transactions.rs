//! All transactions in the order of their numbers, and the lists that contain them.

use super::book::AccountMode;
use super::counters::spends_differ;
use super::drive::{BATCH, Job, drive};
use super::pass::Pass;
use super::reconcile::{Comparison, LIST, Side};
use super::replay::{Fold, ListCheck, place_of, seq_of};
use super::texts::differs;
use super::violation::Invariant;
use domain::period::DAY_MS;
use store::StoreError;
use store::account::ModeField;
use store::keys::Realm;
use store::read::Read;
use store::transaction::{Transaction, TransactionType};

/// Number of list items in one answer.
const LIST_PART: u64 = 5000;
/// Maximum number of missing transactions of an account that are reported singly.
const MISSING_MAX: u64 = 1000;
/// Number of items that are read beyond the compared ones.
const BEYOND: u64 = 20;

/// A list of transaction numbers.
#[derive(Debug, Clone)]
struct TransactionList {
    key: String,
    expected: Fold,
    /// The last transaction that was checked.
    seq: u64,
}

impl Pass<'_> {
    /// Replays all transactions.
    pub(super) async fn read_transactions(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let lasts = self.read_table_sizes().await?;
        let jobs = lasts.iter().flat_map(|(account_mode, last)| {
            let firsts = (1..=*last).step_by(BATCH);
            firsts
                .map(move |first| transactions_of(accounts.realm(*account_mode), *account_mode, first, *last))
        });
        drive(store, jobs, |(account_mode, first), mut answers| {
            let lines = answers.read::<Vec<Option<String>>>().unwrap_or_default();
            self.count(lines.len());
            for (line, number) in lines.into_iter().zip(first..) {
                self.line(account_mode, number, line.as_deref());
            }
        })
        .await?;
        self.end_of_wallets();
        Ok(())
    }

    fn line(&mut self, account_mode: AccountMode, number: u64, line: Option<&str>) {
        let record = |pass: &Self| {
            let key = pass.accounts.realm(account_mode).transactions();
            format!("{key} {number}")
        };
        let Some(line) = line else {
            if self.page(account_mode).unread.is_some_and(|from| number >= from) {
                return; // reported as one
            }
            return self.add_violation(
                Invariant::WalletBalance,
                &[&record(self)],
                "the transaction is missing",
            );
        };
        let Some(transaction) = Transaction::parse(line) else {
            return self.add_violation(
                Invariant::WalletBalance,
                &[&record(self)],
                "the transaction is malformed",
            );
        };
        let page = self.page(account_mode);
        page.types[place_of(transaction.kind)].push(number);
        let wallets = &page.wallets;
        page.kept_text.add_line((number, line), &transaction, |wallet| {
            wallets.contains_key(&wallet)
        });
        match self.page(account_mode).wallets.get_mut(&transaction.wallet) {
            None => {
                let detail = format!("wallet {} does not exist", transaction.wallet);
                self.add_violation(Invariant::WalletBalance, &[&record(self)], detail);
            }
            Some(wallet) => {
                if let Some(wrong) = wallet.take(number, &transaction) {
                    let wallet = wallet.key.clone();
                    self.add_violation(Invariant::WalletBalance, &[&record(self), &wallet], wrong);
                }
            }
        }
        self.flow(account_mode, &transaction);
        self.compare(account_mode, number, &transaction);
    }

    /// Compares a transaction with the records that it belongs to.
    fn compare(&mut self, account_mode: AccountMode, number: u64, transaction: &Transaction) {
        let amount = transaction.amount.get().to_string();
        if let Some(intent) = &transaction.intent {
            let parts = [transaction.id.as_str(), &amount];
            self.reconcile(
                Comparison::IntentTransaction,
                Side::Match,
                (account_mode, intent),
                &parts,
            );
        }
        let escrow = |word: &str| match word {
            "fund" => transaction.wallet.to_string(),
            _ => self.accounts.id(account_mode).to_owned(),
        };
        let of_escrow = match transaction.kind {
            TransactionType::Deposit => {
                let parts = [amount.as_str(), &transaction.wallet.to_string()];
                self.reconcile(
                    Comparison::Deposit,
                    Side::Match,
                    (account_mode, &transaction.id),
                    &parts,
                );
                return;
            }
            TransactionType::Spend => {
                let day = transaction.at_ms / DAY_MS;
                let owner = self.owner(account_mode, &transaction.owner);
                if owner.record.as_ref().is_some_and(|record| number <= record.seq) {
                    *owner.spends.entry(day).or_default() += u128::from(transaction.amount.get());
                }
                return self.needs_intent(account_mode, number, transaction);
            }
            TransactionType::TransferIn | TransactionType::TransferOut => {
                return self.transferred(account_mode, number, transaction);
            }
            TransactionType::EscrowFund => ("fund", escrow("fund")),
            TransactionType::EscrowRelease => ("release", escrow("release")),
            TransactionType::EscrowRefund => ("refund", escrow("refund")),
        };
        if transaction.kind == TransactionType::EscrowFund {
            self.needs_intent(account_mode, number, transaction);
        }
        let counterparty = transaction.tail.counterparty.as_deref().unwrap_or_default();
        match counterparty.strip_prefix("escrow:") {
            Some(escrow) => {
                let parts = [of_escrow.0, &amount, &of_escrow.1];
                self.reconcile_across(Comparison::EscrowMoney, Side::Match, escrow, &parts);
            }
            None => {
                let key = self.accounts.realm(account_mode).transactions();
                let detail = "it names no escrow";
                self.add_violation(Invariant::EscrowState, &[&format!("{key} {number}")], detail);
            }
        }
    }

    fn needs_intent(&mut self, account_mode: AccountMode, number: u64, transaction: &Transaction) {
        if transaction.intent.is_none() {
            let key = self.accounts.realm(account_mode).transactions();
            self.add_violation(
                Invariant::Intent,
                &[&format!("{key} {number}")],
                "it names no intent",
            );
        }
    }

    fn end_of_wallets(&mut self) {
        for account_mode in self.accounts.account_modes() {
            let today = self.today;
            let page = self.page(account_mode);
            let ends = page
                .wallets
                .values()
                .filter_map(|wallet| Some((wallet.key.clone(), wallet.end()?)));
            let ends: Vec<_> = ends.collect();
            let owners = page.owners.iter();
            let spends =
                owners.filter_map(|(name, owner)| Some((name.clone(), spends_differ(owner, today)?)));
            let spends: Vec<_> = spends.collect();
            self.compare_kept_text(account_mode);
            for (key, wrong) in ends {
                self.add_violation(Invariant::WalletBalance, &[&key], wrong);
            }
            for (name, (field, wrong)) in spends {
                let key = self.accounts.realm(account_mode).wallet(&name);
                self.add_violation(Invariant::Counters, &[&format!("{key} {field}")], wrong);
            }
        }
    }

    fn compare_kept_text(&mut self, account_mode: AccountMode) {
        let text = &self.page(account_mode).kept_text;
        let differs = differs(text.says.as_deref(), text.sum, "agents and transactions");
        if let Some((apart, detail)) = differs.filter(|_| !text.is_undecided) {
            let realm = self.accounts.realm(account_mode);
            let record = format!("{} {}", realm.record(), ModeField::KeptText.name(realm.mode()));
            // Agents are read after the counter.
            self.found
                .add_moving(Invariant::Counters, &[&record], apart, detail);
        }
    }

    /// Checks that no table has more entries than expected, or many less. Returns the number of the last transaction
    /// to read of each.
    async fn read_table_sizes(&mut self) -> Result<Vec<(AccountMode, u64)>, StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut lasts = Vec::new();
        let jobs = accounts.account_modes().map(|account_mode| {
            let realm = accounts.realm(account_mode);
            let table = Read::hash_length(realm.bucket(), realm.transactions());
            Job::new([table, seq_of(realm)], account_mode)
        });
        drive(store, jobs, |account_mode, mut answers| {
            let key = accounts.realm(account_mode).transactions();
            let Some(size) = answers.read::<u64>() else {
                let detail = "it is not a hash of transactions";
                return self.add_violation(Invariant::WalletBalance, &[&key], detail);
            };
            let seq = answers.number().unwrap_or(0);
            let page = self.page(account_mode);
            let last = last_to_read(page.last, size);
            let is_short = last < page.last;
            page.unread = is_short.then_some(size + 1);
            lasts.push((account_mode, last));
            if size > seq || is_short {
                let detail = format!("it has {size} transactions, but the last assigned number is {seq}");
                self.add_violation(Invariant::WalletBalance, &[&key], detail);
            }
        })
        .await?;
        Ok(lasts)
    }

    /// Compares the lists of transactions.
    pub(super) async fn read_lists(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut lists = Vec::new();
        for account_mode in accounts.account_modes() {
            let realm = accounts.realm(account_mode);
            let page = self.page(account_mode);
            for (kind, fold) in TransactionType::ALL.iter().zip(page.types) {
                let key = realm.transactions_of_type(kind.as_str());
                lists.push((account_mode, key, fold, page.last));
            }
            for wallet in page.wallets.values() {
                let keys = realm.transaction_lists(&wallet.holder);
                lists.extend(
                    keys.into_iter()
                        .zip(wallet.lists)
                        .map(|(key, fold)| (account_mode, key, fold, wallet.seq)),
                );
            }
        }
        lists.retain(|(_, _, fold, _)| fold.count > 0);
        for (account_mode, key, ..) in &lists {
            self.reconcile(
                Comparison::TransactionList,
                Side::Match,
                (*account_mode, key),
                &[LIST],
            );
        }
        let jobs = lists.into_iter().flat_map(|(account_mode, key, expected, seq)| {
            let list = TransactionList { key, expected, seq };
            parts_of(accounts.realm(account_mode), list)
        });
        let mut check = ListCheck::default();
        drive(store, jobs, |(list, last), mut answers| {
            let items = answers.read::<Vec<u64>>();
            self.count(items.as_ref().map_or(0, Vec::len));
            check.take(items, list.expected, list.seq);
            if !last {
                return;
            }
            let now = answers.number().unwrap_or(0);
            if let Some(wrong) = std::mem::take(&mut check).end(list.expected, now) {
                self.add_violation(Invariant::WalletBalance, &[&list.key], wrong);
            }
        })
        .await
    }
}

/// Returns the number of the last transaction to read, if the last assigned number is `last` and the table has `size`
/// entries. Single transactions may be missing; a number far beyond the size is no number of a transaction.
pub(super) fn last_to_read(last: u64, size: u64) -> u64 {
    last.min(size.saturating_add(MISSING_MAX))
}

fn transactions_of(
    realm: &Realm,
    account_mode: AccountMode,
    first: u64,
    last: u64,
) -> Job<(AccountMode, u64)> {
    let until = last.min(first + BATCH as u64 - 1);
    let numbers: Vec<String> = (first..=until).map(|number| number.to_string()).collect();
    Job::new(
        [Read::fields(realm.bucket(), realm.transactions(), &numbers)],
        (account_mode, first),
    )
    .with_weight(numbers.len())
}

/// Returns the reads of a list. The last one reads a little more, and afterwards the last number assigned.
fn parts_of(
    realm: &Realm,
    list: TransactionList,
) -> impl Iterator<Item = Job<(TransactionList, bool)>> + use<> {
    let count = list.expected.count;
    let (bucket, seq) = (realm.bucket(), seq_of(realm));
    (0..count)
        .step_by(usize::try_from(LIST_PART).unwrap_or(usize::MAX))
        .map(move |first| {
            let last = first + LIST_PART >= count;
            let size = if last { count - first + BEYOND } else { LIST_PART };
            let mut reads = vec![Read::list(bucket, &list.key, first, size)];
            reads.extend(last.then(|| seq.clone()));
            // Numbers are short.
            Job::new(reads, (list.clone(), last)).with_weight(usize::try_from(size / 5).unwrap_or(BATCH))
        })
}
