//! Transfers, and what arrives.

use super::stage::{START, Stage, deposit, transfer};
use crate::act::{Act, Transfer};
use crate::world::Checked;

pub async fn all(stage: &Stage<'_>) -> Checked {
    own(stage).await
}

async fn own(stage: &Stage<'_>) -> Checked {
    let mut world = stage.usual().await?;
    let (user, a) = (world.model.place(0, "user"), world.model.place(0, "a"));
    let all = transfer(1, &user, &a, START);
    world
        .want("insufficient", Act::Transfer(transfer(1, &user, &a, START + 1)))
        .await?;
    world.want("done 0", Act::Transfer(all.clone())).await?;
    world.want("known", Act::Transfer(all)).await?;
    let memo = Some("two words".to_owned());
    world
        .want(
            "done",
            Act::Transfer(Transfer {
                memo,
                keyed: false,
                ..transfer(2, &a, &user, 1)
            }),
        )
        .await?;
    let there = world.model.place(2, "b");
    world
        .want("done", Act::Transfer(transfer(3, &a, &there, 5)))
        .await?;
    world
        .want(
            "done",
            Act::Transfer(Transfer {
                crash: true,
                ..transfer(4, &a, &there, 6)
            }),
        )
        .await?;
    world
        .want(
            "delivered",
            Act::Deliver {
                id: "txn_4".to_owned(),
                half: true,
            },
        )
        .await?;
    world
        .want(
            "delivered",
            Act::Deliver {
                id: "txn_4".to_owned(),
                half: false,
            },
        )
        .await?;
    world.want("made", Act::Deposit(deposit(5, user, 7))).await
}
