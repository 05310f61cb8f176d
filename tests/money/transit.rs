//! Money between two accounts: a crash between the steps leaves a row in transit, which arrives once (decision D28).

use crate::account_fixture::AccountFixture;
use crate::fixture::{BINARY, Fixture};
use clock::now_ms;
use crypto::virtual_key::CheckSecret;
use domain::id::IdKind;
use domain::money::Nanos;
use futures::future::join_all;
use harness::scripts::crashing_at;
use harness::{Admin, AdminOptions, eventually, until};
use serde_json::json;
use std::time::Duration;
use store::Store;
use store::idempotency::RequestIdentity;
use store::keys::USER;
use store::script::change::Scope;
use store::transaction::TransactionType;
use store::transfer::{NewTransfer, Transferred};
use store::transit::Transit;
use store::transit::script::deliver;
use store::wallet::WalletPlace;

const USD: u64 = 1_000_000_000;
/// Longer than the worker's pause, on a busy machine.
const CARRIED: Duration = Duration::from_secs(20);

/// Two accounts, `from` with 5 USD in its user wallet, `to` with an agent.
async fn two(fixture: &Fixture) -> (AccountFixture, AccountFixture) {
    let (from, to) = (
        AccountFixture::new(fixture).await,
        AccountFixture::new(fixture).await,
    );
    from.fund("user", 5).await;
    to.bot("bot").await;
    (from, to)
}

fn scope(of: &AccountFixture) -> Scope<'_> {
    Scope {
        account: &of.account.id,
        mode: of.mode,
        actor: "test",
    }
}

/// Transfers without a server. Returns the id of the transaction, which is that of a row in transit.
async fn transfer(
    store: &Store,
    from: &AccountFixture,
    (from_wallet, to_wallet): (&WalletPlace, &WalletPlace),
    nanos: u64,
) -> String {
    let secret = CheckSecret::from_stored("00".repeat(32));
    let (realm, request) = (from.account.keys.in_mode(from.mode), ("transfer", &json!({})));
    let identity = RequestIdentity::new(&secret, &realm, None, request, now_ms()).unwrap();
    let mint = || IdKind::Transaction.mint(now_ms()).unwrap();
    let transfer = NewTransfer {
        identity: &identity,
        record_life: None,
        from: from_wallet,
        to: to_wallet,
        amount: Nanos::new(nanos).unwrap(),
        currency: "USD",
        memo: Some("on its way"),
        transaction: &mint(),
        arrival: &mint(),
        closed: false,
        request: "{}",
        at_ms: now_ms(),
    };
    let sent = transfer.execute(store, &scope(from)).await.unwrap();
    assert!(matches!(sent, Transferred::Done { .. }), "{sent:?}");
    transfer.transaction.to_owned()
}

/// Runs the first step only, as if the process had crashed after it. Returns the id of the row.
async fn send(fixture: &Fixture, from: &AccountFixture, to: &AccountFixture, nanos: u64) -> String {
    let places = (from.place(fixture, USER).await, to.place(fixture, "bot").await);
    let store = crashing_at(&fixture.store, "transit_arrive");
    transfer(&store, from, (&places.0, &places.1), nanos).await
}

/// The row of a transfer that no server delivers.
async fn row(fixture: &Fixture, from: &AccountFixture, transaction: &str) -> Transit {
    let bucket = from.account.keys.bucket();
    let found = Transit::waiting(&fixture.store, bucket, |id| id == transaction).await;
    found.unwrap().rows.remove(0).1.unwrap()
}

/// Number of waiting rows in the account's bucket.
async fn waiting(fixture: &Fixture, from: &AccountFixture) -> u64 {
    let rows = from.account.keys.bucket().transit();
    fixture.store.command(redis::cmd("HLEN").arg(rows)).await.unwrap()
}

async fn arrived(fixture: &Fixture, from: &AccountFixture) {
    until("the worker's round", async || waiting(fixture, from).await == 0).await;
}

