//! The operator's commands for escrows: showing one, resolving its dispute (decision D27).

use crate::{document, ready, refused};
use clock::now_ms;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::money::Nanos;
use harness::{Cli, Redis, Seed, SeedAccount, Store, assert_fields};
use serde_json::{Value, json};
use store::escrow::script::{CallOutcome, NewEscrow, PartyDecision, Requester, decide, fund};
use store::escrow::{Escrow, Party};
use store::idempotency::RequestIdentity;
use store::keys::USER;
use store::script::change::Scope;
use store::wallet::script::find_or_open_user_wallet;

/// Amount of every escrow, in nano-USD.
const AMOUNT: u64 = 1_250_000_001;

/// Two accounts with money, on a store that is one server or several.
pub(crate) struct EscrowFixture<S = Redis> {
    pub(crate) redis: S,
    pub(crate) store: Store,
    pub(crate) cli: Cli,
    payer: SeedAccount,
    payee: SeedAccount,
}

impl EscrowFixture {
    pub(crate) async fn new() -> Self {
        let redis = Redis::start();
        let (cli, store) = (ready(&redis), redis.store());
        Self::on(redis, store, cli).await
    }

    fn balance(&self, account: &SeedAccount) -> u64 {
        self.redis
            .command(&["HGET", &account.keys.live().wallet(USER), "balance"])
    }

    fn resolve(&self, number: u64, to: &str, code: i32) -> Value {
        let number = number.to_string();
        let args = ["escrow", "resolve", "--escrow", &number, "--to", to, "--json"];
        document(&self.cli.run(&args), code)
    }
}

impl<S> EscrowFixture<S> {
    pub(crate) async fn on(redis: S, store: Store, cli: Cli) -> Self {
        let seed = Seed::new(&store).await;
        Self {
            payer: seed.account("startup").await,
            payee: seed.account("startup").await,
            redis,
            store,
            cli,
        }
    }

    fn scope<'a>(&self, account: &'a SeedAccount) -> Scope<'a> {
        Scope {
            account: &account.id,
            mode: Mode::Live,
            actor: "key_1",
        }
    }

    async fn party(&self, account: &SeedAccount) -> Party {
        let wallet = find_or_open_user_wallet(&self.store, &self.scope(account))
            .await
            .unwrap();
        Party {
            account: account.id.clone(),
            owner: USER.to_owned(),
            wallet: wallet.number,
        }
    }

    /// Makes an escrow between the two user wallets. `steps` is its state: 1 made, 2 funded, 3 disputed.
    pub(crate) async fn escrow(&self, steps: usize) -> u64 {
        let (payer, payee) = (self.party(&self.payer).await, self.party(&self.payee).await);
        let new = NewEscrow {
            payer: &payer,
            payee: &payee,
            amount: Nanos::new(AMOUNT).unwrap(),
            currency: "USD",
            conditions: r#"{"deliver":"a book"}"#,
        };
        let scope = self.scope(&self.payer);
        let identity = [(); 3].map(|()| identity());
        let requester = |step: usize| Requester {
            scope,
            identity: &identity[step],
            at_ms: now_ms(),
        };
        let CallOutcome::Done(made) = new.create(&self.store, &requester(0)).await.unwrap() else {
            panic!("not made");
        };
        let read = async || Escrow::read(&self.store, made.number).await.unwrap().unwrap();
        if steps > 1 {
            let wallet = self.payer.keys.live().wallet(USER);
            let mut give = redis::cmd("HINCRBY");
            give.arg(wallet).arg("balance").arg(AMOUNT);
            self.store.command::<i64>(&give).await.unwrap();
            let funded = fund(&self.store, &requester(1), &read().await).await.unwrap();
            assert!(matches!(funded, CallOutcome::Done(_)), "{funded:?}");
        }
        if steps > 2 {
            let verdict = PartyDecision::Dispute(Some("Nothing came"));
            let disputed = decide(&self.store, &requester(2), &read().await, verdict).await;
            assert_eq!(disputed.unwrap(), CallOutcome::Done(()));
        }
        made.number
    }
}

