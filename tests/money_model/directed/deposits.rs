//! Deposits: pending, confirmed, once for each reference.

use super::fixture::{DirectedFixture, START, deposit, request_id};
use crate::act::{Act, Deposit};
use crate::model::{MOST, Place};
use crate::model_fixture::Checked;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    // Boxed, since these futures are larger than a test's stack.
    Box::pin(made(setup)).await?;
    Box::pin(cancelled(setup)).await?;
    Box::pin(refused(setup)).await?;
    Box::pin(full(setup)).await?;
    to_the_nano(setup).await
}

fn pending(n: u64, to: &Place, amount: u64) -> Deposit {
    Deposit {
        pending: true,
        ..deposit(n, to.clone(), amount)
    }
}

/// Confirms the deposit of the request number `n`.
fn confirm(at: usize, n: u64) -> Act {
    Act::Confirm {
        request_id: request_id(at, 1000 + n),
        keyed: true,
        reference: format!("ref {n}"),
    }
}

/// Cancels the deposit of the request number `n`.
fn cancel(at: usize, n: u64) -> Act {
    Act::Cancel {
        at,
        reference: format!("ref {n}"),
    }
}

/// A cancelled deposit is no longer pending, and its reference serves no other deposit.
async fn cancelled(setup: &DirectedFixture<'_>) -> Checked {
    for (at, owner) in [(0, "user"), (2, "a"), (1, "b")] {
        let mut fixture = setup.usual().await?;
        let to = fixture.model.place(at, owner);
        fixture.want("made", pending(1, &to, 5)).await?;
        fixture.want("made", pending(2, &to, 7)).await?;
        fixture.want("made", deposit(3, to.clone(), 9)).await?;
        fixture.want("missing", cancel(at, 4)).await?;
        fixture.want("missing", cancel((at + 2) % 4, 1)).await?;
        fixture.want("cancelled", cancel(at, 1)).await?;
        fixture.want("again", cancel(at, 1)).await?;
        // The reference is not announced, deposited or confirmed again; the announcement's key has its first answer.
        for (keyed, pending) in [(true, true), (true, false), (false, true), (false, false)] {
            let late = Deposit {
                keyed,
                pending,
                reference: "ref 1".to_owned(),
                ..deposit(5, to.clone(), 5)
            };
            fixture.want("other_state", late).await?;
        }
        let other = Deposit {
            pending: true,
            reference: "ref 1".to_owned(),
            ..deposit(6, to.clone(), 6)
        };
        fixture.want("other", other).await?;
        fixture.want("known", pending(1, &to, 5)).await?;
        fixture.want("cancelled", confirm(at, 1)).await?;
        fixture.want("cancelled", keyless(confirm(at, 1))).await?;
        // A deposit that has arrived is not cancelled.
        fixture.want("confirmed", cancel(at, 3)).await?;
        fixture.want("confirmed", confirm(at, 2)).await?;
        fixture.want("confirmed", cancel(at, 2)).await?;
    }
    Ok(())
}

fn keyless(act: Act) -> Act {
    match act {
        Act::Confirm {
            request_id,
            reference,
            ..
        } => Act::Confirm {
            request_id,
            keyed: false,
            reference,
        },
        other => other,
    }
}

async fn made(setup: &DirectedFixture<'_>) -> Checked {
    for (at, owner) in [(0, "user"), (2, "a"), (1, "b"), (3, "user")] {
        let mut fixture = setup.usual().await?;
        let to = fixture.model.place(at, owner);
        let first = deposit(1, to.clone(), 5);
        fixture.want("made", first.clone()).await?;
        fixture.want("known", first.clone()).await?;
        let mut again = Deposit {
            reference: first.reference.clone(),
            ..deposit(2, to.clone(), 5)
        };
        fixture.want("again", again.clone()).await?;
        // The key of the repetition is bound, and serves no other deposit.
        again.amount = 6;
        fixture.want("known", again).await?;
        let other = Deposit {
            reference: first.reference.clone(),
            ..deposit(7, to.clone(), 6)
        };
        fixture.want("other", other).await?;
        // An announced deposit and one that has arrived do not repeat each other, in either order; the key stays free.
        let announced = |n| Deposit {
            pending: true,
            reference: first.reference.clone(),
            ..deposit(n, to.clone(), 5)
        };
        fixture.want("other_state", announced(8)).await?;
        fixture.want("made", deposit(8, to.clone(), 3)).await?;
        fixture.want("again", confirm(at, 1)).await?;
        fixture.want("known", confirm(at, 1)).await?;
        fixture
            .want(
                "made",
                Deposit {
                    keyed: false,
                    ..deposit(3, to.clone(), 7)
                },
            )
            .await?;
        fixture.want("made", pending(4, &to, 8)).await?;
        fixture
            .want(
                "made",
                Deposit {
                    keyed: false,
                    ..pending(5, &to, 9)
                },
            )
            .await?;
        fixture.want("known", pending(4, &to, 8)).await?;
        for n in [40, 41] {
            let arrived = Deposit {
                keyed: n == 40,
                reference: "ref 4".to_owned(),
                ..deposit(n, to.clone(), 8)
            };
            fixture.want("other_state", arrived.clone()).await?;
            let again = Deposit {
                pending: true,
                ..arrived
            };
            fixture.want("again", again).await?;
        }
        fixture.want("confirmed", confirm(at, 4)).await?;
        fixture.want("known", confirm(at, 4)).await?;
        // Announced again after it has arrived: the same deposit, and the key is bound.
        let announced = Deposit {
            reference: "ref 4".to_owned(),
            ..pending(42, &to, 8)
        };
        fixture.want("again", announced.clone()).await?;
        fixture.want("known", announced).await?;
        for keyed in [true, false] {
            let mut again = confirm(at, 4);
            again.request_id_mut().ok_or("no request")?.id = "int_again".to_owned();
            fixture
                .want("again", if keyed { again } else { keyless(again) })
                .await?;
        }
        fixture.want("missing", confirm(at, 6)).await?;
        fixture.want("missing", confirm((at + 2) % 4, 5)).await?;
        // Without a key nothing is looked up.
        let mut there = keyless(confirm(at, 5));
        there.request_id_mut().ok_or("no request")?.id = first.request_id.id;
        fixture.want("confirmed", there).await?;
    }
    Ok(())
}

