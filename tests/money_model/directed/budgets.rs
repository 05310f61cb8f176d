//! Budgets of records (decision D71) at their bounds: the last record within a budget is made, the next one is refused
//! and changes nothing, and calls that must always work do.

use super::fixture::{DirectedFixture, START, deposit, escrow, plan, request_id, spend, transfer};
use super::verdicts::{dispute, release};
use crate::act::{Act, Deposit, Spend};
use crate::model::{At, Limits, Model, keys, mode};
use crate::model_fixture::{Checked, ModelFixture};
use domain::budget::Budget;
use store::account::ModeField;
use store::agent::freeze::FrozenBy;

/// Transactions of an account and mode as laid out: a deposit to each of its three wallets.
const LAID_OUT: u64 = 3;

fn note(at: At, n: u64) -> Act {
    Act::Spend(Spend {
        request_id: request_id(at, n),
        ..spend(n, 1)
    })
}

impl DirectedFixture<'_> {
    async fn with(&self, model: Model, budget: Budget, most: u64) -> Result<ModelFixture, String> {
        let budgets = self.store.budgets().with(budget, most);
        ModelFixture::with_model(&self.store.clone().with_budgets(budgets), model).await
    }
}

/// An agent that has a policy and no wallet: its spends move no money.
fn lay_walletless(model: &mut Model) {
    let limits = Limits::default();
    let agent = Some("walletless".to_owned());
    model.lay(
        "set",
        &Act::Policy {
            at: 0,
            agent,
            limits,
            n: 70,
        },
    );
}

pub async fn spends(setup: &DirectedFixture<'_>) -> Checked {
    for at in 0..2 {
        // Intents of all kinds count.
        let mut model = setup.model();
        let (a, b) = (model.place(at, "a"), model.place(at, "b"));
        model.lay("done", &Act::Escrow(escrow(1, &a, &b, 1)));
        let mut fixture = setup.with(model, Budget::Intents, 3).await?;
        fixture.want("settled", note(at, 10)).await?;
        fixture.want("settled", note(at, 11)).await?;
        fixture.over(Budget::Intents, note(at, 12)).await?;
        fixture.want("known", note(at, 11)).await?;
        // The other mode has its own budget.
        fixture.want("settled", note(1 - at, 12)).await?;
        let mut fixture = setup.with(setup.model(), Budget::TextBytes, 1).await?;
        fixture.want("settled", note(at, 10)).await?;
        fixture.over(Budget::TextBytes, note(at, 11)).await?;
        let most = spend(10, 1).request().len() as u64 + 1;
        let mut fixture = setup.with(setup.model(), Budget::TextBytes, most).await?;
        fixture.want("settled", note(at, 10)).await?;
        fixture.want("settled", note(at, 11)).await?;
        fixture.over(Budget::TextBytes, note(at, 12)).await?;
        let mut fixture = setup
            .with(setup.model(), Budget::Transactions, LAID_OUT + 1)
            .await?;
        fixture.want("settled", note(at, 10)).await?;
        fixture.over(Budget::Transactions, note(at, 11)).await?;
    }
    for at in 0..2 {
        let mut fixture = setup.with(setup.model(), Budget::Runs, 2).await?;
        let run = |n, agent: &str, run: Option<&str>| {
            Act::Spend(Spend {
                agent: agent.to_owned(),
                run: run.map(str::to_owned),
                request_id: request_id(at, n),
                ..spend(n, 1)
            })
        };
        fixture.want("settled", run(10, "a", Some("one"))).await?;
        fixture.want("settled", run(11, "b", Some("one"))).await?;
        fixture.over(Budget::Runs, run(12, "a", Some("two"))).await?;
        // Known runs, and spends without a run, are still accepted.
        fixture.want("settled", run(13, "a", Some("one"))).await?;
        fixture.want("settled", run(14, "a", None)).await?;
    }
    let mut model = setup.model();
    lay_walletless(&mut model);
    let mut fixture = setup.with(model, Budget::Transactions, 1).await?;
    let walletless = Spend {
        agent: "walletless".to_owned(),
        ..spend(10, 1)
    };
    fixture.want("settled", walletless).await?;
    // Transfers from other accounts do not count.
    let mut fixture = setup
        .with(setup.model(), Budget::Transactions, LAID_OUT + 1)
        .await?;
    let (from, to) = (fixture.model.place(2, "a"), fixture.model.place(0, "a"));
    fixture.want("done", transfer(10, &from, &to, 1)).await?;
    fixture.want("settled", note(0, 11)).await?;
    fixture.over(Budget::Transactions, note(0, 12)).await?;
    Box::pin(ended_runs(setup)).await?;
    Box::pin(approved(setup)).await
}

