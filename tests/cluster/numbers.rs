//! Wallets, agents, escrows and keys that were acknowledged, while each master of the cluster in turn is lost: cut off
//! from its replica, killed and replaced right after the acknowledgements. Nothing acknowledged is missing, is there
//! twice, or belongs to two.

use crate::world::{ADMIN, MASTERS, SOON, World, accept, call};
use domain::mode::Mode;
use harness::{Admin, Caller, Cli, Edge, Reply, SeedAccount, eventually, words};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Records of each kind that each tenant creates while a replica is cut off, and again after the failover.
const EACH: usize = 3;
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// Looks, half a second apart, at the lists of escrows: the worker that delivers comes every two seconds.
const LISTED_AFTER: usize = 40;
/// USD that each tenant's user wallet begins with.
const PURSE: u64 = 10_000;

/// An account, and its caller in each mode.
struct Tenant {
    account: SeedAccount,
    live: Caller,
    test: Caller,
    /// The number of its user wallet in test mode.
    user_wallet: u64,
}

/// Acknowledged records.
#[derive(Default)]
struct Made {
    wallets: Vec<Wallet>,
    escrows: Vec<Escrow>,
    virtual_keys: Vec<(usize, String)>,
    api_keys: Vec<(usize, String)>,
}

#[derive(Clone)]
struct Wallet {
    tenant: usize,
    agent: String,
    number: u64,
    id: String,
}

#[derive(Clone)]
struct Escrow {
    payer: usize,
    payee: usize,
    number: u64,
    amount: u64,
    funded: bool,
}

/// Makes things, and remembers which were acknowledged.
struct Recorder<'a> {
    world: &'a World,
    admin: &'a Admin,
    tenants: Vec<Tenant>,
    made: Made,
    /// Names given so far.
    names: usize,
}

impl Tenant {
    async fn on(world: &World, admin: &Admin, node: usize) -> Self {
        let account = world.account_on(node).await;
        let live = admin.caller(&account.api_key(Mode::Live).await);
        let test = admin.caller(&account.api_key(Mode::Test).await);
        let deposit = json!({ "wallet": "user", "amount": PURSE, "reference": "first" });
        let reply = test.post("/v1/wallet/deposits", deposit).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let user_wallet = test.get("/v1/wallet").await.json()["user_wallet"]["walletId"].as_u64();
        Self {
            account,
            live,
            test,
            user_wallet: user_wallet.expect("a number"),
        }
    }
}

/// Sends it; again and again until it is done, where that is wanted.
async fn send(caller: &Caller, path: &str, body: &Value, repeats: bool) -> Option<Value> {
    let once = async || {
        let reply: Reply = caller.post(path, body.clone()).await;
        let done = reply.status == 200 || reply.status == 201;
        assert!(
            done || matches!(reply.status, 409 | 500 | 503),
            "{path} {body}: {}",
            reply.text()
        );
        done.then(|| reply.json())
    };
    match repeats {
        false => once().await,
        true => Some(
            eventually("a change that is done", SOON, async || {
                let done = once().await;
                if done.is_none() {
                    tokio::time::sleep(PAUSE).await;
                }
                done
            })
            .await,
        ),
    }
}

