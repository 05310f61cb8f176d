//! Plans and prices are reloaded on SIGHUP while calls are under way: each call uses one whole table, and a malformed
//! file changes nothing. Both servers report the outcome.

use crate::fixture::{ADMIN, Fixture, body};
use crate::load::Load;
use harness::{Admin, AdminOptions, Daemon, REPOSITORY, until};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The estimates of [`body`] under the two tables: quick calls and slow ones have prompts of the same number of tokens.
const CHEAP: &str = "0.0000609";
const DEAR: &str = "0.000609";
/// Number of changes of the tables.
const CHANGES: usize = 12;

/// The table file of the fixture.
fn table(fixture: &Path, name: &str) -> PathBuf {
    fixture.join(name)
}

/// The repository's prices, with gpt-4o-mini at `factor` times its price.
fn prices(path: &Path, is_dear: bool) {
    let text = std::fs::read_to_string(format!("{REPOSITORY}/config/prices.toml")).expect("the prices");
    let (before, rest) = text.split_once("\n[models.\"gpt-4o-mini\"]").unwrap_or_else(|| {
        text.split_once("\n[models.gpt-4o-mini]")
            .expect("gpt-4o-mini in the prices")
    });
    let (entry, after) = rest.split_once("\n[").unwrap_or((rest, ""));
    let entry = match is_dear {
        true => entry
            .replace("input = \"0.15\"", "input = \"1.5\"")
            .replace("output = \"0.6\"", "output = \"6\"")
            .replace("output = \"0.60\"", "output = \"6\""),
        false => entry.to_owned(),
    };
    let whole = format!("{before}\n[models.\"gpt-4o-mini\"]{entry}\n[{after}");
    // As operators should: a new file takes the place of the old one at once.
    let new = path.with_extension("new");
    std::fs::write(&new, whole).expect("a file");
    std::fs::rename(new, path).expect("a file");
}

/// A metric of a server's table readings.
fn reads(server: &Daemon, binary: &str, table: &str, result: &str) -> u64 {
    let name = format!("tollgate_{binary}_table_reads_total{{result=\"{result}\",table=\"{table}\"}}");
    server.metric(&name).unwrap_or_else(|| panic!("no {name}"))
}

/// Signals the server and waits until both tables were read again.
async fn reload(server: &Daemon, binary: &str) {
    let reloads = || {
        let count = |table| reads(server, binary, table, "ok") + reads(server, binary, table, "failed");
        (count("plans"), count("prices"))
    };
    let before = reloads();
    server.signal("HUP");
    until("both tables read again", async || {
        let now = reloads();
        now.0 > before.0 && now.1 > before.1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_change_under_load_and_each_call_has_one_of_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let (plans_file, prices_file) = (table(dir.path(), "plans.toml"), table(dir.path(), "prices.toml"));
    std::fs::copy(format!("{REPOSITORY}/config/plans.toml"), &plans_file).expect("the plans");
    prices(&prices_file, false);
    let fixture = Fixture::new()
        .await
        .env("PRICES__FILE", prices_file.display())
        .env("PLANS__FILE", plans_file.display());
    let edge = fixture.edge();
    let admin = Admin::start(
        AdminOptions::new(ADMIN, fixture.redis.url())
            .env("TOLLGATE_PRICES__FILE", prices_file.display().to_string())
            .env("TOLLGATE_PLANS__FILE", plans_file.display().to_string()),
    );
    let load = Load::on(&fixture);
    for change in 0..CHANGES {
        prices(&prices_file, change % 2 == 0);
        reload(&edge, "proxy").await;
        load.answers(8).await;
    }
    reload(&admin, "admin").await;
    // The cheap table is in force now. Malformed files change neither prices nor plans.
    let known = std::fs::read(&plans_file).expect("a file");
    std::fs::write(&prices_file, "models = 3").expect("a file");
    std::fs::write(&plans_file, "[builder\n").expect("a file");
    for (server, binary) in [(&*edge, "proxy"), (&*admin, "admin")] {
        reload(server, binary).await;
        for table in ["plans", "prices"] {
            assert_eq!(reads(server, binary, table, "failed"), 1, "{binary} {table}");
        }
        assert!(server.logs().contains("stay"), "{}", server.logs());
    }
    // Reading a pipe waits for somebody who writes.
    std::fs::remove_file(&prices_file).expect("a file");
    let made = Command::new("mkfifo").arg(&prices_file).status();
    assert!(made.expect("mkfifo").success());
    for (server, binary) in [(&*edge, "proxy"), (&*admin, "admin")] {
        reload(server, binary).await;
        assert_eq!(reads(server, binary, "prices", "failed"), 2, "{binary}");
        assert!(
            server.logs().contains("is not a regular file"),
            "{}",
            server.logs()
        );
    }
    load.answers(30).await;
    let reply = edge.caller(&fixture.key).chat(body(false)).await;
    assert_eq!(reply.header("x-service-estimated-usd"), Some(CHEAP));
    // And repaired.
    std::fs::write(&plans_file, known).expect("a file");
    prices(&prices_file, true);
    reload(&edge, "proxy").await;
    let reply = edge.caller(&fixture.key).chat(body(false)).await;
    assert_eq!(reply.header("x-service-estimated-usd"), Some(DEAR));
    let tally = load.end().await;
    let known: Vec<&str> = tally.estimates.keys().map(String::as_str).collect();
    assert_eq!(known, [CHEAP, DEAR], "one of the two tables, and each was seen");
    assert_eq!(fixture.upstream.arrived() as u64, tally.answered + 2);
    until("the end of all holds", async || fixture.open_holds() == 0).await;
    let [day, month, tracked] = fixture.charged();
    assert!(day == month && month == tracked);
    let (low, high) = (crate::fixture::ACTUAL, 10 * crate::fixture::ACTUAL);
    // Each call cost one of the two prices; the estimates show how many calls cost which.
    let cheap = tally.estimates[CHEAP] + 1;
    let dear = tally.estimates[DEAR] + 1;
    assert_eq!(
        day,
        cheap * low + dear * high,
        "settled by the table that estimated"
    );
    assert!(edge.is_running() && admin.is_running());
}
