//! Transfers within an account and to another one.

use super::fixture::{DirectedFixture, START, deposit, transfer};
use crate::act::{Act, Transfer};
use crate::model::{MOST, Place, VERSION_STEPS_END};
use crate::model_fixture::{Checked, ModelFixture};
use store::audit::LONG_LINE;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    own(setup).await?;
    out(setup).await?;
    refused(setup).await?;
    full(setup).await?;
    long_lines(setup).await?;
    steps(setup).await
}

/// A line counts with what it has beyond its common length, and not before.
async fn long_lines(setup: &DirectedFixture<'_>) -> Checked {
    for at in [0, 3] {
        let mut fixture = setup.usual().await?;
        let [user, a] = ["user", "a"].map(|owner| fixture.model.place(at, owner));
        let paid = |n: u64, memo: usize| {
            Act::Transfer(Transfer {
                memo: Some("m".repeat(memo)),
                ..transfer(n, &user, &a, 1)
            })
        };
        // Until numbers of entries have as many digits as the next ones.
        for n in 11..16 {
            fixture.want("done", paid(n, 1)).await?;
        }
        let short = fixture.audit_lines(at).await?.pop().map_or(0, |line| line.len());
        for beyond in 0..2 {
            let memo = 1 + LONG_LINE + beyond - short;
            fixture.want("done", paid(16 + beyond as u64, memo)).await?;
            let found = fixture.model.audit_texts[at];
            if found != beyond as u64 {
                return Err(format!("{found} bytes, expected {beyond}"));
            }
        }
    }
    long_transactions(setup).await
}

/// The same for the lines of transactions. What arrives counts for its sender alone.
async fn long_transactions(setup: &DirectedFixture<'_>) -> Checked {
    for to in [0, 2] {
        let mut fixture = setup.usual().await?;
        let (user, a) = (fixture.model.place(0, "user"), fixture.model.place(to, "a"));
        let paid = |n: u64, memo: usize| {
            Act::Transfer(Transfer {
                memo: Some("m".repeat(memo)),
                ..transfer(n, &user, &a, 1)
            })
        };
        fixture.want("done", paid(11, 200)).await?;
        let short = fixture.model.kept_texts[0];
        fixture.want("done", paid(12, 1_200)).await?;
        let found = fixture.model.kept_texts[0] - short;
        let lines = if to == 0 { 2 } else { 1 };
        // Of the first ones, less than the memo is beyond the common length.
        if !(1_000 * lines..1_200 * lines).contains(&(found)) || short >= 200 * lines {
            return Err(format!("{short} and {found} bytes for {lines} lines"));
        }
        let arrived = fixture.model.kept_texts[to];
        if to != 0 && arrived != 0 {
            return Err(format!("{arrived} bytes of what arrived"));
        }
    }
    Ok(())
}

/// The version rises by a step below the end of steps, then by one.
async fn steps(setup: &DirectedFixture<'_>) -> Checked {
    for below in [0, 1] {
        let mut model = setup.model();
        let laid = model.version(0) - model.born;
        model.born = VERSION_STEPS_END - below - laid;
        let mut fixture = setup.fixture(model).await?;
        let [user, a] = ["user", "a"].map(|owner| fixture.model.place(0, owner));
        fixture.want("done", plain(1, &user, &a, 1)).await?;
        fixture.want("done", plain(2, &user, &a, 1)).await?;
    }
    Ok(())
}

fn with_memo(n: u64, from: &Place, to: &Place, amount: u64) -> Act {
    Act::Transfer(Transfer {
        memo: Some("two words".to_owned()),
        ..transfer(n, from, to, amount)
    })
}

fn plain(n: u64, from: &Place, to: &Place, amount: u64) -> Act {
    Act::Transfer(transfer(n, from, to, amount))
}

fn keyless(n: u64, from: &Place, to: &Place, amount: u64) -> Act {
    Act::Transfer(Transfer {
        keyed: false,
        ..transfer(n, from, to, amount)
    })
}

