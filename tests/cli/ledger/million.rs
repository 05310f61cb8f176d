//! Duration of the check on a store of more than a million records, which are written straight into a server.
//!
//! `cargo test --workspace --release --test cli -- --ignored --nocapture ledger::million`

use crate::{cli, document};
use clock::now_ms;
use domain::intent::IntentKind;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::number::{LOWEST_PLACE, Number};
use domain::period::Period;
use harness::{Redis, Seed, SeedAccount, Store};
use std::collections::BTreeMap;
use std::time::Instant;
use store::intent::NewIntent;
use store::keys::{Bucket, Series, USER};
use store::transaction::{NewTransaction, Tail, TransactionType};

/// Accounts, agents of each, and spends of each agent. Each spend is a transaction and an intent. Each agent is funded
/// by one deposit, and every second spend is followed by a transfer to the user wallet, which is two transactions.
const ACCOUNTS: u64 = 40;
const AGENTS: u64 = 20;
const SPENDS: u64 = 550;
/// Fewest records that are written: transactions and intents.
const RECORDS: u64 = 1_000_000;
const AMOUNT: u64 = 1_234_567;
/// The last place of a number that counts as drawn in each bucket.
const LAST_PLACE: u64 = LOWEST_PLACE + ACCOUNTS * (AGENTS + 1);
const LIVE: Mode = Mode::Live;

/// The store of one account, before it is written.
struct Draft {
    account: SeedAccount,
    at_ms: u64,
    pipe: redis::Pipeline,
    /// Lists that grow, by key.
    lists: BTreeMap<String, Vec<String>>,
    transactions: u64,
    audits: u64,
    balances: BTreeMap<String, u64>,
}

impl Draft {
    fn post(
        &mut self,
        owner: &str,
        wallet: u64,
        kind: TransactionType,
        amount: u64,
        (counterparty, intent): (&str, Option<&str>),
    ) -> (String, u64) {
        self.transactions += 1;
        let (number, id) = (
            self.transactions.to_string(),
            format!("txn_{}_{}", wallet, self.transactions),
        );
        let balance = self.balances.entry(owner.to_owned()).or_default();
        *balance = if kind.sign().is_empty() {
            *balance + amount
        } else {
            *balance - amount
        };
        let balance = *balance;
        let new = NewTransaction {
            id: &id,
            kind,
            owner,
            intent,
            currency: "USD",
            tail: Tail {
                counterparty: Some(counterparty.to_owned()),
                memo: None,
            },
        };
        let line = format!(
            "{} {balance} {}{amount} {wallet} {}",
            self.at_ms,
            kind.sign(),
            new.words()
        );
        let keys = &self.account.keys;
        self.pipe
            .cmd("HSET")
            .arg(keys.live().transactions())
            .arg(&number)
            .arg(line)
            .ignore();
        let [_, of_type, of_wallet, of_both] = keys.live().leg(owner, kind.as_str());
        for list in [of_type, of_wallet, of_both] {
            self.lists.entry(list).or_default().push(number.clone());
        }
        self.audit();
        (id, balance)
    }

    fn audit(&mut self) {
        self.audits += 1;
        let entry = format!(
            "{} {} {{\"type\":\"spend\",\"agentId\":\"bot\",\"data\":{{}}}}",
            self.audits, self.at_ms
        );
        let list = self.account.keys.live().audit();
        self.lists.entry(list).or_default().push(entry);
    }

    fn spend(&mut self, agent: &str, wallet: u64, id: &str) {
        let (transaction, balance) = self.post(
            agent,
            wallet,
            TransactionType::Spend,
            AMOUNT,
            ("somebody", Some(id)),
        );
        let new = NewIntent {
            kind: IntentKind::Spend,
            fingerprint: "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
            amount: Nanos::new(AMOUNT).unwrap(),
            currency: "USD",
            actor: "key_1",
            agent,
            at_ms: self.at_ms,
            note: Some("a book"),
            request: "{}",
            transaction: Some(&transaction),
            escrow: None,
        };
        let period = Period::at(self.at_ms);
        let heads = new.heads(false, &[]);
        let head = heads
            .strip_prefix("settled=")
            .expect("the head of a settled spend");
        let mut set = redis::cmd("HSET");
        set.arg(self.account.keys.live().intent(id)).arg(new.fields());
        set.arg(&[
            "id", id, "state", "settled", "first", "settled", "reason", "", "head", head,
        ]);
        set.arg("balance").arg(balance).arg("policy").arg("pol_1");
        set.arg("day").arg(period.day).arg("month").arg(period.month);
        self.pipe.add_command(set).ignore();
        let [all, kind, agents, settled, ..] = new.lists().keys(&self.account.keys.live());
        for list in [all, kind, agents, settled] {
            self.lists.entry(list).or_default().push(id.to_owned());
        }
    }

    /// Writes the place of a wallet, and that it was drawn.
    fn place(&mut self, owner: &str, wallet: u64) {
        let number = Number::from_u64(wallet).expect("a number");
        let text = format!("{} {LIVE} {owner} wal_{wallet}", self.account.id);
        let bucket = Bucket::from_number(number);
        self.pipe
            .cmd("MSET")
            .arg(&[(Bucket::wallet_place(number), text)])
            .arg(&[(bucket.counter(Series::Wallet), LAST_PLACE.to_string())])
            .ignore();
    }

