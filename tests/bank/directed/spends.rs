//! Spends that are asked for: precedence, limits met exactly, counters, and where each outcome is kept.

use super::stage::{START, Stage, plan, spend};
use crate::act::{Act, Plan, Spend};
use crate::model::{Agent, CEILING, Charge, Limits, Model};
use crate::world::{Checked, World};
use shared::domain::period::Period;
use std::collections::BTreeMap;

pub async fn all(stage: &Stage<'_>) -> Checked {
    kept(stage).await?;
    precedence(stage).await?;
    exactly(stage).await?;
    at_first(stage).await?;
    policies(stage).await?;
    plans(stage).await?;
    who_exists(stage).await?;
    runs(stage).await?;
    old_counters(stage).await?;
    ceiling(stage).await
}

/// The policy of an agent in the first account.
fn limit(model: &mut Model, agent: &str, limits: Limits) {
    let id = model.sides[0].agents[agent].policy.clone().expect("a policy");
    model.sides[0].policies.get_mut(&id).expect("the policy").limits = limits;
}

fn charge(agent: &str, amount: u64, period: Period) -> Charge {
    Charge {
        agent: agent.to_owned(),
        amount,
        run: None,
        from_wallet: false,
        period,
    }
}

/// Another month, far back, and another day of this month.
const fn long_ago(now: Period) -> Period {
    Period {
        day: now.day - 35,
        month: now.month - 1,
    }
}

const fn other_day(now: Period) -> Period {
    Period {
        day: now.day - 1,
        month: now.month,
    }
}

async fn kept(stage: &Stage<'_>) -> Checked {
    let mut world = stage.usual().await?;
    let (recipient, description) = (Some("Bob & Söhne".to_owned()), Some("a \"book\" = 5".to_owned()));
    let said = Spend {
        recipient,
        description,
        ..spend(1, 40)
    };
    world.want("settled 60", Act::Spend(said.clone())).await?;
    world.want("known", Act::Spend(said)).await?;
    let mut again = spend(2, START + 1);
    world
        .want("blocked insufficient_balance int_2s", Act::Spend(again.clone()))
        .await?;
    // The caller's key is free still.
    again.amount = 60;
    again.asked.n = 3;
    world.want("settled 0", Act::Spend(again)).await?;
    world
        .want("blocked insufficient_balance int_4s", Act::Spend(spend(4, 1)))
        .await?;
    let other = Spend {
        agent: "b".to_owned(),
        ..spend(5, 1)
    };
    world.want("settled 99", Act::Spend(other)).await?;
    let mut elsewhere = spend(6, 1);
    elsewhere.asked.at = 3;
    world.want("settled 99", Act::Spend(elsewhere)).await
}

/// All reasons hold; they are taken away one by one, the one that counts first.
async fn precedence(stage: &Stage<'_>) -> Checked {
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
        let mut model = stage.model();
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
            .push(charge("b", 1, other_day(stage.period)));
        let agent = model.sides[0].agents.get_mut("a").expect("the agent");
        agent.frozen = (gone == 0).then_some("user");
        agent.wallet.as_mut().expect("its wallet").spend_limit = some(8);
        let amount = if gone <= 9 { START + 1 } else { START };
        let asked = Spend {
            run: Some("r".to_owned()),
            plan: Some(plan((gone <= 6).then_some(1), some(7))),
            ..spend(1, amount)
        };
        let outcome = if gone == 10 {
            reason.to_owned()
        } else {
            format!("blocked {reason}")
        };
        let mut world = stage.world(model).await?;
        world.want(&outcome, Act::Spend(asked.clone())).await?;
        world.go(&Act::Spend(asked)).await?;
    }
    Ok(())
}

/// Each limit is met exactly, with what was spent before; one nano more is too much.
async fn exactly(stage: &Stage<'_>) -> Checked {
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
        let mut model = stage.model();
        limit(&mut model, "a", limits);
        let agent = model.sides[0].agents.get_mut("a").expect("the agent");
        agent.wallet.as_mut().expect("its wallet").spend_limit = ten.filter(|_| reason == "spend_limit");
        let mut world = stage.world(model).await?;
        let tracked = ten.filter(|_| reason == "plan_limit");
        let in_run = |n, amount| {
            Act::Spend(Spend {
                run: Some("r".to_owned()),
                plan: Some(plan(None, tracked)),
                ..spend(n, amount)
            })
        };
        world.want("settled", in_run(1, 4)).await?;
        let refused = if reason == "pending" {
            reason.to_owned()
        } else {
            format!("blocked {reason} int_2")
        };
        world.want(&refused, in_run(2, 7)).await?;
        world.want("settled", in_run(3, 6)).await?;
        // A limit of 0 lets nothing pass, a limit of a run only binds the run.
        let elsewhere = Spend {
            run: Some("s".to_owned()),
            ..spend(4, 6)
        };
        world.go(&Act::Spend(elsewhere)).await?;
        world.go(&Act::Spend(spend(5, 1))).await?;
    }
    Ok(())
}

