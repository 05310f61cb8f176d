//! An account whose agents spend and agree on escrows, through the management API.

use crate::fixture::{BINARY, Fixture, success, text};
use archive::Archive;
use archive::intents::Age;
use archive::location::ArchiveLocation;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::timestamp::ms_from_iso;
use harness::{Caller, Cli, Reply, SeedAccount};
use serde_json::{Value, json};
use settings::load_from;
use store::StoreError;
use store::server_clock;
use tempfile::TempDir;

/// The mode of everything here: the one in which deposits are made through the API.
pub const MODE: Mode = Mode::Test;
const FILTERS: [&str; 12] = [
    "",
    "&agentId=ann",
    "&agentId=bob",
    "&agentId=user",
    "&agentId=nobody",
    "&kind=spend",
    "&kind=escrow_create",
    "&kind=escrow_fund",
    "&kind=escrow_release",
    "&state=settled",
    "&state=blocked",
    "&state=pending_approval",
];

pub struct IntentFixture {
    pub management: Fixture,
    pub account: SeedAccount,
    pub caller: Caller,
    pub approver: Caller,
    pub root: TempDir,
    pub archive: Archive,
    /// The wallets of ann and bob.
    pub wallets: [Value; 2],
}

impl IntentFixture {
    /// Two agents with money. Spends above 50 USD wait for approval, and those above 500 are refused.
    pub async fn build() -> Self {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().display().to_string();
        let management = Fixture::start_with(|options| options.env("TOLLGATE_AUDIT__ARCHIVE", place)).await;
        let account = management.seed.account("enterprise").await;
        let caller = management.caller(&account, MODE).await;
        let may = [Permission::Read, Permission::Approve];
        let approver = account.issue(MODE, &may, &[], None).await;
        let mut wallets = [Value::Null, Value::Null];
        for (wallet, agent) in wallets.iter_mut().zip(["ann", "bob"]) {
            let made = caller.post("/v1/wallets/create", json!({ "botId": agent })).await;
            *wallet = success(&made, 200)["wallet"]["walletId"].clone();
            let deposit = json!({ "wallet": wallet, "amount": 5000, "reference": format!("rail-{agent}") });
            success(&caller.post("/v1/wallet/deposits", deposit).await, 200);
            let policy = json!({ "approvalThreshold": 50, "maxSpendPerTransaction": 500 });
            success(&caller.post(&format!("/v1/policies/{agent}"), policy).await, 200);
        }
        Self {
            approver: management.admin.caller(&approver.secret),
            archive: archive_at(&root),
            management,
            account,
            caller,
            root,
            wallets,
        }
    }

