//! Every list of every route, with a thousand records and with a million: a page costs the store the same, wherever it
//! starts.

use crate::cursor::forged;
use crate::fill::{AGENT, Kind, MODE, Tenant, ended_ms};
use crate::watch::{Watch, Work};
use crate::world::World;
use api_docs::table::routes;
use clock::now_ms;
use endpoint::{Flag, OFFSET_MAX, PAGE_MAX};
use harness::Reply;
use http::Method;
use std::collections::BTreeSet;
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
/// Requests of a measurement. The cheapest counts, since commands of the server's workers raise the cost.
const TRIES: usize = 5;

/// Lists that can hold a million records of an account, each with a function that fills it.
const LONG: &[(&str, Kind)] = &[
    ("/agents", Kind::Agents),
    ("/wallet", Kind::Agents),
    ("/agents/{id}/virtual-keys", Kind::VirtualKeys),
    ("/policies", Kind::Policies),
    ("/wallets/{id}/transactions", Kind::Transactions),
    ("/transactions", Kind::Transactions),
    ("/escrow", Kind::Escrows),
    ("/audit", Kind::Entries),
    ("/calls", Kind::Calls),
    ("/wallet/deposits", Kind::Deposits),
    ("/thresholds", Kind::Agents),
    ("/intents", Kind::Intents),
    ("/agents/{id}/runs", Kind::Runs),
];
/// Lists with a fixed bound, which a script enforces. [`others`](crate::others) runs them beside a million records.
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
/// Routes with a query that are no lists. [`others`](crate::others) runs them beside a million records.
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

