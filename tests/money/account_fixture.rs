//! An account in test mode with wallets that are funded through the API.

pub use harness::replayed;

use crate::fixture::{Fixture, success, text};
use clock::now_ms;
use domain::id::IdKind;
use domain::mode::Mode;
use harness::{Caller, Reply, SeedAccount};
use serde_json::{Value, json};
use store::keys::USER;
use store::transaction::Transaction;
use store::wallet::{Wallet, WalletPlace};

/// An account and its key of one mode.
pub struct AccountFixture {
    pub account: SeedAccount,
    pub caller: Caller,
    pub mode: Mode,
}

/// The names of a wallet.
pub struct Named {
    pub number: u64,
    pub id: String,
}

/// An invalid amount of each kind (decision D4), and a part of its error message. The tests of `domain::amount` cover
/// all others.
pub const BAD_AMOUNTS: &[(&str, &str)] = &[
    ("0", "must be greater than zero"),
    ("-1", "must not be negative"),
    ("1e-10", "at most nine fraction digits"),
    ("9000000.000000001", "must be at most 9000000 USD"),
    ("\"NaN\"", "must be a decimal number"),
    ("null", "amount is required"),
];

impl AccountFixture {
    /// A new account in test mode.
    pub async fn new(fixture: &Fixture) -> Self {
        let account = fixture.seed.account("enterprise").await;
        Self::with_account(fixture, account, Mode::Test).await
    }

    pub async fn with_account(fixture: &Fixture, account: SeedAccount, mode: Mode) -> Self {
        let caller = fixture.caller(&account, mode).await;
        Self {
            account,
            caller,
            mode,
        }
    }

    /// Makes the wallet of a bot.
    pub async fn bot(&self, id: &str) -> Named {
        let request = json!({ "botId": id });
        let body = success(&self.caller.post("/v1/wallets/create", request).await, 200);
        Named {
            number: body["wallet"]["walletId"].as_u64().unwrap(),
            id: text(&body, "/wallet/id").to_owned(),
        }
    }

    /// Deposits money into a wallet.
    pub async fn fund(&self, wallet: impl Into<Value>, amount: impl Into<Value>) {
        let reference = IdKind::Transaction.mint(now_ms()).unwrap();
        let body = json!({ "wallet": wallet.into(), "amount": amount.into(), "reference": reference });
        success(&self.caller.post("/v1/wallet/deposits", body).await, 200);
    }

    /// `POST` with an idempotency key, which is left out when it is empty.
    pub async fn keyed(&self, path: &str, key: &str, body: &Value) -> Reply {
        self.caller.post_once(path, key, body.clone()).await
    }

    /// The wallet of an agent or `user`.
    pub async fn wallet(&self, fixture: &Fixture, owner: &str) -> Wallet {
        let wallet =
            Wallet::find_by_owner(&fixture.store, &self.account.keys.in_mode(self.mode), owner).await;
        wallet.unwrap().unwrap_or_else(|| panic!("no wallet of {owner}"))
    }

    /// Balance of the wallet of an agent or `user`, in nano-USD.
    pub async fn balance(&self, fixture: &Fixture, owner: &str) -> u64 {
        self.wallet(fixture, owner).await.balance.get()
    }

    /// The place of the wallet of an agent or `user`.
    pub async fn place(&self, fixture: &Fixture, owner: &str) -> WalletPlace {
        WalletPlace {
            account: self.account.id.clone(),
            mode: self.mode,
            owner: owner.to_owned(),
            number: self.wallet(fixture, owner).await.number,
        }
    }

    /// The number of the user wallet, which this request opens.
    pub async fn user(&self) -> u64 {
        let body = success(&self.caller.get("/v1/wallet").await, 200);
        assert_eq!(body["user_wallet"]["agentId"], Value::Null);
        body["user_wallet"]["walletId"].as_u64().unwrap()
    }

    /// Every transaction of the account and mode, oldest first, as stored.
    pub async fn transactions(&self, fixture: &Fixture) -> Vec<Transaction> {
        let key = self.account.keys.in_mode(self.mode).transactions();
        let mut all = Vec::new();
        for number in 1_u64.. {
            let mut get = redis::cmd("HGET");
            let line: Option<String> = fixture.store.command(get.arg(&key).arg(number)).await.unwrap();
            let Some(line) = line else { break };
            all.push(Transaction::parse(&line).unwrap_or_else(|| panic!("{line}")));
        }
        all
    }

    /// Sum of the balances of the user wallet and of these agents' wallets.
    pub async fn total(&self, fixture: &Fixture, agents: &[&str]) -> u64 {
        let mut sum = 0;
        for owner in agents.iter().copied().chain([USER]) {
            sum += self.balance(fixture, owner).await;
        }
        sum
    }
}

/// Checks an error whose body may hold more than a sentence and a code.
#[track_caller]
pub fn refused(reply: &Reply, status: u16, code: &str) -> Value {
    assert_eq!(reply.status, status, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["code"], json!(code), "{body}");
    body
}
