//! Records that each script reads, of an account with a thousand records of each kind and of one with a million.

use crate::fill::{AGENT, Kind, MODE, Tenant};
use crate::watch::{Command, Watch, Work};
use crate::world::{BINARY, World, success, text};
use domain::permission::Permission;
use harness::{Answer, Caller, Cli, Edge, EdgeOptions, Upstream, chat_body};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::script;

const EDGE: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;
/// Records that a script may read in addition where there are many: fields of days that went, an audit batch of another
/// size.
const MORE: u64 = 50;
/// Every kind of record.
const KINDS: [Kind; 8] = [
    Kind::Entries,
    Kind::Agents,
    Kind::VirtualKeys,
    Kind::Policies,
    Kind::Transactions,
    Kind::Escrows,
    Kind::Intents,
    Kind::Runs,
];

/// Scripts that the daily requests of an account run.
const RUN: &[&str] = &[
    "agent_create",
    "agent_freeze",
    "agent_update",
    "api_key_count",
    "authorize",
    "deposit_make",
    "escrow_create",
    "escrow_fund",
    "escrow_resolve",
    "policy_delete",
    "policy_set",
    "provider_key_store",
    "run_end",
    "seal",
    "settle",
    "spend",
    "spend_deny",
    "snapshot",
    "transfer_own",
    "virtual_key_create",
    "virtual_key_revoke",
    "webhook_create",
    "webhook_delete",
    "webhook_test",
    "webhook_update",
];
/// Scripts that are not run here, and what bounds their cost: shared/store/src/script/bounds.rs holds each
/// of them to it.
const BOUNDED: &[(&str, &str)] = &[
    ("account_accept", RECORD),
    ("account_add_user", "USERS_MAX"),
    ("account_create", RECORD),
    ("account_set_plan", RECORD),
    ("agent_delete", "KEYS_AT_ONCE"),
    ("api_key_create", "API_KEYS_MAX"),
    ("api_key_revoke", RECORD),
    ("archive", "entries and lists of one segment"),
    ("archive_intents", "PASSED_MAX places of lists"),
    ("attempts_take", "attempts in a span"),
    ("blocked_change", "BLOCKED_MAX"),
    ("denial_window", RECORD),
    ("deposit_confirm", RECORD),
    ("escrow_list", RECORD),
    ("extend", RECORD),
    ("fence", RECORD),
    ("forget", "FORGET_BATCH"),
    ("intent_blocked", RECORD),
    ("intent_claim", RECORD),
    ("invitation_accept", "USERS_MAX"),
    ("invitation_create", "INVITATIONS_MAX"),
    ("invitation_revoke", RECORD),
    ("lookup_join", "ACCOUNTS_MAX"),
    ("lookup_keep", RECORD),
    ("lookup_leave", "ACCOUNTS_MAX"),
    ("lookup_note", RECORD),
    ("number_draw", RECORD),
    ("reap", RECORD),
    ("refuse", RECORD),
    ("replace_prices", RECORD),
    ("reseal", RECORD),
    ("reseal_checkpoint_key", RECORD),
    ("session_end", "SESSIONS_MAX"),
    ("session_open", "SESSIONS_MAX"),
    ("session_use", RECORD),
    ("technical_count", RECORD),
    ("threshold_notice", RECORD),
    ("transfer_out", RECORD),
    ("transit_arrive", RECORD),
    ("user_change", "USERS_MAX"),
    ("user_issue_reset", RECORD),
    ("user_note", RECORD),
    ("virtual_key_forget", "FORGOTTEN_AT_ONCE"),
    ("void", RECORD),
    ("wallet_open", RECORD),
    ("webhook_dispatch", "DELIVERIES_MAX"),
    ("webhook_finish", "webhooks.history_max"),
    ("webhook_redeliver", RECORD),
    ("webhook_release", RECORD),
    ("webhook_reseal", RECORD),
    ("webhook_take", "deliveries of one turn"),
    ("webhook_dispatch_coalesced", "DELIVERIES_MAX"),
    ("witness", RECORD),
];
const RECORD: &str = "single records";