struct Query {
    kind: Kind,
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

fn at_ended(number: u64, oldest: u64) -> String {
    format!("{} ended-{number:07}", ended_ms(oldest + MANY, MANY) + number)
}

fn queries(tenant: &Tenant) -> Vec<Query> {
    let query = |kind, path: &str, words: &[&str], position: fn(u64, u64) -> String, looks: usize| Query {
        kind,
        path: path.to_owned(),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        position,
        looks: looks as u64,
    };
    let number: fn(u64, u64) -> String = |number, _| number.to_string();
    let escrow: fn(u64, u64) -> String = |number, _| format!("{number} {number}");
    let waiting: fn(u64, u64) -> String = |number, _| format!("{number} int_{number:026}");
    let intent: fn(u64, u64) -> String = |number, _| format!("live {number} 5 0 0 0 int_{number:026}");
    let span = format!("from=2020-01-01T00:00:00Z&to={}", "2099-01-01T00:00:00Z");
    let spanned = ["from", "2020-01-01T00:00:00Z", "to", "2099-01-01T00:00:00Z"];
    let of_wallet = format!("/wallets/{}/transactions", tenant.wallet);
    let id = ["id", AGENT];
    let deposit = ["transactions", "type", "deposit"];
    let mut all = vec![
        query(Kind::Agents, "/agents", &["agents"], at_score, 0),
        query(
            Kind::Agents,
            "/agents?q=none",
            &["agents", "q", "none"],
            at_score,
            AGENTS_MAX * 3,
        ),
        query(
            Kind::Agents,
            "/agents?status=frozen",
            &["agents", "status", "frozen"],
            at_score,
            AGENTS_MAX * 3,
        ),
        query(
            Kind::Agents,
            "/wallet",
            &["agent_wallets"],
            at_score,
            WALLETS_MAX * 4,
        ),
        query(
            Kind::VirtualKeys,
            "/agents/bot/virtual-keys",
            &[&["virtualKeys"][..], &id].concat(),
            at_score,
            0,
        ),
        query(Kind::Policies, "/policies", &["policies"], at_score, 0),
        query(
            Kind::Policies,
            "/policies?agentId=bot",
            &["policies", "agentId", "bot"],
            at_score,
            0,
        ),
        query(Kind::Transactions, "/transactions", &["transactions"], number, 0),
        query(
            Kind::Transactions,
            "/transactions?type=deposit",
            &deposit,
            number,
            0,
        ),
        query(
            Kind::Transactions,
            "/transactions?agentId=bot",
            &["transactions", "agentId", "bot"],
            number,
            0,
        ),
        query(
            Kind::Transactions,
            &format!("/transactions?{span}"),
            &[&["transactions"][..], &spanned].concat(),
            number,
            0,
        ),
        query(
            Kind::Transactions,
            &format!("{of_wallet}?type=deposit&{span}"),
            &[
                &["transactions", "id", &tenant.wallet][..],
                &spanned,
                &["type", "deposit"],
            ]
            .concat(),
            number,
            0,
        ),
        query(Kind::Escrows, "/escrow", &["escrows"], escrow, 0),
        query(
            Kind::Escrows,
            "/escrow?status=funded",
            &["escrows", "status", "funded"],
            escrow,
            ESCROWS_LOOKS,
        ),
        query(
            Kind::Deposits,
            "/wallet/deposits",
            &["deposits"],
            number,
            STEPS_LOOKS,
        ),
        query(Kind::Entries, "/audit", &["logs"], number, 0),
        query(
            Kind::Entries,
            "/audit?agentId=bot",
            &["logs", "agentId", "bot"],
            number,
            0,
        ),
        query(
            Kind::Entries,
            "/audit?type=agent.frozen",
            &["logs", "type", "agent.frozen"],
            number,
            0,
        ),
        query(
            Kind::Entries,
            &format!("/audit?agentId=bot&type=agent.frozen&{span}"),
            &[
                &["logs", "agentId", "bot"][..],
                &spanned,
                &["type", "agent.frozen"],
            ]
            .concat(),
            number,
            0,
        ),
        query(Kind::Calls, "/calls", &["calls"], number, CALLS_LOOKS),
        query(
            Kind::Calls,
            "/calls?agentId=bot",
            &["calls", "agentId", "bot"],
            number,
            CALLS_LOOKS,
        ),
        query(
            Kind::Calls,
            "/calls?model=none",
            &["calls", "model", "none"],
            number,
            CALLS_LOOKS,
        ),
        query(
            Kind::Agents,
            "/thresholds",
            &["thresholds"],
            at_score,
            AGENTS_MAX * 14,
        ),
        query(Kind::Intents, "/intents", &["intents"], intent, 0),
        query(
            Kind::Intents,
            "/intents?runId=none",
            &["intents", "runId", "none"],
            intent,
            STEPS_LOOKS,
        ),
        query(
            Kind::Intents,
            "/intents?kind=spend",
            &["intents", "kind", "spend"],
            intent,
            0,
        ),
        query(
            Kind::Intents,
            "/intents?agentId=bot",
            &["intents", "agentId", "bot"],
            intent,
            0,
        ),
        query(
            Kind::Intents,
            "/intents?state=settled",
            &["intents", "state", "settled"],
            intent,
            0,
        ),
        query(
            Kind::Waiting,
            "/intents?state=pending_approval",
            &["intents", "state", "pending_approval"],
            waiting,
            0,
        ),
        query(
            Kind::Waiting,
            "/agents/bot/runs?status=paused",
            &["runs", "id", "bot", "status", "paused"],
            |_, _| "0 r".to_owned(),
            0,
        ),
        query(
            Kind::Runs,
            "/agents/bot/runs",
            &["runs", "id", "bot"],
            at_score,
            0,
        ),
    ];
    for status in ["running", "completed", "failed"] {
        let path = format!("/agents/bot/runs?status={status}");
        let words = ["runs", "id", "bot", "status", status];
        all.push(query(Kind::Runs, &path, &words, at_score, SCANNED_MAX * 4));
        all.push(query(Kind::EndedRuns, &path, &words, at_ended, 0));
    }
    let runs = ["runs", "id", "bot"];
    all.push(query(Kind::EndedRuns, "/agents/bot/runs", &runs, at_ended, 0));
    all
}

/// The work of the cheapest of some requests of `path`.
async fn work(world: &World, watch: &Watch, tenant: &Tenant, path: &str) -> Work {
    let get = async || tenant.caller.get(path).await;
    work_of(world, watch, (&tenant.account.id, path), get).await
}

/// The work of the cheapest of some requests, sent by `get`, on the keys of this account.
pub async fn work_of(
    world: &World,
    watch: &Watch,
    (account, path): (&str, &str),
    get: impl AsyncFn() -> Reply,
) -> Work {
    let mut least: Option<Work> = None;
    for _ in 0..TRIES {
        watch.since_the_last_mark(&world.redis).await;
        let reply = get().await;
        let commands = watch.since_the_last_mark(&world.redis).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        let commands = commands.iter().map(|command| command.words.as_slice());
        let of_account = commands.filter(|words| words.get(1).is_some_and(|key| key.contains(account)));
        let work = Work::new(&world.redis, of_account);
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

async fn no_list_costs_more(kinds: &[Kind]) {
    for kind in kinds {
        // The archiver reads long trails. Its reads are no part of the cost of a list.
        let after = (2 * MANY).to_string();
        let world =
            World::start_with(|options| options.env("TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES", after)).await;
        let (few, many) = (Tenant::new(&world).await, Tenant::new(&world).await);
        let oldest = now_ms() - MANY;
        few.fill(&world, *kind, FEW).await;
        many.fill(&world, *kind, MANY).await;
        // Not before, since MONITOR shows the commands of scripts, too.
        let watch = Watch::start(&world.redis).await;
        let both = queries(&few).into_iter().zip(queries(&many));
        for (with_few, with_many) in both.filter(|(query, _)| query.kind == *kind) {
            let first = &starts(&with_few, &few, FEW, oldest)[0];
            let least = work(&world, &watch, &few, first).await;
            let most = least.records + with_many.looks + SEARCHED;
            for start in starts(&with_many, &many, MANY, oldest) {
                let work = work(&world, &watch, &many, &start).await;
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
        Kind::Agents,
        Kind::VirtualKeys,
        Kind::Policies,
        Kind::Escrows,
        Kind::Runs,
        Kind::EndedRuns,
    ];
    no_list_costs_more(&kinds).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_million_transactions_and_entries() {
    no_list_costs_more(&[Kind::Transactions, Kind::Entries, Kind::Deposits]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_million_calls() {
    no_list_costs_more(&[Kind::Calls]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_million_intents() {
    no_list_costs_more(&[Kind::Intents, Kind::Waiting]).await;
}