/// Runs that ended 35 days after their last call leave room, also before the index drops them.
async fn ended_runs(setup: &DirectedFixture<'_>) -> Checked {
    let run = |at, n, run: &str| {
        Act::Spend(Spend {
            run: Some(run.to_owned()),
            request_id: request_id(at, n),
            ..spend(n, 1)
        })
    };
    for at in 0..2 {
        let mut model = setup.model();
        model.sides[at].counted_before = ["b", "c"].map(str::to_owned).into();
        let mut fixture = setup.with(model, Budget::Runs, 1).await?;
        fixture.want("settled", run(at, 10, "one")).await?;
        fixture.over(Budget::Runs, run(at, 11, "two")).await?;
    }
    Ok(())
}

/// A spend that waits for approval is within all budgets already.
async fn approved(setup: &DirectedFixture<'_>) -> Checked {
    for budget in [
        Budget::Intents,
        Budget::TextBytes,
        Budget::Transactions,
        Budget::Runs,
    ] {
        let mut model = setup.model();
        let limits = Limits {
            approval: Some(0),
            ..Limits::default()
        };
        let agent = Some("a".to_owned());
        model.lay(
            "set",
            &Act::Policy {
                at: 0,
                agent,
                limits,
                n: 71,
            },
        );
        let waits = Spend {
            run: Some("r".to_owned()),
            ..spend(10, 1)
        };
        model.lay("pending", &Act::Spend(waits));
        let mut fixture = setup.with(model, budget, 1).await?;
        let grant = Act::Resolve {
            at: 0,
            id: "int_10".to_owned(),
            grant: true,
            stale: false,
            at_ms: request_id(0, 11).at_ms,
            plan: Some(plan(None, None)),
            n: 11,
        };
        fixture.want("settled", grant).await?;
    }
    Ok(())
}

pub async fn transfers(setup: &DirectedFixture<'_>) -> Checked {
    for (to_at, to_owner) in [(0, "b"), (2, "a")] {
        let mut fixture = setup.with(setup.model(), Budget::Transactions, LAID_OUT).await?;
        let (from, to) = (fixture.model.place(0, "a"), fixture.model.place(to_at, to_owner));
        fixture
            .over(Budget::Transactions, transfer(10, &from, &to, 1))
            .await?;
        // Transfers of another account do not count.
        let mut model = setup.model();
        let other = model.place(2, "b");
        let (from, to) = (model.place(0, "a"), model.place(to_at, to_owner));
        model.lay("done", &Act::Transfer(transfer(9, &other, &from, 1)));
        let mut fixture = setup.with(model, Budget::Transactions, LAID_OUT + 1).await?;
        fixture.want("done", transfer(10, &from, &to, 1)).await?;
        fixture
            .over(Budget::Transactions, transfer(11, &from, &to, 1))
            .await?;
        let mut fixture = setup
            .with(setup.model(), Budget::Transactions, LAID_OUT + 1)
            .await?;
        let (from, to) = (fixture.model.place(0, "a"), fixture.model.place(to_at, to_owner));
        fixture.want("done", transfer(10, &from, &to, 1)).await?;
        fixture
            .over(Budget::Transactions, transfer(11, &from, &to, 1))
            .await?;
        fixture.want("known", transfer(10, &from, &to, 1)).await?;

        let mut model = setup.model();
        let (from, to) = (model.place(0, "a"), model.place(to_at, to_owner));
        let agent = "a".to_owned();
        model.lay(
            "done",
            &Act::Freeze {
                at: 0,
                agent,
                by: FrozenBy::User,
                lift: false,
            },
        );
        let mut fixture = setup.with(model, Budget::Refusals, 2).await?;
        let send = |n| transfer(n, &from, &to, 1);
        fixture.want("blocked", send(10)).await?;
        fixture.want("blocked", send(11)).await?;
        fixture.over(Budget::Refusals, send(12)).await?;
        // A request without a key leaves no record.
        let mut unkeyed = send(13);
        unkeyed.keyed = false;
        fixture.want("blocked", unkeyed).await?;
        // Refusals of the previous span may still be there; those of the span before it are not.
        fixture.age_refusals(0, 1, (1, 7)).await?;
        fixture.want("blocked", send(14)).await?;
        fixture.over(Budget::Refusals, send(15)).await?;
        fixture.age_refusals(0, 2, (9, 9)).await?;
        fixture.want("blocked", send(16)).await?;
    }
    Ok(())
}

