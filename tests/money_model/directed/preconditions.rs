//! Preconditions of a spend: policies, plans, whether the agent exists, runs.

use super::fixture::{DirectedFixture, plan, spend};
use crate::act::{Act, Plan, Spend};
use crate::model::{Agent, Charge, Limits, Model, Run};
use crate::model_fixture::Checked;
use domain::period::Period;
use std::collections::BTreeMap;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    policies(setup).await?;
    plans(setup).await?;
    existing_agents(setup).await?;
    runs(setup).await?;
    after_calls(setup).await
}

/// The policy of an agent in the first account.
pub fn limit(model: &mut Model, agent: &str, limits: Limits) {
    let id = model.sides[0].agents[agent].policy.clone().expect("a policy");
    model.sides[0].policies.get_mut(&id).expect("the policy").limits = limits;
}

pub fn charge(agent: &str, amount: u64, period: Period) -> Charge {
    Charge {
        agent: agent.to_owned(),
        amount,
        run: None,
        from_wallet: false,
        period,
    }
}

/// A day of an earlier month.
pub const fn long_ago(now: Period) -> Period {
    Period {
        day: now.day - 35,
        month: now.month - 1,
    }
}

pub const fn other_day(now: Period) -> Period {
    Period {
        day: now.day - 1,
        month: now.month,
    }
}

/// An agent's own policy applies, or else the strictest of the account's policies.
async fn policies(setup: &DirectedFixture<'_>) -> Checked {
    let limits = Limits {
        txn: Some(50),
        run: Some(6),
        day: Some(7),
        month: Some(8),
        approval: Some(4),
        ..Limits::default()
    };
    let mut model = setup.model();
    model.lay(
        "set",
        &Act::Policy {
            at: 0,
            agent: None,
            limits,
            n: 50,
        },
    );
    let own = model.sides[0].agents["b"].policy.clone().expect("a policy");
    model.lay("deleted", &Act::DropPolicy { at: 0, id: own });
    let mut fixture = setup.fixture(model).await?;
    let of = |agent: &str, n, amount| {
        Act::Spend(Spend {
            agent: agent.to_owned(),
            run: Some("r".to_owned()),
            ..spend(n, amount)
        })
    };
    fixture.want("settled", of("a", 1, 60)).await?;
    fixture
        .want("blocked per_transaction_limit", of("b", 2, 51))
        .await?;
    fixture.want("blocked per_run_limit", of("b", 3, 7)).await?;
    fixture.want("pending", of("b", 4, 5)).await?;
    fixture.want("settled", of("b", 5, 4)).await?;
    fixture
        .want(
            "blocked daily_limit",
            Spend {
                run: None,
                ..unnamed("b", 6, 4)
            },
        )
        .await?;
    by_the_month(setup, fixture.model).await
}

/// The same for the month, and for Cap that is disabled.
async fn by_the_month(setup: &DirectedFixture<'_>, mut model: Model) -> Checked {
    model.sides[0]
        .charges
        .push(charge("b", 3, other_day(setup.period)));
    let mut fixture = setup.fixture(model).await?;
    fixture.want("blocked monthly_limit", unnamed("b", 7, 2)).await?;
    fixture.want("settled", unnamed("b", 8, 1)).await?;
    let disabled = Limits {
        disabled: true,
        ..Limits::default()
    };
    fixture
        .want(
            "set",
            Act::Policy {
                at: 0,
                agent: None,
                limits: disabled,
                n: 51,
            },
        )
        .await?;
    fixture.want("blocked cap_disabled", unnamed("b", 9, 1)).await?;
    fixture.want("settled", unnamed("a", 10, 1)).await?;
    // Live policies do not apply to test mode.
    let mut test = unnamed("a", 11, 1);
    test.request_id.at = 1;
    fixture.want("settled", test).await
}

fn unnamed(agent: &str, n: u64, amount: u64) -> Spend {
    Spend {
        agent: agent.to_owned(),
        ..spend(n, amount)
    }
}

fn with(plan: Plan, agent: &str, n: u64, amount: u64) -> Act {
    Act::Spend(Spend {
        plan: Some(plan),
        ..unnamed(agent, n, amount)
    })
}

/// The plan counts live agents and live money of this month.
async fn plans(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    model.sides[0]
        .charges
        .push(charge("b", 5, long_ago(setup.period)));
    let mut fixture = setup.fixture(model).await?;
    let other = Plan {
        name: "q".to_owned(),
        ..plan(None, None)
    };
    fixture.want("other_plan p", with(other, "a", 1, 1)).await?;
    fixture
        .want("blocked plan_agent_limit", with(plan(Some(0), None), "b", 2, 1))
        .await?;
    fixture
        .want("blocked plan_limit", with(plan(Some(1), Some(0)), "b", 3, 1))
        .await?;
    fixture
        .want("settled", with(plan(Some(1), None), "b", 4, 1))
        .await?;
    fixture
        .want("settled", with(plan(Some(1), None), "b", 5, 1))
        .await?;
    fixture
        .want("blocked plan_agent_limit", with(plan(Some(1), None), "a", 6, 1))
        .await?;
    fixture
        .want("settled", with(plan(Some(2), None), "a", 7, 1))
        .await?;
    fixture
        .want("blocked plan_limit", with(plan(None, Some(3)), "b", 8, 1))
        .await?;
    let mut test = with(plan(Some(0), Some(0)), "a", 9, 1);
    test.request_id_mut().expect("a request").at = 1;
    fixture.want("settled", test).await?;

    // A slot of another month is none of this one.
    let mut model = setup.model();
    let record = model.sides[0].agents.get_mut("b").expect("the agent");
    record
        .old
        .insert(format!("s{}", long_ago(setup.period).month), "1".to_owned());
    model.sides[0].charges.push(charge("a", 5, setup.period));
    let mut fixture = setup.fixture(model).await?;
    for (answer, agents, agent, n) in [
        ("settled", 1, "a", 1),
        ("blocked plan_agent_limit", 1, "b", 2),
        ("settled", 2, "b", 3),
        ("settled", 2, "b", 4),
    ] {
        let act = with(plan(Some(agents), None), agent, n, 1);
        fixture.want(answer, act).await?;
    }
    Ok(())
}