impl Recorder<'_> {
    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}-{}", self.names)
    }

    /// Every tenant makes [`EACH`] of everything, and repeats unacknowledged requests if `repeats`.
    async fn make(&mut self, repeats: bool) {
        for _ in 0..EACH {
            for tenant in 0..self.tenants.len() {
                self.make_wallet(tenant, repeats).await;
                for payee in [tenant, (tenant + 1) % self.tenants.len()] {
                    self.make_escrow(tenant, payee, repeats).await;
                }
                self.make_virtual_key(tenant, repeats).await;
                self.make_api_key(tenant, repeats).await;
            }
        }
    }

    async fn make_wallet(&mut self, tenant: usize, repeats: bool) {
        let agent = self.name("bot");
        let path = "/v1/wallets/create";
        let mut answer = None;
        loop {
            let name = if repeats { self.name("bot") } else { agent.clone() };
            let body = json!({ "botId": name });
            // One that is there and was not acknowledged answers 409 the second time.
            answer = answer.or(send(&self.tenants[tenant].test, path, &body, false)
                .await
                .map(|made| (name, made)));
            if answer.is_some() || !repeats {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        if let Some((agent, made)) = answer {
            let wallet = &made["wallet"];
            self.made.wallets.push(Wallet {
                tenant,
                agent,
                number: wallet["walletId"].as_u64().expect("a number"),
                id: wallet["id"].as_str().expect("an id").to_owned(),
            });
        }
    }

    async fn make_escrow(&mut self, payer: usize, payee: usize, repeats: bool) {
        let amount = self.made.escrows.len() as u64 + 1;
        let to = self.tenants[payee].user_wallet;
        let body = json!({ "fromWalletId": self.tenants[payer].user_wallet, "toWalletId": if payee == payer {
            self.own_wallet(payer) } else { to }, "amount": amount });
        let caller = &self.tenants[payer].test;
        let Some(made) = send(caller, "/v1/escrow/create", &body, repeats).await else {
            return;
        };
        let number = made["escrow"]["id"].as_u64().expect("a number");
        let fund = json!({ "escrowId": number });
        // One that was funded and not acknowledged is refused the second time.
        let funded = caller.post("/v1/escrow/fund", fund).await.status == 200;
        self.made.escrows.push(Escrow {
            payer,
            payee,
            number,
            amount,
            funded,
        });
    }

    /// A wallet of the tenant that is not its user wallet.
    fn own_wallet(&self, tenant: usize) -> u64 {
        let own = self.made.wallets.iter().find(|wallet| wallet.tenant == tenant);
        own.expect("a wallet").number
    }

    async fn make_virtual_key(&mut self, tenant: usize, repeats: bool) {
        let body = json!({ "name": "n" });
        let made = send(
            &self.tenants[tenant].live,
            "/v1/agents/bot/virtual-keys",
            &body,
            repeats,
        )
        .await;
        if let Some(made) = made {
            let key = made["secret"].as_str().expect("a key").to_owned();
            self.made.virtual_keys.push((tenant, key));
        }
    }

    async fn make_api_key(&mut self, tenant: usize, repeats: bool) {
        let cli = Cli::new(ADMIN, self.world.cluster.url())
            .env("TOLLGATE_STORE__DURABILITY", "replicas(1)")
            .env("TOLLGATE_STORE__DURABILITY_TIMEOUT_MS", "700");
        let account = &self.tenants[tenant].account.id;
        let args = format!("api-key create --account {account} --mode test --json");
        let args = words(&args);
        let output = match repeats {
            false => cli.run(&args),
            true => {
                eventually("an API key", SOON, async || {
                    let output = cli.run(&args);
                    (output.code == Some(0)).then_some(output)
                })
                .await
            }
        };
        if output.code == Some(0) {
            let made: Value = serde_json::from_str(&output.stdout).expect("a document");
            let key = made["key"].as_str().expect("a key").to_owned();
            self.made.api_keys.push((tenant, key));
        }
    }

    /// Acknowledged changes that do not hold.
    async fn wrong(&self, edge: &Edge) -> Vec<String> {
        let mut wrong = self.twice();
        for wallet in &self.made.wallets {
            for name in [wallet.number.to_string(), wallet.id.clone()] {
                let reply = self.tenants[wallet.tenant]
                    .test
                    .get(&format!("/v1/wallets/{name}"))
                    .await;
                let found = &reply.json()["wallet"]["botId"];
                if reply.status != 200 || *found != json!(wallet.agent) {
                    wrong.push(format!(
                        "wallet {name} of {}: {} {found}",
                        wallet.agent, reply.status
                    ));
                }
            }
        }
        for escrow in &self.made.escrows {
            let state = if escrow.funded { "funded" } else { "pending" };
            for party in [escrow.payer, escrow.payee] {
                let path = format!("/v1/escrow/{}", escrow.number);
                let reply = self.tenants[party].test.get(&path).await;
                let (status, amount) = (
                    &reply.json()["escrow"]["status"],
                    &reply.json()["escrow"]["amount"],
                );
                let is_it = *amount == json!(escrow.amount) && (*status == json!(state) || !escrow.funded);
                if reply.status != 200 || !is_it {
                    wrong.push(format!(
                        "escrow {} of {} USD, {state}: {} {amount} {status}",
                        escrow.number, escrow.amount, reply.status
                    ));
                }
            }
        }
        for (tenant, key) in &self.made.virtual_keys {
            // The agent has no provider key: this denial comes after the key is recognised.
            let reply = edge.caller(key).chat(call("n")).await;
            if reply.status == 401 {
                wrong.push(format!("virtual key of tenant {tenant}: {}", reply.text()));
            }
        }
        for (tenant, key) in &self.made.api_keys {
            let reply = self.admin.caller(key).get("/v1/wallet").await;
            if reply.status != 200 {
                wrong.push(format!("API key of tenant {tenant}: {}", reply.text()));
            }
        }
        // Rows in transit to a list arrive soon.
        for _ in 0..LISTED_AFTER {
            if self.unlisted().await.is_empty() {
                return wrong;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        wrong.extend(self.unlisted().await);
        wrong
    }

    /// Numbers and ids that were given twice.
    fn twice(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut wallets: BTreeMap<String, &Wallet> = BTreeMap::new();
        for wallet in &self.made.wallets {
            for name in [wallet.number.to_string(), wallet.id.clone()] {
                if let Some(other) = wallets.insert(name.clone(), wallet) {
                    wrong.push(format!(
                        "wallet {name} was given to {} of tenant {} and to {} of tenant {}",
                        other.agent, other.tenant, wallet.agent, wallet.tenant
                    ));
                }
            }
        }
        let mut escrows: BTreeMap<u64, &Escrow> = BTreeMap::new();
        for escrow in &self.made.escrows {
            if let Some(other) = escrows.insert(escrow.number, escrow) {
                wrong.push(format!(
                    "escrow {} of {} USD (funded: {}) was given again, to one of {} USD",
                    escrow.number, other.amount, other.funded, escrow.amount
                ));
            }
        }
        wrong
    }

    /// Escrows that a party's list does not have.
    async fn unlisted(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (at, tenant) in self.tenants.iter().enumerate() {
            let reply = tenant.test.get("/v1/escrow?limit=200").await.json();
            let listed: Vec<u64> = reply["escrows"].as_array().map_or_else(Vec::new, |all| {
                all.iter().filter_map(|escrow| escrow["id"].as_u64()).collect()
            });
            for escrow in &self.made.escrows {
                let named = escrow.payer == at || escrow.payee == at;
                if named && !listed.contains(&escrow.number) {
                    wrong.push(format!(
                        "escrow {} is not in the list of tenant {at}",
                        escrow.number
                    ));
                }
            }
        }
        wrong
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn what_was_acknowledged_is_there_once_and_belongs_to_one() {
    let world = World::start(1).await;
    let admin = world.admin("replicas(1)");
    let mut recorder = Recorder {
        world: &world,
        admin: &admin,
        tenants: Vec::new(),
        made: Made::default(),
        names: 0,
    };
    for node in 0..MASTERS {
        recorder.tenants.push(Tenant::on(&world, &admin, node).await);
    }
    for tenant in 0..MASTERS {
        recorder.make_wallet(tenant, true).await;
    }
    let mut wrong = Vec::new();
    for node in 0..MASTERS {
        for later in node..MASTERS {
            world.cluster.wait_in_step(world.cluster.replica_of(later));
        }
        world.cluster.cut_off(world.cluster.replica_of(node));
        recorder.make(false).await;
        let record = recorder.tenants[node].account.keys.record();
        world.cluster.lose(node, &record);
        world.cluster.nodes()[node].restart();
        world.cluster.wait_for_replica(node);
        for tenant in &recorder.tenants {
            world.found_again(&tenant.account.keys.record()).await;
            accept(&world, &tenant.account);
        }
        wrong.extend(recorder.wrong(&world.edges[0]).await);
        recorder.make(true).await;
        wrong.extend(recorder.wrong(&world.edges[0]).await);
    }
    let made = &recorder.made;
    println!(
        "acknowledged: {} wallets, {} escrows, {} virtual keys, {} API keys",
        made.wallets.len(),
        made.escrows.len(),
        made.virtual_keys.len(),
        made.api_keys.len()
    );
    wrong.dedup();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let check = Cli::new(ADMIN, world.cluster.url()).json(&["ledger", "check"]);
    assert_eq!(check["ok"], json!(true), "{check}");
}
