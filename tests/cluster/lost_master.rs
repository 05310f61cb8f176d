//! A master that is cut off from its replica, acknowledges a change of money, and is replaced by that replica: for each
//! kind of change, with the master of either account that takes part. With `auto` nothing that was acknowledged is
//! missing, twice, or with two; with `async`, which waits for no replica, the loss is noticed by the next request to
//! any server and by `ledger check`.

use crate::world::{ADMIN, MASTERS, SOON, World};
use domain::mode::Mode;
use futures::future::join_all;
use harness::{Admin, Caller, Cli, Reply, SeedAccount, eventually};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// USD that each user wallet begins with, and each agent's.
const FUNDS: u64 = 1000;
const AGENT_FUNDS: u64 = 100;
/// USD that a change moves; a spend, what the agent has of it.
const MOVED: u64 = 400;
const SPENT: u64 = 40;
/// Between two attempts at the same change.
const PAUSE: Duration = Duration::from_millis(50);

/// Longest wait for what is in transit: several rounds of the transit worker.
const ARRIVED: Duration = Duration::from_secs(20);

/// A kind of change. All steps before it were made while the replica was in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Deposit,
    Confirm,
    Own,
    Spend,
    Approval,
    OwnCreate,
    OwnFund,
    OwnRelease,
    OwnDispute,
    Transfer,
    Create,
    Fund,
    Release,
    ReleaseByPayee,
    Dispute,
    DisputeByPayee,
}

/// The party whose master is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Payer,
    Payee,
}

use Kind::*;

const WITHIN: [Kind; 9] = [
    Deposit, Confirm, Own, Spend, Approval, OwnCreate, OwnFund, OwnRelease, OwnDispute,
];
const ACROSS: [Kind; 7] = [
    Transfer,
    Create,
    Fund,
    Release,
    ReleaseByPayee,
    Dispute,
    DisputeByPayee,
];

fn rows() -> Vec<(Kind, Victim)> {
    let within = WITHIN.iter().map(|kind| (*kind, Victim::Payer));
    let across = ACROSS
        .iter()
        .flat_map(|kind| [(*kind, Victim::Payer), (*kind, Victim::Payee)]);
    within.chain(across).collect()
}

/// Balances of the wallets, and the escrow's state: of the payer's user wallet and agent, and of the payee's user
/// wallet.
#[derive(Debug, PartialEq, Eq)]
struct Balances {
    user: u64,
    agent: u64,
    payee: u64,
    escrow: &'static str,
}

impl Kind {
    fn done_once(self) -> Balances {
        let (user, agent, payee, escrow) = match self {
            Deposit | Confirm => (FUNDS + MOVED, AGENT_FUNDS, FUNDS, ""),
            Own => (FUNDS - MOVED, AGENT_FUNDS + MOVED, FUNDS, ""),
            Spend | Approval => (FUNDS, AGENT_FUNDS - SPENT, FUNDS, ""),
            OwnCreate | Create => (FUNDS, AGENT_FUNDS, FUNDS, "pending"),
            OwnFund | Fund => (FUNDS - MOVED, AGENT_FUNDS, FUNDS, "funded"),
            OwnRelease => (FUNDS - MOVED, AGENT_FUNDS + MOVED, FUNDS, "released"),
            OwnDispute | Dispute | DisputeByPayee => (FUNDS - MOVED, AGENT_FUNDS, FUNDS, "disputed"),
            Transfer => (FUNDS - MOVED, AGENT_FUNDS, FUNDS + MOVED, ""),
            Release | ReleaseByPayee => (FUNDS - MOVED, AGENT_FUNDS, FUNDS + MOVED, "released"),
        };
        Balances {
            user,
            agent,
            payee,
            escrow,
        }
    }

    /// Returns true if the change is one of the victim's account, and so raises its version.
    fn changes(self, victim: Victim) -> bool {
        match victim {
            Victim::Payer => true,
            Victim::Payee => matches!(self, Transfer | Release | ReleaseByPayee | DisputeByPayee),
        }
    }
}

/// An account, and a caller for each server.
struct Party {
    account: SeedAccount,
    key: String,
    caller: Caller,
    wallet: Value,
}

impl Party {
    async fn new(world: &World, admin: &Admin, node: usize) -> Self {
        let account = world.account_on(node).await;
        let key = account.api_key(Mode::Test).await;
        let caller = admin.caller(&key);
        let funds = json!({ "wallet": "user", "amount": FUNDS, "reference": "funds" });
        done(&caller.post("/v1/wallet/deposits", funds).await);
        let wallet = caller.get("/v1/wallet").await.json()["user_wallet"]["walletId"].clone();
        Self {
            account,
            key,
            caller,
            wallet,
        }
    }