#[test]
fn every_script_is_here() {
    let found: BTreeSet<&str> = script::all::all().iter().map(|script| script.name()).collect();
    let run = RUN.iter().copied();
    let here: BTreeSet<&str> = run.chain(BOUNDED.iter().map(|(name, _)| *name)).collect();
    assert_eq!(found, here);
}

/// The actor of all requests.
struct Person {
    tenant: Tenant,
    approver: Caller,
    edge: Caller,
    cli: Cli,
}

impl Person {
    async fn new(world: &World, edge: &Edge) -> Self {
        let tenant = Tenant::new(world).await;
        let may = [Permission::Read, Permission::Approve];
        let key = world.issue(&tenant.account, MODE, &may, &[], None).await;
        let agent = tenant.account.agent(AGENT);
        agent.provider_key("sk-test-provider-key").await;
        let (_, secret) = agent.virtual_key_with_id().await;
        let policy = json!({ "approvalThreshold": 50 });
        let path = format!("/v1/policies/{AGENT}");
        success(&tenant.caller.post(&path, policy).await, 200);
        Self {
            approver: world.admin.caller(&key.secret),
            edge: edge.caller(&secret),
            cli: Cli::new(BINARY, world.redis.url())
                .env("TOLLGATE_LIMITS__TRANSACTIONS", "100000000000")
                .env("TOLLGATE_LIMITS__DEPOSITS", "100000000000"),
            tenant,
        }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let reply = self.tenant.caller.post(&format!("/v1{path}"), body).await;
        assert!(
            [200, 201, 202].contains(&reply.status),
            "{path}: {}",
            reply.text()
        );
        reply.json()
    }

    async fn delete(&self, path: &str) {
        success(&self.tenant.caller.delete(&format!("/v1{path}")).await, 200);
    }

    /// A day of an account.
    async fn live(&self, round: usize) {
        self.manage().await;
        let (account, reference) = (
            &self.tenant.account.id,
            format!("{}-{round}", self.tenant.account.id),
        );
        let deposit = [
            "deposit",
            "--account",
            account,
            "--wallet",
            &self.tenant.wallet,
            "--amount",
            "500",
            "--reference",
        ];
        let _deposit = self.cli.json(&[&deposit[..], &[&reference]].concat());
        self.post("/spend", json!({ "agent": AGENT, "amount": 1, "runId": "day" }))
            .await;
        for word in ["approve", "deny"] {
            let waits = self.post("/spend", json!({ "agent": AGENT, "amount": 60 })).await;
            let path = format!("/v1/intents/{}/{word}", text(&waits, "/intent_id"));
            let decided = self.approver.post(&path, json!({})).await;
            assert_eq!(decided.status, 200, "{}", decided.text());
        }
        self.post(
            "/wallet/transfer",
            json!({ "from": AGENT, "to": "user", "amount": 1 }),
        )
        .await;
        let user =
            success(&self.tenant.caller.get("/v1/wallet?limit=1").await, 200)["user_wallet"]["walletId"]
                .clone();
        for word in ["release", "dispute"] {
            let own: u64 = self.tenant.wallet.parse().unwrap();
            let agreed = json!({ "fromWalletId": own, "toWalletId": user, "amount": 1 });
            let escrow = self.post("/escrow/create", agreed).await["escrow"]["id"].clone();
            self.post("/escrow/fund", json!({ "escrowId": escrow })).await;
            self.post(&format!("/escrow/{word}"), json!({ "escrowId": escrow }))
                .await;
        }
        let call = self
            .edge
            .chat_with(&[("x-service-run-id", "day")], chat_body("gpt-4o-mini", "hello"))
            .await;
        assert_eq!(call.status, 200, "{}", call.text());
        self.post(
            &format!("/agents/{AGENT}/runs/day"),
            json!({ "status": "completed" }),
        )
        .await;
        self.post("/decisions/dry-run", json!({ "agent": AGENT, "amount": 1 }))
            .await;
        success(&self.tenant.caller.get("/v1/audit?limit=1").await, 200);
    }

