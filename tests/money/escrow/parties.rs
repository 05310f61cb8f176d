//! Accounts with money, and short forms of the calls on escrows.

pub use harness::replayed;

use crate::fixture::{Fixture, success, text};
use clock::now_ms;
use domain::id::IdKind;
use domain::intent::{IntentState, Reason};
use domain::mode::Mode;
use domain::money::{NANOS_PER_USD, Nanos};
use harness::{Caller, Reply, SeedAccount, Store, assert_fields};
use serde_json::{Value, json};
use store::deposit::DepositState;
use store::deposit::script::{DepositMade, NewDeposit};
use store::idempotency::RequestIdentity;
use store::intent::IntentRecord;
use store::keys::{IntentIndex, USER};
use store::script::change::Scope;
use store::transaction::Transaction;
use store::wallet::script::find_or_open_user_wallet;
use store::wallet::{BALANCE_MAX, Wallet, WalletPlace};

/// A possible party to an escrow: an account, its key, and the wallet of one agent.
pub struct Side {
    pub account: SeedAccount,
    pub caller: Caller,
    pub mode: Mode,
    pub owner: String,
    pub wallet: u64,
    store: Store,
}

impl Side {
    /// A new account with one agent.
    pub async fn new(fixture: &Fixture) -> Self {
        let (account, caller) = fixture.account("startup").await;
        Self::with_agent(fixture, &account, caller, Mode::Live).await
    }

    /// One more agent of the same account.
    pub async fn another(&self, fixture: &Fixture) -> Self {
        Self::with_agent(fixture, &self.account, self.caller.clone(), self.mode).await
    }

    /// The same account in test mode, with an agent of its own.
    pub async fn in_test_mode(&self, fixture: &Fixture) -> Self {
        let caller = fixture.caller(&self.account, Mode::Test).await;
        Self::with_agent(fixture, &self.account, caller, Mode::Test).await
    }

    async fn with_agent(fixture: &Fixture, account: &SeedAccount, caller: Caller, mode: Mode) -> Self {
        let made = success(&caller.post("/v1/agents", json!({ "name": "Party" })).await, 200);
        let owner = text(&made, "/agent/id").to_owned();
        let store = fixture.store.clone();
        let wallet = Wallet::find_by_owner(&store, &account.keys.in_mode(mode), &owner)
            .await
            .unwrap()
            .unwrap();
        Self {
            account: account.clone(),
            caller,
            mode,
            owner,
            wallet: wallet.number,
            store,
        }
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope {
            account: &self.account.id,
            mode: self.mode,
            actor: "test",
        }
    }

    /// The account's own wallet in the place of the agent's.
    pub async fn as_user(&self) -> Self {
        let wallet = find_or_open_user_wallet(&self.store, &self.scope())
            .await
            .unwrap();
        Self {
            account: self.account.clone(),
            caller: self.caller.clone(),
            mode: self.mode,
            owner: USER.to_owned(),
            wallet: wallet.number,
            store: self.store.clone(),
        }
    }

    /// Deposits this many nano-USD.
    pub async fn deposit(&self, nanos: u64) {
        let identity = fresh_identity();
        let transaction = IdKind::Transaction.mint(now_ms()).unwrap();
        let place = WalletPlace {
            account: self.account.id.clone(),
            mode: self.mode,
            owner: self.owner.clone(),
            number: self.wallet,
        };
        let deposit = NewDeposit {
            identity: &identity,
            record_life: None,
            wallet: &place,
            closed: false,
            amount: Nanos::new(nanos).unwrap(),
            currency: "USD",
            reference: &transaction,
            state: DepositState::Confirmed,
            transaction: &transaction,
            request: "{}",
            at_ms: now_ms(),
        };
        let made = deposit.execute(&self.store, &self.scope()).await.unwrap();
        assert!(matches!(made, DepositMade::Done { again: false, .. }), "{made:?}");
    }

    /// Deposits until the wallet has room for `room` nano-USD.
    pub async fn fill(&self, room: u64) {
        let mut left = BALANCE_MAX.get() - room - self.balance().await;
        while left > 0 {
            let part = left.min(Nanos::MAX.get());
            self.deposit(part).await;
            left -= part;
        }
    }

    /// Balance of the wallet, in nano-USD.
    pub async fn balance(&self) -> u64 {
        let wallet = self.account.keys.in_mode(self.mode).wallet(&self.owner);
        let balance: Option<u64> = self
            .store
            .command(redis::cmd("HGET").arg(wallet).arg("balance"))
            .await
            .unwrap();
        balance.unwrap_or(0)
    }

    /// Writes a balance directly into the store, since no caller can bring the wallet into such a state quickly.
    pub async fn force_balance(&self, balance: &str) {
        let wallet = self.account.keys.in_mode(self.mode).wallet(&self.owner);
        let mut set = redis::cmd("HSET");
        let _: i64 = self
            .store
            .command(set.arg(wallet).arg("balance").arg(balance))
            .await
            .unwrap();
    }

    /// The numbers of the escrows that are open for the wallet.
    pub async fn open(&self) -> Vec<u64> {
        let key = self.account.keys.in_mode(self.mode).open_escrows(&self.owner);
        let mut open: Vec<u64> = self.store.command(redis::cmd("SMEMBERS").arg(key)).await.unwrap();
        open.sort_unstable();
        open
    }