async fn own(setup: &DirectedFixture<'_>) -> Checked {
    for at in [0, 3] {
        let mut fixture = setup.usual().await?;
        let [user, a, b] = ["user", "a", "b"].map(|owner| fixture.model.place(at, owner));
        fixture
            .want("insufficient", plain(1, &user, &a, START + 1))
            .await?;
        fixture.want("done 0", plain(1, &user, &a, START)).await?;
        fixture.want("known", plain(1, &user, &a, START)).await?;
        fixture.want("insufficient", plain(2, &user, &a, 1)).await?;
        fixture.want("done", with_memo(3, &a, &user, 7)).await?;
        fixture.want("done", keyless(4, &a, &b, 3)).await?;
        fixture.want("done", keyless(5, &a, &b, 3)).await?;
        // Without a key nothing is looked up.
        let mut there = keyless(6, &a, &b, 3);
        there.request_id_mut().ok_or("no request")?.id = "int_3".to_owned();
        fixture.want("done", there).await?;
    }
    Ok(())
}

async fn out(setup: &DirectedFixture<'_>) -> Checked {
    for at in [0, 3] {
        let mut fixture = setup.usual().await?;
        let [user, a] = ["user", "a"].map(|owner| fixture.model.place(at, owner));
        let there = fixture.model.place((at + 2) % 4, "b");
        fixture
            .want("insufficient", plain(1, &a, &there, START + 1))
            .await?;
        fixture.want("done 0", with_memo(1, &a, &there, START)).await?;
        fixture.want("known", plain(1, &a, &there, START)).await?;
        let crash = Transfer {
            crash: true,
            ..transfer(2, &user, &there, 5)
        };
        fixture.want("done", crash.clone()).await?;
        fixture.want("known", crash).await?;
        fixture.want("done", keyless(3, &user, &there, 3)).await?;
        fixture
            .want(
                "delivered",
                Act::Deliver {
                    id: "txn_2".to_owned(),
                    half: false,
                },
            )
            .await?;
    }
    Ok(())
}

/// Reasons of refusal, in order: frozen agents, then wallets that were closed or replaced since they were read.
async fn refused(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    model.sides[0].agents.get_mut("a").expect("the agent").frozen = Some("user");
    let [user, a, b] = ["user", "a", "b"].map(|owner| model.place(0, owner));
    let there = model.place(2, "a");
    let wrong = |place: &Place| Place {
        number: place.number + 1000,
        ..place.clone()
    };
    let gone = Place {
        owner: "gone".to_owned(),
        ..a.clone()
    };
    let mut fixture = setup.fixture(model).await?;
    let closed = |act: Act| match act {
        Act::Transfer(transfer) => Act::Transfer(Transfer {
            closed: true,
            ..transfer
        }),
        other => other,
    };
    for (n, to) in [(10, &b), (20, &there)] {
        fixture
            .want("blocked frozen", plain(n, &a, to, START + 1))
            .await?;
        fixture.want("known", plain(n, &a, to, 1)).await?;
        fixture.want("blocked frozen", keyless(n + 1, &a, to, 1)).await?;
        fixture.want("changed", plain(n + 2, &wrong(&a), to, 1)).await?;
        fixture.want("changed", plain(n + 2, &wrong(&b), &a, 1)).await?;
        fixture.want("changed", plain(n + 2, &gone, to, 1)).await?;
        fixture
            .want("blocked wallet_closed", closed(plain(n + 2, &wrong(&a), to, 1)))
            .await?;
        fixture
            .want("blocked wallet_closed", closed(keyless(n + 3, &b, to, 1)))
            .await?;
        fixture.want("known", plain(n + 2, &user, to, 1)).await?;
    }
    fixture.want("done", plain(30, &user, &a, 1)).await?;
    fixture.want("changed", plain(31, &user, &wrong(&a), 1)).await?;
    fixture.want("changed", plain(31, &user, &gone, 1)).await?;
    fixture
        .want("insufficient", plain(31, &user, &wrong(&a), START))
        .await?;
    fixture.want("done", plain(31, &user, &a, 1)).await
}

/// A receiver that is full, or has just enough room; an amount that doubles cannot represent stays exact.
async fn full(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    let [user, a, b] = ["user", "a", "b"].map(|owner| model.place(0, owner));
    model.lay("made", &Act::Deposit(deposit(90, b.clone(), 9_000)));
    model.lay("made", &Act::Deposit(deposit(91, a.clone(), MOST - START - 1024)));
    let mut fixture: ModelFixture = setup.fixture(model).await?;
    fixture.want("too_much", plain(1, &b, &a, 1024 + 1)).await?;
    fixture.want("done", plain(1, &b, &a, 1024)).await?;
    fixture.want("done", plain(2, &a, &user, 1)).await?;
    fixture
        .want("done", plain(3, &a, &user, 9_000_000_000_000_000))
        .await?;
    fixture
        .want("done", plain(4, &user, &b, 8_999_999_999_999_999))
        .await
}
