//! What is on its way between accounts, and the sum over everything: what was deposited and not spent is somewhere.
//!
//! Both are taken at one moment, the cut. Every transaction has the time of the store's clock, so those before the cut are
//! a snapshot of all accounts whenever they are read; rows are read just before it. What moved in the moment of reading
//! the rows is the only thing that is uncertain, and the sum may be off by that much.

use super::book::Place;
use super::drive::{Job, drive};
use super::join::{Join, Side};
use super::pass::Pass;
use super::replay::signed;
use super::violation::{Doubt, Invariant};
use domain::mode::Mode;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::keys::{AccountKeys, Bucket};
use store::read::Read;
use store::transaction::{Transaction, TransactionType};
use store::transit::Transit;
use store::{StoreError, server_clock};

/// How far apart the clocks of a cluster's servers may be.
pub(super) const CLOCKS_APART_MS: u64 = 2000;

/// The rows in transit.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// When the reading of the rows began.
    from_ms: u64,
    /// The cut: when it ended.
    pub(super) cut_ms: u64,
    /// Debits that must be among the transactions of their account: row and amount, by place and transaction id.
    wanted: HashMap<(Place, String), (String, u64)>,
}

/// What moved in one mode, over all accounts, up to the cut.
#[derive(Debug, Default)]
pub(super) struct Flow {
    deposits: i128,
    spends: i128,
    wallets: i128,
    /// What escrows hold, each once.
    held: BTreeMap<u64, u64>,
    /// Rows with money that has not arrived.
    transit: i128,
    /// Moved between accounts or escrows while the rows were read.
    uncertain: i128,
}

impl Flow {
    /// An escrow, when it was funded and when it was resolved.
    pub(super) fn escrow(
        &mut self,
        (escrow, amount): (u64, u64),
        (funded, resolved): (u64, Option<u64>),
        rows: &Rows,
    ) {
        let window = rows.from_ms..=rows.cut_ms;
        if resolved.is_some_and(|at| window.contains(&at)) && !self.held.contains_key(&escrow) {
            self.uncertain += i128::from(amount);
        }
        let held = funded < rows.cut_ms && resolved.is_none_or(|at| at >= rows.cut_ms);
        self.held.insert(escrow, if held { amount } else { 0 });
    }

    fn take(&mut self, transaction: &Transaction, (from_ms, cut_ms): (u64, u64)) {
        let amount = i128::from(transaction.amount.get());
        let crosses = !matches!(
            transaction.kind,
            TransactionType::Deposit | TransactionType::Spend
        );
        if crosses && (from_ms..=cut_ms).contains(&transaction.at_ms) {
            self.uncertain += amount;
        }
        if transaction.at_ms >= cut_ms {
            return;
        }
        self.wallets += signed(transaction);
        match transaction.kind {
            TransactionType::Deposit => self.deposits += amount,
            TransactionType::Spend => self.spends += amount,
            _ => {}
        }
    }

    /// Whether it adds up.
    fn sum(&self) -> Sum {
        let held: i128 = self.held.values().map(|amount| i128::from(*amount)).sum();
        let should = self.deposits - self.spends;
        let is = self.wallets + held + self.transit;
        let apart = (should - is).abs();
        if apart == 0 {
            return Sum::Right;
        }
        let wrong = format!(
            "deposits less spends are {should} nanos; wallets {} + escrows {held} + in transit {} are {is}: {apart} {}",
            self.wallets,
            self.transit,
            if should > is {
                "are missing"
            } else {
                "are too many"
            }
        );
        if apart > self.uncertain {
            return Sum::Wrong(wrong);
        }
        Sum::Open(format!(
            "{wrong}; up to {} moved while it was looked at, or within the seconds that the clocks of the servers may be apart",
            self.uncertain
        ))
    }
}

/// Whether the money of a mode adds up.
#[derive(Debug, PartialEq, Eq)]
enum Sum {
    Right,
    /// The difference may come from what moved in the moment of looking. Or not.
    Open(String),
    Wrong(String),
}

