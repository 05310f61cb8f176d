//! Release against dispute: 16 racers from both parties, 1,000 rounds, most of them by `make verify`. One wins, the
//! others get 409 and a blocked intent, and the money moves once (ARCHITECTURE.md, invariant 8).

use crate::fixture::{ADMIN, Fixture, initialised, ok};
use domain::intent::Reason;
use futures::future::join_all;
use harness::{Admin, AdminOptions, Caller, Redis, Reply};
use serde_json::{Value, json};

const RACERS: usize = 16;
/// Rounds that run at the same time.
const AT_ONCE: u64 = 4;

/// Plays one round on an escrow of its own. Returns whether the release won.
async fn race_once(payer: &Caller, payee: &Caller, (from, to): (u64, u64), number: u64) -> bool {
    let body = json!({ "fromWalletId": from, "toWalletId": to, "amount": "0.000000007" });
    let made = ok(&payer.post("/v1/escrow/create", body).await);
    let escrow = made["escrow"]["id"].as_u64().expect("an escrow id");
    let funded = payer.post("/v1/escrow/fund", json!({ "escrowId": escrow })).await;
    ok(&funded);
    // Each comes first in half of the rounds.
    let actions = match (number / AT_ONCE).is_multiple_of(2) {
        true => ["release", "dispute"],
        false => ["dispute", "release"],
    };
    let racers = (0..RACERS).map(|racer| {
        let caller = if racer % 2 == 0 { payer } else { payee };
        let action = actions[racer / 2 % 2];
        let body = json!({ "escrowId": escrow, "idempotency_key": format!("{number}-{racer}") });
        async move { (action, caller.post(&format!("/v1/escrow/{action}"), body).await) }
    });
    let replies: Vec<(&str, Reply)> = join_all(racers).await;
    let (won, lost): (Vec<_>, Vec<_>) = replies.iter().partition(|(_, reply)| reply.status == 200);
    assert_eq!(won.len(), 1, "round {number}: {replies:?}");
    let winner = won[0].1.json();
    let release_won = winner["status"] == json!("released");
    let reason = match release_won {
        true => Reason::EscrowReleased,
        false => Reason::EscrowDisputed,
    };
    for (_, reply) in &lost {
        let body = reply.json();
        assert_eq!(reply.status, 409, "round {number}: {body}");
        assert_eq!(body["code"], json!("ESCROW_RESOLVED"), "{body}");
        assert_eq!(body.get("replayed"), None, "{body}");
        assert_eq!(body["state"], json!("blocked"), "{body}");
        assert_eq!(body["blocked_reason"], json!(reason.sentence()), "{body}");
        assert_ne!(body["intent_id"], winner["intent_id"]);
    }
    let shown = ok(&payee.get(&format!("/v1/escrow/{escrow}")).await);
    assert_eq!(shown["escrow"]["status"], winner["status"]);
    check_siblings(payer, payee, &replies).await;
    release_won
}

/// Every racer's intent names all others, and only one of them is settled.
async fn check_siblings(payer: &Caller, payee: &Caller, replies: &[(&str, Reply)]) {
    for (racer, (action, reply)) in replies.iter().enumerate() {
        let caller = if racer % 2 == 0 { payer } else { payee };
        let id = reply.json()["intent_id"].as_str().expect("an intent").to_owned();
        let intent = ok(&caller.get(&format!("/v1/intents/{id}/export")).await);
        assert_eq!(intent["kind"], json!(format!("escrow_{action}")), "{intent}");
        let state = if reply.status == 200 { "settled" } else { "blocked" };
        assert_eq!(intent["state"], json!(state));
        assert_eq!(
            intent["blocked_reason"].is_null(),
            reply.status == 200,
            "{intent}"
        );
        let siblings = intent["xor_siblings"].as_array().expect("siblings");
        assert_eq!(siblings.len(), RACERS - 1, "{intent}");
        let settled = siblings
            .iter()
            .filter(|sibling| sibling["state"] == json!("settled"));
        assert_eq!(settled.count(), usize::from(reply.status != 200), "{intent}");
    }
}

async fn balance(caller: &Caller, number: u64) -> Value {
    let listed = ok(&caller.get("/v1/wallet").await);
    let agents = listed["agent_wallets"].as_array().expect("wallets").iter();
    let all: Vec<&Value> = agents.chain([&listed["user_wallet"]]).collect();
    let wallet = all.iter().find(|wallet| wallet["walletId"] == json!(number));
    wallet.expect("the wallet")["usdc"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_them_wins_and_the_money_moves_once() {
    race(200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "long: make verify runs it"]
async fn one_of_them_wins_in_each_of_many_rounds() {
    race(800).await;
}

async fn race(rounds: u64) {
    let redis = initialised(Redis::start()).await;
    let admin = Admin::start(AdminOptions::new(ADMIN, redis.url()));
    let fixture = Fixture::found(redis, &admin.url()).await;
    let [a, b] = &fixture.tenants;
    let callers = [&a.key, &b.key].map(|key| admin.caller(key));
    let mut released = [0_u64; 2];
    for batch in 0..rounds / AT_ONCE {
        let at_once = (0..AT_ONCE).map(|at| {
            // Half of the rounds are between two accounts, half within one.
            let between = usize::from(at % 2 == 0);
            let (payee, to) = [(&callers[0], a.wallets[2]), (&callers[1], b.wallets[2])][between];
            let number = batch * AT_ONCE + at;
            let payer = &callers[0];
            async move { (between, race_once(payer, payee, (a.wallets[1], to), number).await) }
        });
        for (between, won) in join_all(at_once).await {
            released[between] += u64::from(won);
        }
    }
    let (within, between) = (released[0], released[1]);
    assert!(
        within > 0 && between > 0 && within + between < rounds,
        "{released:?}: both win at times"
    );
    let nanos = 1_000_000_000_000_u64;
    let usd = |nanos: u64| -> Value {
        serde_json::from_str(&harness::Nanos::from_stored(nanos).to_string()).expect("a number")
    };
    assert_eq!(balance(&callers[0], a.wallets[1]).await, usd(nanos - 7 * rounds));
    assert_eq!(balance(&callers[0], a.wallets[2]).await, usd(nanos + 7 * within));
    assert_eq!(balance(&callers[1], b.wallets[2]).await, usd(nanos + 7 * between));
    fixture.books_are_right("after the race");
}
