//! Every list of every route, with a thousand records and with a million: a page costs the store the same, wherever it
//! starts.

use crate::cursor::forged;
use crate::fill::{ListKind, MODE, Tenant, ended_ms};
use crate::fixture::Fixture;
use crate::watch::{Watch, Work};
use api_docs::table::routes;
use clock::now_ms;
use endpoint::{Flag, OFFSET_MAX, PAGE_MAX};
use harness::Reply;
use http::Method;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use store::agent::survey::AGENTS_MAX;
use store::escrow::search::SCANNED_MAX as ESCROWS_MAX;
use store::run::SCANNED_MAX;
use store::wallet::totals::WALLETS_MAX;

/// Records that a page of calls reads: 2,000 entries, each with its number in the index, and the places of four types
/// in each of four steps.
const CALLS_LOOKS: usize = 2 * 2000 + 4 * 4 * 3 * 5 * 15;

/// Records that a page reads which reads 1,000 intents or entries of deposits, 200 at a time, with searches for places.
const STEPS_LOOKS: usize = 1000 + 5 * 3 * 5 * 15 * 4;
/// Records that a page of a search for escrows reads: of each its place and its record, and its place in the list.
const ESCROWS_LOOKS: usize = ESCROWS_MAX * 4;

pub const FEW: u64 = 1_000;
pub const MANY: u64 = 1_000_000;
/// Additional cost of a page with many records: at most three binary searches for a place, each in up to five
/// steps of 15 places of which two things are read.
pub const SEARCHED: u64 = 3 * 5 * 15 * 4;
/// Filter of a list by a time that all records are in.
const SPAN: &str = "from=2020-01-01T00:00:00Z&to=2099-01-01T00:00:00Z";
/// Requests of a measurement. The cheapest counts, since commands of the server's workers raise the cost.
const TRIES: usize = 5;

/// Lists that can hold a million records of an account, each with a function that fills it.
const LONG: &[(&str, ListKind)] = &[
    ("/agents", ListKind::Agents),
    ("/wallet", ListKind::Agents),
    ("/agents/{id}/virtual-keys", ListKind::VirtualKeys),
    ("/policies", ListKind::Policies),
    ("/wallets/{id}/transactions", ListKind::Transactions),
    ("/transactions", ListKind::Transactions),
    ("/escrow", ListKind::Escrows),
    ("/audit", ListKind::Entries),
    ("/calls", ListKind::Calls),
    ("/wallet/deposits", ListKind::Deposits),
    ("/thresholds", ListKind::Agents),
    ("/intents", ListKind::Intents),
    ("/agents/{id}/runs", ListKind::Runs),
];
/// Lists with a fixed bound, which a script enforces. [`unbounded_lists`](crate::unbounded_lists) runs them beside a
/// million records.
pub const SHORT: &[(&str, &str)] = &[
    ("/agents/{id}/provider-keys", "PROVIDERS_MAX"),
    ("/webhooks", "WEBHOOKS_MAX"),
    (
        "/webhooks/{id}/deliveries",
        "webhooks.waiting_max and webhooks.history_max",
    ),
    ("/api-keys", "API_KEYS_MAX"),
    ("/sessions", "SESSIONS_MAX"),
    ("/team", "USERS_MAX"),
    ("/invitations", "INVITATIONS_MAX"),
];
/// Routes with a query that are no lists. [`unbounded_lists`](crate::unbounded_lists) runs them beside a million
/// records.
pub const OTHERS: &[&str] = &[
    "/names",
    "/overview",
    "/audit/export",
    "/calls/export",
    "/usage",
    "/audit/checkpoint",
    "/intents/{id}/export",
];

#[test]
fn every_list_is_here() {
    let routes = routes();
    let found: BTreeSet<&str> = routes
        .filter(|route| route.method == Method::GET && route.has(Flag::Query))
        .map(|route| route.path)
        .collect();
    let long = LONG.iter().map(|(path, _)| *path);
    let short = SHORT.iter().map(|(path, _)| *path);
    let here: BTreeSet<&str> = long.chain(short).chain(OTHERS.iter().copied()).collect();
    assert_eq!(found, here);
}

#[derive(Clone)]
struct Query {
    kind: ListKind,
    /// The path under /v1, with its filters.
    path: String,
    /// Words that the cursor is sealed to, beside account and mode.
    words: Vec<String>,
    /// The cursor position after the record of this number, given the base of the scores.
    position: fn(u64, u64) -> String,
    /// Cost of lists that are searched record by record, in commands and in records.
    looks: u64,
}

fn at_score(number: u64, oldest: u64) -> String {
    format!("{} m{number:07}", oldest + number)
}

fn at_number(number: u64, _oldest: u64) -> String {
    number.to_string()
}