pub async fn deposits(setup: &DirectedFixture<'_>) -> Checked {
    for pending in [false, true] {
        let put = |n, place| {
            Act::Deposit(Deposit {
                pending,
                ..deposit(n, place, 1)
            })
        };
        let mut fixture = setup.with(setup.model(), Budget::Deposits, LAID_OUT + 1).await?;
        let a = fixture.model.place(0, "a");
        fixture.want("made", put(10, a.clone())).await?;
        fixture.over(Budget::Deposits, put(11, a.clone())).await?;
        fixture.want("known", put(10, a.clone())).await?;
        // A pending deposit makes its transaction at its confirmation, which is always allowed.
        let mut fixture = setup.with(setup.model(), Budget::Transactions, LAID_OUT).await?;
        let a = fixture.model.place(0, "a");
        match pending {
            true => fixture.want("made", put(10, a)).await?,
            false => fixture.over(Budget::Transactions, put(10, a)).await?,
        }
    }
    let mut fixture = setup.with(setup.model(), Budget::Refusals, 1).await?;
    let closed = |n, fixture: &ModelFixture| {
        Act::Deposit(Deposit {
            closed: true,
            ..deposit(n, fixture.model.place(0, "a"), 1)
        })
    };
    fixture.want("blocked", closed(10, &fixture)).await?;
    fixture.over(Budget::Refusals, closed(11, &fixture)).await?;
    let unkeyed = Act::Deposit(Deposit {
        keyed: false,
        closed: true,
        ..deposit(12, fixture.model.place(0, "a"), 1)
    });
    fixture.want("blocked", unkeyed).await?;
    Box::pin(repeated(setup)).await
}

/// A repetition under another key leaves a record, which counts as a refusal; one without a key leaves none.
async fn repeated(setup: &DirectedFixture<'_>) -> Checked {
    for pending in [false, true] {
        let mut fixture = setup.with(setup.model(), Budget::Refusals, 1).await?;
        let place = fixture.model.place(0, "a");
        let put = |n, keyed| {
            Act::Deposit(Deposit {
                pending,
                keyed,
                reference: "ref".to_owned(),
                ..deposit(n, place.clone(), 1)
            })
        };
        fixture.want("made", put(10, true)).await?;
        fixture.want("again", put(11, true)).await?;
        fixture.over(Budget::Refusals, put(12, true)).await?;
        fixture.want("again", put(13, false)).await?;
    }
    let mut fixture = setup.with(setup.model(), Budget::Refusals, 1).await?;
    let pending = Deposit {
        pending: true,
        reference: "ref".to_owned(),
        ..deposit(10, fixture.model.place(0, "a"), 1)
    };
    let confirm = |n, keyed| Act::Confirm {
        request_id: request_id(0, n),
        keyed,
        reference: "ref".to_owned(),
    };
    fixture.want("made", pending).await?;
    fixture.want("confirmed", confirm(11, true)).await?;
    fixture.want("again", confirm(12, true)).await?;
    fixture.over(Budget::Refusals, confirm(13, true)).await?;
    fixture.want("again", confirm(14, false)).await
}

pub async fn escrows(setup: &DirectedFixture<'_>) -> Checked {
    // A new escrow stores its intent's request and its conditions: nine bytes together.
    // Intents of all kinds count.
    let text = spend(1, 1).request().len() as u64 + 9;
    for (budget, most) in [
        (Budget::Escrows, 1),
        (Budget::Intents, 2),
        (Budget::TextBytes, text),
    ] {
        let mut model = setup.model();
        model.lay("settled", &note(0, 1));
        let mut fixture = setup.with(model, budget, most).await?;
        let (a, b) = (fixture.model.place(0, "a"), fixture.model.place(0, "b"));
        fixture.want("done", escrow(10, &a, &b, 1)).await?;
        fixture.over(budget, escrow(11, &a, &b, 1)).await?;
        fixture.want("known", escrow(10, &a, &b, 1)).await?;
    }
    let fund = |n| Act::Fund {
        request_id: request_id(0, n),
        escrow: 1,
    };
    let text = setup.one_escrow("pending").text_bytes(0) as u64;
    for (budget, most, passes) in [
        (Budget::Intents, 1, false),
        (Budget::Intents, 2, true),
        (Budget::TextBytes, text, false),
        (Budget::TextBytes, text + 1, true),
        (Budget::Transactions, LAID_OUT, false),
        (Budget::Transactions, LAID_OUT + 1, true),
    ] {
        let mut fixture = setup.with(setup.one_escrow("pending"), budget, most).await?;
        match passes {
            true => fixture.want("done", fund(20)).await?,
            false => fixture.over(budget, fund(20)).await?,
        }
    }
    Ok(())
}

