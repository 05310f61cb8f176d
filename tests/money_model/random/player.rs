//! Plays a case: numbers become concrete wallets, amounts and records of those that the model has at that moment.

use super::op::{Amount, Case, Gauge, Key, Limit, Policy};
use crate::act::{Act, Plan, RequestId};
use crate::directed::fixture::{DirectedFixture, deposit};
use crate::model::{At, Charge, Limits, MOST, Place};
use crate::model_fixture::{Checked, ModelFixture};
use domain::money::Nanos;
use domain::period::Period;
use store::Store;

/// The agents; the third has no wallet at first, or an empty one.
pub const AGENTS: [&str; 3] = ["a", "b", "c"];
/// The distance of doubles below the ceiling.
const STEP: u64 = 1024;

pub struct Player {
    pub fixture: ModelFixture,
    pub past: Vec<Act>,
    pub plans: [Plan; 2],
    n: u64,
}

pub async fn play(store: &Store, period: Period, case: &Case) -> Checked {
    let setup = DirectedFixture { store, period };
    let mut model = setup.model();
    if let Some(which) = case.rich {
        let place = model.wallets[which % model.wallets.len()].clone();
        let nearly = full(3) - crate::directed::fixture::START;
        model.lay("made", &Act::Deposit(deposit(7000, place, nearly)));
    }
    for at in (0..4).filter(|_| case.third) {
        let act = Act::NewAgent {
            at,
            agent: AGENTS[2].to_owned(),
            most: None,
        };
        model.lay("created", &act);
    }
    for side in &mut model.sides {
        let agent = side.agents.get_mut("a").and_then(|agent| agent.wallet.as_mut());
        agent.expect("a wallet").spend_limit = case.spend_limit;
    }
    if let Some(which) = case.spent {
        model.sides[which % 4].charges.push(Charge {
            agent: AGENTS[which / 4].to_owned(),
            amount: full(2),
            run: None,
            from_wallet: which % 2 == 0,
            period,
        });
        model.sides[which % 4]
            .agents
            .entry(AGENTS[which / 4].to_owned())
            .or_default();
    }
    for (at, side) in model.sides.iter_mut().enumerate() {
        for (id, policy) in &mut side.policies {
            policy.limits.approval = case.threshold.filter(|_| at < 3 && id.ends_with('1'));
        }
    }
    let plans = case.plans.map(|(agents, tracked)| Plan {
        name: "p".to_owned(),
        agents,
        tracked,
    });
    let mut player = Player {
        fixture: setup.fixture(model).await?,
        past: Vec::new(),
        plans,
        n: 0,
    };
    for (at, op) in case.ops.iter().enumerate() {
        let Some(act) = player.act(*op) else { continue };
        player
            .fixture
            .go(&act)
            .await
            .map_err(|error| format!("action {at}, {op:?}: {error}"))?;
        player.past.push(act);
    }
    Ok(())
}

/// The ceiling minus this many steps.
const fn full(steps: u64) -> u64 {
    MOST - steps * STEP
}

impl Player {
    pub fn new_n(&mut self) -> u64 {
        self.n += 1;
        self.n
    }

    /// The identity of a new request, or one that uses the key of an earlier one.
    pub fn request_id(&mut self, at: At, key: Key) -> RequestId {
        let n = self.new_n();
        let mut request_id = crate::directed::fixture::request_id(at, n);
        if let Key::Earlier(which) = key {
            let same_place: Vec<&RequestId> = self
                .past
                .iter()
                .filter_map(Act::request_id)
                .filter(|request_id| request_id.at == at)
                .collect();
            if let Some(earlier) = pick(&same_place, which) {
                request_id.id.clone_from(&earlier.id);
            }
        }
        request_id
    }

    pub fn model(&self) -> &crate::model::Model {
        &self.fixture.model
    }

    /// A wallet, closed ones included.
    pub fn wallet(&self, which: usize) -> Option<Place> {
        let side = which % 4;
        let wallets = self.model().wallets.iter().filter(|place| place.at == side);
        pick(&wallets.cloned().collect::<Vec<_>>(), which / 4).cloned()
    }

    pub fn is_closed(&self, place: &Place) -> bool {
        !self.model().is_alive(place.at, &place.owner, place.number)
    }

