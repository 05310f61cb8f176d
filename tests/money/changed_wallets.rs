//! A wallet that changed between read and script: closed, and possibly created again under the same agent id. The
//! scripts then move nothing.

use crate::account_fixture::AccountFixture;
use crate::world::{World, success};
use clock::now_ms;
use crypto::virtual_key::CheckSecret;
use domain::id::Kind;
use domain::money::Nanos;
use serde_json::json;
use std::time::Duration;
use store::deposit::DepositState;
use store::deposit::script::{Confirmed, Made, NewDeposit, confirm};
use store::keys::{USER, deposit_lookup};
use store::once::Once;
use store::script::change::Scope;
use store::transfer::{NewTransfer, Transferred};
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
    let place = (fixture.account.id.as_str(), fixture.mode);
    Once::new(&secret, place, None, ("test", &json!({})), now_ms()).unwrap()
}

fn mint() -> String {
    Kind::Transaction.mint(now_ms()).unwrap()
}

/// The wallets that a pending deposit's reference leads to.
async fn places(world: &World, reference: &str) -> Vec<String> {
    let mut members = redis::cmd("SMEMBERS");
    members.arg(deposit_lookup(reference));
    world.store.command(&members).await.unwrap()
}

async fn transfer(
    world: &World,
    fixture: &AccountFixture,
    from: &WalletPlace,
    to: &WalletPlace,
) -> Transferred {
    let transfer = NewTransfer {
        once: &once(fixture),
        record_life: None,
        from,
        to,
        amount: Nanos::new(USD).unwrap(),
        currency: "USD",
        memo: None,
        transaction: &mint(),
        arrival: &mint(),
        closed: false,
        request: "{}",
        at_ms: now_ms(),
    };
    transfer.execute(&world.store, &scope(fixture)).await.unwrap()
}

async fn deposit(world: &World, fixture: &AccountFixture, wallet: &WalletPlace, state: DepositState) -> Made {
    deposit_of(world, fixture, (wallet, USD), ("r", &once(fixture)), state).await
}

/// A deposit of an amount in nanos; of its request a record is kept.
async fn deposit_of(
    world: &World,
    fixture: &AccountFixture,
    (wallet, amount): (&WalletPlace, u64),
    (reference, once): (&str, &Once),
    state: DepositState,
) -> Made {
    let (wallet, request) = ((wallet, amount), (reference, once));
    let made = try_deposit_of(&world.store, fixture, wallet, request, state).await;
    made.unwrap()
}

async fn try_deposit_of(
    store: &Store,
    fixture: &AccountFixture,
    (wallet, amount): (&WalletPlace, u64),
    (reference, once): (&str, &Once),
    state: DepositState,
) -> Result<Made, StoreError> {
    let deposit = NewDeposit {
        once,
        record_life: Some(Duration::from_secs(1000)),
        wallet,
        closed: false,
        amount: Nanos::new(amount).unwrap(),
        currency: "USD",
        reference,
        state,
        transaction: &mint(),
        request: "{}",
        at_ms: now_ms(),
    };
    deposit.execute(store, &scope(fixture)).await
}

#[tokio::test]
async fn nothing_moves_from_or_to_a_wallet_that_is_not_the_one_read() {
    let world = World::start().await;
    let (fixture, other) = (
        AccountFixture::new(&world).await,
        AccountFixture::new(&world).await,
    );
    fixture.bot("bot").await;
    fixture.user().await;
    other.user().await;
    let old = fixture.place(&world, "bot").await;
    let user = fixture.place(&world, USER).await;
    let far = other.place(&world, USER).await;
    success(&fixture.caller.delete("/v1/agents/bot").await, 200);
    for made_again in [false, true] {
        if made_again {
            fixture.bot("bot").await;
            fixture.fund("bot", 5).await;
            fixture.fund("user", 5).await;
        }
        let version = world.version(&fixture.account).await;
        for (from, to) in [(&old, &user), (&old, &far), (&user, &old)] {
            if from == &user && !made_again {
                continue;
            }
            assert_eq!(transfer(&world, &fixture, from, to).await, Transferred::Changed);
        }
        for state in [DepositState::Confirmed, DepositState::Pending] {
            assert_eq!(deposit(&world, &fixture, &old, state).await, Made::Changed);
        }
        assert_eq!(
            places(&world, "r").await,
            Vec::<String>::new(),
            "nothing was announced"
        );
        assert_eq!(
            world.version(&fixture.account).await,
            version,
            "nothing was changed"
        );
    }
    assert_eq!(fixture.total(&world, &["bot"]).await, 10 * USD);
}

