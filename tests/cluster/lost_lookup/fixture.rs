//! Changes of data outside of the accounts' buckets. The look-up of each is on a wanted master if the test can choose
//! its name.

mod operator;
mod steps;

use crate::fixture::{ADMIN, Fixture, MASTERS, SOON, call};
use domain::mode::Mode;
use harness::{Admin, Caller, Cli, CliOutput, Role, SeedAccount, TEST_PASSWORD, eventually, words};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::keys;

/// Hash slots of a cluster.
const SLOTS: usize = 16_384;
/// Changes of each kind whose look-up is on a chosen master.
pub const EACH: usize = 2;
/// Maximum number of names tried until the look-up of one is on the wanted master.
const TRIES: usize = 200;
const PASSWORD: &str = "a password of mine";

/// A kind of change with a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupKind {
    /// An account with its owner: the list of accounts, and the owner's e-mail.
    Account,
    /// A user that the operator makes: the e-mail.
    User,
    /// A user who accepts an invitation: the e-mail.
    Invited,
    /// A user that the operator removes: the e-mail.
    Removed,
    /// A pending deposit: its reference.
    Pending,
    ApiKey,
    VirtualKey,
    /// A range that the operator blocks: the list of blocked addresses.
    Block,
    /// Prices that the operator imports.
    Prices,
}

use LookupKind::*;

impl LookupKind {
    pub const ALL: [Self; 9] = [
        Account, User, Invited, Removed, Pending, ApiKey, VirtualKey, Block, Prices,
    ];

    /// Changes of this kind that are made together. Names of keys and accounts are random: some are on each master.
    pub const fn count(self) -> usize {
        match self {
            User | Invited | Removed | Pending | Block | Prices => EACH,
            Account => 4,
            ApiKey | VirtualKey => 6,
        }
    }

    /// Whether `ledger check` reports a lost look-up. Neither the list of blocked addresses nor the prices belong to an
    /// account.
    pub const fn is_checked(self) -> bool {
        !matches!(self, Block | Prices)
    }

    /// Whether a test chooses the master that has the look-up, and the account.
    pub const fn is_chosen(self) -> bool {
        matches!(self, User | Invited | Removed | Pending)
    }
}

/// Index of the master that held `key` when the cluster started.
pub fn holder(fixture: &Fixture, key: &str) -> usize {
    let slot = usize::from(fixture.cluster.slot(key));
    let begins = |at: usize| at * SLOTS / MASTERS;
    (0..MASTERS)
        .find(|at| (begins(*at)..begins(at + 1)).contains(&slot))
        .expect("a master")
}

/// A key that the master at `node` held when the cluster started.
pub fn key_on(fixture: &Fixture, node: usize) -> String {
    named_on(fixture, node, "key", str::to_owned)
}

/// A name whose look-up the master at `node` held when the cluster started.
fn named_on(fixture: &Fixture, node: usize, prefix: &str, lookup: impl Fn(&str) -> String) -> String {
    for _ in 0..TRIES {
        let name = format!("{prefix}{}", fresh_number());
        if holder(fixture, &lookup(&name)) == node {
            return name;
        }
    }
    panic!("no {prefix} on node {node}");
}

/// A number that no other name has.
fn fresh_number() -> usize {
    static NUMBERS: AtomicUsize = AtomicUsize::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// An account on another master than the look-ups of its changes.
struct Tenant {
    account: SeedAccount,
    live: Caller,
    test: Caller,
    owner: String,
}

/// The servers, and an account for the look-ups of each master.
pub struct LookupFixture<'a> {
    fixture: &'a Fixture,
    admin: &'a Admin,
    durability: &'a str,
    /// `store.timeout_ms` of command lines.
    timeout_ms: &'a str,
    tenants: Vec<Tenant>,
}

impl<'a> LookupFixture<'a> {
    pub async fn new(fixture: &'a Fixture, admin: &'a Admin, durability: &'a str) -> Self {
        let mut tenants = Vec::new();
        for node in 0..MASTERS {
            let account = fixture.account_on((node + 1) % MASTERS).await;
            let test = admin.caller(&account.api_key(Mode::Test).await);
            assert_eq!(test.get("/v1/wallet").await.status, 200, "it opens the wallet");
            tenants.push(Tenant {
                live: admin.caller(&account.api_key(Mode::Live).await),
                owner: account.user(Role::Owner).await.email,
                test,
                account,
            });
        }
        Self {
            fixture,
            admin,
            durability,
            timeout_ms: "1000",
            tenants,
        }
    }