impl Pass<'_> {
    /// Reads what is on its way.
    pub(super) async fn read_rows(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let buckets: BTreeSet<Bucket> = accounts
            .places()
            .map(|place| accounts.keys(place).bucket())
            .collect();
        let apart = if store.is_cluster() { CLOCKS_APART_MS } else { 0 };
        self.rows.from_ms = server_clock::now_ms(store).await?.saturating_sub(apart);
        let mut rows = Vec::new();
        let jobs = buckets.iter().map(|bucket| Job {
            what: *bucket,
            reads: vec![Read::hash(*bucket, bucket.transit())],
            weight: 10,
        });
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
                None => self.wrong(
                    Invariant::Transit,
                    &[&bucket.transit(), &id],
                    "the row makes no sense",
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
        for ((place, row), arrived, status) in seen {
            self.row(place, &row, arrived.flatten(), status.flatten().as_deref());
        }
        Ok(())
    }

    /// Reads whether a row has arrived, and the escrow that it is about.
    fn row_job(&mut self, bucket: Bucket, row: Transit) -> Option<Job<(Place, Transit)>> {
        let place = self.accounts.find(&row.from_account).zip(row.mode());
        let Some((account, mode)) = place else {
            if !self.accounts.partial {
                let detail = "its sender is no account";
                self.wrong(Invariant::Transit, &[&bucket.transit(), &row.id], detail);
            }
            return None;
        };
        let place = Place { account, mode };
        let to = AccountKeys::of(&row.to_account).bucket();
        let mut reads = vec![Read::text(to, to.arrived(&row.id))];
        if let Some(number) = escrow_of(&row.id) {
            let key = self.accounts.keys(place).escrow(mode, number);
            reads.push(Read::field(bucket, key, "status"));
        }
        Some(Job {
            what: (place, row),
            reads,
            weight: 1,
        })
    }

    fn row(&mut self, place: Place, row: &Transit, arrived_ms: Option<u64>, status: Option<&str>) {
        let amount = row.credit.as_ref().map_or(0, |credit| credit.nanos);
        let table = self.accounts.keys(place).bucket().transit();
        match escrow_of(&row.id) {
            None => {
                let wanted = (format!("{table} {}", row.id), amount);
                self.rows.wanted.insert((place, row.id.clone()), wanted);
            }
            Some(number) => {
                let word = row.id.rsplit(':').next().unwrap_or_default();
                let fits = match word {
                    "released" => status == Some("released"),
                    "disputed" => matches!(status, Some("disputed" | "released" | "refunded")),
                    "resolved" => matches!(status, Some("released" | "refunded")),
                    // It may have gone on before its payee's list has it.
                    "created" => status.is_some(),
                    _ => false,
                };
                if !fits {
                    let detail = format!("its escrow is {}", status.unwrap_or("not there"));
                    self.wrong(Invariant::Transit, &[&table, &row.id], detail);
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
                        self.joins
                            .add(Join::EscrowMoney, Side::Perhaps, ("", &number), &parts);
                    }
                    if let Some(intent) = &row.intent {
                        self.joins
                            .add(Join::EscrowWinner, Side::Perhaps, ("", &number), &[&intent.id]);
                    }
                }
            }
        }
        if arrived_ms.is_none_or(|at| at >= self.rows.cut_ms) {
            self.flows[place.index() % 2].transit += i128::from(amount);
        }
    }

    /// Takes a transaction into the sums.
    pub(super) fn flow(&mut self, place: Place, transaction: &Transaction) {
        let window = (self.rows.from_ms, self.rows.cut_ms);
        self.flows[place.index() % 2].take(transaction, window);
        if transaction.kind != TransactionType::TransferOut || self.rows.wanted.is_empty() {
            return;
        }
        if let Some((row, amount)) = self.rows.wanted.remove(&(place, transaction.id.clone()))
            && amount != transaction.amount.get()
        {
            let detail = format!(
                "it carries {amount} nanos, and {} were taken",
                transaction.amount.get()
            );
            self.wrong(Invariant::Transit, &[&row], detail);
        }
    }

    /// All transactions are in.
    pub(super) fn check_transit(&mut self) {
        for (row, _) in std::mem::take(&mut self.rows.wanted).into_values() {
            let detail = "nothing was taken from its sender";
            self.wrong(Invariant::Transit, &[&row], detail);
        }
        // The sum over one account is what `wallet-balance` says of its wallets.
        if self.accounts.partial {
            return;
        }
        for (flow, mode) in self.flows.iter().zip([Mode::Live, Mode::Test]) {
            match flow.sum() {
                Sum::Right => {}
                Sum::Wrong(wrong) => self.found.add(Invariant::Conservation, &[mode.as_str()], wrong),
                Sum::Open(reason) => self.doubts.push(Doubt {
                    invariant: Invariant::Conservation,
                    records: vec![mode.as_str().to_owned()],
                    reason,
                }),
            }
        }
    }
}

/// The escrow in the id of a row: `escrow:<number>:<what became of it>`.
fn escrow_of(id: &str) -> Option<u64> {
    id.strip_prefix("escrow:")?.split(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests;