async fn refused(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    model.sides[0].agents.get_mut("a").expect("the agent").frozen = Some("user");
    let a = model.place(0, "a");
    model.lay(
        "created",
        &Act::NewAgent {
            at: 0,
            agent: "c".to_owned(),
            most: None,
        },
    );
    let c = model.place(0, "c");
    model.lay("made", &Act::Deposit(pending(90, &c, 3)));
    let wrong = Place {
        number: a.number + 1000,
        ..a.clone()
    };
    let gone = Place {
        owner: "gone".to_owned(),
        ..a.clone()
    };
    let mut fixture = setup.fixture(model).await?;
    for pending in [true, false] {
        let n = 10 + u64::from(pending);
        let new = |n, to: &Place| Deposit {
            pending,
            ..deposit(n, to.clone(), 1)
        };
        fixture.want("changed", new(n, &wrong)).await?;
        fixture.want("changed", new(n, &gone)).await?;
        fixture
            .want(
                "blocked wallet_closed",
                Deposit {
                    closed: true,
                    ..new(n, &wrong)
                },
            )
            .await?;
        fixture.want("known", new(n, &a)).await?;
        let keyless = Deposit {
            keyed: false,
            closed: true,
            ..new(n + 10, &a)
        };
        fixture.want("blocked wallet_closed", keyless).await?;
        fixture.want("made", new(n + 10, &a)).await?;
    }
    // Without a key nothing is looked up.
    let keyless = Deposit {
        keyed: false,
        reference: "another".to_owned(),
        ..deposit(10, a.clone(), 1)
    };
    fixture.want("made", keyless).await?;
    // A pending deposit for a wallet that was replaced meanwhile.
    let wallet = fixture.model.sides[0]
        .agents
        .get_mut("c")
        .and_then(|agent| agent.wallet.as_mut());
    wallet.ok_or("no wallet")?.number += 500;
    let mut model = fixture.model;
    model.wallets.last_mut().ok_or("no wallet")?.number += 500;
    let mut fixture = setup.fixture(model).await?;
    fixture.want("closed", confirm(0, 90)).await?;
    fixture.want("cancelled", cancel(0, 90)).await
}

/// Pending deposits take room as well.
async fn full(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    let [a, b] = ["a", "b"].map(|owner| model.place(0, owner));
    model.lay("made", &Act::Deposit(deposit(90, a.clone(), MOST - START - 4096)));
    model.lay("made", &Act::Deposit(deposit(91, b.clone(), 9_000)));
    let mut fixture = setup.fixture(model).await?;
    fixture
        .want("too_much", deposit(1, a.clone(), 4096 + 1024))
        .await?;
    // A cancelled deposit frees its room.
    fixture.want("made", pending(6, &a, 4096)).await?;
    fixture.want("cancelled", cancel(0, 6)).await?;
    fixture.want("made", pending(2, &a, 2048)).await?;
    fixture
        .want("too_much", deposit(3, a.clone(), 2048 + 1024))
        .await?;
    fixture.want("too_much", pending(3, &a, 2048 + 1024)).await?;
    fixture.want("made", deposit(3, a.clone(), 2048)).await?;
    // A transfer takes the room of the pending deposit.
    fixture
        .want("done", super::fixture::transfer(4, &b, &a, 1024))
        .await?;
    fixture.want("too_much", confirm(0, 2)).await?;
    fixture
        .want("done", super::fixture::transfer(5, &a, &b, 1024))
        .await?;
    fixture.want("confirmed", confirm(0, 2)).await
}

/// The ceiling is exact, with and without pending deposits.
async fn to_the_nano(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    let [a, b] = ["a", "b"].map(|owner| model.place(0, owner));
    model.lay("made", &Act::Deposit(deposit(90, a.clone(), MOST - START - 1)));
    model.lay("made", &Act::Deposit(deposit(91, b.clone(), MOST - START - 2)));
    let mut fixture = setup.fixture(model).await?;
    fixture.want("too_much", deposit(1, a.clone(), 2)).await?;
    fixture.want("too_much", pending(2, &a, 2)).await?;
    fixture.want("made", deposit(3, a.clone(), 1)).await?;
    fixture.want("made", pending(4, &b, 1)).await?;
    fixture.want("too_much", deposit(5, b.clone(), 2)).await?;
    fixture.want("too_much", pending(5, &b, 2)).await?;
    fixture.want("made", deposit(6, b.clone(), 1)).await?;
    fixture.want("confirmed", confirm(0, 4)).await
}
