//! Answers of scripts if a change came between their twin's read and the script, or if their record never existed. They
//! run without their twins, which do not pass such arguments at rest; nothing may change.

use super::fixture::DirectedFixture;
use crate::act::Act;
use crate::model::{Limits, keys};
use crate::model_fixture::{Checked, ModelFixture};
use domain::number::Number;
use store::agent;
use store::deposit;
use store::escrow;
use store::keys::{AccountKeys, Bucket, USER, closed_holder};
use store::transfer;
use store::transit;
use store::wallet;

pub async fn no_account(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    let (nobody, there) = (AccountKeys::new("acct_none"), keys(0));
    let mut names = vec![
        nobody.record(),
        nobody.live().audit(),
        nobody.live().transactions(),
    ];
    names.extend(there.live().leg("a", "transfer_out"));
    names.push(there.live().intent("int_1"));
    names.extend(there.live().leg("b", "transfer_in"));
    let number = |owner| fixture.model.place(0, owner).number.to_string();
    let (a, b) = (number("a"), number("b"));
    let args = [
        &a,
        "1",
        "txn_1 transfer_out a - USD {}",
        "",
        "int_1",
        "1000",
        &b,
        "txn_2 transfer_in b - USD {}",
    ];
    fixture
        .refused(&["no_account"], &transfer::OWN, &names, &args)
        .await
}

/// A user wallet that was opened meanwhile, and a number that is taken.
pub async fn opened(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    let place = |number| Bucket::wallet_place(Number::from_u64(number).expect("a number"));
    let taken = fixture.model.place(0, "a").number;
    let args = ["77", "wal_77", "acct_one live user wal_77"];
    for (number, owner, word) in [(taken + 7 * 1024, USER, "exists"), (taken, "none", "taken")] {
        let names = [
            keys(0).record(),
            keys(0).live().audit(),
            keys(0).live().wallet(owner),
            place(number),
        ];
        fixture
            .refused(&[word], &wallet::script::OPEN, &names, &args)
            .await?;
    }
    let names = [
        keys(0).record(),
        keys(0).live().audit(),
        keys(0).live().agent("new"),
        keys(0).live().agents(),
        place(taken),
    ];
    let args = ["new", "", "", "acct_one live new wal_77", "wallet", "wal_77"];
    fixture
        .refused(&["taken"], &agent::script::CREATE, &names, &args)
        .await
}

/// A full wallet is not reported as closed.
pub async fn full(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    let account = keys(0);
    let mut names = vec![
        account.record(),
        account.live().audit(),
        account.live().transactions(),
    ];
    names.extend(account.live().leg("a", "transfer_in"));
    names.push(account.bucket().arrived("txn_9"));
    names.push(account.bucket().arrived("txn_9:notice"));
    names.extend(std::iter::repeat_n(account.record(), 7));
    let a = fixture.model.place(0, "a").number.to_string();
    let args = [
        &a,
        "9000000000000002048",
        "txn_9 transfer_in a - USD {}",
        "",
        "",
        "",
    ];
    fixture
        .refused(&["too_much"], &transit::script::ARRIVE, &names, &args)
        .await
}

pub async fn no_deposit(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    let account = keys(0);
    let mut names = vec![
        account.record(),
        account.live().audit(),
        account.live().transactions(),
    ];
    names.extend(account.live().leg("a", "deposit"));
    names.extend([account.live().deposit("none"), account.live().intent("int_9")]);
    let a = fixture.model.place(0, "a").number.to_string();
    let args = [&a, "1", "txn_9 deposit a - USD {}", "", ""];
    fixture
        .refused(&["missing"], &deposit::script::CONFIRM, &names, &args)
        .await?;
    let wallet = account.live().wallet("a");
    let names = [
        account.record(),
        account.live().audit(),
        wallet,
        account.live().deposit("none"),
    ];
    fixture
        .refused(&["missing"], &deposit::script::CANCEL, &names, &[&a, "1"])
        .await
}

