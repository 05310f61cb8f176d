//! Statistics agree with the audit trail, to the nano and to the last refusal, under racing and killed sealers. They
//! are recomputed here from the export, as any reader can do.

use crate::audit_writer::AuditWriter;
use crate::fixture::{BINARY, Fixture, success};
use crate::record_fixture::RecordFixture;
use domain::mode::Mode;
use domain::period::{DAY_MS, Period};
use harness::{Admin, AdminOptions, Redis, Seed, SeedAccount, Store, until};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use store::audit::chain::Chain;
use store::audit::statistics::{AGENTS_MAX, DAYS_KEPT, Day};

/// Days before today that the calls of a test were approved on.
const DAYS: u64 = 3;
const REASONS: [&str; 3] = ["daily_limit", "frozen", "rate_limited"];

/// An entry that a test writes into the trail.
#[derive(Debug, Clone)]
enum Line {
    /// Agent, days ago, cost.
    Settled(u8, u64, u64),
    /// Agent, days ago, estimate, and the end: `corrected`, `estimated` or `voided`, with the cost.
    Kept(u8, u64, u64, Option<(&'static str, u64)>),
    /// Agent, days ago, estimate: the provider reported no usage.
    Estimated(u8, u64, u64),
    /// The approval's answer was lost.
    Voided(u8, u64),
    Denied(usize),
    /// The record of a rate window, with its number of denials.
    Window(u64),
    Spend(u8, u64),
    Blocked,
    Pending(u8, u64),
    Other,
}

fn line() -> impl Strategy<Value = Line> {
    let (agent, day) = (0_u8..4, 0..DAYS);
    // Amounts around the precision of doubles, too.
    let amount = prop_oneof![0_u64..2_000, Just((1 << 53) - 1), Just((1 << 53) + 1)];
    let later = prop_oneof![
        Just(None),
        (0_u64..3_000).prop_map(|cost| Some(("corrected", cost))),
        Just(Some(("estimated", 0))),
        Just(Some(("voided", 0))),
    ];
    prop_oneof![
        (agent.clone(), day.clone(), amount.clone()).prop_map(|(a, d, n)| Line::Settled(a, d, n)),
        (agent.clone(), day.clone(), amount.clone(), later).prop_map(|(a, d, n, l)| Line::Kept(a, d, n, l)),
        (agent.clone(), day.clone(), amount.clone()).prop_map(|(a, d, n)| Line::Estimated(a, d, n)),
        (agent.clone(), day).prop_map(|(a, d)| Line::Voided(a, d)),
        (0..REASONS.len()).prop_map(Line::Denied),
        (1_u64..3_000).prop_map(Line::Window),
        (agent.clone(), 1_u64..5_000).prop_map(|(a, n)| Line::Spend(a, n)),
        Just(Line::Blocked),
        (agent, 1_u64..5_000).prop_map(|(a, n)| Line::Pending(a, n)),
        Just(Line::Other),
    ]
}

/// The lines as scripts write them; the end of a kept hold comes somewhere later.
fn written(lines: &[Line], today: u64) -> Vec<(u64, String)> {
    let mut all: Vec<String> = Vec::new();
    let mut later: Vec<String> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let id = format!("allow_01KAH3V9J8{at:016}");
        let ended = |outcome: &str, cost: u64, agent: u8, ago: u64, estimate: u64| {
            let day = today - ago;
            let month = Period::at(day * DAY_MS).month;
            format!(
                "A {outcome} {cost} {id} H {estimate} {day} {month} 0 ,,,,,, acct_x bot-{agent} - vk_1 p1 gpt-4o"
            )
        };
        let spend = |agent: u8, nanos: u64, words: &str| {
            format!(
                r#"{{"type":"spend.requested","agentId":"bot-{agent}","actor":"key_1","data":{{"amountNanos":"{nanos}"}}}} {words}"#
            )
        };
        all.push(match line {
            Line::Settled(agent, ago, cost) => ended("settled", *cost, *agent, *ago, 77),
            Line::Estimated(agent, ago, nanos) => ended("estimated", *nanos, *agent, *ago, *nanos),
            Line::Voided(agent, ago) => ended("voided", 0, *agent, *ago, 99),
            Line::Kept(agent, ago, nanos, then) => {
                if let Some((outcome, cost)) = then {
                    let cost = if *outcome == "estimated" { *nanos } else { *cost };
                    later.push(ended(outcome, cost, *agent, *ago, *nanos));
                }
                ended("kept", *nanos, *agent, *ago, *nanos)
            }
            Line::Denied(reason) => {
                format!(
                    "D {} {id} 75 ,,,,,, acct_x bot-1 - vk_1 p1 gpt-4o",
                    REASONS[*reason]
                )
            }
            Line::Window(count) => format!(
                r#"{{"type":"decisions.denied","agentId":"bot-1","actor":"vk_1","data":{{"reason":"rate_limited","outcome":"denied","count":{count}}}}}"#
            ),
            Line::Spend(agent, nanos) => spend(*agent, *nanos, "outcome=settled"),
            Line::Blocked => spend(1, 5, "outcome=blocked reason=insufficient_balance intentId=int_1"),
            Line::Pending(agent, nanos) => spend(*agent, *nanos, "outcome=pending_approval"),
            Line::Other => r#"{"type":"agent.updated","agentId":"bot-1","actor":"k","data":{}}"#.to_owned(),
        });
        // Some ends are in the same batch as their hold, some in a later one.
        if at % 3 == 0 {
            all.append(&mut later);
        }
    }
    all.append(&mut later);
    let now = today * DAY_MS + 5;
    all.into_iter().map(|line| (now, line)).collect()
}

/// Expected statistics of a day.
#[derive(Debug, Default, PartialEq, Eq)]
struct Model {
    calls: i64,
    spent: i128,
    refused: BTreeMap<String, u64>,
    agents: BTreeMap<String, i128>,
}

/// Adds up an export, entry by entry, by the rules of the documentation.
fn recomputed(export: &[Value]) -> BTreeMap<u64, Model> {
    let mut days: BTreeMap<u64, Model> = BTreeMap::new();
    let mut kept: HashSet<&str> = HashSet::new();
    for entry in export {
        let data = &entry["data"];
        let text = |name: &str| data[name].as_str().unwrap_or_default();
        let nanos = |name: &str| -> i128 { text(name).parse().unwrap() };
        let at = domain::timestamp::ms_from_iso(entry["at"].as_str().unwrap()).unwrap() / DAY_MS;
        let mut refuse = |reason: &str, count: u64| {
            *days
                .entry(at)
                .or_default()
                .refused
                .entry(reason.to_owned())
                .or_default() += count;
        };
        let (day, calls, spent) = match (entry["type"].as_str().unwrap(), text("outcome")) {
            ("decision.denied", _) | ("spend.requested", "blocked") => {
                refuse(text("reason"), 1);
                continue;
            }
            ("decisions.denied", _) => {
                refuse(text("reason"), data["count"].as_u64().unwrap());
                continue;
            }
            ("spend.requested", "settled") => (at, 0, nanos("amountNanos")),
            ("decision.approved" | "decision.voided", outcome) => {
                let id = entry["id"].as_str().unwrap();
                let (charged, estimate) = (nanos("chargedNanos"), nanos("estimateNanos"));
                let was_kept = kept.remove(id);
                let (calls, spent) = match (outcome, was_kept) {
                    ("kept", _) => {
                        kept.insert(id);
                        (1, charged)
                    }
                    ("voided", true) => (-1, -estimate),
                    (_, true) => (0, charged - estimate),
                    ("voided" | "corrected", false) => (0, 0),
                    (_, false) => (1, charged),
                };
                (data["day"].as_u64().unwrap(), calls, spent)
            }
            _ => continue,
        };
        let model = days.entry(day).or_default();
        model.calls += calls;
        model.spent += spent;
        let agent = entry["agentId"].as_str().unwrap().to_owned();
        *model.agents.entry(agent).or_default() += spent;
    }
    days
}

async fn stored(store: &Store, account: &SeedAccount, mode: Mode, today: u64) -> Vec<Day> {
    Day::read(store, &account.keys.in_mode(mode), today - DAYS, today)
        .await
        .unwrap()
}

/// Compares the stored statistics with the model.
fn compare(days: &[Day], model: &BTreeMap<u64, Model>) {
    let nothing = Model::default();
    for day in days {
        let expected = model.get(&day.number).unwrap_or(&nothing);
        assert_eq!(
            i64::try_from(day.calls).unwrap(),
            expected.calls,
            "calls of {}",
            day.number
        );
        assert_eq!(
            i128::from(day.spent.get()),
            expected.spent,
            "spent on {}",
            day.number
        );
        assert_eq!(day.refused, expected.refused, "refusals of {}", day.number);
        let agents: BTreeMap<String, i128> = day
            .agents
            .iter()
            .map(|(agent, nanos)| (agent.clone(), i128::from(nanos.get())))
            .collect();
        assert_eq!(agents, expected.agents, "agents of {}", day.number);
    }
    let shown: HashSet<u64> = days.iter().map(|day| day.number).collect();
    assert!(model.keys().all(|day| shown.contains(day)), "no day is left out");
}

/// The trail as `audit export` writes it.
async fn export(store: &Store, account: &SeedAccount, mode: Mode) -> Vec<Value> {
    let archive = tempfile::tempdir().unwrap();
    let mut settings = settings::load_from(None, std::iter::empty()).unwrap();
    settings.audit.archive = archive.path().display().to_string();
    let archive = archive::Archive::from_settings(&settings.audit).unwrap();
    let trail = history::trail::Trail::new(store, &archive, account.keys.in_mode(mode));
    let end = trail.seal().await.unwrap().seq;
    let mut entries = Vec::new();
    while (entries.len() as u64) < end {
        let read = trail.read(entries.len() as u64 + 1).await.unwrap();
        entries.extend(
            read.iter()
                .map(|sealed| serde_json::from_str::<Value>(&sealed.json).unwrap()),
        );
    }
    entries
}

#[test]
fn statistics_equal_the_export_whichever_server_seals() {
    let redis = Redis::start();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let store = runtime.block_on(async { redis.store() });
    let seed = runtime.block_on(Seed::new(&store));
    let today = Period::at(clock::now_ms()).day;
    let lines = proptest::collection::vec(line(), 1..80);
    let config = ProptestConfig::with_cases(60);
    proptest!(config, |(lines in lines, pieces in 1_usize..6)| {
        runtime.block_on(async {
            let account = seed.account("builder").await;
            let writer = AuditWriter::new(&store, &account, Mode::Live);
            let lines = written(&lines, today);
            for piece in lines.chunks(lines.len().div_ceil(pieces)) {
                writer.write(piece).await;
                // Two requests race; one may come too late.
                let chain = Chain::new(&store, account.keys.live());
                let (one, other) = tokio::join!(chain.seal(), chain.seal());
                one.unwrap();
                other.unwrap();
            }
            let model = recomputed(&export(&store, &account, Mode::Live).await);
            compare(&stored(&store, &account, Mode::Live, today).await, &model);
        });
    });
}

#[tokio::test]
async fn servers_that_race_and_are_killed_add_each_entry_once() {
    let redis = Redis::start();
    let store = redis.store();
    let account = Seed::new(&store).await.account("builder").await;
    let today = Period::at(clock::now_ms()).day;
    let mut lines = Vec::new();
    for n in 0..6000_u64 {
        let (agent, ago) = ((n % 4) as u8, n % DAYS);
        lines.push(match n % 7 {
            0 => Line::Denied((n % 3) as usize),
            1 => Line::Kept(agent, ago, n, Some(("corrected", n / 2))),
            2 => Line::Kept(agent, ago, n, Some(("estimated", 0))),
            3 => Line::Spend(agent, n + 1),
            4 => Line::Estimated(agent, ago, n),
            _ => Line::Settled(agent, ago, n),
        });
    }
    let lines = written(&lines, today);
    let writer = AuditWriter::new(&store, &account, Mode::Live);
    let start =
        || Admin::start(AdminOptions::new(BINARY, redis.url()).env("TOLLGATE_AUDIT__SEAL_EVERY_MS", "1"));
    let mut unfinished = 0;
    for part in lines.chunks(lines.len().div_ceil(4)) {
        let before = writer.hashes().await.len();
        let (victim, other) = (start(), start());
        writer.write(part).await;
        until("the servers seal some", async || {
            writer.hashes().await.len() > before
        })
        .await;
        victim.kill9();
        other.kill9();
        unfinished += usize::from(writer.hashes().await.len() < writer.lines().await.len());
    }
    assert!(unfinished > 0, "all was sealed whenever they were killed");
    let model = recomputed(&export(&store, &account, Mode::Live).await);
    compare(&stored(&store, &account, Mode::Live, today).await, &model);
    let kept: u64 = redis.command(&["ZCARD", &account.keys.live().audit_kept()]);
    assert_eq!(kept, 0, "all kept holds were resolved");
}

#[tokio::test]
async fn the_statistics_match_the_calls() {
    let fixture = RecordFixture::start().await;
    let client = fixture
        .client("builder", json!({ "maxSpendPerDay": "0.00063" }))
        .await;
    let mut denied = 0;
    for _ in 0..4 {
        denied += u64::from(client.call(None).await.0.status == 402);
    }
    assert!((1..4).contains(&denied), "{denied}");
    let export = client.api.get("/v1/audit/export").await.text();
    let export: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let store = &fixture.management.store;
    let today = fixture.management.redis.period().day;
    let model = recomputed(&export);
    compare(&stored(store, &client.account, Mode::Live, today).await, &model);
    let day = &model[&today];
    assert_eq!(day.spent, i128::from(client.agent.counters().await.day_nanos));
    assert_eq!(day.refused["daily_limit"], denied);
    assert!(
        stored(store, &client.account, Mode::Test, today)
            .await
            .iter()
            .all(|day| day.calls == 0)
    );
}

#[tokio::test]
async fn a_day_names_so_many_agents_and_ends_to_be_kept() {
    let redis = Redis::start();
    let store = redis.store();
    let account = Seed::new(&store).await.account("enterprise").await;
    let today = Period::at(clock::now_ms()).day;
    let writer = AuditWriter::new(&store, &account, Mode::Test);
    let count = AGENTS_MAX as u64 + 250;
    let spend = |n: u64| {
        let line = format!(
            r#"{{"type":"spend.requested","agentId":"bot-{n}","actor":"k","data":{{"amountNanos":"{}"}}}} outcome=settled"#,
            n + 1
        );
        (today * DAY_MS, line)
    };
    let lines: Vec<(u64, String)> = (0..count).chain(0..count).map(spend).collect();
    writer.write(&lines).await;
    Chain::new(&store, account.keys.in_mode(Mode::Test))
        .seal()
        .await
        .unwrap();
    let days = stored(&store, &account, Mode::Test, today).await;
    let day = days.last().unwrap();
    assert_eq!(day.agents.len(), AGENTS_MAX, "those that came first");
    let named: HashMap<String, u64> = (0..AGENTS_MAX as u64)
        .map(|n| (format!("bot-{n}"), 2 * (n + 1)))
        .collect();
    let found: HashMap<String, u64> = day.agents.iter().map(|(a, n)| (a.clone(), n.get())).collect();
    assert_eq!(found, named);
    let others: u64 = (AGENTS_MAX as u64..count).map(|n| 2 * (n + 1)).sum();
    assert_eq!(day.others.get(), others);
    let key = account.keys.in_mode(Mode::Test).audit_day(today);
    let ends: u64 = redis.command(&["EXPIRETIME", &key]);
    assert_eq!(ends, (today + 1 + DAYS_KEPT) * 86_400);
    let bytes: u64 = redis.command(&["MEMORY", "USAGE", &key]);
    assert!(bytes < 200 * AGENTS_MAX as u64, "{bytes} bytes");
}

#[tokio::test]
async fn a_sum_that_passes_what_the_store_can_count_stops_no_trail() {
    let management = Fixture::start().await;
    let account = management.seed.account("enterprise").await;
    let tester = management.caller(&account, Mode::Test).await;
    let writer = AuditWriter::new(&management.store, &account, Mode::Test);
    let today = Period::at(clock::now_ms()).day;
    // Money of test mode is free, so that anyone can spend 9,000,000 USD a thousand times.
    let line = r#"{"type":"spend.requested","agentId":"bot","actor":"k","data":{"amountNanos":"9000000000000000"}} outcome=settled"#;
    let lines: Vec<(u64, String)> = (0..2200).map(|_| (today * DAY_MS, line.to_owned())).collect();
    writer.write(&lines).await;
    let view = success(&tester.get("/v1/overview?days=1").await, 200);
    assert_eq!(view["partial"], json!(false), "all of it is sealed");
    let usd = view["days"][0]["totalUsd"].as_f64().unwrap();
    assert!((4e9..=9e9).contains(&usd), "{usd}");
}
