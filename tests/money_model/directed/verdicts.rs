//! The end of an escrow: one of release and dispute wins, the money moves once, and the other calls get the outcome.

use super::arrivals::funded;
use super::fixture::{DirectedFixture, decide, escrow, request_id};
use crate::act::{Act, Decide, Verdict};
use crate::model::Model;
use crate::model_fixture::Checked;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    within(setup).await?;
    between(setup).await?;
    crashed(setup).await?;
    operator(setup).await?;
    archived(setup).await?;
    many(setup).await
}

pub fn release(at: usize, n: u64, escrow: u64) -> Act {
    Act::Decide(decide(at, n, escrow, Verdict::Release))
}

pub fn dispute(at: usize, n: u64, escrow: u64) -> Act {
    Act::Decide(decide(
        at,
        n,
        escrow,
        Verdict::Dispute(Some("not as agreed".to_owned())),
    ))
}

pub const fn end(escrow: u64, refund: bool) -> Act {
    Act::End {
        escrow,
        refund,
        crash: false,
    }
}

/// Funded escrows of 10 between the wallets of two agents of a side.
fn at_home(model: &mut Model, at: usize, count: u64) {
    let (from, to) = (model.place(at, "a"), model.place(at, "b"));
    for number in 1..=count {
        model.lay("done", &Act::Escrow(escrow(100 + number, &from, &to, 10)));
        model.lay(
            "done",
            &Act::Fund {
                request_id: request_id(at, 200 + number),
                escrow: number,
            },
        );
    }
}

/// Both parties are one account.
async fn within(setup: &DirectedFixture<'_>) -> Checked {
    for at in [0, 3] {
        let mut model = setup.model();
        at_home(&mut model, at, 3);
        let (from, to) = (model.place(at, "a"), model.place(at, "b"));
        model.lay("done", &Act::Escrow(escrow(110, &from, &to, 10)));
        let mut fixture = setup.fixture(model).await?;
        fixture
            .want("blocked escrow_not_funded int_1s pending", release(at, 1, 4))
            .await?;
        fixture
            .want("blocked escrow_not_funded int_2s pending", dispute(at, 2, 4))
            .await?;
        fixture.want("done", release(at, 3, 1)).await?;
        fixture.want("known", release(at, 3, 1)).await?;
        fixture.want("known", dispute(at, 3, 2)).await?;
        fixture
            .want("blocked escrow_released int_4 released", release(at, 4, 1))
            .await?;
        fixture
            .want("blocked escrow_released int_5 released", dispute(at, 5, 1))
            .await?;
        fixture.want("known", dispute(at, 5, 1)).await?;
        fixture.want("done", dispute(at, 6, 2)).await?;
        fixture.want("known", dispute(at, 6, 2)).await?;
        fixture
            .want("blocked escrow_disputed int_7 disputed", release(at, 7, 2))
            .await?;
        fixture
            .want("done", decide(at, 8, 3, Verdict::Dispute(None)))
            .await?;
        fixture.want("done refunded", end(2, true)).await?;
        fixture
            .want("blocked escrow_refunded int_9 refunded", release(at, 9, 2))
            .await?;
        fixture.want("done released", end(3, false)).await?;
        fixture.want("wrong released", end(3, true)).await?;
        fixture.want("wrong pending", end(4, true)).await?;
        fixture
            .want("blocked escrow_released int_10 released", dispute(at, 10, 3))
            .await?;
    }
    Ok(())
}

/// The payee is in another account; either party acts.
async fn between(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    funded(&mut model, "b", 6);
    let (from, to) = (model.place(0, "a"), model.place(2, "b"));
    model.lay("done", &Act::Escrow(escrow(110, &from, &to, 10)));
    let mut fixture = setup.fixture(model).await?;
    fixture
        .want("blocked escrow_not_funded int_1s", release(2, 1, 7))
        .await?;
    fixture
        .want("blocked escrow_not_funded int_2s", dispute(0, 2, 7))
        .await?;
    fixture.want("done", release(0, 3, 1)).await?;
    fixture.want("done", release(2, 4, 2)).await?;
    fixture.want("done", dispute(0, 5, 3)).await?;
    fixture.want("done", dispute(2, 6, 4)).await?;
    for (n, escrow, status) in [
        (10, 1, "released"),
        (20, 2, "released"),
        (30, 3, "disputed"),
        (40, 4, "disputed"),
    ] {
        for (more, at) in [(0, 0), (1, 2)] {
            let outcome = format!("blocked escrow_{status} int_{}", n + more);
            fixture.want(&outcome, release(at, n + more, escrow)).await?;
            fixture.want("known", release(at, n + more, escrow)).await?;
            fixture
                .want(
                    &format!("blocked escrow_{status}"),
                    dispute(at, n + more + 5, escrow),
                )
                .await?;
        }
    }
    // The same id in another account is another intent.
    fixture
        .want("blocked escrow_released int_3", release(2, 3, 1))
        .await?;
    fixture
        .want("blocked escrow_released int_4", release(0, 4, 2))
        .await?;
    for (at, n, escrow) in [(0, 3, 1), (2, 4, 2), (2, 6, 4)] {
        fixture.want("known", release(at, n, escrow)).await?;
    }
    fixture.want("done refunded", end(3, true)).await?;
    fixture.want("done released", end(4, false)).await?;
    fixture.want("blocked escrow_refunded", release(2, 50, 3)).await
}

