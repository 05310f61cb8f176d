//! Money in transit arrives once, however often and by whichever process it is delivered.

use super::fixture::{DirectedFixture, START, decide, deposit, escrow, request_id, transfer};
use crate::act::{Act, Decide, Transfer, Verdict};
use crate::model::{MOST, Model};
use crate::model_fixture::{Checked, ModelFixture};

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    once(setup).await?;
    escrows(setup).await?;
    closed(setup).await?;
    repeated(setup).await?;
    full(setup).await?;
    full_escrows(setup).await
}

fn crash(n: u64, fixture: &ModelFixture, amount: u64) -> Act {
    let (from, to) = (fixture.model.place(0, "a"), fixture.model.place(2, "b"));
    Act::Transfer(Transfer {
        crash: true,
        memo: Some("m".to_owned()),
        ..transfer(n, &from, &to, amount)
    })
}

fn deliver(id: &str, half: bool) -> Act {
    Act::Deliver {
        id: id.to_owned(),
        half,
    }
}

async fn once(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    for (n, amount) in [(1, 5), (2, 6), (3, START - 11)] {
        fixture.want("done", crash(n, &fixture, amount)).await?;
    }
    for _ in 0..2 {
        fixture.want("delivered", deliver("txn_2", true)).await?;
    }
    for _ in 0..2 {
        fixture.want("delivered", deliver("txn_2", false)).await?;
    }
    fixture.want("delivered", deliver("txn_3", false)).await?;
    fixture.want("delivered", deliver("txn_1", false)).await
}

/// Funded escrows of the first account for `owner` of the second; their numbers are 1, 2 …
pub fn funded(model: &mut Model, owner: &str, count: u64) {
    funded_with(model, owner, (count, 10));
}

fn funded_with(model: &mut Model, owner: &str, (count, amount): (u64, u64)) {
    let (from, to) = (model.place(0, "a"), model.place(2, owner));
    for number in 1..=count {
        model.lay("done", &Act::Escrow(escrow(100 + number, &from, &to, amount)));
        model.lay(
            "done",
            &Act::Fund {
                request_id: request_id(0, 200 + number),
                escrow: number,
            },
        );
    }
}

/// The end of an escrow, with and without money, with and without an intent of the payee.
async fn escrows(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    funded(&mut model, "b", 6);
    model.lay("done", &Act::Decide(decide(0, 300, 4, Verdict::Dispute(None))));
    model.lay("done", &Act::Decide(decide(0, 301, 5, Verdict::Dispute(None))));
    let mut fixture = setup.fixture(model).await?;
    let lost = |act: Decide| Act::Decide(Decide { crash: true, ..act });
    let why = Some("not as agreed".to_owned());
    fixture
        .want("done", lost(decide(0, 1, 1, Verdict::Release)))
        .await?;
    fixture
        .want("error", lost(decide(2, 2, 2, Verdict::Release)))
        .await?;
    fixture
        .want("error", lost(decide(2, 3, 3, Verdict::Dispute(why))))
        .await?;
    fixture
        .want(
            "done refunded",
            Act::End {
                escrow: 4,
                refund: true,
                crash: true,
            },
        )
        .await?;
    fixture
        .want(
            "done released",
            Act::End {
                escrow: 5,
                refund: false,
                crash: true,
            },
        )
        .await?;
    for half in [true, false, false] {
        for id in [
            "2:released",
            "1:released",
            "3:disputed",
            "5:resolved",
            "4:resolved",
        ] {
            fixture
                .want("delivered", deliver(&format!("escrow:{id}"), half))
                .await?;
        }
    }
    // The payee's call again finds its intent, and so does another call with its key.
    fixture.want("known", decide(2, 2, 2, Verdict::Release)).await?;
    fixture.want("known", decide(2, 2, 6, Verdict::Release)).await?;
    // While it is in transit, its key is claimed: only the same call may continue.
    fixture
        .want("error", lost(decide(2, 9, 6, Verdict::Release)))
        .await?;
    let (b, user) = (fixture.model.place(2, "b"), fixture.model.place(2, "user"));
    let taken = Act::Transfer(transfer(9, &b, &user, 1));
    fixture.want("known", taken.clone()).await?;
    fixture
        .want("error", lost(decide(2, 9, 6, Verdict::Release)))
        .await?;
    // If the key leads to another record all the same, that record is not overwritten.
    fixture.forget_claim(2, "int_9").await?;
    fixture.want("done", taken).await?;
    fixture
        .want("delivered", deliver("escrow:6:released", false))
        .await
}

/// The wallet was closed meanwhile, and perhaps another one opened: the money goes to the account's own wallet.
async fn closed(setup: &DirectedFixture<'_>) -> Checked {
    for (user, again) in [(true, false), (true, true), (false, true)] {
        let mut model = setup.model();
        let (a, c) = (model.place(0, "a"), "c".to_owned());
        model.lay(
            "created",
            &Act::NewAgent {
                at: 2,
                agent: c.clone(),
                most: None,
            },
        );
        if !user {
            model.sides[2].user = None;
            model
                .wallets
                .retain(|place| place.at != 2 || place.owner != "user");
            model.sides[2]
                .movements
                .retain(|movement| movement.owner != "user");
            model.sides[2]
                .deposits
                .retain(|_, deposit| deposit.owner != "user");
        }
        let to = model.place(2, "c");
        let mut fixture = setup.fixture(model).await?;
        let lost = Transfer {
            crash: true,
            ..transfer(1, &a, &to, 5)
        };
        fixture.want("done", lost).await?;
        fixture
            .want(
                "deleted",
                Act::Delete {
                    at: 2,
                    agent: c.clone(),
                },
            )
            .await?;
        if again {
            fixture
                .want(
                    "created",
                    Act::NewAgent {
                        at: 2,
                        agent: c,
                        most: None,
                    },
                )
                .await?;
        }
        fixture.want("delivered", deliver("txn_1", true)).await?;
        fixture.want("delivered", deliver("txn_1", false)).await?;
    }
    Ok(())
}