    /// The transactions of the account, oldest first.
    pub async fn transactions(&self) -> Vec<Transaction> {
        let key = self.account.keys.in_mode(self.mode).transactions();
        let lines: Vec<(u64, String)> = self.store.command(redis::cmd("HGETALL").arg(key)).await.unwrap();
        let mut lines: Vec<(u64, Transaction)> = lines
            .into_iter()
            .map(|(number, line)| (number, Transaction::parse(&line).unwrap()))
            .collect();
        lines.sort_by_key(|(number, _)| *number);
        lines.into_iter().map(|(_, transaction)| transaction).collect()
    }

    /// An intent of the account, which must be intact.
    pub async fn intent(&self, id: &str) -> Option<IntentRecord> {
        let record = IntentRecord::read(&self.store, &self.account.keys.in_mode(self.mode), id)
            .await
            .unwrap();
        if let Some(record) = &record {
            assert!(record.is_intact(), "{record:?}");
            assert_eq!(record.id, id);
        }
        record
    }

    /// Checks that an intent is there, blocked for this reason.
    pub async fn blocked(&self, id: &str, reason: Reason) {
        let record = self.intent(id).await.unwrap_or_else(|| panic!("no intent {id}"));
        assert_eq!(
            (record.state, record.reason),
            (IntentState::Blocked, Some(reason))
        );
        assert_eq!((record.transaction, record.balance), (None, None));
        assert!(
            self.index(IntentIndex::State("blocked"))
                .await
                .contains(&id.to_owned())
        );
    }

    /// Checks that an intent is there and settled, and returns it.
    pub async fn settled(&self, id: &str) -> IntentRecord {
        let record = self.intent(id).await.unwrap_or_else(|| panic!("no intent {id}"));
        assert_eq!((record.state, record.reason), (IntentState::Settled, None));
        let settled = self.index(IntentIndex::State("settled")).await;
        assert_eq!(settled.iter().filter(|one| *one == id).count(), 1, "{settled:?}");
        record
    }

    /// The ids in one of the account's lists of intents.
    pub async fn index(&self, which: IntentIndex<'_>) -> Vec<String> {
        let key = self.account.keys.in_mode(self.mode).intents(which);
        let mut range = redis::cmd("LRANGE");
        self.store.command(range.arg(key).arg(0).arg(-1)).await.unwrap()
    }

    /// The release and dispute intents of an escrow that this account pays.
    pub async fn siblings(&self, escrow: u64) -> Vec<String> {
        let key = self.account.keys.in_mode(self.mode).escrow_siblings(escrow);
        let mut range = redis::cmd("LRANGE");
        self.store.command(range.arg(key).arg(0).arg(-1)).await.unwrap()
    }

    /// `POST /v1/escrow/<word>` with an idempotency key.
    pub async fn call(&self, word: &str, key: &str, body: Value) -> Reply {
        self.caller
            .post_once(&format!("/v1/escrow/{word}"), key, body)
            .await
    }

    /// Like [`Self::call`], without a key.
    pub async fn call_plain(&self, word: &str, body: Value) -> Reply {
        self.caller.post(&format!("/v1/escrow/{word}"), body).await
    }

    /// An escrow of this many nano-USD to `payee`, not funded.
    pub async fn escrow_to(&self, payee: &Side, nanos: u64) -> u64 {
        let amount = Nanos::new(nanos).unwrap().to_string();
        let body = json!({ "fromWalletId": self.wallet, "toWalletId": payee.wallet, "amount": amount });
        let made = success(&self.call_plain("create", body).await, 200);
        made["escrow"]["id"].as_u64().unwrap()
    }

    /// Like [`Self::escrow_to`], with the money deposited and the escrow funded.
    pub async fn funded_to(&self, payee: &Side, nanos: u64) -> u64 {
        let number = self.escrow_to(payee, nanos).await;
        self.deposit(nanos).await;
        success(&self.call_plain("fund", json!({ "escrowId": number })).await, 200);
        number
    }

    /// `status` of the record, as this account reads it.
    pub async fn status(&self, escrow: u64) -> String {
        let read = success(&self.caller.get(&format!("/v1/escrow/{escrow}")).await, 200);
        text(&read, "/escrow/status").to_owned()
    }
}

/// The identity of a request without a key.
fn fresh_identity() -> RequestIdentity {
    let mint = || IdKind::Intent.mint(now_ms()).unwrap();
    RequestIdentity {
        id: mint(),
        spare_id: mint(),
        fingerprint: String::new(),
    }
}

/// Whole USD in nano-USD.
pub const fn usd(whole: u64) -> u64 {
    whole * NANOS_PER_USD
}

/// Checks a refusal that left an intent: status, code and the fields that come with it. Returns the intent's id.
#[track_caller]
pub fn refused(reply: &Reply, status: u16, code: &str, reason: Reason) -> String {
    assert_eq!(reply.status, status, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["code"], json!(code), "{body}");
    assert_eq!(body["state"], json!("blocked"));
    assert_eq!(body["blocked_reason"], json!(reason.sentence()));
    assert_fields!(body, { "error": reason.sentence(), "intentId": body["intent_id"] });
    assert_fields!(body, { "success": false, "reason": reason.as_str() });
    text(&body, "/intent_id").to_owned()
}