pub async fn no_escrow(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    let account = keys(0);
    let start = || {
        let mut names = vec![
            account.record(),
            account.live().audit(),
            account.live().transactions(),
        ];
        names.extend(account.live().leg("a", "escrow_fund"));
        names
    };
    let unused = |count| std::iter::repeat_n(account.record(), count);
    let mut names = start();
    names.extend([account.live().intent("int_9"), account.live().intent("int_9s")]);
    names.extend(unused(6));
    names.extend([account.live().escrow(9), account.live().open_escrows("a")]);
    names.extend(unused(2));
    let a = fixture.model.place(0, "a").number.to_string();
    let args = [
        &a,
        "",
        "",
        "9",
        "1",
        "txn_9",
        "txn_9 escrow_fund a - USD {}",
        "int_9",
        "int_9s",
        "settled=00",
    ];
    fixture
        .refused(&["missing"], &escrow::script::FUND, &names, &args)
        .await?;
    let mut names = start();
    names.extend([account.live().escrow(9), account.live().escrow_siblings(9)]);
    names.extend([
        account.live().open_escrows("a"),
        account.live().open_escrows("a"),
        account.bucket().transit(),
    ]);
    names.extend(unused(8));
    let args = [
        "funded",
        "released",
        "",
        "1",
        "",
        "",
        "",
        "9",
        "int_9",
        "int_9s",
        "acct_one",
        "escrow_release",
        "",
        "",
        "",
    ];
    fixture
        .refused(&["missing"], &escrow::script::RESOLVE, &names, &args)
        .await
}

/// The keys of a deletion of agent `c`, as its twin lists them.
fn deletion(number: u64, policy: Option<&str>, virtual_keys: &[&str]) -> Vec<String> {
    let account = keys(0);
    let policies = account.live().policies();
    let policy = policy.map_or_else(|| policies.clone(), |id| account.live().policy(id));
    let mut names = vec![
        account.record(),
        account.live().audit(),
        account.live().agent("c"),
        account.live().agents(),
    ];
    names.extend([
        policies,
        policy,
        account.active_keys(),
        account.agent_keys("c"),
        account.sealed_agents(),
    ]);
    names.extend([
        account.live().closed_wallet(number),
        account.live().open_escrows("c"),
    ]);
    names.extend(account.live().transaction_lists("c"));
    names.extend(account.live().transaction_lists(&closed_holder(number)));
    names.extend(virtual_keys.iter().map(|id| account.virtual_key(id)));
    names
}

/// An agent that got another policy, wallet or virtual key meanwhile, or that is gone.
pub async fn deleted(setup: &DirectedFixture<'_>) -> Checked {
    for (policy, key) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut model = setup.model();
        let agent = "c".to_owned();
        model.lay(
            "created",
            &Act::NewAgent {
                at: 0,
                agent: agent.clone(),
                most: None,
            },
        );
        if policy {
            let agent = Some(agent.clone());
            model.lay(
                "set",
                &Act::Policy {
                    at: 0,
                    agent,
                    limits: Limits::default(),
                    n: 50,
                },
            );
        }
        if key {
            let agent = model.sides[0].agents.get_mut("c").ok_or("no agent")?;
            agent.virtual_keys.insert("vk_1".to_owned());
        }
        let number = model.place(0, "c").number;
        let mut fixture: ModelFixture = setup.fixture(model).await?;
        let its_keys: &[&str] = if key { &["vk_1"] } else { &[] };
        let its_policy = policy.then_some("pol_50");
        let (right, wrong) = (number.to_string(), (number + 1).to_string());
        let id = its_policy.unwrap_or("");
        let other = if policy { "" } else { "pol_51" };
        for (keys, args) in [
            (deletion(number, its_policy, its_keys), ["c", id, &wrong]),
            (deletion(number, its_policy, its_keys), ["c", other, &right]),
            (deletion(number, its_policy, &["vk_1", "vk_2"]), ["c", id, &right]),
        ] {
            fixture
                .refused(&["changed"], &agent::script::DELETE, &keys, &args)
                .await?;
        }
        if key {
            let keys = deletion(number, its_policy, &[]);
            fixture
                .refused(&["changed"], &agent::script::DELETE, &keys, &["c", id, &right])
                .await?;
        }
        fixture.want("deleted", Act::Delete { at: 0, agent }).await?;
        let keys = deletion(number, None, &[]);
        fixture
            .refused(&["missing"], &agent::script::DELETE, &keys, &["c", "", &right])
            .await?;
    }
    Ok(())
}
