//! A store with every kind of record: two accounts, every kind of money, every possible state.

use crate::cli;
use clock::now_ms;
use domain::entry::HoldOutcome;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;
use harness::scripts::crashing_at;
use harness::{Admin, AdminOptions, Caller, Cli, Redis, Seed, SeedAccount, Store};
use serde_json::{Value, json};
use std::time::Duration;
use store::call::hold::HoldName;
use store::call::reap;
use store::call::settle::{Settle, Settled};
use store::idempotency::RequestIdentity;
use store::keys::Bucket;
use store::script::change::Scope;
use store::transfer::{NewTransfer, Transferred};
use store::wallet::WalletPlace;

/// Cost of a call in nano-USD. The counters of a day, a month and a run are above the sum of the settled spends by it.
pub const COST: u64 = 1_000_000_001;

/// Initial balance of each wallet, in USD.
const START: &str = "100";

/// Longer than any test, in ms: by then the server's worker signs checkpoints, and claims the store for its archive.
/// That of the command line is another one.
const NO_CHECKPOINT_MS: &str = "3600000";

/// An account, and callers of its two modes.
pub struct Tenant {
    pub account: SeedAccount,
    pub live: Caller,
    pub test: Caller,
    /// The wallet numbers of `user`, `ann` and `bob`, and of the agent that was deleted.
    pub wallets: [u64; 3],
}

pub struct Fixture {
    pub redis: Redis,
    pub store: Store,
    pub cli: Cli,
    /// The server; stopped while no money may move.
    pub admin: Option<Admin>,
    pub tenants: [Tenant; 2],
    /// Escrows by outcome. The payer is in the first tenant.
    pub escrows: Escrows,
    /// Intents of the first tenant.
    pub spent: String,
    pub waits: String,
    pub holds: [String; 2],
}

/// Numbers of escrows: `own` are within the first tenant, the others go to the second.
pub struct Escrows {
    pub pending: u64,
    pub funded: u64,
    pub released: u64,
    pub disputed: u64,
    pub refunded: u64,
}

impl Fixture {
    pub async fn build() -> Self {
        let redis = Redis::start();
        let store = redis.store();
        let seed = Seed::new(&store).await;
        let cli = cli(&redis);
        let options = AdminOptions::new(env!("CARGO_BIN_EXE_tollgate-admin"), redis.url())
            .env("TOLLGATE_AUDIT__CHECKPOINT_EVERY_MS", NO_CHECKPOINT_MS);
        let admin = Admin::start(options);
        let tenants = [
            Tenant::build(&seed, &cli, &admin).await,
            Tenant::build(&seed, &cli, &admin).await,
        ];
        let (spent, waits) = tenants[0].spend().await;
        tenants[0].transfer(&tenants[1]).await;
        tenants[1].transfer(&tenants[0]).await;
        let escrows = escrows(&tenants, &cli).await;
        let holds = [
            hold(&tenants[0].account, Duration::from_secs(1000))
                .await
                .allow_id,
            hold(&tenants[0].account, Duration::ZERO).await.allow_id,
        ];
        tokio::time::sleep(Duration::from_millis(5)).await;
        let bucket = tenants[0].account.keys.bucket();
        // The server's own worker may have reaped them already.
        let _kept = reap::sweep(&store, bucket, now_ms()).await.unwrap();
        Self {
            redis,
            store,
            cli,
            admin: Some(admin),
            tenants,
            escrows,
            spent,
            waits,
            holds,
        }
    }

    /// Stops the server and leaves a transfer of 2 USD in transit. Returns bucket and id of the row.
    pub async fn leave_in_transit(&mut self) -> (Bucket, String) {
        self.admin = None;
        let [from, to] = &self.tenants;
        let transaction = send_away(
            &self.store,
            (&from.account, from.wallets[1]),
            (&to.account, to.wallets[1]),
        )
        .await;
        (from.account.keys.bucket(), transaction)
    }

    /// The store's day and month.
    pub fn period(&self) -> Period {
        Period::at(now_ms())
    }

    /// Takes a call of [`COST`] from the counters of the agent `ann`, of its account and of the run `run-1`, above the
    /// sum of spends and holds, so that the books alone are in order. Returns the agent's day and month, and the run.
    pub fn set_counters_back(&self) -> [String; 3] {
        let (keys, period) = (&self.tenants[0].account.keys, self.period());
        let (agent, run) = (keys.live().agent("ann"), keys.live().run("ann", "run-1"));
        let (day, month) = (format!("d{}", period.day), format!("m{}", period.month));
        let tracked = format!("t{}", period.month);
        let less = format!("-{COST}");
        for (key, field, by) in [
            (&agent, day.as_str(), less.as_str()),
            (&agent, &month, &less),
            (&keys.record(), &tracked, &less),
            (&run, "spent", "-3000000000"),
        ] {
            let _: i64 = self.redis.command(&["HINCRBY", key, field, by]);
        }
        [
            format!("{agent} {day}"),
            format!("{agent} {month}"),
            format!("{run} spent"),
        ]
    }
}

