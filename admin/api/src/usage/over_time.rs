//! `GET /usage`: calls, tokens and cost by model, agent, virtual key or run, over time. Computed from the audit trail
//! for each request, in a [turn](endpoint::LargeReads), which reads a bounded number of entries; the answer says
//! whether some were not read.
//!
//! A call counts in the interval of its approval, to which its cost is charged (decision D37), and a denial in that of
//! its entry: days agree with the counters of Cap. Entries are in the order in which calls ended, so those up to
//! [`LATE_MS`] behind the span are read, too, and later ones by the list of their day.

pub(super) mod csv;
pub(super) mod span;
pub(super) mod sums;

use self::span::{Interval, UsageSpan};
use self::sums::{Group, UsageRow, UsageSums, UsageTotals};
use crate::call_trail::{self, LATE_MS};
use crate::calls::filter::CallFilter;
use crate::spreadsheet::CsvFile;
use crate::state::Call;
use domain::call_record::KINDS;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{ANSWER_MAX, Answer, Paging, Problem, QueryParams, Reply};
use history::trail::calls::{CallSelection, CallsPosition, LateCalls, STEP_MAX};
use serde::Serialize;
use store::StoreError;
use store::names::{self, Names};
use store::page::PageStart;
use store::server_clock;
use utoipa::ToSchema;

/// Maximum number of entries of the trail that are read for one answer.
const READ_MAX: usize = 20_000;
/// Maximum number of entries of the trail that are read for a CSV file, which is always complete.
const CSV_READ_MAX: usize = 100_000;
/// Most memory of the rows of a CSV file, in bytes.
const CSV_BYTES_MAX: usize = ANSWER_MAX;
/// Number of rows from which on no more entries are read.
const ROWS_MAX: usize = 2000;
/// Parameters that select calls.
const FILTERS: [&str; 4] = ["agentId", "runId", "keyId", "model"];

/// Usage in a span of time.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Usage)]
pub(super) struct UsageView<'a> {
    success: bool,
    /// Grouping of the rows: `model`, `agent`, `key` or `run`.
    #[schema(example = "model")]
    group_by: &'static str,
    /// `day` or `hour`, of UTC.
    #[schema(example = "day")]
    interval: &'static str,
    #[schema(value_type = is::Time)]
    from: String,
    #[schema(value_type = is::Time)]
    to: String,
    /// Rows from here on are whole; `from` when all was read.
    #[schema(value_type = is::Time)]
    covered_from: String,
    /// True if entries are left: continue with `nextCursor`, and add the rows of that answer to these.
    partial: bool,
    #[schema(example = "AfQ1bGl2ZSAxNzY0MDI2NjI5MTIz")]
    next_cursor: Option<String>,
    totals: UsageTotals,
    /// The earliest interval first, and within it the highest cost first.
    usage: Vec<UsageRow<'a>>,
}

/// The parameters of a request, read.
struct UsageQuery {
    group: Group,
    interval: Interval,
    span: UsageSpan,
    filter: CallFilter,
}

/// Limits of the computation, which ends at the first one reached.
#[derive(Clone, Copy)]
struct AddBounds {
    /// Entries that are read.
    entries: usize,
    /// True if these are as many rows as one answer may have.
    is_full: fn(&UsageSums) -> bool,
}

/// The result of adding up.
struct Added {
    sums: UsageSums,
    /// Start of the rest; `None` if all was read.
    rest: Option<CallsPosition>,
    /// When the oldest entry that was read was recorded.
    oldest_ms: Option<u64>,
}

/// `GET /usage`
///
/// # Errors
/// 400, also if a CSV file would be incomplete; 409 or 503 without a turn; 503.
pub async fn get(call: Call) -> Answer {
    let known = [
        &FILTERS[..],
        &["groupBy", "interval", "from", "to", "format", "cursor"],
    ]
    .concat();
    let query = call.query(&known)?;
    let as_csv = query.word("format", ["json", "csv"])? == Some("csv");
    let usage_query = UsageQuery::from_query(&call, &query).await?;
    let paging = call.paging(&query, "usage")?;
    let read = call.large_read().await?;
    if !as_csv {
        return answer(&call, &usage_query, &paging).await;
    }
    if query.get("cursor").is_some() {
        return Err(Problem::validation(
            "cursor cannot be given with format=csv, which is always whole.",
        ));
    }
    let added = usage_query
        .add(
            &call,
            CallsPosition::START,
            AddBounds {
                entries: CSV_READ_MAX,
                is_full: |sums| sums.bytes() > CSV_BYTES_MAX,
            },
        )
        .await?;
    let bytes = added.sums.bytes();
    if added.rest.is_some() || bytes > CSV_BYTES_MAX {
        let mib = CSV_BYTES_MAX >> 20;
        let message = format!(
            "from and to must enclose at most {CSV_READ_MAX} records and {mib} MiB of rows for format=csv, which \
             is always whole; give a shorter span."
        );
        return Err(Problem::validation(message));
    }
    let names = usage_query.names(&call, &added.sums).await?;
    let file = CsvFile::new(&call, "usage");
    let reply = file.stream(read, &csv::COLUMNS, csv::chunks(added.sums, names))?;
    Ok(reply.taking(bytes))
}