    async fn write(&mut self, store: &Store) {
        for (key, items) in std::mem::take(&mut self.lists) {
            self.pipe.cmd("RPUSH").arg(key).arg(items).ignore();
        }
        let pipe = std::mem::take(&mut self.pipe);
        let () = store.pipeline(&pipe).await.expect("written");
    }
}

/// Writes one account, whose wallets have numbers from this place on. Returns the number of its transactions and
/// intents.
async fn write(store: &Store, seed: &Seed, place: u64) -> u64 {
    let account = seed.account("enterprise").await;
    let bucket = account.keys.bucket().number();
    let wallet_at = |place| Number::new(place, bucket).expect("a number").get();
    let first_wallet = wallet_at(place);
    let mut draft = Draft {
        account,
        at_ms: now_ms(),
        pipe: redis::Pipeline::new(),
        lists: BTreeMap::new(),
        transactions: 0,
        audits: 0,
        balances: BTreeMap::new(),
    };
    let period = Period::at(draft.at_ms);
    let spent = SPENDS * AMOUNT;
    for agent in 0..AGENTS {
        let (wallet, name) = (wallet_at(place + 1 + agent), format!("bot-{agent}"));
        draft.post(
            &name,
            wallet,
            TransactionType::Deposit,
            3 * spent,
            ("somebody", None),
        );
        let reference = format!("rail-{agent}");
        let id = format!("txn_{wallet}_{}", draft.transactions);
        let (number, amount, at) = (
            wallet.to_string(),
            (3 * spent).to_string(),
            draft.at_ms.to_string(),
        );
        let deposit = [
            ("id", id.as_str()),
            ("reference", &reference),
            ("owner", &name),
            ("number", &number),
            ("amount", &amount),
            ("currency", "USD"),
            ("state", "confirmed"),
            ("first", "confirmed"),
            ("at", &at),
            ("first_balance", &amount),
            ("confirmed_at", &at),
            ("balance", &amount),
        ];
        let key = draft.account.keys.live().deposit(&reference);
        draft.pipe.cmd("HSET").arg(key).arg(&deposit[..]).ignore();
        for spend in 0..SPENDS {
            let id = format!("int_{wallet:016}{spend:010}");
            draft.spend(&name, wallet, &id);
            if spend % 2 == 0 {
                let user = first_wallet.to_string();
                draft.post(&name, wallet, TransactionType::TransferOut, 1, (&user, None));
                let sender = wallet.to_string();
                draft.post(
                    USER,
                    first_wallet,
                    TransactionType::TransferIn,
                    1,
                    (&sender, None),
                );
            }
        }
        let fields = [
            ("wallet_number".to_owned(), number),
            ("wallet".to_owned(), format!("wal_{wallet}")),
            ("name".to_owned(), name.clone()),
            ("type".to_owned(), "custom".to_owned()),
            ("created_at".to_owned(), at.clone()),
            ("updated_at".to_owned(), at),
            ("balance".to_owned(), draft.balances[&name].to_string()),
            (format!("s{}", period.month), "1".to_owned()),
            (format!("d{}", period.day), spent.to_string()),
            (format!("w{}", period.day), spent.to_string()),
            (format!("m{}", period.month), spent.to_string()),
        ];
        let key = draft.account.keys.live().agent(&name);
        draft.pipe.cmd("HSET").arg(key).arg(&fields[..]).ignore();
        draft.place(&name, wallet);
        draft.write(store).await;
    }
    let at = draft.at_ms.to_string();
    let user = [
        ("wallet_number", first_wallet.to_string()),
        ("wallet", format!("wal_{first_wallet}")),
        ("balance", draft.balances[USER].to_string()),
        ("created_at", at.clone()),
        ("updated_at", at),
    ];
    let record = [
        ("live_txn_seq".to_owned(), draft.transactions),
        ("live_audit_seq".to_owned(), draft.audits),
        (format!("t{}", period.month), spent * AGENTS),
        (format!("n{}", period.month), AGENTS),
    ];
    let keys = draft.account.keys.clone();
    draft
        .pipe
        .cmd("HSET")
        .arg(keys.live().wallet(USER))
        .arg(&user[..])
        .ignore();
    draft
        .pipe
        .cmd("HSET")
        .arg(keys.record())
        .arg(&record[..])
        .ignore();
    draft.place(USER, first_wallet);
    draft.write(store).await;
    draft.transactions + AGENTS * SPENDS
}

#[tokio::test]
#[ignore = "takes a gigabyte of memory and half a minute; run it in a release build"]
async fn a_million_records() {
    let redis = Redis::start();
    let store = redis.store_with(std::time::Duration::from_secs(60));
    let seed = Seed::new(&store).await;
    let mut records = 0;
    for account in 0..ACCOUNTS {
        records += write(&store, &seed, LOWEST_PLACE + account * (AGENTS + 1)).await;
    }
    assert!(records >= RECORDS, "{records}");
    let began = Instant::now();
    let checked = document(&cli(&redis).run(&["ledger", "check", "--json"]), 0);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{records} transactions and intents, {} reads in all: {seconds:.1} s",
        checked["checked"]
    );
    println!("{:.0} records/s", records as f64 / seconds);
    println!("{checked}");
}
