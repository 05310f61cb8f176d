//! Dry runs, compared with decisions: over random states, most of them at the edge of a limit, a prediction and the
//! call or spend after it agree, and the prediction changes nothing.

use crate::fixture::success;
use crate::record_fixture::{Client, RecordFixture};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use serde_json::{Value, json};
use std::time::Duration;

const CASES: u32 = 150;
/// Maximum attempts at a prediction, since a worker may change the account during one.
const TRIES: usize = 5;
/// Pause between attempts: the sealer is done with the account by then.
const PAUSE: Duration = Duration::from_millis(300);
/// Greatest spent amount, below every limit of a plan.
const SPENT_MAX: u64 = 5_000_000_000;

/// A limit, relative to the spent and the requested amount.
#[derive(Debug, Clone, Copy)]
enum Limit {
    None,
    Zero,
    /// The call just fits.
    Exact,
    /// One nano less.
    Short,
    Wide,
}

#[derive(Debug, Clone)]
struct Preconditions {
    plan: &'static str,
    frozen: bool,
    /// Whether the agent's own policy is enabled. `None`: it has none, so that the account-wide one holds.
    own_policy: Option<bool>,
    account_policy: Option<bool>,
    limits: [Limit; 4],
    spent: [u64; 4],
    run_named: bool,
    has_slot: bool,
    slots: u64,
    /// The account's distance to the plan's limit of tracked USD; `None` for no tracked USD.
    tracked: Option<Limit>,
}

#[derive(Debug, Clone)]
struct Key {
    has_provider_key: bool,
    older: u64,
    requests: u64,
}

#[derive(Debug, Clone)]
struct Wallet {
    row: bool,
    balance: Limit,
    spend_limit: Limit,
    day_spent: u64,
    approval: Limit,
    transaction: Limit,
}

impl Limit {
    fn remaining(self, spent: u64, more: u64) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Zero => Some(0),
            Self::Exact => Some(spent + more),
            Self::Short => Some(spent + more - 1),
            Self::Wide => Some(spent + more + SPENT_MAX),
        }
    }

    fn text(self, spent: u64, more: u64) -> String {
        self.remaining(spent, more)
            .map(|limit| limit.to_string())
            .unwrap_or_default()
    }
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        6 => Just(Limit::None), 1 => Just(Limit::Zero), 6 => Just(Limit::Exact), 2 => Just(Limit::Short), 4 => Just(Limit::Wide),
    ]
}

/// The rest of the plan's tracked USD.
fn room() -> impl Strategy<Value = Limit> {
    prop_oneof![2 => Just(Limit::Exact), 2 => Just(Limit::Short), 1 => Just(Limit::Wide)]
}

fn spent() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..SPENT_MAX]
}

fn preconditions() -> impl Strategy<Value = Preconditions> {
    let enabled = || prop_oneof![12 => Just(Some(true)), 1 => Just(Some(false)), 4 => Just(None)];
    let plan = prop::sample::select(&["free", "builder", "startup", "enterprise"][..]);
    let first = (plan, prop::bool::weighted(0.06), enabled(), enabled());
    let second = (
        [limit(), limit(), limit(), limit()],
        [spent(), spent(), spent(), spent()],
    );
    let third = (
        any::<bool>(),
        any::<bool>(),
        0_u64..12,
        prop::option::weighted(0.6, room()),
    );
    (first, second, third).prop_map(|(first, second, third)| Preconditions {
        plan: first.0,
        frozen: first.1,
        own_policy: first.2,
        account_policy: first.3,
        limits: second.0,
        spent: second.1,
        run_named: third.0,
        has_slot: third.1,
        slots: third.2,
        tracked: third.3,
    })
}

fn key() -> impl Strategy<Value = Key> {
    let older = prop_oneof![6 => Just(0_u64), 1 => Just(1), 1 => Just(9), 1 => Just(10)];
    let requests = prop_oneof![6 => Just(0_u64), 1 => Just(9), 1 => Just(10), 1 => Just(119), 1 => Just(120)];
    (prop::bool::weighted(0.9), older, requests).prop_map(|(has_provider_key, older, requests)| Key {
        has_provider_key,
        older,
        requests,
    })
}

fn wallet() -> impl Strategy<Value = Wallet> {
    let limits = (limit(), limit(), limit(), limit());
    (any::<bool>(), limits, spent()).prop_map(|(row, limits, day_spent)| Wallet {
        row,
        balance: limits.0,
        spend_limit: limits.1,
        approval: limits.2,
        transaction: limits.3,
        day_spent,
    })
}

