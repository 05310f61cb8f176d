//! Reading and comparing transit rows, and the conservation of money.

use super::{CLOCKS_APART_MS, Flow, Sum, escrow_of};
use crate::book::AccountMode;
use crate::drive::{Job, drive};
use crate::pass::Pass;
use crate::reconcile::{Comparison, Side};
use crate::violation::Invariant;
use domain::mode::Mode;
use std::collections::HashMap;
use store::keys::{AccountKeys, Bucket};
use store::read::Read;
use store::transaction::{Transaction, TransactionType};
use store::transit::Transit;
use store::{StoreError, server_clock};

impl Pass<'_> {
    pub(crate) async fn read_rows(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let buckets = accounts.buckets();
        let apart = if store.is_cluster() { CLOCKS_APART_MS } else { 0 };
        self.rows.from_ms = server_clock::now_ms(store).await?.saturating_sub(apart);
        let mut rows = Vec::new();
        let jobs = buckets
            .iter()
            .map(|bucket| Job::new([Read::hash(*bucket, bucket.transit())], *bucket).with_weight(10));
        drive(store, jobs, |bucket, mut answers| {
            let found = answers.read::<HashMap<String, String>>().unwrap_or_default();
            rows.extend(found.into_iter().map(|(id, row)| (bucket, id, row)));
        })
        .await?;
        self.rows.cut_ms = server_clock::now_ms(store).await? + apart;
        self.count(rows.len());
        let mut jobs = Vec::new();
        for (bucket, id, row) in rows {
            match serde_json::from_str::<Transit>(&row)
                .ok()
                .filter(|row| row.id == id)
            {
                None => self.add_violation(
                    Invariant::Transit,
                    &[&bucket.transit(), &id],
                    "the row is malformed",
                ),
                Some(row) => jobs.extend(self.row_job(bucket, row)),
            }
        }
        let mut seen = Vec::new();
        drive(store, jobs.into_iter(), |what, mut answers| {
            seen.push((
                what,
                answers.read::<Option<u64>>(),
                answers.read::<Option<String>>(),
            ));
        })
        .await?;
        for ((account_mode, row), arrived, status) in seen {
            self.row(account_mode, &row, arrived.flatten(), status.flatten().as_deref());
        }
        Ok(())
    }

    /// Reads whether a row has arrived, and the escrow that it is about.
    fn row_job(&mut self, bucket: Bucket, row: Transit) -> Option<Job<(AccountMode, Transit)>> {
        let account_mode = self.accounts.find(&row.from_account).zip(row.mode());
        let Some((account, mode)) = account_mode else {
            if !self.accounts.partial {
                let detail = "the sending account does not exist";
                self.add_violation(Invariant::Transit, &[&bucket.transit(), &row.id], detail);
            }
            return None;
        };
        let account_mode = AccountMode { account, mode };
        let to = AccountKeys::new(&row.to_account).bucket();
        let mut reads = vec![Read::text(to, to.arrived(&row.id))];
        if let Some(number) = escrow_of(&row.id) {
            let key = self.accounts.realm(account_mode).escrow(number);
            reads.push(Read::field(bucket, key, "status"));
        }
        Some(Job::new(reads, (account_mode, row)))
    }

    fn row(
        &mut self,
        account_mode: AccountMode,
        row: &Transit,
        arrived_ms: Option<u64>,
        status: Option<&str>,
    ) {
        let amount = row.credit.as_ref().map_or(0, |credit| credit.nanos);
        let table = self.accounts.realm(account_mode).bucket().transit();
        match escrow_of(&row.id) {
            None => {
                let wanted = (format!("{table} {}", row.id), amount);
                self.rows.wanted.insert((account_mode, row.id.clone()), wanted);
                if arrived_ms.is_none_or(|at| at >= self.rows.cut_ms) {
                    self.waiting_transfer(account_mode, row);
                }
            }
            Some(number) => {
                let word = row.id.rsplit(':').next().unwrap_or_default();
                let fits = match word {
                    "released" => status == Some("released"),
                    "disputed" => matches!(status, Some("disputed" | "released" | "refunded")),
                    "resolved" => matches!(status, Some("released" | "refunded")),
                    // It may have been funded before its payee's list contains it.
                    "created" => status.is_some(),
                    _ => false,
                };
                if !fits {
                    let detail = format!("its escrow is {}", status.unwrap_or("missing"));
                    self.add_violation(Invariant::Transit, &[&table, &row.id], detail);
                }
                if let Some(number) = row
                    .lists
                    .filter(|_| self.accounts.find(&row.to_account).is_some())
                {
                    self.will_be_listed(number, &row.to_account, &row.mode);
                }
                let number = number.to_string();
                if arrived_ms.is_none() && self.accounts.find(&row.to_account).is_some() {
                    let parts = ["release", &amount.to_string(), &row.to_account];
                    if row.credit.is_some() {
                        self.reconcile_across(Comparison::EscrowMoney, Side::InTransit, &number, &parts);
                    }
                    if let Some(intent) = &row.intent {
                        self.may_have_moved(row, &intent.id);
                        self.reconcile_across(
                            Comparison::EscrowWinner,
                            Side::InTransit,
                            &number,
                            &[&intent.id],
                        );
                    }
                }
            }
        }
        if arrived_ms.is_none_or(|at| at >= self.rows.cut_ms) {
            self.flows[account_mode.index() % 2].transit += i128::from(amount);
        }
    }

    /// Records that the receiver's intent may be settled before the money of its row has room.
    fn may_have_moved(&mut self, row: &Transit, intent: &str) {
        let Some((credit, (account, mode))) = row
            .credit
            .as_ref()
            .zip(self.accounts.find(&row.to_account).zip(row.mode()))
        else {
            return;
        };
        let parts = [credit.transaction.as_str(), &credit.nanos.to_string()];
        let receiver = (AccountMode { account, mode }, intent);
        self.reconcile(Comparison::IntentTransaction, Side::InTransit, receiver, &parts);
    }

    /// Adds a transaction to the sums.
    pub(crate) fn flow(&mut self, account_mode: AccountMode, transaction: &Transaction) {
        let window = self.rows.window();
        self.flows[account_mode.index() % 2].take(transaction, window);
        if transaction.kind != TransactionType::TransferOut || self.rows.wanted.is_empty() {
            return;
        }
        if let Some((row, amount)) = self.rows.wanted.remove(&(account_mode, transaction.id.clone()))
            && amount != transaction.amount.get()
        {
            let detail = format!(
                "it carries {amount} nanos, but {} were debited",
                transaction.amount.get()
            );
            self.add_violation(Invariant::Transit, &[&row], detail);
        }
    }

    /// Reports transit rows without a debit and wrong sums, once all transactions are read.
    pub(crate) fn check_transit(&mut self) {
        for (row, _) in std::mem::take(&mut self.rows.wanted).into_values() {
            let detail = "its sender was not debited";
            self.add_violation(Invariant::Transit, &[&row], detail);
        }
        // For a single account, `wallet-balance` already checks its wallets.
        if self.accounts.partial {
            return;
        }
        let sums = self.flows.each_ref().map(Flow::sum);
        for (sum, mode) in sums.into_iter().zip(Mode::ALL) {
            match sum {
                Sum::Right => {}
                Sum::Violated(fault) => self.add_violation(Invariant::Conservation, &[mode.as_str()], fault),
                Sum::Inconclusive(reason) => {
                    self.add_inconclusive(Invariant::Conservation, &[mode.as_str()], reason)
                }
            }
        }
    }
}
