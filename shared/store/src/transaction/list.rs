//! Lists transactions of an account and mode: all, those of a wallet, of a type, or of both; newest first; optionally
//! within a time span. Lists hold ascending numbers, and numbers ascend with time but for the difference of the
//! servers' clocks, so the ends of a span are found by search instead of a scan.

use super::{Transaction, TransactionType};
use crate::keys::Realm;
use crate::page::{Page, PageRequest, PageStart};
use crate::search::Search;
use crate::time_span::{TimeSpan, Times};
use crate::{Store, StoreError};

/// A filter for transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionFilter<'a> {
    /// Only transactions of this wallet: its owner, or `closed/<number>`.
    pub holder: Option<&'a str>,
    /// Of this type only.
    pub kind: Option<TransactionType>,
    /// At this time or later, in ms since 1970.
    pub from_ms: Option<u64>,
    /// Before this time, in ms since 1970.
    pub to_ms: Option<u64>,
}

/// Reads a page of transactions, newest first. A position is a transaction's number, which never changes.
pub async fn list(
    store: &Store,
    realm: &Realm,
    filter: TransactionFilter<'_>,
    page: PageRequest<'_>,
) -> Result<Page<Transaction>, StoreError> {
    let numbers = Numbers::new(store, realm, filter);
    let length = numbers.length().await?;
    let times = (filter.from_ms, filter.to_ms);
    let span = TimeSpan::find(&numbers, 0..length, times, store.clock_spread_ms()).await?;
    let many = |many: usize| u64::try_from(many).unwrap_or(u64::MAX);
    let last = match page.start {
        PageStart::Offset(offset) => span.len().saturating_sub(many(offset)),
        PageStart::After(position) => {
            let number = position.parse().map_err(|_| StoreError::BadPosition)?;
            span.count_before(numbers.position_of(number, length).await?)
        }
    };
    let first = last.saturating_sub(many(page.limit));
    let shown = numbers.numbers_at(&span.positions(first, last)).await?;
    let next = shown.first().filter(|_| first > 0).map(u64::to_string);
    let mut lines = numbers.lines(shown).await?;
    lines.reverse();
    let transactions = lines.iter().map(|line| Transaction::parse(line.as_deref()?));
    match transactions.collect::<Option<Vec<_>>>() {
        Some(records) => Ok(Page {
            records,
            total: span.len(),
            next,
        }),
        None => Err(StoreError::unexpected("transaction")),
    }
}

/// Ascending numbers of transactions, by rank from 0.
struct Numbers<'a> {
    store: &'a Store,
    record: String,
    sequence: String,
    transactions: String,
    /// Key of the list; `None` for all transactions.
    list: Option<String>,
}

impl<'a> Numbers<'a> {
    fn new(store: &'a Store, realm: &Realm, filter: TransactionFilter<'_>) -> Self {
        let kind = filter.kind.map(TransactionType::as_str);
        Self {
            store,
            record: realm.record(),
            sequence: format!("{}_txn_seq", realm.mode()),
            transactions: realm.transactions(),
            list: match (filter.holder, kind) {
                (None, None) => None,
                (None, Some(kind)) => Some(realm.transactions_of_type(kind)),
                (Some(holder), kind) => Some(realm.transactions_of_wallet(holder, kind)),
            },
        }
    }

    async fn length(&self) -> Result<u64, StoreError> {
        match &self.list {
            Some(list) => self.store.command(redis::cmd("LLEN").arg(list)).await,
            None => {
                let mut get = redis::cmd("HGET");
                get.arg(&self.record).arg(&self.sequence);
                let last: Option<u64> = self.store.command(&get).await?;
                Ok(last.unwrap_or(0))
            }
        }
    }

    /// Reads the numbers at these ranks; 0 for one that is gone because its wallet was closed.
    async fn numbers_at(&self, positions: &[u64]) -> Result<Vec<u64>, StoreError> {
        let Some(list) = &self.list else {
            return Ok(positions.iter().map(|position| position + 1).collect());
        };
        let numbers: Vec<Option<u64>> = self.store.items_at(list, positions).await?;
        Ok(numbers.into_iter().map(Option::unwrap_or_default).collect())
    }

    async fn lines(&self, numbers: Vec<u64>) -> Result<Vec<Option<String>>, StoreError> {
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let mut get = redis::cmd("HMGET");
        get.arg(&self.transactions).arg(numbers);
        self.store.command(&get).await
    }

    /// Finds the first rank before `end` of this number or a later one; `end` if there is none.
    async fn position_of(&self, number: u64, end: u64) -> Result<u64, StoreError> {
        if self.list.is_none() {
            return Ok(number.saturating_sub(1).min(end));
        }
        let mut search = Search::between(0, end);
        while let Some(positions) = search.positions() {
            let numbers = self.numbers_at(&positions).await?;
            // A missing one counts as later than all.
            search.record(
                &positions,
                numbers.iter().map(|found| *found == 0 || *found >= number),
            );
        }
        Ok(search.found())
    }
}

impl Times for Numbers<'_> {
    async fn at(&self, positions: &[u64]) -> Result<Vec<u64>, StoreError> {
        let lines = self.lines(self.numbers_at(positions).await?).await?;
        Ok(lines.iter().map(|line| time(line.as_deref())).collect())
    }
}

/// Returns the time of a transaction; a missing one counts as later than all.
fn time(line: Option<&str>) -> u64 {
    let word = line.and_then(|line| line.split(' ').next());
    word.and_then(|word| word.parse().ok()).unwrap_or(u64::MAX)
}