/// The money arrived and was taken out again before the row was removed. The repeated delivery finds the wallet closed
/// and credits no other.
async fn repeated(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    let new = || Act::NewAgent {
        at: 2,
        agent: "c".to_owned(),
        most: None,
    };
    model.lay("created", &new());
    let (a, c, user) = (model.place(0, "a"), model.place(2, "c"), model.place(2, "user"));
    let mut fixture = setup.fixture(model).await?;
    let lost = Transfer {
        crash: true,
        ..transfer(1, &a, &c, 5)
    };
    fixture.want("done", lost).await?;
    fixture.want("delivered", deliver("txn_1", true)).await?;
    fixture.want("done 0", transfer(2, &c, &user, 5)).await?;
    let gone = Act::Delete {
        at: 2,
        agent: "c".to_owned(),
    };
    fixture.want("deleted", gone).await?;
    fixture.want("created", new()).await?;
    fixture.want("delivered", deliver("txn_1", false)).await
}

/// Money for a wallet without room waits in transit until the wallet has room.
async fn full(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    let (a, b) = (model.place(0, "a"), model.place(2, "b"));
    let user = model.place(2, "user");
    model.lay("made", &Act::Deposit(deposit(90, a.clone(), 9_000)));
    model.lay("made", &Act::Deposit(deposit(91, b.clone(), MOST - START - 1024)));
    let mut fixture = setup.fixture(model).await?;
    fixture.want("done", crash(1, &fixture, 2048)).await?;
    for _ in 0..2 {
        fixture.want("no_room", deliver("txn_1", false)).await?;
    }
    fixture
        .want("done", Act::Transfer(transfer(2, &b, &user, 1024)))
        .await?;
    fixture.want("delivered", deliver("txn_1", false)).await
}

/// Without room for its money, an escrow still ends and its intent is written at once; only the money waits.
async fn full_escrows(setup: &DirectedFixture<'_>) -> Checked {
    // More than the distance between doubles at the largest balance.
    const AMOUNT: u64 = 4096;
    let mut model = setup.model();
    let a = model.place(0, "a");
    model.lay("made", &Act::Deposit(deposit(89, a, 4 * AMOUNT)));
    funded_with(&mut model, "b", (4, AMOUNT));
    model.lay("done", &Act::Decide(decide(0, 300, 3, Verdict::Dispute(None))));
    model.lay("done", &Act::Decide(decide(0, 301, 4, Verdict::Dispute(None))));
    let (b, user) = (model.place(2, "b"), model.place(2, "user"));
    let mut fixture = setup.fixture(model).await?;
    let lost = |act: Decide| Act::Decide(Decide { crash: true, ..act });
    let end = |escrow, crash| Act::End {
        escrow,
        refund: false,
        crash,
    };
    let emptied = |n, amount| Act::Transfer(transfer(n, &b, &user, amount));
    fixture
        .want("done", lost(decide(0, 1, 1, Verdict::Release)))
        .await?;
    fixture.want("done released", end(3, true)).await?;
    let filling = deposit(90, b.clone(), MOST - START);
    fixture.want("made", Act::Deposit(filling)).await?;
    for id in ["1:released", "3:resolved", "1:released"] {
        let act = deliver(&format!("escrow:{id}"), false);
        fixture.want("no_room", act).await?;
    }
    // A verdict that finds the wallet full is refused, and nothing moves.
    for (at, n) in [(0, 2), (2, 3)] {
        let act = Act::Decide(decide(at, n, 2, Verdict::Release));
        fixture.want("too_much", act).await?;
    }
    fixture.want("too_much", end(4, false)).await?;
    fixture.want("done", emptied(4, 2 * AMOUNT)).await?;
    for half in [true, false, false] {
        for id in ["1:released", "3:resolved"] {
            let act = deliver(&format!("escrow:{id}"), half);
            fixture.want("delivered", act).await?;
        }
    }
    // A payee's own verdict has its intent while its money waits.
    fixture.want("done", emptied(5, AMOUNT)).await?;
    fixture
        .want("error", lost(decide(2, 6, 2, Verdict::Release)))
        .await?;
    let filling = deposit(91, b.clone(), AMOUNT);
    fixture.want("made", Act::Deposit(filling)).await?;
    fixture
        .want("no_room", deliver("escrow:2:released", false))
        .await?;
    fixture
        .want("known", Act::Decide(decide(2, 6, 2, Verdict::Release)))
        .await?;
    // It is not written again: it may be archived when the money arrives.
    fixture.archive(2, "int_6").await?;
    fixture.want("done", emptied(7, AMOUNT)).await?;
    fixture
        .want("delivered", deliver("escrow:2:released", false))
        .await
}