/// The tracked USD of the plans, in nanos.
fn tracked_limit(plan: &str) -> Option<u64> {
    let usd = match plan {
        "free" => 50,
        "builder" => 500,
        "startup" => 5000,
        _ => return None,
    };
    Some(usd * 1_000_000_000)
}

impl Preconditions {
    /// Writes agent, run and account for a call or spend that charges `more`.
    async fn arrange(&self, fixture: &RecordFixture, client: &Client, more: u64) {
        let (keys, period) = (&client.account.keys, fixture.management.redis.period());
        client.account.set_plan(self.plan).await;
        let names = ["cap_run", "cap_day", "cap_month"];
        let mut agent = vec![
            (format!("d{}", period.day), self.spent[1].to_string()),
            (format!("m{}", period.month), self.spent[2].to_string()),
        ];
        if self.frozen {
            agent.push(("frozen".to_owned(), "user".to_owned()));
        }
        if self.has_slot {
            agent.push((format!("s{}", period.month), "1".to_owned()));
        }
        if let Some(enabled) = self.own_policy {
            agent.push(("cap".to_owned(), u8::from(enabled).to_string()));
            let limits = names.iter().zip(self.limits).zip(self.spent);
            agent.extend(limits.map(|((name, limit), spent)| ((*name).to_owned(), limit.text(spent, more))));
        }
        let mut account = vec![(
            format!("n{}", period.month),
            self.slots.max(self.has_slot.into()).to_string(),
        )];
        if let Some(enabled) = self.account_policy {
            account.push(("live_cap".to_owned(), u8::from(enabled).to_string()));
            account.push(("live_day".to_owned(), self.limits[3].text(self.spent[1], more)));
        }
        let tracked = match (
            self.tracked.and_then(|room| room.remaining(0, more)),
            tracked_limit(self.plan),
        ) {
            (Some(room), Some(limit)) => limit.saturating_sub(room),
            _ => self.spent[3],
        };
        account.push((format!("t{}", period.month), tracked.to_string()));
        fixture.set(&keys.live().agent("bot"), &agent);
        fixture.set(&keys.record(), &account);
        let run = [
            ("spent", self.spent[0].to_string()),
            ("calls", "1".to_owned()),
            ("first", "1".to_owned()),
        ];
        fixture.set(
            &keys.live().run("bot", "r"),
            &run.map(|(name, value)| (name.to_owned(), value)),
        );
    }
}

/// An agent without a policy of its own.
async fn client(fixture: &RecordFixture) -> Client {
    let client = fixture.client("free", json!({})).await;
    client.agent.no_cap().await;
    client
}

impl Key {
    fn arrange(&self, fixture: &RecordFixture, client: &Client) {
        let keys = &client.account.keys;
        let redis = &fixture.management.redis;
        for number in 0..self.older {
            let (place, id) = (format!("-{}", number + 1), format!("vk_older{number}"));
            let _: u64 = redis.command(&["ZADD", &keys.active_keys(), &place, &id]);
        }
        if self.requests > 0 {
            let requests = self.requests.to_string();
            let _: String = redis.command(&["SET", &keys.rate(&client.key_id), &requests, "PX", "60000"]);
        }
        if !self.has_provider_key {
            let agent = keys.live().agent("bot");
            let _: u64 = redis.command(&["HDEL", &agent, "pk_sealed:openai"]);
        }
    }
}

