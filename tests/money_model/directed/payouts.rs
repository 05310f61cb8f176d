//! Payouts of an escrow whose wallet is closed or full.

use super::fixture::{DirectedFixture, START, deposit, escrow, request_id};
use super::verdicts::{dispute, end, release};
use crate::act::Act;
use crate::model::MOST;
use crate::model_fixture::Checked;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    closed(setup).await?;
    full(setup).await
}

/// Money for a closed wallet of the payer's account goes to the account's own wallet.
async fn closed(setup: &DirectedFixture<'_>) -> Checked {
    for (refund, again) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut model = setup.model();
        for agent in ["c", "d"] {
            model.lay(
                "created",
                &Act::NewAgent {
                    at: 0,
                    agent: agent.to_owned(),
                    most: None,
                },
            );
        }
        let c = model.place(0, "c");
        model.lay("made", &Act::Deposit(deposit(90, c.clone(), 10)));
        let (from, to) = if refund {
            (c.clone(), model.place(0, "b"))
        } else {
            (c.clone(), model.place(0, "d"))
        };
        model.lay("done", &Act::Escrow(escrow(100, &from, &to, 10)));
        model.lay(
            "done",
            &Act::Fund {
                request_id: request_id(0, 101),
                escrow: 1,
            },
        );
        let gone = if refund { "c" } else { "d" };
        // No script allows this state: an open escrow prevents the deletion.
        model.sides[0].open.clear();
        model.escrows.get_mut(&1).expect("the escrow").status = "pending";
        model.lay(
            "deleted",
            &Act::Delete {
                at: 0,
                agent: gone.to_owned(),
            },
        );
        model.escrows.get_mut(&1).expect("the escrow").status = "funded";
        if again {
            model.lay(
                "created",
                &Act::NewAgent {
                    at: 0,
                    agent: gone.to_owned(),
                    most: None,
                },
            );
        }
        if refund {
            model.lay("done", &dispute(0, 102, 1));
        }
        let mut fixture = setup.fixture(model).await?;
        let act = if refund { end(1, true) } else { release(0, 1, 1) };
        fixture.want("done", act).await?;
    }
    Ok(())
}

/// If the wallet has no room, nothing happens.
async fn full(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    let (a, b) = (model.place(0, "a"), model.place(0, "b"));
    model.lay("made", &Act::Deposit(deposit(90, a.clone(), 9_000)));
    for (n, amount) in [(1, 2048), (2, 1024), (3, 1024)] {
        model.lay("done", &Act::Escrow(escrow(100 + n, &a, &b, amount)));
        model.lay(
            "done",
            &Act::Fund {
                request_id: request_id(0, 200 + n),
                escrow: n,
            },
        );
    }
    model.lay("done", &dispute(0, 300, 3));
    model.lay("made", &Act::Deposit(deposit(91, b, MOST - START - 1024)));
    let rest = MOST - u64::try_from(model.balance(0, a.number)).expect("a balance");
    model.lay("made", &Act::Deposit(deposit(92, a, rest)));
    let mut fixture = setup.fixture(model).await?;
    fixture.want("too_much", release(0, 1, 1)).await?;
    fixture.want("too_much", end(3, true)).await?;
    fixture.want("done", dispute(0, 2, 1)).await?;
    fixture.want("too_much", end(1, false)).await?;
    fixture.want("done", release(0, 3, 2)).await
}
