//! Records that each script reads, of an account with a thousand records of each kind and of one with a million.

use crate::day::Person;
use crate::fill::{ListKind, NO_LIMIT, roomy};
use crate::fixture::Fixture;
use crate::lists::{FEW, MANY};
use crate::watch::{Command, Watch, Work};
use harness::{Answer, Edge, EdgeOptions, Upstream};
use std::collections::{BTreeMap, BTreeSet};
use store::script;

const EDGE: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
/// Records that a script may read in addition where there are many: fields of past days, an audit batch of another
/// size.
const MORE: u64 = 50;
/// Every kind of record.
const KINDS: [ListKind; 12] = [
    ListKind::Entries,
    ListKind::Agents,
    ListKind::VirtualKeys,
    ListKind::Policies,
    ListKind::Transactions,
    ListKind::Escrows,
    ListKind::Intents,
    ListKind::Runs,
    ListKind::EndedRuns,
    ListKind::Holds,
    ListKind::Witnessed,
    ListKind::Violations,
];

/// Scripts whose call does not name the account.
const UNNAMED: [&str; 8] = [
    "account_create",
    "attempts_take",
    "blocked_change",
    "fence",
    "number_draw",
    "refuse",
    "replace_prices",
    "reseal_checkpoint_key",
];
/// Scripts that the day does not run, and what bounds their cost: shared/store/src/script/bounds.rs checks each of
/// them. The day runs all others.
const NOT_RUN: &[(&str, &str)] = &[
    ("forget", "FORGET_BATCH texts that its caller names"),
    (
        "price_table_keep",
        "TABLES_MAX; an edge offers a table when it comes into force, not for a request",
    ),
    (
        "price_table_read",
        "TEXT_BYTES_MAX, for each table that waits, not for a request",
    ),
    (
        "price_tables_offered",
        "TABLES_MAX fields, once in two seconds, not for a request",
    ),
    (
        "refused_commands",
        "no record: it asks for the rights of the store's user, once a second",
    ),
    (
        "virtual_key_forget",
        "FORGOTTEN_AT_ONCE keys that its caller names",
    ),
];

/// Names of the scripts that the day runs.
fn run() -> BTreeSet<&'static str> {
    let all = script::all::all();
    let mut names: BTreeSet<&str> = all.iter().map(|script| script.name()).collect();
    for (name, _) in NOT_RUN {
        assert!(names.remove(name), "{name} is no script any more");
    }
    for name in UNNAMED {
        assert!(names.contains(name), "{name} is not run");
    }
    names
}

#[test]
fn the_lists_name_scripts_and_no_two_scripts_have_one_name() {
    assert_eq!(run().len() + NOT_RUN.len(), script::all::all().len());
}

/// The most expensive run of each script, by its name: `MONITOR` shows a script's commands after its call.
fn by_script(
    fixture: &Fixture,
    names: &BTreeMap<String, &'static str>,
    commands: &[Command],
    account: &str,
) -> BTreeMap<&'static str, Work> {
    let mut all: BTreeMap<&'static str, Work> = BTreeMap::new();
    let mut rest = commands;
    while let Some((call, behind)) = rest.split_first() {
        let count = behind.iter().take_while(|command| command.by_script).count();
        let (ran, others) = behind.split_at(count);
        rest = others;
        let is_call = call.words[0].eq_ignore_ascii_case("EVALSHA");
        let name = call
            .words
            .get(1)
            .filter(|_| is_call)
            .and_then(|hash| names.get(hash));
        let is_named = || call.words.iter().any(|word| word.contains(account));
        let Some(name) = name.filter(|name| UNNAMED.contains(name) || is_named()) else {
            continue;
        };
        let work = Work::new(&fixture.redis, ran.iter().map(|command| command.words.as_slice()));
        let most = all.entry(name).or_default();
        if work.records > most.records {
            *most = work;
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn no_script_reads_more_where_there_are_a_million() {
    let fixture = Fixture::start_with(roomy).await;
    let upstream = Upstream::start(|_| Answer::chat(9, 12));
    let options = EdgeOptions::new(EDGE, fixture.redis.url(), upstream.base_url())
        .env("TOLLGATE_LIMITS__RUNS", NO_LIMIT);
    let edge = Edge::start(options);
    let names: BTreeMap<String, &'static str> = script::all::all()
        .into_iter()
        .map(|script| {
            (
                fixture.redis.command(&["SCRIPT", "LOAD", script.source()]),
                script.name(),
            )
        })
        .collect();
    let mut both = Vec::new();
    for count in [FEW, MANY] {
        let person = Person::new(&fixture, &edge).await;
        for kind in KINDS {
            person.tenant.fill(&fixture, kind, count).await;
        }
        let watch = Watch::start(&fixture.redis).await;
        for round in 0..2 {
            person.live(&fixture, round).await;
        }
        person.archive(&fixture).await;
        person.rare(&fixture).await;
        let commands = watch.since_the_last_mark(&fixture.redis).await;
        both.push(by_script(&fixture, &names, &commands, &person.tenant.account.id));
    }
    let [few, many] = both.as_slice() else {
        panic!("two accounts");
    };
    let missing: Vec<&str> = run()
        .into_iter()
        .filter(|name| !many.contains_key(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?} were not run");
    for (name, many) in many {
        let few = few.get(name).cloned().unwrap_or_default();
        assert!(
            many.records <= few.records + MORE,
            "{name} reads {} of few and {} of many:\n{:?}\n{:?}",
            few.records,
            many.records,
            few.by_name,
            many.by_name
        );
    }
}