/// Sends 2 USD from the wallet `ann` of one account to that of another, and leaves the arrival to a server. Returns the
/// id of the transaction, which is also the row's.
pub async fn send_away(store: &Store, from: (&SeedAccount, u64), to: (&SeedAccount, u64)) -> String {
    let place = |(account, number): (&SeedAccount, u64)| WalletPlace {
        account: account.id.clone(),
        mode: Mode::Live,
        owner: "ann".to_owned(),
        number,
    };
    let mint = |kind: IdKind| kind.mint(now_ms()).unwrap();
    let identity = RequestIdentity {
        id: mint(IdKind::Intent),
        spare_id: mint(IdKind::Intent),
        fingerprint: "0f".repeat(32),
    };
    let transaction = mint(IdKind::Transaction);
    let transfer = NewTransfer {
        identity: &identity,
        record_life: Some(Duration::from_secs(1000)),
        from: &place(from),
        to: &place(to),
        amount: Nanos::new(2_000_000_000).unwrap(),
        currency: "USD",
        memo: None,
        transaction: &transaction,
        arrival: &mint(IdKind::Transaction),
        closed: false,
        request: "{}",
        at_ms: now_ms(),
    };
    let scope = Scope {
        account: &from.0.id,
        mode: Mode::Live,
        actor: "test",
    };
    let store = crashing_at(store, "transit_arrive");
    let sent = transfer.execute(&store, &scope).await.unwrap();
    assert!(matches!(sent, Transferred::Done { .. }), "{sent:?}");
    transaction
}

impl Tenant {
    async fn build(seed: &Seed, cli: &Cli, admin: &Admin) -> Self {
        let account = seed.account("enterprise").await;
        let live = admin.caller(&account.api_key(Mode::Live).await);
        let test = admin.caller(&account.api_key(Mode::Test).await);
        let mut tenant = Self {
            account,
            live,
            test,
            wallets: [0; 3],
        };
        for agent in ["ann", "bob", "gone"] {
            ok(&tenant.live, "/v1/wallets/create", json!({ "botId": agent })).await;
        }
        // `poor` has no wallet: its spends are only tracked.
        for agent in ["ann", "bob", "poor"] {
            let policy = json!({ "name": "open", "agentId": agent, "approvalThreshold": 50 });
            ok(&tenant.live, "/v1/policies", policy).await;
        }
        let id = tenant.account.id.clone();
        for (at, owner) in ["user", "ann", "bob"].into_iter().enumerate() {
            for (number, more) in [(1, &[][..]), (2, &["--pending"])] {
                let reference = format!("{owner}-{number}");
                let args = ["deposit", "--account", &id, "--wallet", owner, "--amount", START];
                let _ = cli.json(&[&args[..], &["--reference", &reference], more].concat());
            }
            tenant.wallets[at] = tenant.wallet(owner).await;
        }
        let _ = cli.json(&["deposit", "confirm", "--account", &id, "--reference", "bob-2"]);
        let gone = tenant.wallet("gone").await;
        for (from, to) in [(tenant.wallets[0], gone), (gone, tenant.wallets[0])] {
            let body = json!({ "from": from, "to": to, "amount": 1 });
            ok(&tenant.live, "/v1/wallet/transfer", body).await;
        }
        assert_eq!(tenant.live.delete("/v1/agents/gone").await.status, 200);
        ok(&tenant.test, "/v1/wallets/create", json!({ "botId": "ann" })).await;
        let wallet = json!({ "wallet": "ann", "amount": 5, "reference": "test-1" });
        ok(&tenant.test, "/v1/wallet/deposits", wallet).await;
        let user = json!({ "wallet": "user", "amount": 5, "reference": "test-2" });
        ok(&tenant.test, "/v1/wallet/deposits", user).await;
        // A long audit entry.
        let long = json!({ "description": "x".repeat(1_500) });
        assert_eq!(tenant.live.patch("/v1/agents/bob", long).await.status, 200);
        tenant
    }