#[tokio::test]
async fn a_pending_deposit_of_a_wallet_that_is_gone_is_not_confirmed_into_another() {
    let world = World::start().await;
    let fixture = AccountFixture::new(&world).await;
    fixture.bot("bot").await;
    let wallet = fixture.place(&world, "bot").await;
    let made = deposit(&world, &fixture, &wallet, DepositState::Pending).await;
    assert!(matches!(made, Made::Done { again: false, .. }), "{made:?}");
    // It keeps the agent from being deleted; only a direct change of the store leads here.
    let mut clear = redis::cmd("HDEL");
    clear
        .arg(fixture.account.keys.agent(fixture.mode, "bot"))
        .arg("pending");
    let _: i64 = world.store.command(&clear).await.unwrap();
    success(&fixture.caller.delete("/v1/agents/bot").await, 200);
    fixture.bot("bot").await;
    let outcome = confirm(&world.store, &scope(&fixture), "r").await.unwrap();
    assert_eq!(outcome, Confirmed::Closed);
    let wallet = fixture.wallet(&world, "bot").await;
    assert_eq!((wallet.balance.get(), wallet.pending.get()), (0, 0));
}

#[tokio::test]
async fn a_receiver_that_filled_up_after_the_scan_is_left_as_it_is() {
    let world = World::start().await;
    let fixture = AccountFixture::new(&world).await;
    fixture.bot("bot").await;
    fixture.fund("user", 5).await;
    let (user, bot) = (
        fixture.place(&world, USER).await,
        fixture.place(&world, "bot").await,
    );
    let most = 9_000_000_000_000_000_000_u64;
    let mut set = redis::cmd("HSET");
    set.arg(fixture.account.keys.agent(fixture.mode, "bot"))
        .arg("balance")
        .arg(most - USD / 2);
    let _: i64 = world.store.command(&set).await.unwrap();
    let outcome = transfer(&world, &fixture, &user, &bot).await;
    assert_eq!(outcome, Transferred::TooMuch);
    assert_eq!(fixture.balance(&world, USER).await, 5 * USD);
    assert_eq!(fixture.balance(&world, "bot").await, most - USD / 2);
}

/// A request that makes no deposit leaves no look-up behind, and takes none away.
#[tokio::test]
async fn a_pending_deposit_that_is_refused_is_not_announced() {
    let world = World::start().await;
    let fixture = AccountFixture::new(&world).await;
    fixture.bot("bot").await;
    let wallet = fixture.place(&world, "bot").await;
    let (most, pending) = (9_000_000 * USD, DepositState::Pending);
    let full = 8_999_999_999 * USD;
    let mut set = redis::cmd("HSET");
    set.arg(fixture.account.keys.agent(fixture.mode, "bot"))
        .arg("balance")
        .arg(full);
    let _: i64 = world.store.command(&set).await.unwrap();
    let ask = async |amount: u64, reference: &str, once: &Once| {
        deposit_of(&world, &fixture, (&wallet, amount), (reference, once), pending).await
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
    // There is a deposit of the reference.
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

/// Only a store that lost the record leads here, and a process that never saw the account: else the account is refused.
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
    let refused = try_deposit_of(&store, &fixture, (&wallet, USD), request, DepositState::Pending).await;
    assert!(
        matches!(refused, Err(StoreError::UnexpectedReply(_))),
        "{refused:?}"
    );
    assert_eq!(places(&world, "r").await, Vec::<String>::new());
}
