//! A wallet that is another one than was seen: closed between the look and the script, and perhaps made again under the
//! same agent id. The scripts move nothing then.

use crate::purse::Purse;
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

const USD: u64 = 1_000_000_000;

fn scope(purse: &Purse) -> Scope<'_> {
    Scope {
        account: &purse.account.id,
        mode: purse.mode,
        actor: "test",
    }
}

fn once(purse: &Purse) -> Once {
    let secret = CheckSecret::from_stored("00".repeat(32));
    let place = (purse.account.id.as_str(), purse.mode);
    Once::new(&secret, place, None, ("test", &json!({})), now_ms()).unwrap()
}

fn mint() -> String {
    Kind::Transaction.mint(now_ms()).unwrap()
}

/// Where a pending deposit is looked for by its reference.
async fn places(world: &World, reference: &str) -> Vec<String> {
    let mut members = redis::cmd("SMEMBERS");
    members.arg(deposit_lookup(reference));
    world.store.command(&members).await.unwrap()
}

async fn transfer(world: &World, purse: &Purse, from: &WalletPlace, to: &WalletPlace) -> Transferred {
    let transfer = NewTransfer {
        once: &once(purse),
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
    transfer.run(&world.store, &scope(purse)).await.unwrap()
}

async fn deposit(world: &World, purse: &Purse, wallet: &WalletPlace, state: DepositState) -> Made {
    deposit_of(world, purse, (wallet, USD), ("r", &once(purse)), state).await
}

/// A deposit of an amount in nanos; of its request a record is kept.
async fn deposit_of(
    world: &World,
    purse: &Purse,
    (wallet, amount): (&WalletPlace, u64),
    (reference, once): (&str, &Once),
    state: DepositState,
) -> Made {
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
    deposit.run(&world.store, &scope(purse)).await.unwrap()
}

#[tokio::test]
async fn nothing_moves_from_or_to_a_wallet_that_is_not_the_one_seen() {
    let world = World::start().await;
    let (purse, other) = (Purse::new(&world).await, Purse::new(&world).await);
    purse.bot("bot").await;
    purse.user().await;
    other.user().await;
    let old = purse.place(&world, "bot").await;
    let user = purse.place(&world, USER).await;
    let far = other.place(&world, USER).await;
    success(&purse.caller.delete("/v1/agents/bot").await, 200);
    for made_again in [false, true] {
        if made_again {
            purse.bot("bot").await;
            purse.fund("bot", 5).await;
            purse.fund("user", 5).await;
        }
        let version = world.version(&purse.account).await;
        for (from, to) in [(&old, &user), (&old, &far), (&user, &old)] {
            if from == &user && !made_again {
                continue;
            }
            assert_eq!(transfer(&world, &purse, from, to).await, Transferred::Changed);
        }
        for state in [DepositState::Confirmed, DepositState::Pending] {
            assert_eq!(deposit(&world, &purse, &old, state).await, Made::Changed);
        }
        assert_eq!(
            places(&world, "r").await,
            Vec::<String>::new(),
            "nothing was announced"
        );
        assert_eq!(
            world.version(&purse.account).await,
            version,
            "nothing was changed"
        );
    }
    assert_eq!(purse.total(&world, &["bot"]).await, 10 * USD);
}

#[tokio::test]
async fn a_pending_deposit_of_a_wallet_that_is_gone_is_not_confirmed_into_another() {
    let world = World::start().await;
    let purse = Purse::new(&world).await;
    purse.bot("bot").await;
    let wallet = purse.place(&world, "bot").await;
    let made = deposit(&world, &purse, &wallet, DepositState::Pending).await;
    assert!(matches!(made, Made::Done { again: false, .. }), "{made:?}");
    // It keeps the agent from being deleted; only somebody with his hands in the store can get here.
    let mut clear = redis::cmd("HDEL");
    clear
        .arg(purse.account.keys.agent(purse.mode, "bot"))
        .arg("pending");
    let _: i64 = world.store.command(&clear).await.unwrap();
    success(&purse.caller.delete("/v1/agents/bot").await, 200);
    purse.bot("bot").await;
    let outcome = confirm(&world.store, &scope(&purse), "r").await.unwrap();
    assert_eq!(outcome, Confirmed::Closed);
    let wallet = purse.wallet(&world, "bot").await;
    assert_eq!((wallet.balance.get(), wallet.pending.get()), (0, 0));
}

#[tokio::test]
async fn a_receiver_that_filled_up_after_the_look_is_left_as_it_is() {
    let world = World::start().await;
    let purse = Purse::new(&world).await;
    purse.bot("bot").await;
    purse.fund("user", 5).await;
    let (user, bot) = (purse.place(&world, USER).await, purse.place(&world, "bot").await);
    let most = 9_000_000_000_000_000_000_u64;
    let mut set = redis::cmd("HSET");
    set.arg(purse.account.keys.agent(purse.mode, "bot"))
        .arg("balance")
        .arg(most - USD / 2);
    let _: i64 = world.store.command(&set).await.unwrap();
    let outcome = transfer(&world, &purse, &user, &bot).await;
    assert_eq!(outcome, Transferred::TooMuch);
    assert_eq!(purse.balance(&world, USER).await, 5 * USD);
    assert_eq!(purse.balance(&world, "bot").await, most - USD / 2);
}

/// A request that makes no deposit leaves no look-up behind, and takes none away.
#[tokio::test]
async fn a_pending_deposit_that_is_refused_is_not_announced() {
    let world = World::start().await;
    let purse = Purse::new(&world).await;
    purse.bot("bot").await;
    let wallet = purse.place(&world, "bot").await;
    let (most, pending) = (9_000_000 * USD, DepositState::Pending);
    let full = 8_999_999_999 * USD;
    let mut set = redis::cmd("HSET");
    set.arg(purse.account.keys.agent(purse.mode, "bot"))
        .arg("balance")
        .arg(full);
    let _: i64 = world.store.command(&set).await.unwrap();
    let ask = async |amount: u64, reference: &str, once: &Once| {
        deposit_of(&world, &purse, (&wallet, amount), (reference, once), pending).await
    };
    let none = Vec::<String>::new();
    assert_eq!(ask(most, "r", &once(&purse)).await, Made::TooMuch);
    assert_eq!(places(&world, "r").await, none);
    // The request was made before, with another reference.
    let known = once(&purse);
    assert!(matches!(
        ask(1, "r", &known).await,
        Made::Done { again: false, .. }
    ));
    let there = places(&world, "r").await;
    assert_eq!(there, [format!("{} {}", purse.account.id, purse.mode)]);
    assert_eq!(ask(1, "other", &known).await, Made::Known);
    assert_eq!(places(&world, "other").await, none);
    // There is a deposit of the reference.
    assert_eq!(ask(1, "r", &known).await, Made::Known);
    assert_eq!(ask(2, "r", &once(&purse)).await, Made::OtherDeposit);
    assert!(matches!(
        ask(1, "r", &once(&purse)).await,
        Made::Done { again: true, .. }
    ));
    assert_eq!(places(&world, "r").await, there);
    // Some are refused while another one of the same reference is made.
    for round in 0..100 {
        let reference = format!("race-{round}");
        let amounts = [most, 1, most, most];
        let onces: Vec<Once> = amounts.iter().map(|_| once(&purse)).collect();
        let all = amounts.iter().zip(&onces);
        let all = all.map(|(amount, once)| ask(*amount, &reference, once));
        let made = futures::future::join_all(all).await;
        let done = made.iter().any(|made| matches!(made, Made::Done { .. }));
        assert!(done, "{made:?}");
        assert_eq!(places(&world, &reference).await, there, "{made:?}");
    }
}