async fn answer(call: &Call, usage_query: &UsageQuery, paging: &Paging) -> Answer {
    let place = match paging.page().start {
        PageStart::Offset(_) => CallsPosition::START,
        PageStart::After(position) => CallsPosition::parse(position).ok_or(StoreError::BadPosition)?,
    };
    let added = usage_query
        .add(
            call,
            place,
            AddBounds {
                entries: READ_MAX,
                is_full: |sums| sums.len() >= ROWS_MAX,
            },
        )
        .await?;
    let names = usage_query.names(call, &added.sums).await?;
    Reply::ok(&UsageView {
        success: true,
        group_by: usage_query.group.as_str(),
        interval: usage_query.interval.as_str(),
        from: iso_from_ms(usage_query.span.from_ms),
        to: iso_from_ms(usage_query.span.to_ms),
        covered_from: iso_from_ms(match added.rest {
            None => usage_query.span.from_ms,
            Some(_) => {
                // An entry that was not read can be of as much later.
                let spread_ms = call.state.store.clock_spread_ms();
                let oldest_ms = added
                    .oldest_ms
                    .map(|oldest_ms| oldest_ms.saturating_add(spread_ms));
                usage_query.span.whole_from(usage_query.interval, oldest_ms)
            }
        }),
        partial: added.rest.is_some(),
        next_cursor: paging.cursor(added.rest.map(|rest| rest.to_string()).as_deref()),
        totals: added.sums.totals(),
        usage: added.sums.rows(&names),
    })
}

impl UsageQuery {
    async fn from_query(call: &Call, query: &QueryParams) -> Result<Self, Problem> {
        let interval = Interval::from_query(query)?;
        let group = query.value("groupBy", Group::ALL.map(Group::as_str), Group::parse)?;
        let now_ms = server_clock::now_ms(&call.state.store).await?;
        Ok(Self {
            group: group.unwrap_or(Group::Model),
            interval,
            span: UsageSpan::from_query(query, interval, now_ms)?,
            filter: CallFilter::confirmed(query)?,
        })
    }

    /// Adds up the calls from `place` on, within `bounds`.
    async fn add(&self, call: &Call, place: CallsPosition, bounds: AddBounds) -> Result<Added, Problem> {
        let trail = call_trail::for_call(call);
        trail.seal().await?;
        let spread_ms = call.state.store.clock_spread_ms();
        let [approved, denied, _, window] = KINDS;
        let selection = CallSelection {
            kinds: &[approved, denied, window],
            agent: self.filter.agent.as_deref(),
            // By how much an end can seem to be before its approval, or later than it was.
            from_ms: Some(self.span.from_ms.saturating_sub(spread_ms)),
            to_ms: Some(self.span.to_ms.saturating_add(LATE_MS).saturating_add(spread_ms)),
            late: Some(LateCalls {
                days: self.span.days(),
                to_ms: None,
            }),
        };
        let mut added = Added {
            sums: UsageSums::new(self.group),
            rest: Some(place),
            oldest_ms: None,
        };
        let mut read = 0;
        while let Some(start) = added
            .rest
            .filter(|_| read < bounds.entries && !(bounds.is_full)(&added.sums))
        {
            let most = STEP_MAX.min(bounds.entries - read);
            let step = trail.calls(&selection, start, most).await?;
            read += step.cost;
            added.rest = step.next;
            added.oldest_ms = step.oldest_ms.or(added.oldest_ms);
            for call in step.calls.iter().filter(|call| self.filter.fits(call)) {
                if let Some(at_ms) = self.span.interval_of(self.interval, call) {
                    added.sums.add(at_ms, call);
                }
            }
        }
        Ok(added)
    }

    /// Reads the names of the groups, if they are agents or virtual keys.
    async fn names(&self, call: &Call, sums: &UsageSums) -> Result<Names, Problem> {
        let (store, realm) = (&call.state.store, call.realm());
        let names = match self.group {
            Group::Agent => names::read_agent_names(store, &realm, sums.groups()).await?,
            Group::Key => names::read_virtual_key_names(store, realm.keys(), sums.groups()).await?,
            Group::Model | Group::Run => Names::new(),
        };
        Ok(names)
    }
}