fn identity() -> RequestIdentity {
    let mint = || IdKind::Intent.mint(now_ms()).unwrap();
    RequestIdentity {
        id: mint(),
        spare_id: mint(),
        fingerprint: "f00".to_owned(),
    }
}

#[tokio::test]
async fn the_money_of_a_dispute_goes_where_the_operator_says() {
    let fixture = EscrowFixture::new().await;
    let released = fixture.escrow(3).await;
    assert_eq!(
        fixture.resolve(released, "payee", 0),
        json!({ "escrowId": released, "status": "released" })
    );
    assert_eq!(
        (fixture.balance(&fixture.payer), fixture.balance(&fixture.payee)),
        (0, AMOUNT)
    );
    let refunded = fixture.escrow(3).await;
    assert_eq!(
        fixture.resolve(refunded, "payer", 0),
        json!({ "escrowId": refunded, "status": "refunded" })
    );
    assert_eq!(
        (fixture.balance(&fixture.payer), fixture.balance(&fixture.payee)),
        (AMOUNT, AMOUNT)
    );
    for (number, status) in [(released, "released"), (refunded, "refunded")] {
        for to in ["payer", "payee"] {
            let refusal = fixture.resolve(number, to, 1);
            assert_eq!(refusal["code"], "ESCROW_WRONG_STATE");
            let message = format!("escrow {number} is {status}, not disputed");
            assert_eq!(refusal["error"], json!(message), "it cannot be taken back");
        }
    }
    assert_eq!(
        (fixture.balance(&fixture.payer), fixture.balance(&fixture.payee)),
        (AMOUNT, AMOUNT)
    );
    let audit: Vec<String> =
        fixture
            .redis
            .command(&["LRANGE", &fixture.payer.keys.live().audit(), "-1", "-1"]);
    assert!(
        audit[0].contains(r#""actor":"operator""#) && audit[0].contains("escrow.resolve"),
        "{audit:?}"
    );

    let number = fixture.escrow(3).await.to_string();
    let reported = fixture
        .cli
        .run(&["escrow", "resolve", "--escrow", &number, "--to", "payee"]);
    assert_eq!(
        reported.stdout,
        format!("Escrow {number} is released: 1.250000001 USD went to the payee.\n")
    );
}

#[tokio::test]
async fn only_a_dispute_can_be_ended() {
    let fixture = EscrowFixture::new().await;
    for (steps, status) in [(1, "pending"), (2, "funded")] {
        let number = fixture.escrow(steps).await;
        for to in ["payer", "payee"] {
            let refusal = fixture.resolve(number, to, 1);
            assert_eq!(refusal["code"], "ESCROW_WRONG_STATE");
            assert_fields!(refusal, { "error": format!("escrow {number} is {status}, not disputed") });
        }
        let shown = fixture
            .cli
            .json(&["escrow", "show", "--escrow", &number.to_string()]);
        assert_eq!(shown["status"], json!(status));
    }
    assert_eq!(
        (fixture.balance(&fixture.payer), fixture.balance(&fixture.payee)),
        (0, 0)
    );
    assert_eq!(fixture.resolve(7, "payer", 1)["code"], "NOT_FOUND");
    assert_fields!(refused(&fixture.cli, &["escrow", "show", "--escrow", "7"], 1), { "code": "NOT_FOUND" });
}

#[tokio::test]
async fn showing_an_escrow() {
    let fixture = EscrowFixture::new().await;
    let number = fixture.escrow(3).await.to_string();
    let shown = fixture.cli.json(&["escrow", "show", "--escrow", &number]);
    assert_fields!(shown, { "status": "disputed", "amountNanos": AMOUNT.to_string() });
    assert_eq!(shown["payer"]["accountId"], json!(fixture.payer.id));
    assert_eq!(shown["payee"]["owner"], "user");
    assert_fields!(shown, { "dispute_reason": "Nothing came", "conditions": { "deliver": "a book" } });
    let text = fixture.cli.run(&["escrow", "show", "--escrow", &number]).stdout;
    assert!(
        text.contains("1.250000001 USD") && text.contains("Nothing came"),
        "{text}"
    );
}
