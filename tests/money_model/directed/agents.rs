//! Opening user wallets, freezing agents, and deleting agents unless money or an open escrow prevents that.

use super::fixture::{DirectedFixture, START, decide, deposit, escrow, request_id, spend, transfer};
use crate::act::{Act, Deposit, Verdict};
use crate::model::{Agent, Limits, Model};
use crate::model_fixture::Checked;
use store::agent::freeze::FrozenBy;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    opened(setup).await?;
    frozen(setup).await?;
    deleted(setup).await?;
    kept(setup).await?;
    owed(setup).await
}

fn delete(at: usize, agent: &str) -> Act {
    Act::Delete {
        at,
        agent: agent.to_owned(),
    }
}

async fn opened(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = Model::new(setup.period);
    model.set_clock();
    let mut fixture = setup.fixture(model).await?;
    for at in [0, 3, 1, 0] {
        fixture.want("wallet", Act::OpenUser { at }).await?;
    }
    Ok(())
}

/// Only an agent that exists can be frozen, whichever record makes it exist.
async fn frozen(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    for at in [0, 1] {
        let agents = &mut model.sides[at].agents;
        for agent in ["key", "provider", "left", "policy"] {
            agents.insert(agent.to_owned(), Agent::default());
        }
        agents
            .get_mut("left")
            .expect("it")
            .old
            .insert("d1".to_owned(), "5".to_owned());
        agents.get_mut("provider").expect("it").provider_key = true;
        let (agent, limits) = (Some("policy".to_owned()), Limits::default());
        model.lay(
            "set",
            &Act::Policy {
                at,
                agent,
                limits,
                n: 60,
            },
        );
        let policy = model.sides[at].agents["b"].policy.clone().expect("a policy");
        model.lay("deleted", &Act::DropPolicy { at, id: policy });
    }
    let live = &mut model.sides[0].agents;
    live.get_mut("key")
        .expect("it")
        .virtual_keys
        .insert("vk_1".to_owned());
    let mut fixture = setup.fixture(model).await?;
    for (at, keys) in [(0, "done"), (1, "not_found")] {
        for (agent, outcome) in [
            ("b", "done"),
            ("policy", "done"),
            ("provider", "done"),
            ("key", keys),
            ("left", "not_found"),
            ("nobody", "not_found"),
        ] {
            let agent = agent.to_owned();
            let by = FrozenBy::User;
            fixture
                .want(
                    outcome,
                    Act::Freeze {
                        at,
                        agent,
                        by,
                        lift: false,
                    },
                )
                .await?;
        }
    }
    Ok(())
}

/// The deletion of an agent: removed records, remaining records, and the start of a new agent of the same name.
async fn deleted(setup: &DirectedFixture<'_>) -> Checked {
    for at in [0, 1, 3] {
        let mut model = setup.model();
        // Virtual and provider keys are live only: a deletion in test mode leaves them.
        for (agent, ids) in [("a", ["vk_1", "vk_2", "vk_3"]), ("b", ["vk_4", "vk_5", "vk_6"])] {
            let record = model.sides[at - at % 2].agents.get_mut(agent).expect("the agent");
            record.provider_key = true;
            record.virtual_keys.extend(ids.map(str::to_owned));
        }
        for field in ["dx", "d1x", "xd1", "sx", "s1x", "pk_id:other"] {
            let record = model.sides[at].agents.get_mut("a").expect("the agent");
            record.old.insert(field.to_owned(), "1".to_owned());
        }
        let [user, a, b] = ["user", "a", "b"].map(|owner| model.place(at, owner));
        model.lay("done", &Act::Transfer(transfer(91, &b, &a, 5)));
        model.lay("done", &Act::Transfer(transfer(92, &a, &user, 5)));
        let mut spent = spend(93, START);
        spent.request_id.at = at;
        model.lay("settled", &Act::Spend(spent));
        model.lay(
            "done",
            &Act::Freeze {
                at,
                agent: "a".to_owned(),
                by: FrozenBy::User,
                lift: false,
            },
        );
        for field in ["d1", "m1", "s1", "w1", "held"] {
            let record = model.sides[at].agents.get_mut("a").expect("the agent");
            record.old.insert(field.to_owned(), "7".to_owned());
        }
        let mut fixture = setup.fixture(model).await?;
        fixture.want("deleted", delete(at, "a")).await?;
        fixture.want("missing", delete(at, "a")).await?;
        fixture
            .want(
                "created",
                Act::NewAgent {
                    at,
                    agent: "a".to_owned(),
                    most: None,
                },
            )
            .await?;
        let again = fixture.model.place(at, "a");
        fixture.want("done", transfer(1, &b, &again, 5)).await?;
        fixture.want("holds_money", delete(at, "a")).await?;
        let by = FrozenBy::User;
        fixture
            .want(
                "done",
                Act::Freeze {
                    at,
                    agent: "a".to_owned(),
                    by,
                    lift: true,
                },
            )
            .await?;
        fixture.want("done", transfer(2, &again, &user, 5)).await?;
        fixture.want("deleted", delete(at, "a")).await?;
    }
    Ok(())
}

