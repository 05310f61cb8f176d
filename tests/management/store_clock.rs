//! A store whose clock is wrong by days. A wire moves the time in replies to `TIME` and `INFO`; scripts keep the right
//! time.

use crate::fixture::{BINARY, problem, success};
use domain::mode::Mode;
use domain::timestamp::ms_from_iso;
use harness::{
    Admin, AdminOptions, Caller, Cli, Redis, Seed, SeedAccount, Wire, eventually, open_cap, text, until,
};
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(40);
const DAY: i64 = 86_400;
/// Longer than two rounds of each worker that destroys something.
const ROUNDS: Duration = Duration::from_secs(22);

/// A server behind a wire, with an account that has spent.
struct ClockFixture {
    redis: Redis,
    wire: Wire,
    admin: Admin,
    account: SeedAccount,
    caller: Caller,
    _archive: tempfile::TempDir,
}

impl ClockFixture {
    async fn start() -> Self {
        let redis = Redis::start();
        let wire = Wire::to_port(redis.port());
        let seed = Seed::new(&redis.store()).await;
        let archive = tempfile::tempdir().unwrap();
        let options = AdminOptions::new(BINARY, wire.redis_url())
            .env("TOLLGATE_AUDIT__ARCHIVE", archive.path().display().to_string())
            .env("TOLLGATE_AUDIT__ARCHIVE_AFTER_DAYS", "40")
            .env("TOLLGATE_AUDIT__ARCHIVE_INTENTS_AFTER_DAYS", "40");
        let admin = Admin::start(options);
        let account = seed.account("enterprise").await;
        let caller = admin.caller(&account.api_key(Mode::Test).await);
        let made = caller.post("/v1/wallets/create", json!({ "botId": "ann" })).await;
        let wallet = success(&made, 200)["wallet"]["walletId"].clone();
        let deposit = json!({ "wallet": wallet, "amount": 50, "reference": "rail" });
        success(&caller.post("/v1/wallet/deposits", deposit).await, 200);
        let policy = json!({ "maxSpendPerTransaction": 500 });
        success(&caller.post("/v1/policies/ann", policy).await, 200);
        let spend = json!({ "agent": "ann", "amount": 1, "description": "one" });
        success(&caller.post("/v1/spend", spend).await, 200);
        Self {
            redis,
            wire,
            admin,
            account,
            caller,
            _archive: archive,
        }
    }

    /// Returns the number of intents and of audit entries in the store.
    fn records(&self) -> [u64; 2] {
        let intents = format!("{}/test/intents", self.account.keys.prefix());
        [intents, self.account.keys.in_mode(Mode::Test).audit()]
            .map(|list| self.redis.command(&["LLEN", &list]))
    }
}

#[tokio::test]
async fn a_store_whose_clock_is_days_off_is_not_trusted_until_it_is_right() {
    let fixture = ClockFixture::start().await;
    for days in [3, -3] {
        fixture.wire.move_clock(days * DAY);
        let refused = async || (fixture.caller.get("/v1/wallet").await.status == 503).then_some(());
        eventually("a refusal", SOON, refused).await;
        problem(
            &fixture.caller.get("/v1/wallet").await,
            503,
            "SERVICE_UNAVAILABLE",
        );
        let body = json!({ "botId": "bob" });
        let refused = fixture.caller.post("/v1/wallets/create", body).await;
        problem(&refused, 503, "SERVICE_UNAVAILABLE");
        let words = if days > 0 { "days ahead of" } else { "days behind" };
        let (status, reason) = fixture.admin.ops("/readyz").unwrap();
        assert!(status == 503 && reason.contains(words), "{status} {reason}");
        assert_eq!(fixture.admin.metric("tollgate_admin_store_sane"), Some(0.0));
        let server = format!("{{server=\"{}\"}}", fixture.wire.addr());
        let metric = format!("tollgate_admin_store_clock_difference_seconds{server}");
        eventually("the metric", SOON, async || {
            let seconds = fixture.admin.metric::<f64>(&metric)?;
            ((seconds - (days * DAY) as f64).abs() < 60.0).then_some(())
        })
        .await;
        let check = Cli::new(BINARY, fixture.wire.redis_url()).run(&["store", "check"]);
        assert_eq!(check.code, Some(1), "{check:?}");
        assert!(check.stderr.contains(words), "{check:?}");

        fixture.wire.move_clock(0);
        until("an answer", async || {
            fixture.caller.get("/v1/wallet").await.status == 200
        })
        .await;
    }
}

/// The clock is ahead by more than the age at which intents and entries are archived.
#[tokio::test]
async fn workers_archive_and_reap_nothing_by_a_clock_that_is_ahead() {
    let fixture = ClockFixture::start().await;
    let (hold, bot) = (Duration::from_secs(3600), fixture.account.agent("bot"));
    let (key_id, _) = bot.ready(open_cap()).await;
    bot.open_hold(&key_id, 1, hold).await;
    let before = fixture.records();
    assert!(before[0] > 0 && before[1] > 0, "{before:?}");
    fixture.wire.move_clock(60 * DAY);
    tokio::time::sleep(ROUNDS).await;
    assert_eq!(fixture.records(), before);
    assert_eq!((bot.open_holds().await, bot.kept_holds().await), (1, 0));
    fixture.wire.move_clock(0);
    eventually("a server that is ready", SOON, async || {
        (fixture.admin.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
    assert_eq!(fixture.records(), before);
}

/// With a clock ahead by less than the accepted difference: a timeline has the store's time, which all servers share,
/// and never runs backwards.
#[tokio::test]
async fn timelines_follow_the_clock_of_the_store() {
    const AHEAD: i64 = 240;
    let fixture = ClockFixture::start().await;
    let policy = json!({ "approvalThreshold": 0 });
    success(&fixture.caller.post("/v1/policies/ann", policy).await, 200);
    let times = async |id: &str| {
        let shown = success(&fixture.caller.get(&format!("/v1/intents/{id}")).await, 200);
        let times = ["/intent/created_at", "/intent/updated_at"];
        times.map(|at| ms_from_iso(text(&shown, at)).unwrap())
    };
    let waiting = async || {
        let spend = json!({ "agent": "ann", "amount": 1, "description": "waits" });
        let waiting = success(&fixture.caller.post("/v1/spend", spend).await, 202);
        text(&waiting, "/intent_id").to_owned()
    };
    fixture.wire.move_clock(AHEAD);
    let id = waiting().await;
    let now = clock::now_ms();
    let [asked, _] = times(&id).await;
    let ahead = AHEAD.unsigned_abs() * 1000;
    assert!(asked.abs_diff(now + ahead) < 60_000, "{asked} {now}");
    fixture.wire.move_clock(0);
    let approve = format!("/v1/intents/{id}/approve");
    success(&fixture.caller.post(&approve, json!({})).await, 200);
    assert_eq!(times(&id).await, [asked, asked], "not before it was asked for");
    let [asked, _] = times(&waiting().await).await;
    assert!(asked.abs_diff(clock::now_ms()) < 60_000, "{asked}");
}