    /// Sets `store.timeout_ms` of command lines.
    pub const fn patient(mut self, timeout_ms: &'a str) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }

    fn run(&self, line: &str, stdin: &str) -> CliOutput {
        let cli = Cli::new(ADMIN, self.fixture.cluster.url())
            .env("TOLLGATE_STORE__DURABILITY", self.durability)
            .env("TOLLGATE_STORE__DURABILITY_TIMEOUT_MS", "700")
            .env("TOLLGATE_STORE__TIMEOUT_MS", self.timeout_ms);
        let words: Vec<&str> = words(line).into_iter().chain(["--json"]).collect();
        cli.run_with_stdin(&words, stdin)
    }

    async fn get(&self, key: &str) -> String {
        let found: Option<String> = eventually("a reply of the store", SOON, async || {
            self.fixture.store.command(redis::cmd("GET").arg(key)).await.ok()
        })
        .await;
        found.unwrap_or_default()
    }

    /// The Redis type of a key.
    async fn get_type(&self, key: &str) -> String {
        eventually("a reply of the store", SOON, async || {
            self.fixture.store.command(redis::cmd("TYPE").arg(key)).await.ok()
        })
        .await
    }

    /// Returns look-ups that do not name exactly one account, and deposits credited twice or not at all.
    pub async fn counted_twice<'c>(&self, changes: impl IntoIterator<Item = &'c Change<'a>>) -> Vec<String>
    where
        'a: 'c,
    {
        let (mut wrong, mut deposits) = (Vec::new(), BTreeMap::<usize, u64>::new());
        for change in changes {
            match change.kind {
                Account | User | Invited => {
                    let named = self.get(&keys::user_lookup(&change.name)).await;
                    let accounts = named.lines().filter_map(|line| line.split(' ').next());
                    let mut there = 0;
                    for account in accounts {
                        // A repeated creation has another id. An account that was never made costs each sign-in one
                        // read.
                        let record = self.get_type(&keys::AccountKeys::new(account).record()).await;
                        there += usize::from(change.kind != Account || record == "hash");
                    }
                    if there != 1 {
                        wrong.push(format!("{} leads to {named:?}", change.name()));
                    }
                }
                Pending => *deposits.entry(change.node).or_default() += 1,
                Removed | ApiKey | VirtualKey | Block | Prices => {}
            }
        }
        for (node, count) in deposits {
            let wallet = self.tenants[node].test.get("/v1/wallet").await;
            let balance = &wallet.json()["user_wallet"]["usdc"];
            if *balance != json!(count) {
                wrong.push(format!("{count} deposits of 1 USD, and {}", wallet.text()));
            }
        }
        wrong
    }
}

pub struct Change<'a> {
    lookup_fixture: &'a LookupFixture<'a>,
    kind: LookupKind,
    /// The master that has the look-up, unless its name is random.
    node: usize,
    /// E-mail or reference; empty where the name of the look-up is random.
    name: String,
    /// Token of the invitation.
    token: String,
    /// Id of the account, or the secret of the key, of an acknowledged change.
    made: Option<String>,
    /// Whether the operator names the account.
    is_recovered: bool,
}

impl<'a> Change<'a> {
    /// Takes the steps before the change.
    pub async fn prepare(lookup_fixture: &'a LookupFixture<'a>, kind: LookupKind, node: usize) -> Self {
        let name = match kind {
            Account | User | Invited | Removed => {
                let lookup = |name: &str| keys::user_lookup(&email(name));
                email(&named_on(lookup_fixture.fixture, node, "user", lookup))
            }
            Pending => named_on(lookup_fixture.fixture, node, "reference", keys::deposit_lookup),
            ApiKey | VirtualKey => String::new(),
            Block => operator::range(fresh_number()),
            Prices => format!("model-{}", fresh_number()),
        };
        let mut change = Self {
            lookup_fixture,
            kind,
            node,
            name,
            token: String::new(),
            made: None,
            is_recovered: false,
        };
        match kind {
            Removed => assert!(change.create_user().code == Some(0), "{}", change.name),
            Invited => change.token = change.invite().await,
            _ => {}
        }
        change
    }