/// A wallet with money, or with a pending deposit, prevents the deletion of its agent.
async fn kept(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    model.lay(
        "created",
        &Act::NewAgent {
            at: 0,
            agent: "c".to_owned(),
            most: None,
        },
    );
    let (user, c) = (model.place(0, "user"), model.place(0, "c"));
    let mut fixture = setup.fixture(model).await?;
    let waits = Deposit {
        pending: true,
        ..deposit(1, c.clone(), 1)
    };
    fixture.want("made", waits).await?;
    fixture.want("awaits_deposit", delete(0, "c")).await?;
    let never = Deposit {
        pending: true,
        ..deposit(3, c.clone(), 1)
    };
    fixture.want("made", never).await?;
    let cancel = Act::Cancel {
        at: 0,
        reference: "ref 3".to_owned(),
    };
    fixture.want("cancelled", cancel).await?;
    fixture.want("awaits_deposit", delete(0, "c")).await?;
    fixture
        .want(
            "confirmed",
            Act::Confirm {
                request_id: request_id(0, 5),
                keyed: false,
                reference: "ref 1".to_owned(),
            },
        )
        .await?;
    fixture.want("holds_money", delete(0, "c")).await?;
    fixture.want("done", transfer(2, &c, &user, 1)).await?;
    fixture.want("deleted", delete(0, "c")).await?;
    fixture.want("missing", delete(0, "nobody")).await
}

/// An open escrow that the account pays prevents the deletion of either party; an ended or unknown one does not.
async fn owed(setup: &DirectedFixture<'_>) -> Checked {
    for (payer_goes, to_at) in [(true, 0), (false, 0), (true, 2)] {
        let mut model = setup.model();
        let gone_at = if payer_goes { 0 } else { to_at };
        model.lay(
            "created",
            &Act::NewAgent {
                at: gone_at,
                agent: "c".to_owned(),
                most: None,
            },
        );
        let (payer, payee) = if payer_goes { ("c", "b") } else { ("a", "c") };
        let (from, to) = (model.place(0, payer), model.place(to_at, payee));
        if payer_goes {
            model.lay("made", &Act::Deposit(deposit(90, from.clone(), 20)));
        }
        for n in [1, 2] {
            model.lay("done", &Act::Escrow(escrow(100 + n, &from, &to, 10)));
            model.lay(
                "done",
                &Act::Fund {
                    request_id: request_id(0, 200 + n),
                    escrow: n,
                },
            );
        }
        let mut fixture = setup.fixture(model).await?;
        fixture.want("open_escrows", delete(gone_at, "c")).await?;
        let dispute = |n, number| Act::Decide(decide(0, n, number, Verdict::Dispute(None)));
        fixture.want("done", dispute(1, 1)).await?;
        fixture.want("done", dispute(2, 2)).await?;
        fixture.want("open_escrows", delete(gone_at, "c")).await?;
        let end = |escrow| Act::End {
            escrow,
            refund: !payer_goes,
            crash: to_at == 2,
        };
        fixture.want("done", end(1)).await?;
        fixture.want("open_escrows", delete(gone_at, "c")).await?;
        fixture.want("done", end(2)).await?;
        fixture.want("deleted", delete(gone_at, "c")).await?;
    }
    owed_by_another(setup).await
}

/// An escrow that another account pays does not prevent a deletion: its money arrives in the account's own wallet.
async fn owed_by_another(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    let new = Act::NewAgent {
        at: 2,
        agent: "c".to_owned(),
        most: None,
    };
    model.lay("created", &new);
    let (from, to) = (model.place(0, "a"), model.place(2, "c"));
    for n in [1, 2] {
        model.lay("done", &Act::Escrow(escrow(100 + n, &from, &to, 10)));
        let fund = Act::Fund {
            request_id: request_id(0, 200 + n),
            escrow: n,
        };
        model.lay("done", &fund);
    }
    let mut fixture = setup.fixture(model).await?;
    let dispute = Act::Decide(decide(0, 1, 1, Verdict::Dispute(None)));
    fixture.want("done", dispute).await?;
    fixture.want("deleted", delete(2, "c")).await?;
    let end = Act::End {
        escrow: 1,
        refund: false,
        crash: false,
    };
    fixture.want("done", end).await?;
    let release = Act::Decide(decide(2, 2, 2, Verdict::Release));
    fixture.want("done", release).await
}