/// The first spend of all meets each limit exactly; one that belongs to no run is a run by itself.
async fn at_first(stage: &Stage<'_>) -> Checked {
    for (at, run) in [(0, None), (0, Some("r")), (1, None)] {
        let mut model = stage.model();
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
        let mut world = stage.world(model).await?;
        let mut first = Spend {
            run: run.map(str::to_owned),
            plan: Some(plan(Some(1), ten)),
            ..spend(1, 10)
        };
        first.asked.at = at;
        world.want("settled 90", Act::Spend(first)).await?;
    }
    Ok(())
}

/// An agent's own policy holds, and the strictest of the account's where it has none.
async fn policies(stage: &Stage<'_>) -> Checked {
    let limits = Limits {
        txn: Some(50),
        run: Some(6),
        day: Some(7),
        month: Some(8),
        approval: Some(4),
        ..Limits::default()
    };
    let mut model = stage.model();
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
    let mut world = stage.world(model).await?;
    let of = |agent: &str, n, amount| {
        Act::Spend(Spend {
            agent: agent.to_owned(),
            run: Some("r".to_owned()),
            ..spend(n, amount)
        })
    };
    world.want("settled", of("a", 1, 60)).await?;
    world
        .want("blocked per_transaction_limit", of("b", 2, 51))
        .await?;
    world.want("blocked per_run_limit", of("b", 3, 7)).await?;
    world.want("pending", of("b", 4, 5)).await?;
    world.want("settled", of("b", 5, 4)).await?;
    world
        .want(
            "blocked daily_limit",
            Act::Spend(Spend {
                run: None,
                ..unnamed("b", 6, 4)
            }),
        )
        .await?;
    let mut model = world.model;
    model.sides[0]
        .charges
        .push(charge("b", 3, other_day(stage.period)));
    let mut world = stage.world(model).await?;
    world
        .want("blocked monthly_limit", Act::Spend(unnamed("b", 7, 2)))
        .await?;
    world.want("settled", Act::Spend(unnamed("b", 8, 1))).await?;
    let disabled = Limits {
        disabled: true,
        ..Limits::default()
    };
    world
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
    world
        .want("blocked cap_disabled", Act::Spend(unnamed("b", 9, 1)))
        .await?;
    world.want("settled", Act::Spend(unnamed("a", 10, 1))).await?;
    // Live policies say nothing of test mode.
    let mut test = unnamed("a", 11, 1);
    test.asked.at = 1;
    world.want("settled", Act::Spend(test)).await
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
async fn plans(stage: &Stage<'_>) -> Checked {
    let mut model = stage.model();
    model.sides[0]
        .charges
        .push(charge("b", 5, long_ago(stage.period)));
    let mut world = stage.world(model).await?;
    let other = Plan {
        name: "q".to_owned(),
        ..plan(None, None)
    };
    world.want("other_plan p", with(other, "a", 1, 1)).await?;
    world
        .want("blocked plan_agent_limit", with(plan(Some(0), None), "b", 2, 1))
        .await?;
    world
        .want("blocked plan_limit", with(plan(Some(1), Some(0)), "b", 3, 1))
        .await?;
    world
        .want("settled", with(plan(Some(1), None), "b", 4, 1))
        .await?;
    world
        .want("settled", with(plan(Some(1), None), "b", 5, 1))
        .await?;
    world
        .want("blocked plan_agent_limit", with(plan(Some(1), None), "a", 6, 1))
        .await?;
    world
        .want("settled", with(plan(Some(2), None), "a", 7, 1))
        .await?;
    world
        .want("blocked plan_limit", with(plan(None, Some(3)), "b", 8, 1))
        .await?;
    let mut test = with(plan(Some(0), Some(0)), "a", 9, 1);
    test.asked_mut().expect("a request").at = 1;
    world.want("settled", test).await
}

/// A wallet, a policy, a provider key or, live, a virtual key makes an agent; what is spent without a wallet is tracked only.
async fn who_exists(stage: &Stage<'_>) -> Checked {
    let mut model = stage.model();
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
    // The virtual keys of an agent stand outside its modes.
    model.sides[0]
        .agents
        .get_mut("key")
        .expect("it")
        .virtual_keys
        .insert("vk_1".to_owned());
    let mut world = stage.world(model).await?;
    for (at, keys) in [(0, "settled"), (1, "not_found")] {
        let ask = |agent: &str, n: u64| {
            let mut asked = unnamed(agent, n + at as u64, 5);
            asked.asked.at = at;
            Act::Spend(asked)
        };
        world.want("settled", ask("provider", 10)).await?;
        world.want("settled", ask("policy", 20)).await?;
        world.want(keys, ask("key", 30)).await?;
        world.want("not_found", ask("left", 40)).await?;
        world.want("not_found", ask("nobody", 50)).await?;
        world.want("settled 95", ask("b", 60)).await?;
    }
    Ok(())
}

/// A named run knows its spends, however it was asked before.
async fn runs(stage: &Stage<'_>) -> Checked {
    let mut world = stage.usual().await?;
    for (n, run) in [(1, Some("r")), (2, None), (3, Some("r")), (4, Some("s"))] {
        let asked = Spend {
            run: run.map(str::to_owned),
            ..spend(n, n)
        };
        world.want("settled", Act::Spend(asked)).await?;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    Ok(())
}

/// The first charge of a day drops the counters of days and months long past, and nothing else.
async fn old_counters(stage: &Stage<'_>) -> Checked {
    let (day, month) = (stage.period.day, stage.period.month);
    let charged = [None, Some(stage.period), Some(other_day(stage.period))];
    for charged in charged {
        let mut model = stage.model();
        let agent = model.sides[0].agents.get_mut("a").expect("the agent");
        for name in [
            format!("d{}", day - 40),
            format!("d{}", day - 41),
            format!("w{}", day - 40),
            format!("w{}", day - 41),
            format!("m{}", month - 200),
            format!("m{}", month - 201),
            "dx1".to_owned(),
            "x1".to_owned(),
        ] {
            agent.old.insert(name, "7".to_owned());
        }
        model.sides[0]
            .charges
            .extend(charged.map(|period| charge("a", 1, period)));
        let mut world: World = stage.world(model).await?;
        world.want("settled", Act::Spend(spend(1, 1))).await?;
    }
    Ok(())
}

/// No counter passes the ceiling; each of them alone is in the way.
async fn ceiling(stage: &Stage<'_>) -> Checked {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number"
    )]
    let full = CEILING as u64 - 1024;
    let now = stage.period;
    let long_ago = long_ago(now);
    let only_day = Period {
        month: long_ago.month,
        ..now
    };
    let charges = [
        charge("a", full, only_day),
        charge("a", full, other_day(now)),
        charge("b", full, other_day(now)),
        Charge {
            run: Some("r".to_owned()),
            ..charge("a", full, long_ago)
        },
    ];
    for full in charges {
        let mut model = stage.model();
        if full.run.is_some() {
            let moment = model.now();
            let expires = model.window.later(1_000_000);
            model.sides[0].runs.insert(
                ("a".to_owned(), "r".to_owned()),
                crate::model::Run {
                    first: moment.clone(),
                    last: moment,
                    calls: 1,
                    expires,
                },
            );
        }
        model.sides[0].charges.push(full);
        let mut world = stage.world(model).await?;
        let ask = |n, amount| {
            Act::Spend(Spend {
                run: Some("r".to_owned()),
                ..spend(n, amount)
            })
        };
        world.want("blocked insufficient_balance", ask(1, 2048)).await?;
        let mut model = world.model;
        let place = model.place(0, "a");
        model.lay("made", &Act::Deposit(super::stage::deposit(90, place, 10_000)));
        let mut world = stage.world(model).await?;
        world.want("too_much", ask(2, 2048)).await?;
        world.want("settled", ask(3, 1024)).await?;
    }
    // What is tracked is live: it says nothing of test mode.
    let mut model = stage.model();
    model.sides[0].charges.push(charge("b", full, now));
    model.lay(
        "made",
        &Act::Deposit(super::stage::deposit(91, model.place(1, "a"), 10_000)),
    );
    let mut world = stage.world(model).await?;
    let mut test = spend(4, 2048);
    test.asked.at = 1;
    world.want("settled", Act::Spend(test)).await
}