impl DirectedFixture<'_> {
    /// One escrow of `START` from `a` to `b`, pending or funded.
    fn one_escrow(&self, status: &str) -> Model {
        let mut model = self.model();
        let (a, b) = (model.place(0, "a"), model.place(0, "b"));
        model.lay("done", &Act::Escrow(escrow(1, &a, &b, START)));
        if status == "funded" {
            let (request_id, escrow) = (request_id(0, 2), 1);
            model.lay("done", &Act::Fund { request_id, escrow });
        }
        model
    }
}

/// The call that resolves an escrow is always allowed; a refusal is recorded only within the budget.
pub async fn verdicts(setup: &DirectedFixture<'_>) -> Checked {
    for verdict in [release, dispute] {
        let mut fixture = setup.with(setup.one_escrow("funded"), Budget::Intents, 1).await?;
        fixture.want("done", verdict(0, 10, 1)).await?;
        fixture.over(Budget::Intents, verdict(0, 11, 1)).await?;
        // Two intents made it, one released it; there is room for one refusal.
        let mut fixture = setup.with(setup.one_escrow("funded"), Budget::Intents, 4).await?;
        fixture.want("done", verdict(0, 10, 1)).await?;
        fixture.want("blocked", verdict(0, 11, 1)).await?;
        fixture.over(Budget::Intents, verdict(0, 12, 1)).await?;
        let mut fixture = setup
            .with(setup.one_escrow("funded"), Budget::TextBytes, 1)
            .await?;
        fixture.want("done", verdict(0, 10, 1)).await?;
        fixture.over(Budget::TextBytes, verdict(0, 11, 1)).await?;
        // The last text may pass the budget.
        let mut model = setup.one_escrow("funded");
        model.lay("done", &verdict(0, 10, 1));
        let most = model.text_bytes(0) as u64 + 1;
        let mut fixture = setup.with(model, Budget::TextBytes, most).await?;
        fixture.want("blocked", verdict(0, 11, 1)).await?;
        fixture.over(Budget::TextBytes, verdict(0, 12, 1)).await?;
    }
    for (budget, most) in [(Budget::Intents, 2), (Budget::TextBytes, 1)] {
        Box::pin(of_payee(setup, budget, most)).await?;
    }
    Ok(())
}

/// The payee in another account: its claim ends although its refusal is not recorded.
async fn of_payee(setup: &DirectedFixture<'_>, budget: Budget, most: u64) -> Checked {
    let mut model = setup.model();
    let (from, to) = (model.place(0, "a"), model.place(2, "a"));
    model.lay("done", &Act::Escrow(escrow(1, &from, &to, 1)));
    let (of_payer, number) = (request_id(0, 2), 1);
    model.lay(
        "done",
        &Act::Fund {
            request_id: of_payer,
            escrow: number,
        },
    );
    model.lay("settled", &note(2, 3));
    let mut fixture = setup.with(model, budget, most).await?;
    fixture.want("done", release(2, 10, 1)).await?;
    // The escrow still lists the call as a sibling, as it does every late call, 100 at most.
    let escrow = fixture.model.escrows.get_mut(&1).expect("the escrow");
    escrow.siblings.push((2, "int_11".to_owned()));
    fixture.over(budget, release(2, 11, 1)).await
}

impl ModelFixture {
    /// Checks that the budget refuses the action and that nothing changed.
    async fn over(&mut self, budget: Budget, act: impl Into<Act>) -> Checked {
        let act = act.into();
        let found = self.attempt(&act).await;
        let expected = format!("OverBudget {{ budget: {budget:?},");
        match found {
            Err(error) if error.contains(&expected) => self.unchanged(&act).await,
            other => Err(format!("{act:?} answered {other:?}, expected {expected}")),
        }
    }

    /// Ages the recorded count of refusals by `spans` spans, and sets other counts.
    async fn age_refusals(&mut self, at: At, spans: u64, (this, before): (u64, u64)) -> Checked {
        let span = self.model.span() - spans;
        self.model.sides[at].refusals = Some((span, this, before));
        let field = ModeField::Refusals.name(mode(at));
        let text = format!("{span} {this} {before}");
        self.put_field(&keys(at).record(), &field, &text).await
    }
}
