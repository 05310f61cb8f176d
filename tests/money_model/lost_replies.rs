//! A lost answer and a retry with the same key and body, on every route: one execution, the same record (invariant
//! I10).

use crate::fixture::{ADMIN, Fixture, initialised, ok};
use harness::{Admin, AdminOptions, Caller, Redis, Reply, Wire, assert_fields, eventually, until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Number of lost replies to commands that name a request's record, counted from the first.
const LOSSES: u32 = 3;

struct LossFixture {
    fixture: Fixture,
    wire: Arc<Wire>,
    admin: Admin,
}

impl LossFixture {
    async fn set() -> Self {
        let redis = initialised(Redis::start()).await;
        let straight = Admin::start(AdminOptions::new(ADMIN, redis.url()));
        let fixture = Fixture::found(redis, &straight.url()).await;
        let wire = Arc::new(Wire::to_port(fixture.redis.port()));
        let options = AdminOptions::new(ADMIN, wire.redis_url()).env("TOLLGATE_STORE__TIMEOUT_MS", "400");
        Self {
            fixture,
            wire,
            admin: Admin::start(options),
        }
    }

    fn caller(&self, at: usize) -> Caller {
        self.admin.caller(&self.fixture.tenants[at].key)
    }

    /// Repeats the request until an answer is not a server error.
    async fn until_answered(&self, caller: &Caller, path: &str, body: &Value) -> Reply {
        eventually("an answer", Duration::from_secs(10), async || {
            let sent = caller.try_send("POST", path, &[], body.to_string()).await.ok()?;
            (sent.status < 500).then_some(sent)
        })
        .await
    }

    /// Number of transactions of both accounts.
    fn transactions(&self) -> u64 {
        let account = |at: usize| &self.fixture.tenants[at].account.keys;
        (0..2)
            .map(|at| {
                let key = account(at).live().transactions();
                self.fixture.redis.command::<u64>(&["HLEN", &key])
            })
            .sum()
    }
}

/// Loses replies of the store to a request, repeats it with the same key, and compares the answer with a third one.
async fn once(setup: &LossFixture, who: usize, path: &str, mut body: Value, transactions: u64) -> Value {
    let caller = setup.caller(who);
    let before = setup.transactions();
    body["idempotency_key"] = json!(format!("{path} {body}"));
    // The commands of a request contain the key of its record. Those of a spend begin with a read; only its script
    // contains the field name of the fingerprint.
    let needle = match path {
        "/v1/spend" => "\r\nfp\r\n",
        _ => "/intent/int_",
    };
    setup.wire.lose_reply_to(needle, LOSSES);
    let second = setup.until_answered(&caller, path, &body).await;
    setup.wire.heal();
    assert!(setup.wire.replies_lost() > 0, "{path}: an answer was lost");
    let third = setup.until_answered(&caller, path, &body).await;
    let (second, third) = (second.json(), third.json());
    assert_eq!(third["replayed"], json!(true), "{path}: {third}");
    assert_fields!(second, { "intent_id": third["intent_id"] }, "{path}: {second} {third}");
    let mut plain = [second.clone(), third];
    for answer in &mut plain {
        let fields = answer.as_object_mut().expect("an object");
        for field in ["replayed", "error", "code"] {
            fields.remove(field);
        }
    }
    assert_eq!(plain[0], plain[1], "{path}");
    until("its effect", async || {
        setup.transactions() == before + transactions
    })
    .await;
    second
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_key_after_a_lost_reply_does_it_once() {
    let setup = LossFixture::set().await;
    let [a, b] = &setup.fixture.tenants;
    let (ours, theirs) = (a.wallets.clone(), b.wallets.clone());
    for round in 0..5 {
        let amount = format!("0.{}", round + 1);
        let spend =
            json!({ "agent": "ann", "amount": amount, "description": "d", "metadata": { "n": round } });
        let done = once(&setup, 0, "/v1/spend", spend, 1).await;
        assert_eq!(done["state"], json!("settled"));
        let own = json!({ "from": "user", "to": "bob", "amount": amount, "memo": "m" });
        once(&setup, 0, "/v1/wallet/transfer", own, 2).await;
        let over = json!({ "from": ours[1], "to": theirs[2], "amount": amount });
        once(&setup, 0, "/v1/wallets/transfer", over, 2).await;
        for (to, payee, resolver, action) in [
            (ours[2], 0, 0, "release"),
            (theirs[2], 1, 0, "release"),
            (theirs[2], 1, 1, "release"),
            (ours[2], 0, 0, "dispute"),
            (theirs[2], 1, 1, "dispute"),
        ] {
            let what = format!("{round} {to} {resolver} {action}");
            let create = json!({ "fromWalletId": ours[1], "toWalletId": to, "amount": amount, "conditions": { "w": what } });
            let made = once(&setup, 0, "/v1/escrow/create", create, 0).await;
            let escrow = made["escrow"]["id"].clone();
            once(&setup, 0, "/v1/escrow/fund", json!({ "escrowId": escrow }), 1).await;
            let body = json!({ "escrowId": escrow });
            let moved = u64::from(action == "release");
            let resolved = once(&setup, resolver, &format!("/v1/escrow/{action}"), body, moved).await;
            let shown = ok(&setup.caller(payee).get(&format!("/v1/escrow/{escrow}")).await);
            assert_eq!(shown["escrow"]["status"], resolved["status"]);
            let id = resolved["intent_id"].as_str().expect("an intent");
            let intent = ok(&setup
                .caller(resolver)
                .get(&format!("/v1/intents/{id}/export"))
                .await);
            assert_eq!(intent["state"], json!("settled"), "{intent}");
        }
    }
    setup.fixture.books_are_right("after lost replies");
}
