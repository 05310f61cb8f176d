//! Fixture of the directed checks: two accounts with a user wallet and agents, some money, and requests by number.

use crate::act::{Act, Decide, Deposit, NewEscrow, Plan, RequestId, Spend, Transfer, Verdict};
use crate::model::{At, Limits, Model, Place};
use crate::model_fixture::ModelFixture;
use crate::names::Window;
use domain::period::Period;
use store::Store;

/// The store and clock of a check.
pub struct DirectedFixture<'a> {
    pub store: &'a Store,
    pub period: Period,
}

impl DirectedFixture<'_> {
    /// Two accounts, live and test, each with a user wallet and the agents `a` and `b`, whose policies allow
    /// everything; each wallet holds 100.
    pub fn model(&self) -> Model {
        let mut model = Model::new(self.period);
        model.set_clock();
        for at in 0..4 {
            found(&mut model, at);
        }
        model
    }

    pub async fn fixture(&self, model: Model) -> Result<ModelFixture, String> {
        ModelFixture::with_model(self.store, model).await
    }

    pub async fn usual(&self) -> Result<ModelFixture, String> {
        self.fixture(self.model()).await
    }
}

impl Model {
    /// Sets the model's clock to a moment ago, for all records of the fixture.
    pub fn set_clock(&mut self) {
        let now = clock::now_ms() - 1;
        self.window = Window { from: now, to: now };
    }

    /// Applies an action to the model alone; panics unless the outcome begins with `outcome`.
    pub fn lay(&mut self, outcome: &str, act: &Act) {
        let summary = self.act(act);
        assert!(
            summary.starts_with(outcome),
            "{act:?} is {summary}, not {outcome}"
        );
    }

    pub fn place(&self, at: At, owner: &str) -> Place {
        let number = self.wallet(at, owner).expect("a wallet").number;
        let place = self.wallets.iter().find(|place| place.number == number);
        place.expect("its place").clone()
    }
}

/// Initial balance of each wallet.
pub const START: u64 = 100;

fn found(model: &mut Model, at: At) {
    let n = 1000 * (at as u64 + 1);
    model.lay("wallet", &Act::OpenUser { at });
    for (index, agent) in ["a", "b"].into_iter().enumerate() {
        let n = n + index as u64;
        let agent = agent.to_owned();
        model.lay(
            "created",
            &Act::NewAgent {
                at,
                agent: agent.clone(),
                most: None,
            },
        );
        let limits = Limits::default();
        model.lay(
            "set",
            &Act::Policy {
                at,
                agent: Some(agent),
                limits,
                n,
            },
        );
    }
    for (index, owner) in ["user", "a", "b"].into_iter().enumerate() {
        let to = model.place(at, owner);
        model.lay(
            "made",
            &Act::Deposit(Deposit {
                keyed: false,
                ..deposit(n + index as u64, to, START)
            }),
        );
    }
}

/// The request number `n`.
pub fn request_id(at: At, n: u64) -> RequestId {
    RequestId {
        at,
        id: format!("int_{n}"),
        spare: format!("int_{n}s"),
        fp: format!("fp{n}"),
        at_ms: clock::now_ms() - 1,
        n,
    }
}

/// A spend of `a`, live, in the first account.
pub fn spend(n: u64, amount: u64) -> Spend {
    Spend {
        request_id: request_id(0, n),
        agent: "a".to_owned(),
        amount,
        run: None,
        plan: None,
        recipient: None,
        description: None,
        injection: false,
    }
}

pub fn plan(agents: Option<u64>, tracked: Option<u64>) -> Plan {
    Plan {
        name: "p".to_owned(),
        agents,
        tracked,
    }
}

pub fn transfer(n: u64, from: &Place, to: &Place, amount: u64) -> Transfer {
    Transfer {
        request_id: request_id(from.at, n),
        keyed: true,
        from: from.clone(),
        to: to.clone(),
        amount,
        memo: None,
        closed: false,
        crash: false,
    }
}

pub fn deposit(n: u64, to: Place, amount: u64) -> Deposit {
    Deposit {
        request_id: request_id(to.at, n),
        keyed: true,
        to,
        amount,
        reference: format!("ref {n}"),
        pending: false,
        closed: false,
    }
}

pub fn escrow(n: u64, from: &Place, to: &Place, amount: u64) -> NewEscrow {
    NewEscrow {
        request_id: request_id(from.at, n),
        from: from.clone(),
        to: to.clone(),
        amount,
        closed: false,
        crash: false,
    }
}

pub fn decide(at: At, n: u64, escrow: u64, verdict: Verdict) -> Decide {
    Decide {
        request_id: request_id(at, n),
        escrow,
        verdict,
        crash: false,
    }
}