#[tokio::test]
async fn the_worker_carries_on_where_a_crash_left_it() {
    let fixture = Fixture::start().await;
    let (from, to) = two(&fixture).await;
    fixture.admin.kill9();
    let first = send(&fixture, &from, &to, 2 * USD).await;
    let first = row(&fixture, &from, &first).await;
    send(&fixture, &from, &to, USD).await;
    assert_eq!(from.balance(&fixture, USER).await, 2 * USD);
    assert_eq!(to.balance(&fixture, "bot").await, 0);
    assert_eq!(waiting(&fixture, &from).await, 2, "3 USD are in transit");

    let admin = Admin::start(AdminOptions::new(BINARY, fixture.redis.url()));
    arrived(&fixture, &from).await;
    assert_eq!(to.balance(&fixture, "bot").await, 3 * USD);
    let received = to.transactions(&fixture).await;
    let credit = first.credit.clone().unwrap();
    let row = received.iter().find(|one| one.id == credit.transaction).unwrap();
    assert_eq!(
        (row.kind, row.amount.get()),
        (TransactionType::TransferIn, 2 * USD)
    );
    assert_eq!(row.tail.memo.as_deref(), Some("on its way"));
    let number = from.place(&fixture, USER).await.number.to_string();
    assert_eq!(row.tail.counterparty.as_deref(), Some(number.as_str()));
    assert!(
        to.account
            .audit_types(to.mode)
            .await
            .ends_with(&["transfer.received".to_owned(), "transfer.received".to_owned()])
    );
    // A repeated delivery by hand: the arrival is known, also after its row is removed.
    deliver(&fixture.store, &first).await.unwrap();
    assert_eq!(to.balance(&fixture, "bot").await, 3 * USD);
    eventually("the metrics of the round", CARRIED, async || {
        let waiting: u64 = admin.metric("tollgate_admin_transits_waiting")?;
        (waiting == 0 && admin.metric("tollgate_admin_transits_delivered_total") == Some(2)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_deliveries_at_once_credit_once() {
    let fixture = Fixture::start().await;
    let (from, to) = two(&fixture).await;
    fixture.admin.kill9();
    for round in 1..=5 {
        let sent = send(&fixture, &from, &to, USD).await;
        let transit = row(&fixture, &from, &sent).await;
        let all = join_all((0..16).map(|_| deliver(&fixture.store, &transit))).await;
        assert!(all.iter().all(Result::is_ok), "{all:?}");
        assert_eq!(to.balance(&fixture, "bot").await, round * USD);
        assert_eq!(waiting(&fixture, &from).await, 0);
        let mark = to.account.keys.bucket().arrived(&transit.id);
        let life_ms: i64 = fixture.store.command(redis::cmd("PTTL").arg(mark)).await.unwrap();
        assert!(life_ms > 34 * 86_400_000, "{life_ms}");
    }
    assert_eq!(to.transactions(&fixture).await.len(), 5);
}

#[tokio::test]
async fn a_row_that_makes_no_sense_holds_nothing_up() {
    let fixture = Fixture::start().await;
    let (from, to) = two(&fixture).await;
    let rows = from.account.keys.bucket().transit();
    let mut poison = redis::cmd("HSET");
    poison.arg(&rows).arg("txn_poison").arg("{");
    let _: u64 = fixture.store.command(&poison).await.unwrap();
    send(&fixture, &from, &to, USD).await;
    until("the other row", async || waiting(&fixture, &from).await == 1).await;
    assert_eq!(to.balance(&fixture, "bot").await, USD);
    eventually("the failure in the metrics", CARRIED, async || {
        let failed: u64 = fixture.admin.metric("tollgate_admin_transits_failed_total")?;
        (failed > 0 && fixture.admin.metric("tollgate_admin_transits_waiting") == Some(1)).then_some(())
    })
    .await;
}