fn at_ended(number: u64, oldest: u64) -> String {
    format!("{} ended-{number:07}", ended_ms(oldest + MANY, MANY) + number)
}

/// Queries of one kind of record, each with the word for its list in a cursor, its path, and its looks.
fn of_kind(kind: ListKind, position: fn(u64, u64) -> String, rows: &[(&str, &str, usize)]) -> Vec<Query> {
    let query = |(list, path, looks): &(&str, &str, usize)| Query {
        kind,
        path: (*path).to_owned(),
        words: words(list, path),
        position,
        looks: *looks as u64,
    };
    rows.iter().map(query).collect()
}

/// The words of a cursor: the list, the id in the path of a sublist, and the filters by name.
fn words(list: &str, path: &str) -> Vec<String> {
    let (path, filters) = path.split_once('?').unwrap_or((path, ""));
    let id = match path.split('/').collect::<Vec<_>>()[..] {
        ["", _, id, _] => Some(("id", id)),
        _ => None,
    };
    let filters: BTreeMap<&str, &str> = filters
        .split('&')
        .filter_map(|filter| filter.split_once('='))
        .collect();
    let pairs = id
        .into_iter()
        .chain(filters)
        .flat_map(|(name, value)| [name, value]);
    iter::once(list).chain(pairs).map(str::to_owned).collect()
}

fn queries(tenant: &Tenant) -> Vec<Query> {
    [agents(), money(&tenant.wallet), intents(), entries(), runs()].concat()
}

fn agents() -> Vec<Query> {
    let agents = &[
        ("agents", "/agents", 0),
        ("agents", "/agents?q=none", AGENTS_MAX * 3),
        ("agents", "/agents?status=frozen", AGENTS_MAX * 3),
        ("agent_wallets", "/wallet", WALLETS_MAX * 4),
        ("thresholds", "/thresholds", AGENTS_MAX * 14),
    ];
    let keys = &[("virtualKeys", "/agents/bot/virtual-keys", 0)];
    let policies = &[
        ("policies", "/policies", 0),
        ("policies", "/policies?agentId=bot", 0),
    ];
    [
        of_kind(ListKind::Agents, at_score, agents),
        of_kind(ListKind::VirtualKeys, at_score, keys),
        of_kind(ListKind::Policies, at_score, policies),
    ]
    .concat()
}

fn money(wallet: &str) -> Vec<Query> {
    let spanned = format!("/transactions?{SPAN}");
    let of_wallet = format!("/wallets/{wallet}/transactions?type=deposit&{SPAN}");
    let transactions = &[
        ("transactions", "/transactions", 0),
        ("transactions", "/transactions?type=deposit", 0),
        ("transactions", "/transactions?agentId=bot", 0),
        ("transactions", &spanned, 0),
        ("transactions", &of_wallet, 0),
    ];
    let escrows = &[
        ("escrows", "/escrow", 0),
        ("escrows", "/escrow?status=funded", ESCROWS_LOOKS),
    ];
    let deposits = &[("deposits", "/wallet/deposits", STEPS_LOOKS)];
    [
        of_kind(ListKind::Transactions, at_number, transactions),
        of_kind(
            ListKind::Escrows,
            |number, _| format!("{number} {number}"),
            escrows,
        ),
        of_kind(ListKind::Deposits, at_number, deposits),
    ]
    .concat()
}

fn intents() -> Vec<Query> {
    let intents = &[
        ("intents", "/intents", 0),
        ("intents", "/intents?runId=none", STEPS_LOOKS),
        ("intents", "/intents?kind=spend", 0),
        ("intents", "/intents?agentId=bot", 0),
        ("intents", "/intents?state=settled", 0),
    ];
    let waiting = &[("intents", "/intents?state=pending_approval", 0)];
    let of_live = |number, _| format!("live {number} 0 0 0");
    let of_waiting = |number, _| format!("{number} int_{number:026}");
    [
        of_kind(ListKind::Intents, of_live, intents),
        of_kind(ListKind::Waiting, of_waiting, waiting),
    ]
    .concat()
}

fn entries() -> Vec<Query> {
    let spanned = format!("/audit?agentId=bot&type=agent.frozen&{SPAN}");
    let entries = &[
        ("logs", "/audit", 0),
        ("logs", "/audit?agentId=bot", 0),
        ("logs", "/audit?type=agent.frozen", 0),
        ("logs", &spanned, 0),
    ];
    let calls = &[
        ("calls", "/calls", CALLS_LOOKS),
        ("calls", "/calls?agentId=bot", CALLS_LOOKS),
        ("calls", "/calls?model=none", CALLS_LOOKS),
    ];
    [
        of_kind(ListKind::Entries, at_number, entries),
        of_kind(ListKind::Calls, at_number, calls),
    ]
    .concat()
}

