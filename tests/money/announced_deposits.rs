//! The look-up of a pending deposit: it exists only if the deposit was made.

use crate::account_fixture::AccountFixture;
use crate::fixture::World;
use clock::now_ms;
use crypto::virtual_key::CheckSecret;
use domain::id::IdKind;
use domain::money::Nanos;
use serde_json::json;
use std::time::Duration;
use store::deposit::DepositState;
use store::deposit::script::{Made, NewDeposit};
use store::keys::deposit_lookup;
use store::once::Once;
use store::script::change::Scope;
use store::wallet::WalletPlace;
use store::{Store, StoreError};

const USD: u64 = 1_000_000_000;

fn scope(fixture: &AccountFixture) -> Scope<'_> {
    Scope {
        account: &fixture.account.id,
        mode: fixture.mode,
        actor: "test",
    }
}

fn once(fixture: &AccountFixture) -> Once {
    let secret = CheckSecret::from_stored("00".repeat(32));
    let realm = fixture.account.keys.in_mode(fixture.mode);
    Once::new(&secret, &realm, None, ("test", &json!({})), now_ms()).unwrap()
}

fn mint() -> String {
    IdKind::Transaction.mint(now_ms()).unwrap()
}

/// The wallets that a pending deposit's reference leads to.
async fn places(world: &World, reference: &str) -> Vec<String> {
    let mut members = redis::cmd("SMEMBERS");
    members.arg(deposit_lookup(reference));
    world.store.command(&members).await.unwrap()
}

/// A pending deposit of an amount in nanos. Its request leaves a record.
async fn deposit(
    store: &Store,
    fixture: &AccountFixture,
    (wallet, amount): (&WalletPlace, u64),
    (reference, once): (&str, &Once),
) -> Result<Made, StoreError> {
    let deposit = NewDeposit {
        once,
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
    deposit.execute(store, &scope(fixture)).await
}

/// A refused request neither leaves a look-up nor removes one.
#[tokio::test]
async fn a_pending_deposit_that_is_refused_is_not_announced() {
    let world = World::start().await;
    let fixture = AccountFixture::new(&world).await;
    fixture.bot("bot").await;
    let wallet = fixture.place(&world, "bot").await;
    let most = 9_000_000 * USD;
    let full = 8_999_999_999 * USD;
    let mut set = redis::cmd("HSET");
    set.arg(fixture.account.keys.in_mode(fixture.mode).agent("bot"))
        .arg("balance")
        .arg(full);
    let _: i64 = world.store.command(&set).await.unwrap();
    let ask = async |amount: u64, reference: &str, once: &Once| {
        let made = deposit(&world.store, &fixture, (&wallet, amount), (reference, once)).await;
        made.unwrap()
    };
    let none = Vec::<String>::new();
    assert_eq!(ask(most, "r", &once(&fixture)).await, Made::TooMuch);
    assert_eq!(places(&world, "r").await, none);
    // The request was made before, with another reference.
    let known = once(&fixture);
    assert!(matches!(
        ask(1, "r", &known).await,
        Made::Done { again: false, .. }
    ));
    let there = places(&world, "r").await;
    assert_eq!(there, [format!("{} {}", fixture.account.id, fixture.mode)]);
    assert_eq!(ask(1, "other", &known).await, Made::Known);
    assert_eq!(places(&world, "other").await, none);
    // The reference has a deposit.
    assert_eq!(ask(1, "r", &known).await, Made::Known);
    assert_eq!(ask(2, "r", &once(&fixture)).await, Made::OtherDeposit);
    assert!(matches!(
        ask(1, "r", &once(&fixture)).await,
        Made::Done { again: true, .. }
    ));
    assert_eq!(places(&world, "r").await, there);
    // Some are refused while another one of the same reference is made.
    for round in 0..100 {
        let reference = format!("race-{round}");
        let amounts = [most, 1, most, most];
        let onces: Vec<Once> = amounts.iter().map(|_| once(&fixture)).collect();
        let all = amounts.iter().zip(&onces);
        let all = all.map(|(amount, once)| ask(*amount, &reference, once));
        let made = futures::future::join_all(all).await;
        let done = made.iter().any(|made| matches!(made, Made::Done { .. }));
        assert!(done, "{made:?}");
        assert_eq!(places(&world, &reference).await, there, "{made:?}");
    }
}

/// Possible only if the store lost the record and the process never saw the account: otherwise the account is refused.
#[tokio::test]
async fn a_pending_deposit_of_an_account_that_vanished_is_not_announced() {
    let world = World::start().await;
    let fixture = AccountFixture::new(&world).await;
    fixture.bot("bot").await;
    let wallet = fixture.place(&world, "bot").await;
    let mut vanish = redis::cmd("DEL");
    vanish.arg(fixture.account.keys.record());
    let vanished: i64 = world.store.command(&vanish).await.unwrap();
    assert_eq!(vanished, 1);
    let (store, once) = (world.redis.store(), once(&fixture));
    let request = ("r", &once);
    let refused = deposit(&store, &fixture, (&wallet, USD), request).await;
    assert!(
        matches!(refused, Err(StoreError::UnexpectedReply(_))),
        "{refused:?}"
    );
    assert_eq!(places(&world, "r").await, Vec::<String>::new());
}
