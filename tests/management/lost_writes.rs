//! An account that lost an acknowledged change, on a single server: for example, a standby without the change took
//! over. The guard finds the account, and every server refuses it until the operator accepts it (decision D47).

use crate::fixture::{BINARY, FULL, Fixture, problem, success};
use domain::id::IdKind;
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Caller, Cli, SeedAccount, assert_fields, until};
use serde_json::json;
use store::account::refused;
use store::keys::{ACCOUNTS, AccountKeys};

/// Accounts that the guard checks in one round (`admin/workers/src/guard/lost.rs`).
const IN_A_ROUND: usize = 5000;

/// Makes a change through the API and reverts it in the store.
async fn lose_change(fixture: &Fixture, account: &SeedAccount, caller: &Caller) {
    let before = account.version().await;
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    set_version(fixture, account, before);
}

fn set_version(fixture: &Fixture, account: &SeedAccount, version: u64) {
    let (record, version) = (account.keys.record(), version.to_string());
    let _: u64 = fixture.redis.command(&["HSET", &record, "version", &version]);
}

/// Waits until the guard's list names exactly these accounts as those with lost writes.
async fn named(fixture: &Fixture, accounts: &[&SeedAccount]) {
    until("the guard's list", async || {
        let list = refused::read(&fixture.store).await.unwrap().lost;
        let expected = accounts.iter().map(|account| (account.id.clone(), 1));
        list == expected.collect()
    })
    .await;
}

#[tokio::test]
async fn an_account_that_lost_a_change_is_held_until_it_is_accepted() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let (called, other) = fixture.account("builder").await;
    lose_change(&fixture, &account, &caller).await;
    // The lost changes may be calls, which any failover can lose.
    success(&other.get("/v1/agents").await, 200);
    let full = called.version().await;
    set_version(&fixture, &called, full - 1);

    named(&fixture, &[&account]).await;
    assert_eq!(fixture.admin.metric("tollgate_admin_lost_accounts"), Some(1));
    problem(&caller.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    // A later change does not end the refusal, and a server without an earlier request of the account refuses it, too.
    let later = account.version().await + (1 << 30);
    set_version(&fixture, &account, later);
    problem(&caller.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    let young = Admin::start(AdminOptions::new(BINARY, fixture.redis.url()));
    let key = account.issue(Mode::Live, FULL, &[], None);
    let stranger = young.caller(&key.await.secret);
    until("a server with the guard's list", async || {
        stranger.get("/v1/agents").await.status == 503
    })
    .await;

    let cli = Cli::new(BINARY, fixture.redis.url());
    assert_fields!(cli.json(&["store", "accept", "--account", &account.id]), { "accepted": 1 });
    success(&caller.get("/v1/agents").await, 200);
    success(&stranger.get("/v1/agents").await, 200);
    named(&fixture, &[]).await;
}

/// No rate of the account is counted for such requests, so nothing else bounds their lines.
#[tokio::test]
async fn a_crowd_of_an_account_that_lost_a_change_does_not_fill_the_log() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    lose_change(&fixture, &account, &caller).await;
    let began = std::time::Instant::now();
    for _ in 0..200 {
        problem(&caller.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    }
    let logs = fixture.admin.logs();
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap();
    let lines = logs
        .lines()
        .filter(|line| line.contains("lost writes of this account; see"));
    let lines = lines.count();
    assert!(lines > 0 && lines <= seconds + 1, "{lines} in {seconds} s");
}

/// The freeze of the command line, which no server made or saw in a request.
#[tokio::test]
async fn a_lost_change_of_the_command_line_is_found() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    let before = account.version().await;
    let cli = Cli::new(BINARY, fixture.redis.url());
    let freeze = ["agent", "freeze", "--account", &account.id, "--agent", "bot"];
    cli.json(&freeze);
    for round in [
        "the round that was under way",
        "a round that began behind the freeze",
    ] {
        let last = guarded(&fixture);
        until(round, async || guarded(&fixture) != last).await;
    }
    set_version(&fixture, &account, before);
    named(&fixture, &[&account]).await;
    problem(&caller.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
}

/// End of the guard's last round, in seconds since 1970.
fn guarded(fixture: &Fixture) -> Option<f64> {
    fixture
        .admin
        .metric("tollgate_admin_worker_last_round_timestamp_seconds{worker=\"guard\"}")
}

/// One account more than the guard checks in one round: the last one is checked in the next.
#[tokio::test]
async fn of_more_accounts_than_in_a_round_each_has_its_turn() {
    let fixture = Fixture::start().await;
    let mut others = redis::pipe();
    for n in 0..IN_A_ROUND {
        let id = format!("{}0000{n:022}", IdKind::Account.prefix());
        let record = AccountKeys::new(&id).record();
        others
            .cmd("HSET")
            .arg(record)
            .arg(&["generation", "1", "version", "1", "plan", "free"]);
        others.cmd("SADD").arg(ACCOUNTS).arg(id);
    }
    let _: Vec<u64> = fixture.store.pipeline(&others).await.unwrap();
    let (account, caller) = fixture.account("builder").await;
    lose_change(&fixture, &account, &caller).await;
    named(&fixture, &[&account]).await;
}