    pub fn cli(&self) -> Cli {
        let place = self.root.path().display().to_string();
        Cli::new(BINARY, self.management.redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", place)
    }

    /// Checks the whole ledger.
    #[track_caller]
    pub fn check(&self, code: i32) -> Value {
        self.cli().json_exit(&["ledger", "check"], code)
    }

    pub async fn spend(&self, agent: &str, amount: u64, key: &str) -> Reply {
        let body = json!({ "agent": agent, "amount": amount, "description": format!("n {amount}") });
        self.caller.post_once("/v1/spend", key, body).await
    }

    /// Makes a settled spend. Returns its intent.
    pub async fn settled(&self, agent: &str, amount: u64, key: &str) -> String {
        let bodies = success(&self.spend(agent, amount, key).await, 200);
        text(&bodies, "/intent_id").to_owned()
    }

    /// Makes a spend that waits for approval. Returns its intent.
    pub async fn waiting(&self, agent: &str, key: &str) -> String {
        let bodies = self.spend(agent, 60, key).await;
        assert_eq!(bodies.status, 202, "{}", bodies.text());
        text(&bodies.json(), "/intent_id").to_owned()
    }

    pub async fn decide(&self, intent: &str, word: &str) {
        let path = format!("/v1/intents/{intent}/{word}");
        let bodies = self.approver.post(&path, json!({})).await;
        assert_eq!(bodies.status, 200, "{}", bodies.text());
    }

    pub async fn escrow(&self, word: &str, body: Value) -> Value {
        let bodies = self.caller.post(&format!("/v1/escrow/{word}"), body).await;
        success(&bodies, 200)
    }

    /// Makes an escrow that ann has funded for bob. Returns its number.
    pub async fn funded(&self) -> Value {
        self.funded_for(&self.wallets[1]).await
    }

    /// Creates an unfunded escrow. Returns its number.
    pub async fn unfunded(&self) -> Value {
        let [from, to] = &self.wallets;
        let body = json!({ "fromWalletId": from, "toWalletId": to, "amount": 7 });
        self.escrow("create", body).await["escrow"]["id"].clone()
    }

    /// Makes an escrow that ann has funded for a wallet. Returns its number.
    pub async fn funded_for(&self, to: &Value) -> Value {
        let from = &self.wallets[0];
        let body = json!({ "fromWalletId": from, "toWalletId": to, "amount": 7 });
        let made = self.escrow("create", body).await;
        let number = made["escrow"]["id"].clone();
        self.escrow("fund", json!({ "escrowId": number })).await;
        number
    }

    /// Makes some of each kind of intent that can be archived.
    pub async fn make_some_of_each(&self, round: u64) {
        for n in 1..4 {
            let agent = if n == 2 { "bob" } else { "ann" };
            self.settled(agent, n, &format!("{round}-{n}")).await;
        }
        let refused = self.spend("ann", 501, &format!("{round}-much")).await;
        assert_eq!(refused.status, 402, "{}", refused.text());
        for word in ["approve", "deny"] {
            let waiting = self.waiting("bob", &format!("{round}-{word}")).await;
            self.decide(&waiting, word).await;
        }
        let escrow = self.funded().await;
        self.escrow("release", json!({ "escrowId": escrow })).await;
        let late = json!({ "escrowId": escrow });
        let late = self.caller.post("/v1/escrow/release", late).await;
        assert_eq!(late.status, 409, "{}", late.text());
    }

    /// Archives all intents that may be archived, as of `now_ms` and without a least age.
    pub async fn move_until(&self, now_ms: u64) -> Result<u64, StoreError> {
        self.move_of(&self.account, now_ms).await
    }

    async fn move_of(&self, account: &SeedAccount, now_ms: u64) -> Result<u64, StoreError> {
        let realm = account.keys.in_mode(MODE);
        let moving = self
            .archive
            .move_intents(&self.management.store, &realm, age(now_ms), 0);
        moving.await.map(|moved| moved.intents)
    }

    /// Archives all intents that may move. Returns how many moved.
    pub async fn move_all(&self) -> u64 {
        self.move_all_of(&self.account).await
    }

    /// Archives all intents of `account` that may move. Returns how many moved.
    pub async fn move_all_of(&self, account: &SeedAccount) -> u64 {
        let now_ms = self.now_ms().await;
        let mut all = 0;
        loop {
            match self.move_of(account, now_ms).await.unwrap() {
                0 => return all,
                moved => all += moved,
            }
        }
    }

    /// The store's time plus a minute, since the servers' clocks may be ahead.
    pub async fn now_ms(&self) -> u64 {
        server_clock::now_ms(&self.management.store).await.unwrap() + 60_000
    }

    /// The answer of the API under `path`.
    pub async fn get(&self, path: &str) -> Reply {
        self.caller.get(path).await
    }

    /// All intents, newest first.
    pub async fn all(&self) -> Vec<Value> {
        let bodies = success(&self.get("/v1/intents?limit=100").await, 200);
        bodies["intents"].as_array().unwrap().clone()
    }

    /// Everything that the API shows of the intents: lists and pages, documents, exports.
    pub async fn bodies(&self) -> Vec<(String, String)> {
        let mut paths = Vec::new();
        for filter in FILTERS {
            for (limit, offset) in [(100, 0), (1, 0), (3, 2), (4, 7), (5, 20), (2, 90)] {
                paths.push(format!("/v1/intents?limit={limit}&offset={offset}{filter}"));
            }
        }
        for intent in self.all().await {
            let path = format!("/v1/intents/{}", text(&intent, "/intent_id"));
            paths.extend(["", "/export", "/export?format=csv"].map(|end| format!("{path}{end}")));
        }
        let mut bodies = Vec::new();
        for path in paths {
            let reply = self.get(&path).await;
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
            bodies.push((path.clone(), without_cursor(&path, &reply)));
        }
        bodies
    }

    /// The intents that are still in the store.
    pub fn live(&self) -> u64 {
        let keys = self.account.keys.prefix();
        self.management
            .redis
            .command(&["LLEN", &format!("{keys}/{MODE}/intents")])
    }
}

/// The text of a reply; of a list without its cursor, which depends on whether the page's end is archived.
pub fn without_cursor(path: &str, reply: &Reply) -> String {
    if !path.contains("limit=") {
        return reply.text();
    }
    let mut list = reply.json();
    list["nextCursor"] = Value::Null;
    list.to_string()
}

/// An archive with empty caches.
pub fn archive_at(root: &TempDir) -> Archive {
    let place = root.path().display().to_string();
    let variables = [("TOLLGATE_AUDIT__ARCHIVE".to_owned(), place)];
    Archive::at(
        ArchiveLocation::from_settings(&load_from(None, variables.into_iter()).unwrap().audit).unwrap(),
    )
}

/// Bounds by which every intent may be archived at once.
pub const fn age(now_ms: u64) -> Age {
    Age {
        now_ms,
        after_ms: 0,
        gather_ms: 0,
    }
}

#[track_caller]
pub fn made_at(intent: &Value) -> u64 {
    ms_from_iso(text(intent, "/created_at")).unwrap()
}
