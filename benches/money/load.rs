//! An account with many records of every kind, written straight into the store.

use domain::intent::{IntentKind, Reason};
use domain::mode::Mode;
use domain::money::Nanos;
use redis::Pipeline;
use store::intent::NewIntent;
use store::keys::{AccountKeys, IntentIndex};
use store::transaction::{NewTransaction, TransactionText, TransactionType};
use store::{Store, StoreError, sanity};

pub const ACCOUNT: &str = "acct_bench";
/// Agents that act; the records of all others are never used.
pub const ACTIVE: u64 = 64;
pub const MODE: Mode = Mode::Live;
/// Balance of each active wallet, in nano-USD.
const BALANCE: u64 = 9_000_000_000_000_000;
/// Records written in one round trip.
const BATCH: u64 = 500;

pub fn agent(number: u64) -> String {
    format!("agent-{number}")
}

/// Makes the account, with `records` wallets, transactions, intents and escrows.
pub async fn fill(store: &Store, records: u64) -> Result<(), Box<dyn std::error::Error>> {
    let now = clock::now_ms();
    sanity::init(store, &domain::timestamp::iso_from_ms(now)).await?;
    let account = AccountKeys::new(ACCOUNT);
    let mut first = redis::pipe();
    let record = [("id", ACCOUNT), ("name", "Bench"), ("plan", "enterprise")];
    first.cmd("HSET").arg(account.record()).arg(&record);
    let numbers = [
        ("generation", 1),
        ("version", 1),
        ("created_at", now),
        ("live_txn_seq", records),
    ];
    first.cmd("HSET").arg(account.record()).arg(&numbers);
    send(store, &first).await?;
    let mut at = 0;
    while at < records {
        let mut batch = redis::pipe();
        for number in at..(at + BATCH).min(records) {
            wallet(&mut batch, &account, number, now);
            transaction(&mut batch, &account, number, now);
            intent(&mut batch, &account, number, now);
            escrow(&mut batch, &account, number, now);
        }
        send(store, &batch).await?;
        at += BATCH;
    }
    let mut last = redis::pipe();
    last.cmd("HINCRBY").arg(account.record()).arg("version").arg(1);
    send(store, &last).await?;
    Ok(())
}

async fn send(store: &Store, batch: &Pipeline) -> Result<(), StoreError> {
    let _: redis::Value = store.pipeline(batch).await?;
    Ok(())
}

fn wallet(batch: &mut Pipeline, account: &AccountKeys, number: u64, now: u64) {
    let owner = agent(number);
    let fields = [
        ("wallet_number", (number + 1).to_string()),
        ("wallet", format!("wal_{number:026}")),
        ("name", owner.clone()),
        ("type", "custom".to_owned()),
        (
            "balance",
            if number < ACTIVE {
                BALANCE.to_string()
            } else {
                "0".to_owned()
            },
        ),
        ("created_at", now.to_string()),
        ("updated_at", now.to_string()),
        ("policy_id", format!("pol_{number:026}")),
        ("cap", "1".to_owned()),
        ("cap_run", String::new()),
        ("cap_day", String::new()),
        ("cap_month", String::new()),
        ("cap_txn", Nanos::MAX.get().to_string()),
        ("cap_approval", String::new()),
        ("cap_low", String::new()),
    ];
    batch
        .cmd("HSET")
        .arg(account.in_mode(MODE).agent(&owner))
        .arg(&fields);
    batch
        .cmd("ZADD")
        .arg(account.in_mode(MODE).agents())
        .arg(now)
        .arg(&owner);
}

/// Adds a transaction of one of the active wallets: their lists are the long ones.
fn transaction(batch: &mut Pipeline, account: &AccountKeys, number: u64, now: u64) {
    let owner = agent(number % ACTIVE);
    let kind = TransactionType::Spend;
    let id = format!("txn_{number:026}");
    let intent = format!("int_{number:026}");
    let new = NewTransaction {
        id: &id,
        kind,
        owner: &owner,
        intent: Some(&intent),
        currency: "USD",
        tail: TransactionText {
            counterparty: Some("Books Ltd".to_owned()),
            memo: Some("A book".to_owned()),
        },
    };
    let line = format!("{now} {BALANCE} -1000 {} {}", number % ACTIVE + 1, new.words());
    batch
        .cmd("HSET")
        .arg(account.in_mode(MODE).transactions())
        .arg(number + 1)
        .arg(line);
    let [_, of_type, of_wallet, of_both] = account.in_mode(MODE).leg(&owner, kind.as_str());
    for list in [of_type, of_wallet, of_both] {
        batch.cmd("RPUSH").arg(list).arg(number + 1);
    }
}

/// Adds a settled spend: an intent, which is also the record of an idempotency key.
fn intent(batch: &mut Pipeline, account: &AccountKeys, number: u64, now: u64) {
    let (owner, id) = (agent(number % ACTIVE), format!("int_{number:026}"));
    let fingerprint = format!("{number:064x}");
    let new = NewIntent {
        kind: IntentKind::Spend,
        fingerprint: &fingerprint,
        amount: Nanos::from_stored(1000),
        currency: "USD",
        actor: "key_bench",
        agent: &owner,
        at_ms: now,
        note: Some("A book"),
        request: r#"{"recipient":"Books Ltd"}"#,
        transaction: None,
        escrow: None,
    };
    let heads = new.heads(false, &[] as &[Reason]);
    let head = heads.strip_prefix("settled=").unwrap_or_default();
    let key = account.in_mode(MODE).intent(&id);
    let outcome = [
        ("id", id.as_str()),
        ("state", "settled"),
        ("first", "settled"),
        ("reason", ""),
        ("head", head),
    ];
    batch.cmd("HSET").arg(&key).arg(&outcome).arg(new.fields());
    for index in [
        IntentIndex::All,
        IntentIndex::Kind("spend"),
        IntentIndex::Agent(&owner),
        IntentIndex::State("settled"),
    ] {
        batch
            .cmd("RPUSH")
            .arg(account.in_mode(MODE).intents(index))
            .arg(&id);
    }
}

fn escrow(batch: &mut Pipeline, account: &AccountKeys, number: u64, now: u64) {
    let (from, to) = (number % ACTIVE, (number + 1) % ACTIVE);
    let fields = [
        ("id", (number + 1).to_string()),
        ("status", "pending".to_owned()),
        ("amount", "1000".to_owned()),
        ("currency", "USD".to_owned()),
        ("from", (from + 1).to_string()),
        ("from_owner", agent(from)),
        ("to", (to + 1).to_string()),
        ("to_account", ACCOUNT.to_owned()),
        ("to_owner", agent(to)),
        ("conditions", "{}".to_owned()),
        ("intent", format!("int_{number:026}")),
        ("created_at", now.to_string()),
        ("updated_at", now.to_string()),
    ];
    batch
        .cmd("HSET")
        .arg(account.in_mode(MODE).escrow(number + 1))
        .arg(&fields);
    batch
        .cmd("ZADD")
        .arg(account.in_mode(MODE).escrows())
        .arg(number + 1)
        .arg(number + 1);
}
