//! The look-up of a pending deposit: it exists only if the deposit was made.

use crate::account_fixture::AccountFixture;
use crate::fixture::Fixture;
use clock::now_ms;
use crypto::virtual_key::CheckSecret;
use domain::id::IdKind;
use domain::money::Nanos;
use serde_json::json;
use std::time::Duration;
use store::deposit::DepositState;
use store::deposit::script::{DepositMade, NewDeposit};
use store::idempotency::RequestIdentity;
use store::keys::deposit_lookup;
use store::script::change::Scope;
use store::wallet::WalletPlace;
use store::{Store, StoreError};

const USD: u64 = 1_000_000_000;

fn scope(tenant: &AccountFixture) -> Scope<'_> {
    Scope {
        account: &tenant.account.id,
        mode: tenant.mode,
        actor: "test",
    }
}

fn identity(tenant: &AccountFixture) -> RequestIdentity {
    let secret = CheckSecret::from_stored("00".repeat(32));
    let realm = tenant.account.keys.in_mode(tenant.mode);
    RequestIdentity::new(&secret, &realm, None, ("test", &json!({})), now_ms()).unwrap()
}

fn mint() -> String {
    IdKind::Transaction.mint(now_ms()).unwrap()
}

/// The wallets that a pending deposit's reference leads to.
async fn places(fixture: &Fixture, reference: &str) -> Vec<String> {
    let mut members = redis::cmd("SMEMBERS");
    members.arg(deposit_lookup(reference));
    fixture.store.command(&members).await.unwrap()
}

/// A pending deposit of an amount in nanos. Its request leaves a record.
async fn deposit(
    store: &Store,
    tenant: &AccountFixture,
    (wallet, amount): (&WalletPlace, u64),
    (reference, identity): (&str, &RequestIdentity),
) -> Result<DepositMade, StoreError> {
    let deposit = NewDeposit {
        identity,
        record_life: Some(Duration::from_secs(1000)),
        wallet,
        closed: false,
        amount: Nanos::new(amount).unwrap(),
        currency: "USD",
        reference,
        state: DepositState::Pending,
        transaction: &mint(),
        request: "{}",
        at_ms: now_ms(),
    };
    deposit.execute(store, &scope(tenant)).await
}

/// A refused request neither leaves a look-up nor removes one.
#[tokio::test]
async fn a_pending_deposit_that_is_refused_is_not_announced() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    let wallet = tenant.place(&fixture, "bot").await;
    let most = 9_000_000 * USD;
    let full = 8_999_999_999 * USD;
    let mut set = redis::cmd("HSET");
    set.arg(tenant.account.keys.in_mode(tenant.mode).agent("bot"))
        .arg("balance")
        .arg(full);
    let _: i64 = fixture.store.command(&set).await.unwrap();
    let ask = async |amount: u64, reference: &str, identity: &RequestIdentity| {
        let made = deposit(&fixture.store, &tenant, (&wallet, amount), (reference, identity)).await;
        made.unwrap()
    };
    let none = Vec::<String>::new();
    assert_eq!(ask(most, "r", &identity(&tenant)).await, DepositMade::TooMuch);
    assert_eq!(places(&fixture, "r").await, none);
    // The request was made before, with another reference.
    let known = identity(&tenant);
    assert!(matches!(
        ask(1, "r", &known).await,
        DepositMade::Done { again: false, .. }
    ));
    let there = places(&fixture, "r").await;
    assert_eq!(there, [format!("{} {}", tenant.account.id, tenant.mode)]);
    assert_eq!(ask(1, "other", &known).await, DepositMade::Known);
    assert_eq!(places(&fixture, "other").await, none);
    // The reference has a deposit.
    assert_eq!(ask(1, "r", &known).await, DepositMade::Known);
    assert_eq!(ask(2, "r", &identity(&tenant)).await, DepositMade::OtherDeposit);
    assert!(matches!(
        ask(1, "r", &identity(&tenant)).await,
        DepositMade::Done { again: true, .. }
    ));
    assert_eq!(places(&fixture, "r").await, there);
    // Some are refused while another one of the same reference is made.
    for round in 0..100 {
        let reference = format!("race-{round}");
        let amounts = [most, 1, most, most];
        let identities: Vec<RequestIdentity> = amounts.iter().map(|_| identity(&tenant)).collect();
        let all = amounts.iter().zip(&identities);
        let all = all.map(|(amount, identity)| ask(*amount, &reference, identity));
        let made = futures::future::join_all(all).await;
        let done = made.iter().any(|made| matches!(made, DepositMade::Done { .. }));
        assert!(done, "{made:?}");
        assert_eq!(places(&fixture, &reference).await, there, "{made:?}");
    }
}

/// Possible only if the store lost the record and the process never saw the account: otherwise the account is refused.
#[tokio::test]
async fn a_pending_deposit_of_an_account_that_vanished_is_not_announced() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    let wallet = tenant.place(&fixture, "bot").await;
    let mut vanish = redis::cmd("DEL");
    vanish.arg(tenant.account.keys.record());
    let vanished: i64 = fixture.store.command(&vanish).await.unwrap();
    assert_eq!(vanished, 1);
    let (store, identity) = (fixture.redis.store(), identity(&tenant));
    let request = ("r", &identity);
    let refused = deposit(&store, &tenant, (&wallet, USD), request).await;
    assert!(
        matches!(refused, Err(StoreError::UnexpectedReply(_))),
        "{refused:?}"
    );
    assert_eq!(places(&fixture, "r").await, Vec::<String>::new());
}
