//! Requested spends: precedence, limits met exactly, and where each outcome is recorded.

use super::fixture::{DirectedFixture, START, plan, spend};
use super::preconditions::{charge, limit, other_day};
use crate::act::{Act, Plan, Spend};
use crate::model::Limits;
use crate::model_fixture::Checked;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    kept(setup).await?;
    instructing(setup).await?;
    precedence(setup).await?;
    exact_limits(setup).await?;
    at_first(setup).await
}

async fn kept(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    let (recipient, description) = (Some("Bob & Söhne".to_owned()), Some("a \"book\" = 5".to_owned()));
    let described = Spend {
        recipient,
        description,
        ..spend(1, 40)
    };
    fixture.want("settled 60", described.clone()).await?;
    fixture.want("known", described).await?;
    let mut again = spend(2, START + 1);
    fixture
        .want("blocked insufficient_balance int_2s", again.clone())
        .await?;
    // The caller's key is still unused.
    again.amount = 60;
    again.request_id.n = 3;
    fixture.want("settled 0", again).await?;
    fixture
        .want("blocked insufficient_balance int_4s", spend(4, 1))
        .await?;
    let other = Spend {
        agent: "b".to_owned(),
        ..spend(5, 1)
    };
    fixture.want("settled 99", other).await?;
    let mut elsewhere = spend(6, 1);
    elsewhere.request_id.at = 3;
    fixture.want("settled 99", elsewhere).await
}

/// A prompt injection blocks the spend before anything else about the agent is checked.
async fn instructing(setup: &DirectedFixture<'_>) -> Checked {
    for at in [0, 1] {
        let mut model = setup.model();
        let agent = model.sides[at].agents.get_mut("a").expect("the agent");
        agent.frozen = Some("user");
        let mut fixture = setup.fixture(model).await?;
        let instructing = |n, agent: &str, name: &str| {
            let mut instructing = Spend {
                agent: agent.to_owned(),
                injection: true,
                run: Some("r".to_owned()),
                plan: Some(Plan {
                    name: name.to_owned(),
                    ..plan(None, None)
                }),
                ..spend(n, START + 1)
            };
            instructing.request_id.at = at;
            Act::Spend(instructing)
        };
        fixture.want("other_plan", instructing(1, "a", "q")).await?;
        fixture.want("not_found", instructing(1, "nobody", "p")).await?;
        fixture
            .want("blocked injection_detected int_1", instructing(1, "a", "p"))
            .await?;
        fixture.want("known", instructing(1, "a", "p")).await?;
        fixture
            .want("blocked injection_detected int_2", instructing(2, "b", "p"))
            .await?;
    }
    Ok(())
}

/// All reasons apply; they are removed one by one, in order of precedence.
async fn precedence(setup: &DirectedFixture<'_>) -> Checked {
    let reasons = [
        "frozen",
        "cap_disabled",
        "per_transaction_limit",
        "per_run_limit",
        "daily_limit",
        "monthly_limit",
        "plan_agent_limit",
        "plan_limit",
        "spend_limit",
        "insufficient_balance int_1s",
        "settled",
    ];
    for (gone, reason) in reasons.into_iter().enumerate() {
        let mut model = setup.model();
        let some = |at: usize| (gone <= at).then_some(START);
        limit(
            &mut model,
            "a",
            Limits {
                disabled: gone <= 1,
                txn: some(2),
                run: some(3),
                day: some(4),
                month: some(5),
                approval: Some(START + 1),
                low: None,
            },
        );
        model.sides[0]
            .charges
            .push(charge("b", 1, other_day(setup.period)));
        let agent = model.sides[0].agents.get_mut("a").expect("the agent");
        agent.frozen = (gone == 0).then_some("user");
        agent.wallet.as_mut().expect("its wallet").spend_limit = some(8);
        let amount = if gone <= 9 { START + 1 } else { START };
        let limited = Spend {
            run: Some("r".to_owned()),
            plan: Some(plan((gone <= 6).then_some(1), some(7))),
            ..spend(1, amount)
        };
        let outcome = if gone == 10 {
            reason.to_owned()
        } else {
            format!("blocked {reason}")
        };
        let mut fixture = setup.fixture(model).await?;
        fixture.want(&outcome, limited.clone()).await?;
        fixture.go(&Act::Spend(limited)).await?;
    }
    Ok(())
}

/// Each limit can be met exactly, earlier spends included; one nano more is refused.
async fn exact_limits(setup: &DirectedFixture<'_>) -> Checked {
    let limits = Limits::default();
    let ten = Some(10);
    let cases = [
        (
            "per_transaction_limit",
            Limits {
                txn: Some(6),
                ..limits
            },
        ),
        ("per_run_limit", Limits { run: ten, ..limits }),
        ("daily_limit", Limits { day: ten, ..limits }),
        ("monthly_limit", Limits { month: ten, ..limits }),
        ("plan_limit", limits),
        ("spend_limit", limits),
        (
            "pending",
            Limits {
                approval: Some(6),
                ..limits
            },
        ),
    ];
    for (reason, limits) in cases {
        let mut model = setup.model();
        limit(&mut model, "a", limits);
        let agent = model.sides[0].agents.get_mut("a").expect("the agent");
        agent.wallet.as_mut().expect("its wallet").spend_limit = ten.filter(|_| reason == "spend_limit");
        let mut fixture = setup.fixture(model).await?;
        let tracked = ten.filter(|_| reason == "plan_limit");
        let in_run = |n, amount| {
            Act::Spend(Spend {
                run: Some("r".to_owned()),
                plan: Some(plan(None, tracked)),
                ..spend(n, amount)
            })
        };
        fixture.want("settled", in_run(1, 4)).await?;
        let refused = if reason == "pending" {
            reason.to_owned()
        } else {
            format!("blocked {reason} int_2")
        };
        fixture.want(&refused, in_run(2, 7)).await?;
        fixture.want("settled", in_run(3, 6)).await?;
        // A limit of 0 refuses everything, a limit of a run applies to that run only.
        let elsewhere = Spend {
            run: Some("s".to_owned()),
            ..spend(4, 6)
        };
        fixture.go(&Act::Spend(elsewhere)).await?;
        fixture.go(&Act::Spend(spend(5, 1))).await?;
    }
    Ok(())
}

/// The very first spend can meet each limit exactly; a spend without a run is a run by itself.
async fn at_first(setup: &DirectedFixture<'_>) -> Checked {
    for (at, run) in [(0, None), (0, Some("r")), (1, None)] {
        let mut model = setup.model();
        let ten = Some(10);
        let limits = Limits {
            txn: ten,
            run: ten,
            day: ten,
            month: ten,
            approval: ten,
            low: None,
            disabled: false,
        };
        let agent = model.sides[at].agents.get_mut("a").expect("the agent");
        agent.wallet.as_mut().expect("its wallet").spend_limit = ten;
        let id = agent.policy.clone().expect("a policy");
        model.sides[at].policies.get_mut(&id).expect("the policy").limits = limits;
        let mut fixture = setup.fixture(model).await?;
        let mut first = Spend {
            run: run.map(str::to_owned),
            plan: Some(plan(Some(1), ten)),
            ..spend(1, 10)
        };
        first.request_id.at = at;
        fixture.want("settled 90", first).await?;
    }
    Ok(())
}