    async fn manage(&self) {
        let made = self.post("/agents", json!({ "name": "n" })).await;
        let path = format!("/agents/{}", text(&made, "/agent/id"));
        let body = json!({ "name": "m" });
        success(&self.tenant.caller.patch(&format!("/v1{path}"), body).await, 200);
        self.post(&format!("{path}/freeze"), json!({})).await;
        self.post(&format!("{path}/unfreeze"), json!({})).await;
        let body = json!({ "name": "All", "maxSpendPerDay": 1000 });
        let policy = self.post("/policies", body).await;
        self.delete(&format!("/policies/{}", text(&policy, "/policy/id")))
            .await;
        let keys = format!("/agents/{AGENT}/virtual-keys");
        let key = self.post(&keys, json!({ "name": "k" })).await;
        self.delete(&format!("{keys}/{}", text(&key, "/virtualKey/keyId")))
            .await;
        let provider = json!({ "provider": "openai", "apiKey": "sk-test-provider-key" });
        self.post(&format!("/agents/{AGENT}/provider-keys"), provider)
            .await;
        let hook = json!({ "url": "http://127.0.0.1:9/a", "secret": "whsec_0123456789abcdef0123456789", "events": ["agent.frozen"] });
        let hook = self.post("/webhooks", hook).await;
        let hook = format!("/webhooks/{}", text(&hook, "/webhook/id"));
        let body = json!({ "description": "d" });
        success(&self.tenant.caller.patch(&format!("/v1{hook}"), body).await, 200);
        self.post(&format!("{hook}/test"), json!({})).await;
        self.delete(&hook).await;
    }
}

/// Most records that each script read, by its name: `MONITOR` shows its commands behind its call.
fn by_script(
    world: &World,
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
        let Some(name) = name.filter(|_| call.words.iter().any(|word| word.contains(account))) else {
            continue;
        };
        let work = Work::of(&world.redis, ran.iter().map(|command| command.words.as_slice()));
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
    let world = World::start_with(|options| {
        let budgets = [
            "AGENTS",
            "POLICIES",
            "KEYS",
            "RUNS",
            "INTENTS",
            "TEXT_BYTES",
            "TRANSACTIONS",
            "ESCROWS",
            "AUDIT_ENTRIES",
        ];
        let options = options.env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true");
        budgets.iter().fold(options, |options, budget| {
            options.env(&format!("TOLLGATE_LIMITS__{budget}"), "100000000000")
        })
    })
    .await;
    let upstream = Upstream::start(|_| Answer::chat(9, 12));
    let options = EdgeOptions::new(EDGE, world.redis.url(), upstream.base_url())
        .env("TOLLGATE_LIMITS__RUNS", "100000000000");
    let edge = Edge::start(options);
    let names: BTreeMap<String, &'static str> = script::all::all()
        .into_iter()
        .map(|script| {
            (
                world.redis.command(&["SCRIPT", "LOAD", script.source()]),
                script.name(),
            )
        })
        .collect();
    let mut both = Vec::new();
    for count in [FEW, MANY] {
        let person = Person::new(&world, &edge).await;
        for kind in KINDS {
            person.tenant.fill(&world, kind, count).await;
        }
        let watch = Watch::start(&world.redis).await;
        for round in 0..2 {
            person.live(round).await;
        }
        let commands = watch.since_the_last_mark(&world.redis).await;
        both.push(by_script(&world, &names, &commands, &person.tenant.account.id));
    }
    let [few, many] = both.as_slice() else {
        panic!("two accounts");
    };
    for name in RUN {
        let (Some(few), Some(many)) = (few.get(name), many.get(name)) else {
            panic!("{name} was not run: {:?}", many.keys());
        };
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
