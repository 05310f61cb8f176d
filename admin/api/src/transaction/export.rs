//! `format=csv` of transactions: the matching ones, newest first, as a CSV file that is streamed.

use crate::spreadsheet::{CsvFile, lines, optional};
use crate::state::Call;
use bytes::Bytes;
use domain::timestamp::iso_from_ms;
use endpoint::{Answer, PAGING, Problem, QueryParams};
use futures::{Stream, stream};
use store::page::{Page, PageRequest, PageStart};
use store::transaction::Transaction;
use store::transaction::list::{TransactionFilter, list};

/// Makes the cell of a row.
pub(super) type TransactionCell = fn(&Transaction) -> String;

/// The columns. New ones are only ever added at the end. A sign would make the amount look like a formula, so the
/// direction has a column.
pub(super) const COLUMNS: [(&str, TransactionCell); 11] = [
    ("id", |row| row.id.clone()),
    ("createdAt", |row| iso_from_ms(row.at_ms)),
    ("walletId", |row| row.wallet.to_string()),
    ("type", |row| row.kind.to_string()),
    ("direction", direction),
    ("amount", |row| row.amount.to_string()),
    ("currency", |row| row.currency.clone()),
    ("balanceAfter", |row| row.balance_after.to_string()),
    ("counterparty", |row| optional(row.tail.counterparty.as_ref())),
    ("intentId", |row| optional(row.intent.as_ref())),
    ("memo", |row| optional(row.tail.memo.as_ref())),
];

/// Maximum number of transactions of a file. More are refused, so that no file is silently incomplete.
const EXPORT_MAX: u64 = 100_000;
/// Number of transactions read at a time.
const STEP: usize = 500;
/// The start of a file.
const START: PageRequest<'static> = PageRequest {
    limit: STEP,
    start: PageStart::Offset(0),
};

/// Word for the records in the file's name and in the log.
const RECORDS: &str = "transactions";

/// The parts of a file.
pub(super) struct TransactionExport {
    pub(super) call: Call,
    /// Without a holder.
    pub(super) filter: TransactionFilter<'static>,
    /// The holder of the wallet; `None` for all of the account.
    pub(super) holder: Option<String>,
}

/// Refuses the parameters of a page: a file is always whole.
///
/// # Errors
/// 400 names the parameter.
pub(super) fn require_whole(query: &QueryParams) -> Result<(), Problem> {
    match PAGING.iter().find(|name| query.get(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Problem::validation(format!(
            "{name} cannot be given with format=csv, which is always whole."
        ))),
    }
}

/// Builds the file without a transaction.
pub(super) fn empty(call: &Call) -> Answer {
    CsvFile::new(call, RECORDS).empty(&COLUMNS)
}

impl TransactionExport {
    /// Streams the file.
    ///
    /// # Errors
    /// 400 if there are more than [`EXPORT_MAX`] transactions; 409 or 503 without a turn; 503.
    pub(super) async fn stream(self) -> Answer {
        let read = self.call.large_read().await?;
        let first = self.read(START).await?;
        if first.total > EXPORT_MAX {
            let message = format!(
                "from and to must enclose at most {EXPORT_MAX} transactions for format=csv, which is always whole; these are \
                 {}.",
                first.total
            );
            return Err(Problem::validation(message));
        }
        CsvFile::new(&self.call, RECORDS).stream(read, &COLUMNS, self.chunks(first))
    }

    /// The rows, a step in each chunk. An error is the last item.
    fn chunks(self, first: Page<Transaction>) -> impl Stream<Item = Result<Bytes, Problem>> + Send + 'static {
        stream::try_unfold((self, Some(first)), |(export, part)| async move {
            let Some(part) = part else { return Ok(None) };
            let rows = part.records.iter();
            let rows = rows.map(|transaction| COLUMNS.map(|(_, cell)| cell(transaction)));
            let chunk = Bytes::from(lines(rows)?);
            let next = match part.next {
                None => None,
                Some(position) => {
                    let start = PageStart::After(&position);
                    Some(export.read(PageRequest { limit: STEP, start }).await?)
                }
            };
            Ok(Some((chunk, (export, next))))
        })
    }

    async fn read(&self, page: PageRequest<'_>) -> Result<Page<Transaction>, Problem> {
        let filter = TransactionFilter {
            holder: self.holder.as_deref(),
            ..self.filter
        };
        Ok(list(&self.call.state.store, &self.call.realm(), filter, page).await?)
    }
}

fn direction(transaction: &Transaction) -> String {
    let word = match transaction.kind.sign() {
        "-" => "out",
        _ => "in",
    };
    word.to_owned()
}