/// The process crashes between the two steps; the same call again, or the worker, does the second one.
async fn crashed(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    funded(&mut model, "b", 4);
    let mut fixture = setup.fixture(model).await?;
    let lost = |act: &Act| match act {
        Act::Decide(act) => Act::Decide(Decide {
            crash: true,
            ..act.clone()
        }),
        other => other.clone(),
    };
    for (act, outcome) in [
        (release(2, 1, 1), "error"),
        (dispute(2, 2, 2), "error"),
        (release(0, 3, 3), "done"),
    ] {
        fixture.want(outcome, lost(&act)).await?;
        let again = if outcome == "error" { "error" } else { "known" };
        fixture.want(again, lost(&act)).await?;
        fixture.want("known", act.clone()).await?;
        fixture.want("known", act).await?;
    }
    fixture
        .want(
            "delivered",
            Act::Deliver {
                id: "escrow:3:released".to_owned(),
                half: false,
            },
        )
        .await
}

/// The operator ends a disputed escrow, and its money moves.
async fn operator(setup: &DirectedFixture<'_>) -> Checked {
    for refund in [true, false] {
        let mut model = setup.model();
        funded(&mut model, "user", 2);
        model.lay("done", &dispute(0, 300, 1));
        let mut fixture = setup.fixture(model).await?;
        fixture.want("wrong funded", end(2, refund)).await?;
        fixture.want("done", end(1, refund)).await?;
        fixture.want("wrong", end(1, refund)).await?;
    }
    Ok(())
}

/// The intent that resolved the escrow is archived, and its key is used again: by the payer, and by a payee elsewhere.
async fn archived(setup: &DirectedFixture<'_>) -> Checked {
    for by in [0, 2] {
        let mut model = setup.model();
        funded(&mut model, "b", 3);
        model.lay("done", &release(by, 1, 1));
        model.lay("done", &dispute(by, 2, 2));
        model.lay("done", &dispute(by, 3, 3));
        model.lay("done", &end(2, true));
        for id in ["int_1", "int_2", "int_3"] {
            model.archive(by, id);
        }
        let mut fixture = setup.fixture(model).await?;
        for (n, escrow, status) in [(1, 1, "released"), (2, 2, "refunded"), (3, 3, "disputed")] {
            let outcome = format!("blocked escrow_{status} int_{n} {status}");
            fixture.want(&outcome, release(by, n, escrow)).await?;
            fixture.want("known", release(by, n, escrow)).await?;
        }
    }
    Ok(())
}

/// The list of siblings is bounded and reserves a place for the winner.
async fn many(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    at_home(&mut model, 0, 2);
    for (number, count) in [(1, 98), (2, 99)] {
        let siblings = (0..count).map(|n| (0, format!("int_x{n}")));
        model.escrows.get_mut(&number).expect("the escrow").siblings = siblings.collect();
    }
    let mut fixture = setup.fixture(model).await?;
    for number in [1, 2] {
        fixture.want("done", release(0, number, number)).await?;
        fixture.want("blocked", release(0, number + 10, number)).await?;
    }
    let mut model = fixture.model;
    for (number, count) in [(1, 98), (2, 99)] {
        let siblings = (0..count).map(|n| (0, format!("int_x{n}")));
        model.escrows.get_mut(&number).expect("the escrow").siblings = siblings.collect();
    }
    let mut fixture = setup.fixture(model).await?;
    for number in [1, 2] {
        fixture.want("blocked", release(0, number + 20, number)).await?;
    }
    Ok(())
}