/// Makes a prediction during which the account does not change. The sealer can come in between, but not every time.
async fn predicted(fixture: &RecordFixture, client: &Client, body: Value) -> Result<Value, TestCaseError> {
    for _ in 0..TRIES {
        let account = format!("*{}*", client.account.id);
        let before = fixture.dump(&account);
        let reply = client.dry_run(body.clone()).await;
        let after = fixture.dump(&account);
        prop_assert_eq!(reply.status, 200, "{}", reply.text());
        if after == before {
            return Ok(success(&reply, 200));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(TestCaseError::fail("a prediction changes something"))
}

async fn call_agrees(
    fixture: &RecordFixture,
    preconditions: &Preconditions,
    key: &Key,
) -> Result<(), TestCaseError> {
    let client = client(fixture).await;
    let run = preconditions.run_named.then_some("r");
    let estimate = client.dry_run(client.call_body(run)).await;
    let estimate = success(&estimate, 200)["estimateNanos"].as_str().unwrap().parse();
    preconditions.arrange(fixture, &client, estimate.unwrap()).await;
    key.arrange(fixture, &client);
    let reported = predicted(fixture, &client, client.call_body(run)).await?;
    let (reply, _) = client.call(run).await;
    let really = (
        reply.header("x-service-decision") == Some("approved"),
        reply.header("x-service-reason").map(str::to_owned),
        reply.header("x-service-estimated-usd").map(str::to_owned),
    );
    let reported = (
        reported["wouldApprove"] == json!(true),
        reported["reason"].as_str().map(str::to_owned),
        Some(plain(&reported)),
    );
    prop_assert_eq!(really, reported, "{:?}", reply);
    Ok(())
}

/// The estimate as the edge's header writes it.
fn plain(reported: &Value) -> String {
    let nanos: u64 = reported["estimateNanos"].as_str().unwrap().parse().unwrap();
    harness::Nanos::new(nanos).unwrap().to_string()
}

async fn spend_agrees(
    fixture: &RecordFixture,
    preconditions: &Preconditions,
    wallet: &Wallet,
) -> Result<(), TestCaseError> {
    const AMOUNT: u64 = 1_234_567_891;
    let client = client(fixture).await;
    if wallet.row {
        let body = json!({ "botId": "bot", "name": "Bot" });
        success(&client.api.post("/v1/wallets/create", body).await, 200);
    }
    preconditions.arrange(fixture, &client, AMOUNT).await;
    let mut fields = Vec::new();
    if preconditions.own_policy.is_some() {
        fields.push(("cap_txn", wallet.transaction.text(0, AMOUNT)));
        fields.push(("cap_approval", wallet.approval.text(0, AMOUNT)));
    }
    if wallet.row {
        fields.push((
            "balance",
            wallet
                .balance
                .remaining(0, AMOUNT)
                .unwrap_or(SPENT_MAX)
                .to_string(),
        ));
        fields.push((
            "spend_limit",
            wallet
                .spend_limit
                .remaining(wallet.day_spent, AMOUNT)
                .unwrap_or(2 * SPENT_MAX)
                .to_string(),
        ));
    }
    let mut fields: Vec<(String, String)> = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    fields.push((
        format!("w{}", fixture.management.redis.period().day),
        wallet.day_spent.to_string(),
    ));
    fixture.set(&client.account.keys.live().agent("bot"), &fields);
    let run = preconditions.run_named.then_some("r");
    let body = json!({ "agent": "bot", "amount": "1.234567891", "runId": run });
    let reported = predicted(fixture, &client, body.clone()).await?;
    let reply = client.api.post("/v1/spend", body).await;
    let really = match reply.status {
        200 => json!(null),
        202 => json!("approval_required"),
        _ => reply.json()["reason"].clone(),
    };
    prop_assert_eq!(&reported["reason"], &really, "{:?}", reply);
    prop_assert_eq!(&reported["wouldApprove"], &json!(reply.status == 200));
    prop_assert_eq!(&reported["estimateNanos"], &json!(AMOUNT.to_string()));
    Ok(())
}

/// Runs the cases on one fixture, and shows the shortest that fails.
fn all<S: Strategy>(cases: &S, one: impl AsyncFn(&RecordFixture, &S::Value) -> Result<(), TestCaseError>) {
    // A case during which the day ends proves nothing.
    let within_a_day = async |fixture: &RecordFixture, case| loop {
        let period = fixture.management.redis.period();
        let agreed = one(fixture, &case).await;
        if fixture.management.redis.period() == period {
            return agreed;
        }
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(RecordFixture::start());
    let config = Config {
        cases: CASES,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..Config::default()
    };
    match TestRunner::new(config).run(cases, |case| runtime.block_on(within_a_day(&fixture, case))) {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!("{reason}\nshortest case: {case:#?}"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_predicted_call_is_decided_as_predicted() {
    all(
        &(preconditions(), key()),
        async |fixture, (preconditions, key)| call_agrees(fixture, preconditions, key).await,
    );
}

#[test]
fn a_predicted_spend_is_decided_as_predicted() {
    all(
        &(preconditions(), wallet()),
        async |fixture, (preconditions, wallet)| spend_agrees(fixture, preconditions, wallet).await,
    );
}