    /// An agent with a wallet that has some money, and may spend.
    async fn with_agent(self, threshold: u64) -> Self {
        let caller = &self.caller;
        done(&caller.post("/v1/wallets/create", json!({ "botId": "bot" })).await);
        let policy = json!({ "maxSpendPerDay": FUNDS, "approvalThreshold": threshold });
        done(&caller.post("/v1/policies/bot", policy).await);
        let funds = json!({ "wallet": "bot", "amount": AGENT_FUNDS, "reference": "agent" });
        done(&caller.post("/v1/wallet/deposits", funds).await);
        self
    }

    async fn holds(&self, path: &str, place: &str) -> u64 {
        let reply = self.caller.get(path).await;
        done(&reply);
        let body = reply.json();
        let held = body.pointer(place).and_then(Value::as_u64);
        held.unwrap_or_else(|| panic!("{path} {place}: {body}"))
    }
}

#[track_caller]
fn done(reply: &Reply) {
    assert!((200..300).contains(&reply.status), "{}", reply.text());
}

/// One kind of change between accounts of its own.
struct Row {
    kind: Kind,
    victim: Victim,
    payer: Party,
    payee: Party,
    /// The request, and whether the payee sends it.
    path: String,
    body: Value,
    by_payee: bool,
}

impl Row {
    /// Makes the accounts and takes all steps but the last.
    async fn prepare(world: &World, admin: &Admin, (kind, victim): (Kind, Victim), node: usize) -> Self {
        let other = (node + 1) % MASTERS;
        let nodes = match victim {
            Victim::Payer => [node, other],
            Victim::Payee => [other, node],
        };
        let threshold = if kind == Approval { 1 } else { FUNDS };
        let payer = Party::new(world, admin, nodes[0])
            .await
            .with_agent(threshold)
            .await;
        let payee = Party::new(world, admin, nodes[1]).await;
        let mut row = Self {
            kind,
            victim,
            payer,
            payee,
            path: String::new(),
            body: Value::Null,
            by_payee: matches!(kind, ReleaseByPayee | DisputeByPayee),
        };
        (row.path, row.body) = row.last_step().await;
        row
    }

    async fn last_step(&self) -> (String, Value) {
        let (caller, to) = (&self.payer.caller, &self.payee.wallet);
        let deposit = json!({ "wallet": "user", "amount": MOVED, "reference": "more" });
        let spend = json!({ "agent": "bot", "amount": SPENT });
        let step = |path: &str, body| (path.to_owned(), body);
        match self.kind {
            Deposit => step("/v1/wallet/deposits", deposit),
            Confirm => {
                let mut pending = deposit;
                pending["pending"] = json!(true);
                done(&caller.post("/v1/wallet/deposits", pending).await);
                step("/v1/wallet/deposits/confirm", json!({ "reference": "more" }))
            }
            Own => step(
                "/v1/wallet/transfer",
                json!({ "from": "user", "to": "bot", "amount": MOVED }),
            ),
            Transfer => step(
                "/v1/wallet/transfer",
                json!({ "from": "user", "to": to, "amount": MOVED }),
            ),
            Spend => step("/v1/spend", spend),
            Approval => {
                let waits = caller.post("/v1/spend", spend).await;
                assert_eq!(waits.status, 202, "{}", waits.text());
                let intent = waits.json()["intent_id"].as_str().expect("an id").to_owned();
                (format!("/v1/intents/{intent}/approve"), json!({}))
            }
            _ => self.escrow_step().await,
        }
    }

    async fn escrow_step(&self) -> (String, Value) {
        let caller = &self.payer.caller;
        let to = match self.kind {
            OwnCreate | OwnFund | OwnRelease | OwnDispute => json!("bot"),
            _ => self.payee.wallet.clone(),
        };
        let escrow = json!({ "fromWalletId": "user", "toWalletId": to, "amount": MOVED });
        if matches!(self.kind, OwnCreate | Create) {
            return ("/v1/escrow/create".to_owned(), escrow);
        }
        let made = caller.post("/v1/escrow/create", escrow).await;
        done(&made);
        let number = json!({ "escrowId": made.json()["escrow"]["id"] });
        let last = match self.kind {
            OwnFund | Fund => return ("/v1/escrow/fund".to_owned(), number),
            OwnRelease | Release | ReleaseByPayee => "/v1/escrow/release",
            _ => "/v1/escrow/dispute",
        };
        done(&caller.post("/v1/escrow/fund", number.clone()).await);
        (last.to_owned(), number)
    }

