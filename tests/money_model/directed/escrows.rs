//! Escrows that are made and funded.

use super::fixture::{DirectedFixture, START, escrow, request_id};
use crate::act::{Act, NewEscrow};
use crate::model::{Place, keys};
use crate::model_fixture::{Checked, ModelFixture};
use domain::number::Number;
use store::escrow::script;
use store::keys::{AccountKeys, Bucket, IntentIndex};

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    made(setup).await?;
    funded(setup).await?;
    refused(setup).await?;
    closed(setup).await
}

fn fund(at: usize, n: u64, escrow: u64) -> Act {
    Act::Fund {
        request_id: request_id(at, n),
        escrow,
    }
}

fn wrong(place: &Place) -> Place {
    Place {
        number: place.number + 1000,
        ..place.clone()
    }
}

async fn made(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    let [user, a, b] = ["user", "a", "b"].map(|owner| fixture.model.place(0, owner));
    let there = fixture.model.place(2, "a");
    let new = |n, from: &Place, to: &Place| escrow(n, from, to, 7);
    fixture.want("done", new(1, &a, &b)).await?;
    fixture.want("known", new(1, &a, &b)).await?;
    fixture.want("known", new(1, &a, &there)).await?;
    fixture.want("done", new(2, &user, &there)).await?;
    fixture.want("done", new(3, &b, &user)).await?;
    for (n, to) in [(10, &b), (20, &there)] {
        fixture
            .want("blocked wallet_closed", new(n, &wrong(&a), to))
            .await?;
        fixture.want("known", new(n, &a, to)).await?;
        let closed = NewEscrow {
            closed: true,
            ..new(n + 1, &a, to)
        };
        fixture.want("blocked wallet_closed", closed.clone()).await?;
        fixture.want("known", closed).await?;
    }
    fixture
        .want("blocked wallet_closed", new(30, &a, &wrong(&b)))
        .await?;
    listed(&mut fixture, &a, &there).await?;
    taken(&mut fixture, &a, &b).await
}

/// An escrow that is missing in the payee's list after a crash arrives there later, once.
async fn listed(fixture: &mut ModelFixture, a: &Place, there: &Place) -> Checked {
    let crash = NewEscrow {
        crash: true,
        ..escrow(40, a, there, 7)
    };
    fixture.want("done", crash).await?;
    let last = fixture.model.asked_escrows;
    for half in [true, true, false] {
        let id = format!("escrow:{last}:created");
        fixture.want("delivered", Act::Deliver { id, half }).await?;
    }
    let nobody = AccountKeys::new("acct_none");
    let names = [nobody.record(), nobody.live().escrows()];
    fixture
        .answers(&["no_account"], &script::LIST, &names, &["7"])
        .await
}

/// The script never overwrites an escrow whose number is taken, even if its twin passes that number.
async fn taken(fixture: &mut ModelFixture, a: &Place, b: &Place) -> Checked {
    let account = keys(0);
    let number = fixture.model.escrows[&1].number;
    let mut names = vec![
        account.record(),
        account.live().audit(),
        account.live().wallet(&a.owner),
        account.live().wallet(&b.owner),
        account.live().intent("int_50"),
    ];
    names.extend(std::iter::repeat_n(account.live().intents(IntentIndex::All), 6));
    names.extend([
        account.live().escrow(number + 1),
        account.live().escrows(),
        Bucket::escrow_place(Number::from_u64(number).ok_or("no number")?),
        account.bucket().transit(),
    ]);
    let (from, to, id) = (a.number.to_string(), b.number.to_string(), number.to_string());
    let args = [
        &from,
        &to,
        &id,
        "int_50",
        "settled=00",
        "acct_two live",
        "",
        "",
        "0",
    ];
    fixture.refused(&["taken"], &script::CREATE, &names, &args).await
}

async fn funded(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    for (n, (from, to)) in [(0, 0), (0, 2), (3, 3), (3, 1)].into_iter().enumerate() {
        let (from, to) = (model.place(from, "a"), model.place(to, "b"));
        model.lay("done", &Act::Escrow(escrow(100 + n as u64, &from, &to, 60)));
    }
    let (a, user) = (model.place(0, "a"), model.place(0, "user"));
    model.lay("done", &Act::Escrow(escrow(110, &a, &user, START - 60)));
    let mut fixture = setup.fixture(model).await?;
    for (number, at) in [(1, 0), (3, 3)] {
        fixture.want("done 40", fund(at, number, number)).await?;
        fixture.want("known", fund(at, number, number)).await?;
        fixture
            .want("blocked escrow_not_pending", fund(at, number + 10, number))
            .await?;
        fixture
            .want("blocked insufficient_balance", fund(at, number + 20, number + 1))
            .await?;
        fixture.want("known", fund(at, number, number + 1)).await?;
    }
    fixture.want("done 0", fund(0, 5, 5)).await
}

/// Reasons of refusal, in order: the state, closed wallets, the freeze, the balance.
async fn refused(setup: &DirectedFixture<'_>) -> Checked {
    for to_at in [0, 2] {
        let mut model = setup.model();
        let (from, to) = (model.place(0, "a"), model.place(to_at, "b"));
        for n in [100, 101] {
            model.lay("done", &Act::Escrow(escrow(n, &from, &to, START)));
        }
        model.lay("done", &fund(0, 102, 2));
        let frozen = |frozen: bool| frozen.then_some("user");
        model.sides[0].agents.get_mut("a").expect("the agent").frozen = frozen(true);
        let mut fixture = setup.fixture(model).await?;
        fixture
            .want("blocked escrow_not_pending int_1s funded", fund(0, 1, 2))
            .await?;
        fixture
            .want("blocked frozen int_2 pending", fund(0, 2, 1))
            .await?;
        let mut model = fixture.model;
        model.sides[0].agents.get_mut("a").expect("the agent").frozen = frozen(false);
        let mut fixture = setup.fixture(model).await?;
        fixture
            .want("blocked insufficient_balance int_3s pending", fund(0, 3, 1))
            .await?;
    }
    Ok(())
}

/// The wallet of the payer, or of the payee, was closed since the escrow was made; perhaps another one is open.
async fn closed(setup: &DirectedFixture<'_>) -> Checked {
    for case in 0..8 {
        let (payee_goes, to_at, again) = (case & 1 == 1, case & 2, case & 4 == 4);
        let at = if payee_goes { to_at } else { 0 };
        let mut model = setup.model();
        let new = || Act::NewAgent {
            at,
            agent: "c".to_owned(),
            most: None,
        };
        model.lay("created", &new());
        let (payer, payee) = if payee_goes { ("a", "c") } else { ("c", "b") };
        let (from, to) = (model.place(0, payer), model.place(to_at, payee));
        model.lay("done", &Act::Escrow(escrow(100, &from, &to, 1)));
        let gone = Act::Delete {
            at,
            agent: "c".to_owned(),
        };
        model.lay("deleted", &gone);
        if again {
            model.lay("created", &new());
        }
        let mut fixture = setup.fixture(model).await?;
        fixture
            .want("blocked wallet_closed int_1 pending", fund(0, 1, 1))
            .await?;
        fixture.want("known", fund(0, 1, 1)).await?;
    }
    Ok(())
}