/// A wallet, a policy, a provider key or, live, a virtual key makes an agent; a spend without a wallet is only tracked.
async fn existing_agents(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    for at in [0, 1] {
        model.lay(
            "set",
            &Act::Policy {
                at,
                agent: None,
                limits: Limits::default(),
                n: 60 + at as u64,
            },
        );
        let agents = &mut model.sides[at].agents;
        agents.insert("key".to_owned(), Agent::default());
        agents.insert("provider".to_owned(), Agent::default());
        agents.insert(
            "left".to_owned(),
            Agent {
                old: BTreeMap::from([("d1".to_owned(), "5".to_owned())]),
                ..Agent::default()
            },
        );
        agents.get_mut("provider").expect("it").provider_key = true;
        model.lay(
            "set",
            &Act::Policy {
                at,
                agent: Some("policy".to_owned()),
                limits: Limits::default(),
                n: 62,
            },
        );
        let own = model.sides[at].agents["b"].policy.clone().expect("a policy");
        model.lay("deleted", &Act::DropPolicy { at, id: own });
    }
    // The virtual keys of an agent belong to no mode.
    model.sides[0]
        .agents
        .get_mut("key")
        .expect("it")
        .virtual_keys
        .insert("vk_1".to_owned());
    let mut fixture = setup.fixture(model).await?;
    for (at, keys) in [(0, "settled"), (1, "not_found")] {
        let ask = |agent: &str, n: u64| {
            let mut spend = unnamed(agent, n + at as u64, 5);
            spend.request_id.at = at;
            Act::Spend(spend)
        };
        fixture.want("settled", ask("provider", 10)).await?;
        fixture.want("settled", ask("policy", 20)).await?;
        fixture.want(keys, ask("key", 30)).await?;
        fixture.want("not_found", ask("left", 40)).await?;
        fixture.want("not_found", ask("nobody", 50)).await?;
        fixture.want("settled 95", ask("b", 60)).await?;
    }
    Ok(())
}

/// A named run counts exactly its own spends.
async fn runs(setup: &DirectedFixture<'_>) -> Checked {
    let mut fixture = setup.usual().await?;
    for (n, run) in [(1, Some("r")), (2, None), (3, Some("r")), (4, Some("s"))] {
        let named = Spend {
            run: run.map(str::to_owned),
            ..spend(n, n)
        };
        fixture.want("settled", named).await?;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    Ok(())
}

/// A slot that only calls used becomes one that no void gives back, and a run that only calls used does so when a spend
/// of it waits for approval. The slot of another month stays one of calls.
async fn after_calls(setup: &DirectedFixture<'_>) -> Checked {
    let (now, before) = (setup.period, long_ago(setup.period));
    let mut model = setup.model();
    for (agent, month) in [("a", now.month), ("b", before.month)] {
        let record = model.sides[0].agents.get_mut(agent).expect("the agent");
        record.old.insert(format!("s{month}"), "c2".to_owned());
    }
    let (moment, expires) = (model.now(), model.window.later(1_000_000));
    let run = Run {
        first: moment.clone(),
        last: moment,
        calls: Some(1),
        denied: 0,
        expires,
        status: None,
        called: true,
    };
    let side = &mut model.sides[0];
    side.runs.insert(("a".to_owned(), "r".to_owned()), run);
    side.charges.push(Charge {
        run: Some("r".to_owned()),
        ..charge("a", 1, before)
    });
    // Without a charge the model's record does not say how many slots are taken.
    side.agents.insert("c".to_owned(), Agent::default());
    side.charges.push(charge("c", 1, other_day(now)));
    limit(
        &mut model,
        "a",
        Limits {
            approval: Some(5),
            ..Limits::default()
        },
    );
    let mut fixture = setup.fixture(model).await?;
    let of = |agent: &str, n, amount| Spend {
        agent: agent.to_owned(),
        run: Some("r".to_owned()),
        ..spend(n, amount)
    };
    for (answer, act) in [
        ("settled", of("a", 1, 1)),
        ("pending", of("a", 2, 6)),
        ("settled", of("b", 3, 1)),
        ("settled", of("a", 4, 1)),
    ] {
        fixture.want(answer, act).await?;
    }
    Ok(())
}