    fn name(&self) -> String {
        format!("{:?}, {:?}", self.kind, self.victim)
    }

    /// The account whose master is lost.
    fn lost(&self) -> &Party {
        match self.victim {
            Victim::Payer => &self.payer,
            Victim::Payee => &self.payee,
        }
    }

    async fn send(&self) -> Reply {
        let asks = if self.by_payee { &self.payee } else { &self.payer };
        let header = [("idempotency-key", "the last step")];
        let body = self.body.to_string();
        asks.caller.send("POST", &self.path, &header, body).await
    }

    /// Asks until it is acknowledged.
    async fn repeat_until_acknowledged(&self) -> Reply {
        let end = Instant::now() + SOON;
        loop {
            let reply = self.send().await;
            if reply.status != 503 {
                return reply;
            }
            assert!(Instant::now() < end, "{}: {}", self.name(), reply.text());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Balances after money in transit has had the time to arrive.
    async fn settled(&self) -> Balances {
        let end = Instant::now() + ARRIVED;
        loop {
            let balances = self.balances().await;
            if balances == self.kind.done_once() || Instant::now() > end {
                return balances;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn balances(&self) -> Balances {
        let escrows = self.payer.caller.get("/v1/escrow").await;
        done(&escrows);
        let body = escrows.json();
        let escrows = body["escrows"].as_array().expect("escrows");
        assert!(escrows.len() <= 1, "{}: {body}", self.name());
        let status = escrows.first().and_then(|escrow| escrow["status"].as_str());
        let known = ["pending", "funded", "released", "disputed"];
        Balances {
            user: self.payer.holds("/v1/wallet", "/user_wallet/usdc").await,
            agent: self.payer.holds("/v1/agents/bot/wallet", "/usdc").await,
            payee: self.payee.holds("/v1/wallet", "/user_wallet/usdc").await,
            escrow: known
                .into_iter()
                .find(|word| Some(*word) == status)
                .unwrap_or_default(),
        }
    }
}

/// All rows, before any request is sent.
async fn prepared(world: &World, admin: &Admin, node: usize) -> Vec<Row> {
    let mut made = Vec::new();
    for row in rows() {
        made.push(Row::prepare(world, admin, row, node).await);
    }
    made
}

/// All rows on a cluster whose replica of `node` is cut off. No request was sent yet.
async fn cut_off(world: &World, admin: &Admin, node: usize) -> Vec<Row> {
    let made = prepared(world, admin, node).await;
    let replica = world.cluster.replica_of(node);
    world.cluster.wait_in_step(replica);
    world.cluster.cut_off(replica);
    made
}

/// Asserts that each row is done once when its request is repeated after the loss. Returns how many were acknowledged
/// before.
async fn each_is_done_once(world: &World, rows: &[Row], replies: &[Reply]) -> usize {
    // An unconfirmed read may be gone, and servers that read it refuse the account until `store accept`.
    accept_all(world);
    let mut acknowledged = 0;
    let mut wrong = Vec::new();
    let again = join_all(rows.iter().map(Row::repeat_until_acknowledged)).await;
    let settled = join_all(rows.iter().map(Row::settled)).await;
    for (((row, before), again), balances) in rows.iter().zip(replies).zip(again).zip(settled) {
        let name = row.name();
        assert!([200, 503].contains(&before.status), "{name}: {}", before.text());
        if before.status == 200 {
            acknowledged += 1;
            if row.kind != Approval && again.json()["replayed"] != json!(true) {
                wrong.push(format!("{name}: acknowledged, and done again: {}", again.text()));
            }
        }
        if balances != row.kind.done_once() {
            let expected = row.kind.done_once();
            wrong.push(format!("{name}: {balances:?}, and done once it is {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let check = conclusion(world).await;
    assert_eq!(check["ok"], json!(true), "{check}");
    acknowledged
}

/// The document of the first check that is not inconclusive.
async fn conclusion(world: &World) -> Value {
    eventually("a conclusion", SOON, async || {
        let output = Cli::new(ADMIN, world.cluster.url()).run(&["ledger", "check", "--json"]);
        let document: Value = serde_json::from_str(&output.stdout).expect("a document");
        let open = document["inconclusive"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        let expected = match (document["ok"].as_bool(), open) {
            (Some(true), false) => 0,
            (_, true) if document["violations"] == json!([]) => 3,
            _ => 1,
        };
        assert_eq!(output.code, Some(expected), "{document}");
        (!open).then_some(document)
    })
    .await
}

fn accept_all(world: &World) {
    let accepted = Cli::new(ADMIN, world.cluster.url()).json(&["store", "accept"]);
    assert!(accepted["accepted"].as_u64() > Some(0), "{accepted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn what_auto_acknowledged_is_there_once_whichever_master_is_lost() {
    let world = World::start(0).await;
    let node = (world.home() + 1) % MASTERS;
    let admin = world.admin("auto");
    let rows = cut_off(&world, &admin, node).await;
    let replies = join_all(rows.iter().map(Row::send)).await;
    world.cluster.lose(node, &rows[0].payer.account.keys.record());
    let acknowledged = each_is_done_once(&world, &rows, &replies).await;
    println!(
        "{acknowledged} of {} acknowledged without the replica, none of them lost",
        rows.len()
    );
}

/// Both masters that take part are cut off from their replicas right after they acknowledged every other row, are asked
/// for the rest, and are killed together. Of three masters one is left, which elects nobody: the operator lets the
/// replicas take over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn what_auto_acknowledged_is_there_once_when_two_masters_are_lost_together() {
    let world = World::start(0).await;
    let node = (world.home() + 1) % MASTERS;
    let both = [node, (node + 1) % MASTERS];
    let admin = world.admin("auto");
    let rows = prepared(&world, &admin, node).await;
    // Of the first row the payer is on the first of them, and the payee on the other.
    let records = [&rows[0].payer, &rows[0].payee].map(|party| party.account.keys.record());

    let send = async |first: bool| {
        let half = rows.iter().enumerate().filter(|(at, _)| (at % 2 == 0) == first);
        join_all(half.map(async |(at, row)| (at, row.send().await))).await
    };
    let mut replies = send(true).await;
    for at in both {
        world.cluster.cut_off(world.cluster.replica_of(at));
    }
    for (at, reply) in &replies {
        assert_eq!(reply.status, 200, "{}: {}", rows[*at].name(), reply.text());
    }
    let confirmed = replies.len();
    replies.extend(send(false).await);
    world
        .cluster
        .lose_together(&[(both[0], &records[0]), (both[1], &records[1])]);
    for record in &records {
        world.found_again(record).await;
    }

    replies.sort_by_key(|(at, _)| *at);
    let replies: Vec<Reply> = replies.into_iter().map(|(_, reply)| reply).collect();
    let acknowledged = each_is_done_once(&world, &rows, &replies).await;
    assert!(acknowledged >= confirmed, "{acknowledged}");
    println!(
        "{acknowledged} of {} acknowledged by two masters that were lost together, none of them lost",
        rows.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn what_async_lost_is_noticed_by_every_server_and_by_the_check() {
    let world = World::start(0).await;
    let node = (world.home() + 1) % MASTERS;
    let (admin, other) = (world.admin("async"), world.admin("async"));
    let rows = cut_off(&world, &admin, node).await;
    for (row, reply) in rows.iter().zip(join_all(rows.iter().map(Row::send)).await) {
        assert_eq!(reply.status, 200, "{}: {}", row.name(), reply.text());
    }
    world.cluster.lose(node, &rows[0].payer.account.keys.record());

    // One that was acknowledged it, one that never met the account, and one that has just started.
    let young = world.admin("async");
    let check = conclusion(&world).await;
    assert_eq!(check["ok"], json!(false), "{check}");
    for row in rows.iter().filter(|row| row.kind.changes(row.victim)) {
        let (name, party) = (row.name(), row.lost());
        for server in [&admin, &other, &young] {
            let caller = server.caller(&party.key);
            let reply = eventually("an answer of the new master", SOON, async || {
                let reply = caller.get("/v1/wallet").await;
                (reply.status != 503 || server.logs().contains(&party.account.id)).then_some(reply)
            })
            .await;
            assert_eq!(reply.status, 503, "{name}: {}", reply.text());
            assert!(server.logs().contains("lost writes"), "{name}");
        }
        assert_eq!(
            row.send_as_payer_or_payee(party).await,
            503,
            "{name}: it must not be paid twice"
        );
        let named = check["violations"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|violation| {
                violation["invariant"] == json!("versions")
                    && violation["records"].to_string().contains(&party.account.id)
            });
        assert!(named, "{name}: {check}");
    }
}

impl Row {
    /// The status of the same request, when the account that lost writes asks.
    async fn send_as_payer_or_payee(&self, lost: &Party) -> u16 {
        let asks = if self.by_payee { &self.payee } else { &self.payer };
        if asks.account.id == lost.account.id {
            self.send().await.status
        } else {
            lost.caller.get("/v1/wallet").await.status
        }
    }
}