fn runs() -> Vec<Query> {
    let with_looks = |looks| {
        [
            ("runs", "/agents/bot/runs", 0),
            ("runs", "/agents/bot/runs?status=running", looks),
            ("runs", "/agents/bot/runs?status=completed", looks),
            ("runs", "/agents/bot/runs?status=failed", looks),
        ]
    };
    let paused = &[("runs", "/agents/bot/runs?status=paused", 0)];
    [
        of_kind(ListKind::Waiting, |_, _| "0 r".to_owned(), paused),
        of_kind(ListKind::Runs, at_score, &with_looks(SCANNED_MAX * 4)),
        of_kind(ListKind::EndedRuns, at_ended, &with_looks(0)),
    ]
    .concat()
}

/// The work of the cheapest of some requests of `path`.
async fn work(fixture: &Fixture, watch: &Watch, tenant: &Tenant, path: &str) -> Work {
    let get = async || tenant.caller.get(path).await;
    work_of(fixture, watch, (&tenant.account.id, path), get).await
}

/// The work of the cheapest of some requests, sent by `get`, on the keys of this account.
pub async fn work_of(
    fixture: &Fixture,
    watch: &Watch,
    (account, path): (&str, &str),
    get: impl AsyncFn() -> Reply,
) -> Work {
    let mut least: Option<Work> = None;
    for _ in 0..TRIES {
        watch.since_the_last_mark(&fixture.redis).await;
        let reply = get().await;
        let commands = watch.since_the_last_mark(&fixture.redis).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        let commands = commands.iter().map(|command| command.words.as_slice());
        let of_account = commands.filter(|words| words.get(1).is_some_and(|key| key.contains(account)));
        let work = Work::new(&fixture.redis, of_account);
        if least.as_ref().is_none_or(|least| work.records < least.records) {
            least = Some(work);
        }
    }
    least.unwrap()
}

/// Pages of a list of `count` records: at the beginning, at the farthest offset, and by cursor everywhere.
fn starts(query: &Query, tenant: &Tenant, count: u64, oldest: u64) -> Vec<String> {
    let joint = if query.path.contains('?') { '&' } else { '?' };
    let base = format!("/v1{}{joint}limit={PAGE_MAX}", query.path);
    let mut starts = vec![base.clone(), format!("{base}&offset={OFFSET_MAX}")];
    for number in [count, count / 2, 300, 2, 1] {
        let mut words = vec![tenant.account.id.as_str(), MODE.as_str()];
        words.extend(query.words.iter().map(String::as_str));
        let cursor = forged(&words, &(query.position)(number, oldest));
        starts.push(format!("{base}&cursor={cursor}"));
    }
    starts
}

async fn no_list_costs_more(kinds: &[ListKind]) {
    for kind in kinds {
        // The archiver reads long trails. Its reads are no part of the cost of a list.
        let after = (2 * MANY).to_string();
        let fixture =
            Fixture::start_with(|options| options.env("TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES", after)).await;
        let (few, many) = (Tenant::new(&fixture).await, Tenant::new(&fixture).await);
        let oldest = now_ms() - MANY;
        few.fill(&fixture, *kind, FEW).await;
        many.fill(&fixture, *kind, MANY).await;
        // Not before, since MONITOR shows the commands of scripts, too.
        let watch = Watch::start(&fixture.redis).await;
        let both = queries(&few).into_iter().zip(queries(&many));
        for (with_few, with_many) in both.filter(|(query, _)| query.kind == *kind) {
            let first = &starts(&with_few, &few, FEW, oldest)[0];
            let least = work(&fixture, &watch, &few, first).await;
            let most = least.records + with_many.looks + SEARCHED;
            for start in starts(&with_many, &many, MANY, oldest) {
                let work = work(&fixture, &watch, &many, &start).await;
                assert!(
                    work.records <= most,
                    "{start} reads {} records, and {first} with {FEW} reads {}:\n{:?}\n{:?}",
                    work.records,
                    least.records,
                    work.by_name,
                    least.by_name
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_million_members_of_sorted_sets() {
    let kinds = [
        ListKind::Agents,
        ListKind::VirtualKeys,
        ListKind::Policies,
        ListKind::Escrows,
        ListKind::Runs,
        ListKind::EndedRuns,
    ];
    no_list_costs_more(&kinds).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_million_transactions_and_entries() {
    no_list_costs_more(&[ListKind::Transactions, ListKind::Entries, ListKind::Deposits]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_million_calls() {
    no_list_costs_more(&[ListKind::Calls]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_million_intents() {
    no_list_costs_more(&[ListKind::Intents, ListKind::Waiting]).await;
}