    fn tenant(&self) -> &Tenant {
        &self.lookup_fixture.tenants[self.node]
    }

    pub fn name(&self) -> String {
        format!("{:?} {}", self.kind, self.name)
    }

    fn create_user(&self) -> CliOutput {
        let (account, email) = (&self.tenant().account.id, &self.name);
        let line = format!("user create --account {account} --email {email} --role viewer --password-stdin");
        self.lookup_fixture.run(&line, PASSWORD)
    }

    async fn invite(&self) -> String {
        let owner = self
            .lookup_fixture
            .admin
            .sign_in(&self.tenant().owner, TEST_PASSWORD)
            .await;
        let body = json!({ "email": self.name, "role": "viewer" });
        let invited = owner.post("/api/user/invitations", body).await;
        assert_eq!(invited.status, 200, "{}", invited.text());
        let invited = invited.json();
        let link = invited["link"].as_str().expect("a link");
        let (_, token) = link.split_once("/#/join/").expect("a token");
        token.to_owned()
    }

    /// Sends the change once. Returns whether it was acknowledged.
    pub async fn send(&mut self) -> bool {
        let (tenant, name, admin) = (self.tenant(), &self.name, self.lookup_fixture.admin);
        let account = &tenant.account.id;
        let made = match self.kind {
            Account => {
                let line = format!(
                    "account create --name {name} --plan enterprise --owner-email {name} --owner-password-stdin"
                );
                done(&self.lookup_fixture.run(&line, PASSWORD), "accountId")
            }
            User => done(&self.create_user(), "userId"),
            Removed => {
                let line = format!("user remove --account {account} --email {name}");
                done(&self.lookup_fixture.run(&line, ""), "email")
            }
            ApiKey => {
                let line = format!("api-key create --account {account} --mode test");
                done(&self.lookup_fixture.run(&line, ""), "key")
            }
            Block | Prices => self.send_as_operator(),
            Invited => {
                let body = json!({ "token": self.token, "password": PASSWORD });
                let path = "/api/user/invitations/accept";
                answered(admin.caller("").post(path, body).await, "/user/id")
            }
            Pending => {
                let body = json!({ "wallet": "user", "amount": 1, "reference": name, "pending": true,
                    "idempotency_key": name });
                answered(
                    tenant.test.post("/v1/wallet/deposits", body).await,
                    "/transactionId",
                )
            }
            VirtualKey => {
                let body = json!({ "name": "n" });
                answered(
                    tenant.live.post("/v1/agents/bot/virtual-keys", body).await,
                    "/secret",
                )
            }
        };
        self.made = made.or(self.made.take());
        self.made.is_some()
    }

    pub async fn repeat_until_acknowledged(&mut self) {
        let end = std::time::Instant::now() + SOON;
        while self.made.is_none() && !self.send().await {
            assert!(std::time::Instant::now() < end, "{}", self.name());
        }
    }

    /// The key of the look-up.
    fn lookup(&self) -> String {
        let hash = || crypto::sha256_hex(self.made.as_deref().expect("a key").as_bytes());
        match self.kind {
            Account => keys::ACCOUNTS.to_owned(),
            User | Invited | Removed => keys::user_lookup(&self.name),
            Pending => keys::deposit_lookup(&self.name),
            ApiKey => keys::api_key_lookup(&hash()),
            VirtualKey => keys::virtual_key_lookup(&hash()),
            Block => keys::BLOCKED.to_owned(),
            Prices => keys::PRICES.to_owned(),
        }
    }

    /// Whether the look-up of an acknowledged change was on the master at `node`, and the account was not.
    pub fn is_on(&self, node: usize) -> bool {
        let made = self.made.as_deref().expect("an acknowledged change");
        let fixture = self.lookup_fixture.fixture;
        let is_account_there =
            self.kind == Account && holder(fixture, &keys::AccountKeys::new(made).record()) == node;
        holder(fixture, &self.lookup()) == node && !is_account_there
    }

    pub const fn kind(&self) -> LookupKind {
        self.kind
    }

