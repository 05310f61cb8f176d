//! Spends pending approval: granted, denied, refused by the second check, decided only once.

use super::fixture::{DirectedFixture, START, plan, spend};
use crate::act::{Act, Plan, Spend};
use crate::model::{Limits, Model};
use crate::model_fixture::Checked;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    granted(setup).await?;
    denied(setup).await?;
    refused(setup).await?;
    other_wallets(setup).await
}

/// A model in which every spend needs an approval.
fn strict(setup: &DirectedFixture<'_>) -> Model {
    let mut model = setup.model();
    for agent in ["a", "b"] {
        let limits = Limits {
            approval: Some(0),
            ..Limits::default()
        };
        model.lay(
            "set",
            &Act::Policy {
                at: 0,
                agent: Some(agent.to_owned()),
                limits,
                n: 0,
            },
        );
    }
    model
}

fn spend_request(n: u64, amount: u64) -> Act {
    Act::Spend(Spend {
        run: Some("r".to_owned()),
        recipient: Some("Bob".to_owned()),
        description: Some("a book".to_owned()),
        ..spend(n, amount)
    })
}

fn resolve(n: u64, of: u64, grant: bool) -> Act {
    Act::Resolve {
        at: 0,
        id: format!("int_{of}"),
        grant,
        stale: false,
        at_ms: clock::now_ms(),
        plan: None,
        n,
    }
}

fn stale(act: Act) -> Act {
    match act {
        Act::Resolve {
            at,
            id,
            grant,
            at_ms,
            plan,
            n,
            ..
        } => Act::Resolve {
            at,
            id,
            grant,
            stale: true,
            at_ms,
            plan,
            n,
        },
        other => other,
    }
}

async fn granted(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.fixture(strict(setup)).await?;
    fixture.want("pending", spend_request(1, 30)).await?;
    fixture.want("pending", spend_request(2, 30)).await?;
    fixture.want("known", spend_request(1, 30)).await?;
    fixture.want("changed", stale(resolve(3, 1, true))).await?;
    fixture.want("settled 70", resolve(4, 1, true)).await?;
    for grant in [true, false] {
        fixture.want("changed", resolve(5, 1, grant)).await?;
        fixture.want("changed", stale(resolve(5, 1, grant))).await?;
    }
    fixture.want("known", spend_request(1, 30)).await?;
    let other = Plan {
        name: "q".to_owned(),
        ..plan(None, None)
    };
    let mut act = resolve(6, 2, true);
    if let Act::Resolve { plan, .. } = &mut act {
        *plan = Some(other);
    }
    fixture.want("other_plan", act).await?;
    fixture.want("settled 40", resolve(7, 2, true)).await
}

async fn denied(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.fixture(strict(setup)).await?;
    fixture.want("pending", spend_request(1, 30)).await?;
    fixture.want("pending", spend_request(2, 31)).await?;
    fixture.want("changed", stale(resolve(3, 1, false))).await?;
    fixture.want("denied", resolve(3, 1, false)).await?;
    for grant in [true, false] {
        fixture.want("changed", resolve(4, 1, grant)).await?;
    }
    fixture.want("denied", resolve(5, 2, false)).await
}

/// The checks run again on approval, and a refusal then is final, under the intent's own id.
async fn refused(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = strict(setup);
    model.lay("pending", &spend_request(1, START));
    model.lay("pending", &spend_request(2, START));
    model.lay("pending", &spend_request(3, 1));
    let mut fixture = setup.fixture(model).await?;
    fixture.want("settled 0", resolve(4, 1, true)).await?;
    fixture
        .want("blocked insufficient_balance int_2", resolve(5, 2, true))
        .await?;
    fixture.want("changed", resolve(6, 2, true)).await?;
    let by = store::agent::freeze::FrozenBy::User;
    fixture
        .want(
            "done",
            Act::Freeze {
                at: 0,
                agent: "a".to_owned(),
                by,
                lift: false,
            },
        )
        .await?;
    fixture.want("blocked frozen int_3", resolve(7, 3, true)).await
}

/// An approval is valid for the wallet that the agent had when it requested the spend, or for none if it had none.
async fn other_wallets(setup: &DirectedFixture<'_>) -> Checked {
    let new = |agent: &str| Act::NewAgent {
        at: 0,
        agent: agent.to_owned(),
        most: None,
    };
    let mut model = strict(setup);
    let limits = Limits {
        approval: Some(0),
        ..Limits::default()
    };
    let policy = |agent: &str, n| Act::Policy {
        at: 0,
        agent: Some(agent.to_owned()),
        limits,
        n,
    };
    model.lay("set", &policy("c", 1));
    model.lay("set", &policy("d", 3));
    for n in [1, 2, 3] {
        model.lay("pending", &spend_request(n, 1));
    }
    model.lay("pending", &spend_request(4, START));
    for (n, agent) in [(5, "c"), (6, "c"), (7, "d")] {
        let unpaid = Spend {
            agent: agent.to_owned(),
            ..spend(n, 1)
        };
        model.lay("pending", &unpaid.into());
    }
    let mut fixture = setup.fixture(model).await?;
    fixture.want("settled ", resolve(10, 5, true)).await?;
    fixture.want("created", new("c")).await?;
    fixture
        .want("blocked wallet_closed int_6", resolve(11, 6, true))
        .await?;
    fixture.want("settled 0", resolve(12, 4, true)).await?;
    fixture
        .want("blocked insufficient_balance int_3", resolve(13, 3, true))
        .await?;
    let delete = Act::Delete {
        at: 0,
        agent: "a".to_owned(),
    };
    fixture.want("deleted", delete).await?;
    fixture
        .want("blocked wallet_closed int_1", resolve(14, 1, true))
        .await?;
    fixture.want("created", new("a")).await?;
    fixture.want("set", policy("a", 2)).await?;
    fixture
        .want("blocked wallet_closed int_2", resolve(15, 2, true))
        .await?;
    let id = fixture.model.sides[0].agents["d"]
        .policy
        .clone()
        .expect("a policy");
    fixture.want("deleted", Act::DropPolicy { at: 0, id }).await?;
    fixture.want("not_found", resolve(16, 7, true)).await
}