    async fn wallet(&self, owner: &str) -> u64 {
        let path = match owner {
            "user" => "/v1/wallet".to_owned(),
            agent => format!("/v1/agents/{agent}/wallet"),
        };
        let body = self.live.get(&path).await.json();
        let number = body.pointer("/user_wallet/walletId").or(body.get("walletId"));
        number
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("{owner}: {body}"))
    }

    /// Makes spends that are settled, tracked only, refused, waiting, approved and denied. Returns a settled and a
    /// waiting one.
    async fn spend(&self) -> (String, String) {
        let spend = async |body: Value, status: u16| {
            let reply = self.live.post("/v1/spend", body).await;
            assert_eq!(reply.status, status, "{}", reply.text());
            reply.json()["intent_id"].as_str().expect("an intent").to_owned()
        };
        let settled = spend(json!({ "agent": "ann", "amount": 3, "runId": "run-1" }), 200).await;
        spend(json!({ "agent": "poor", "amount": 2 }), 200).await;
        spend(
            json!({ "agent": "ann", "amount": 1, "idempotency_key": "k" }),
            200,
        )
        .await;
        let waits = spend(json!({ "agent": "ann", "amount": 60 }), 202).await;
        for verdict in ["approve", "deny"] {
            let id = spend(json!({ "agent": "bob", "amount": 51 }), 202).await;
            ok(&self.live, &format!("/v1/intents/{id}/{verdict}"), json!({})).await;
        }
        (settled, waits)
    }

    /// Makes transfers within the tenant and to another one.
    async fn transfer(&self, other: &Self) {
        for (from, to) in [
            ("user", json!("bob")),
            ("ann", json!(other.wallets[2])),
            ("bob", json!(other.wallets[0])),
        ] {
            let memo = "m".repeat(300);
            let body = json!({ "from": from, "to": to, "amount": "0.123456789", "memo": memo });
            ok(&self.live, "/v1/wallet/transfer", body).await;
        }
    }
}

/// Posts a request that must succeed.
pub async fn ok(caller: &Caller, path: &str, body: Value) -> Value {
    let reply = caller.post(path, body.clone()).await;
    assert_eq!(reply.status, 200, "{path} {body}: {}", reply.text());
    reply.json()
}

/// Makes escrows in every state, within the first tenant and from it to the second.
async fn escrows([payer, payee]: &[Tenant; 2], cli: &Cli) -> Escrows {
    let made = async |to: u64, fund: bool| {
        let conditions = json!({ "goods": "books" });
        let body = json!({ "fromWalletId": payer.wallets[1], "toWalletId": to, "amount": 1.5,
            "conditions": conditions });
        let made = ok(&payer.live, "/v1/escrow/create", body).await;
        let number = made["escrow"]["id"].as_u64().expect("a number");
        if fund {
            ok(&payer.live, "/v1/escrow/fund", json!({ "escrowId": number })).await;
        }
        number
    };
    let mut last = None;
    for to in [payer.wallets[2], payee.wallets[1]] {
        let callers = if to == payer.wallets[2] {
            [payer, payer]
        } else {
            [payer, payee]
        };
        let (pending, funded) = (made(to, false).await, made(to, true).await);
        let mut of = [0; 4];
        for (at, (verdict, resolve)) in [
            ("release", ""),
            ("dispute", ""),
            ("dispute", "payer"),
            ("dispute", "payee"),
        ]
        .into_iter()
        .enumerate()
        {
            for caller in callers {
                of[at] = made(to, true).await;
                let body = json!({ "escrowId": of[at] });
                ok(&caller.live, &format!("/v1/escrow/{verdict}"), body.clone()).await;
                let lost = caller.live.post("/v1/escrow/release", body).await;
                assert_eq!(lost.status, 409, "{}", lost.text());
                if !resolve.is_empty() {
                    let number = of[at].to_string();
                    let _ = cli.json(&["escrow", "resolve", "--escrow", &number, "--to", resolve]);
                }
            }
        }
        let body = json!({ "escrowId": pending });
        let refused = payer.live.post("/v1/escrow/release", body).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        last = Some(Escrows {
            pending,
            funded,
            released: of[0],
            disputed: of[1],
            refunded: of[2],
        });
    }
    last.expect("two rounds")
}

/// Settles a call of 2 USD at [`COST`].
pub async fn settle(store: &Store, name: HoldName) {
    let settle = Settle {
        name,
        estimate: Nanos::new(2_000_000_000).unwrap(),
        cost: Nanos::new(COST).unwrap(),
        outcome: HoldOutcome::Settled,
        extension: None,
        measured: None,
        ended_by: None,
    };
    let settled = settle.execute(&settle.name.keys(), None, store).await.unwrap();
    assert!(matches!(settled, Settled::Done), "{settled:?}");
}

/// Charges a call of 2 USD of the agent `ann`.
pub async fn hold(account: &SeedAccount, life: Duration) -> HoldName {
    let agent = account.agent("ann");
    agent.provider_key("sk-test").await;
    let (key_id, _) = agent.virtual_key_with_id().await;
    agent.open_hold(&key_id, 2_000_000_000, life).await
}