    /// The text by which `ledger check` names the lost look-up.
    pub fn trace(&self) -> String {
        match self.kind {
            Account => self.made.clone().expect("an account"),
            _ => self.lookup(),
        }
    }

    /// Returns a description if requests no longer find an acknowledged change.
    pub async fn lacks(&self) -> Option<String> {
        let (lookup_fixture, name) = (self.lookup_fixture, self.name());
        let made = self.made.as_deref().expect("an acknowledged change");
        let login = async || {
            let body = json!({ "email": self.name, "password": PASSWORD });
            let reply = lookup_fixture.admin.login(&body).await;
            (reply.status != 200).then(|| format!("{name}: {}", reply.text()))
        };
        match self.kind {
            Account => {
                let list = lookup_fixture.run("account list", "");
                let listed = list.stdout.matches(made).count();
                if listed != 1 {
                    return Some(format!("{name}: {made} is listed {listed} times"));
                }
                login().await
            }
            User | Invited => login().await,
            Removed => {
                let named = lookup_fixture.get(&self.lookup()).await;
                (!named.is_empty()).then(|| format!("{name}: still leads to {named}"))
            }
            Pending => {
                let account = match self.is_recovered {
                    true => format!(" --account {} --mode test", self.tenant().account.id),
                    false => String::new(),
                };
                let line = format!("deposit confirm --reference {}{account}", self.name);
                let outputs = [lookup_fixture.run(&line, ""), lookup_fixture.run(&line, "")];
                let failed = outputs.iter().find(|output| output.code != Some(0));
                failed.map(|output| format!("{name}: {output:?}"))
            }
            ApiKey => {
                let reply = lookup_fixture.admin.caller(made).get("/v1/wallet").await;
                (reply.status != 200).then(|| format!("{name}: {}", reply.text()))
            }
            // The agent has no provider key: the denial comes after the key is recognised.
            VirtualKey => {
                let reply = lookup_fixture.fixture.edges[0].caller(made).chat(call("n")).await;
                (reply.status != 403).then(|| format!("{name}: {}", reply.text()))
            }
            Block | Prices => (!self.is_in_force()).then(|| format!("{name}: not in force")),
        }
    }

    /// Restores a lost look-up as the documents instruct the operator. Does nothing for an account: only the operator
    /// knows that it should exist.
    pub async fn recover(&mut self) {
        let account = self.tenant().account.id.clone();
        match self.kind {
            Account => {}
            User | Invited => {
                let again = self.create_user();
                assert!(again.stdout.contains("CONFLICT"), "{again:?}");
            }
            Removed => {
                let line = format!("user remove --account {account} --email {}", self.name);
                let again = self.lookup_fixture.run(&line, "");
                assert!(again.stdout.contains("lookupRepaired"), "{again:?}");
            }
            Pending => self.is_recovered = true,
            ApiKey | VirtualKey | Block | Prices => {
                self.made = None;
                self.repeat_until_acknowledged().await;
            }
        }
    }

    /// Whether [`recover`](Self::recover) brings back what is lost.
    pub fn can_recover(&self) -> bool {
        self.kind != Account
    }
}

fn email(name: &str) -> String {
    format!("{name}@example.com")
}

/// The text at `field`, a name or a JSON pointer, in a command's document. `None` if it was not acknowledged.
fn done(output: &CliOutput, field: &str) -> Option<String> {
    let document: Value = serde_json::from_str(&output.stdout).expect("a document");
    if output.code != Some(0) {
        let code = document["code"].as_str().unwrap_or_default();
        assert!(["NOT_CONFIRMED", "STORE"].contains(&code), "{output:?}");
        return None;
    }
    let found = document.pointer(field).unwrap_or_else(|| &document[field]);
    Some(found.as_str().expect("a text").to_owned())
}

/// The text at the JSON pointer `place` in a reply. `None` if the request was not acknowledged.
fn answered(reply: harness::Reply, place: &str) -> Option<String> {
    if reply.status == 503 {
        return None;
    }
    assert!((200..300).contains(&reply.status), "{}", reply.text());
    let body = reply.json();
    let text = body.pointer(place).and_then(Value::as_str);
    Some(text.unwrap_or_else(|| panic!("{place}: {body}")).to_owned())
}