    /// Another wallet of the same mode as `from`.
    pub fn other(&self, from: &Place, which: usize) -> Option<Place> {
        let others = self.model().wallets.iter();
        let others: Vec<&Place> = others
            .filter(|place| place.at % 2 == from.at % 2 && place.number != from.number)
            .collect();
        pick(&others, which).map(|place| (*place).clone())
    }

    pub fn amount(&self, amount: Amount, from: Option<&Place>, to: Option<&Place>) -> u64 {
        let balance =
            |place: Option<&Place>| place.map_or(0, |place| self.model().balance(place.at, place.number));
        match amount {
            Amount::One | Amount::Room(..) => 1,
            Amount::Small(nanos) => nanos,
            Amount::Max => Nanos::MAX.get(),
            Amount::Balance(off) => clamp(balance(from.or(to)) + i128::from(off)),
            Amount::Ceiling(steps) => {
                let steps = i128::from(steps) * i128::from(STEP);
                clamp(i128::from(full(0)) - balance(to.or(from)) + steps)
            }
        }
    }

    /// An amount of a spend, relative to the rest under its limits.
    pub fn spend_amount(&self, amount: Amount, (at, agent): (At, &str), run: Option<&str>) -> u64 {
        let model = self.model();
        let wallet = model.wallet(at, agent);
        let Amount::Room(gauge, off) = amount else {
            let place = wallet.map(|wallet| model.wallets.iter().find(|place| place.number == wallet.number));
            return self.amount(amount, place.flatten(), None);
        };
        let limits = model
            .effective(at, agent)
            .map(|(limits, _)| limits)
            .unwrap_or_default();
        let (limit, spent) = match gauge {
            Gauge::Transaction => (limits.txn, 0),
            Gauge::Threshold => (limits.approval, 0),
            Gauge::Run => (limits.run, run.map_or(0, |run| model.run_spent(at, agent, run))),
            Gauge::Day => (limits.day, model.day_spent(at, agent, model.period.day)),
            Gauge::Month => (limits.month, model.month_spent(at, agent, model.period.month)),
            Gauge::Tracked => (self.plans[at / 2].tracked, model.tracked(at, model.period.month)),
            Gauge::Wallet => {
                let limit = wallet.and_then(|wallet| wallet.spend_limit);
                (limit, model.wallet_spent(at, agent, model.period.day))
            }
        };
        limit.map_or(3, |limit| clamp(i128::from(limit) - spent + i128::from(off)))
    }

    pub fn limits(&self, at: At, agent: &str, policy: Policy) -> Limits {
        let model = self.model();
        let limit = |limit: Limit, spent: i128| match limit {
            Limit::None => None,
            Limit::Zero => Some(0),
            Limit::Small(nanos) => Some(nanos),
            Limit::Max => Some(Nanos::MAX.get()),
            Limit::Spent(more) => Some(clamp(spent + i128::from(more))),
        };
        Limits {
            disabled: !policy.enabled,
            run: limit(policy.run, model.run_spent(at, agent, "r0")),
            day: limit(policy.day, model.day_spent(at, agent, model.period.day)),
            month: limit(policy.month, model.month_spent(at, agent, model.period.month)),
            txn: limit(policy.txn, 5),
            approval: limit(policy.approval, 5),
            low: limit(policy.low, 50),
        }
    }
}

/// One of `all`; half of the time one of the last four.
pub fn pick<T>(all: &[T], which: usize) -> Option<&T> {
    let from = if which.is_multiple_of(2) {
        all.len().saturating_sub(4)
    } else {
        0
    };
    let some = &all[from..];
    (!some.is_empty()).then(|| &some[which / 2 % some.len()])
}

/// One of `all`; three times out of four one for which something can happen.
pub fn prefer<T: Clone>(all: &[T], which: usize, can: impl Fn(&T) -> bool) -> Option<T> {
    let able: Vec<T> = all.iter().filter(|item| can(item)).cloned().collect();
    let some = if which.is_multiple_of(4) || able.is_empty() {
        all
    } else {
        &able
    };
    pick(some, which / 4).cloned()
}

/// Clamps to a valid amount of a request.
fn clamp(amount: i128) -> u64 {
    u64::try_from(amount.max(1))
        .unwrap_or(u64::MAX)
        .min(Nanos::MAX.get())
}
