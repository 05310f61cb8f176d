//! Random operations on a ledger, and their weights.

use proptest::collection::vec;
use proptest::prelude::*;
use store::call::authorize::AccountView;

/// One of the counters that a limit binds.
#[derive(Debug, Clone, Copy)]
pub enum Gauge {
    Run,
    Day,
    Month,
    Tracked,
}

/// An amount, most often one that just fits or just does not.
#[derive(Debug, Clone, Copy)]
pub enum Amount {
    Zero,
    One,
    Small(u64),
    Max,
    /// The rest under a limit, plus this.
    Room(Gauge, i64),
}

/// A limit of a policy or a plan.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    None,
    Zero,
    Small(u64),
    Max,
    /// The amount that is spent already, plus this.
    Spent(u64),
}

#[derive(Debug, Clone, Copy)]
pub struct Policy {
    pub enabled: bool,
    pub run: Limit,
    pub day: Limit,
    pub month: Limit,
}

#[derive(Debug, Clone, Copy)]
pub struct PlanLimits {
    pub keys: Option<u64>,
    pub rate: Option<u64>,
    pub agents: Option<u64>,
    pub tracked: Option<u64>,
}

/// The difference of the edge's cached view from the account.
#[derive(Debug, Clone, Copy)]
pub enum ViewDrift {
    None,
    OlderVersion,
    NewerVersion,
    NewerGeneration,
    OlderGeneration,
    OtherPlan,
}

impl ViewDrift {
    pub fn apply(self, view: &mut AccountView) {
        match self {
            Self::None => {}
            Self::OlderVersion => view.version -= 1,
            Self::NewerVersion => view.version += 1,
            Self::NewerGeneration => (view.generation, view.version) = (view.generation + 1, 0),
            Self::OlderGeneration => {
                (view.generation, view.version) = (view.generation - 1, view.version + 9)
            }
            Self::OtherPlan => view.plan = "another".to_owned(),
        }
    }
}

/// A call's id.
#[derive(Debug, Clone, Copy)]
pub enum Id {
    New,
    /// The id of an earlier call, with its agent and run: ids are never reused, but commands may arrive twice.
    Earlier(usize),
}

#[derive(Debug, Clone, Copy)]
pub struct CallOp {
    pub agent: usize,
    pub key: usize,
    pub run: Option<usize>,
    pub amount: Amount,
    pub id: Id,
    pub due_at_once: bool,
    pub drift: ViewDrift,
    pub probe: bool,
}

/// The estimate that an extension starts from.
#[derive(Debug, Clone, Copy)]
pub enum From {
    /// The hold's current estimate.
    Now,
    /// One below: repeats the extension to the current estimate.
    Repeated,
    /// Another estimate.
    Wrong,
}

/// The estimates that a settlement of a hold names.
#[derive(Debug, Clone, Copy)]
pub enum NamedEstimate {
    Current,
    /// The approved estimate, and the current one as that of an extension whose reply was lost.
    Either,
    /// The current estimate, and that of an extension that did not take place.
    NotExtended,
    Wrong,
}

/// The real cost of a call.
#[derive(Debug, Clone, Copy)]
pub enum Cost {
    Estimate,
    Zero,
    Off(i64),
    Max,
}

#[derive(Debug, Clone, Copy)]
pub enum Op {
    Call(CallOp),
    Extend {
        which: usize,
        by: Amount,
        from: From,
        drift: ViewDrift,
        due_at_once: bool,
    },
    Settle {
        which: usize,
        cost: Cost,
        named: NamedEstimate,
    },
    Void {
        which: usize,
    },
    VoidUnknown,
    Reap {
        which: usize,
    },
    Policy {
        agent: Option<usize>,
        policy: Option<Policy>,
    },
    Freeze {
        agent: usize,
        frozen: bool,
    },
    ProviderKey {
        agent: usize,
        present: bool,
    },
    Key {
        key: usize,
        active: bool,
    },
    Plan(usize),
    Generation,
    ForgetRun {
        agent: usize,
        run: usize,
    },
}

#[derive(Debug, Clone)]
pub struct Case {
    pub plans: [PlanLimits; 3],
    /// Earlier spending of the first agent today.
    pub before: u64,
    pub ops: Vec<Op>,
}

fn gauge() -> impl Strategy<Value = Gauge> {
    prop_oneof![
        Just(Gauge::Run),
        Just(Gauge::Day),
        Just(Gauge::Month),
        Just(Gauge::Tracked)
    ]
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        1 => Just(Amount::Zero),
        1 => Just(Amount::One),
        4 => (1_u64..20).prop_map(Amount::Small),
        1 => Just(Amount::Max),
        8 => (gauge(), -1_i64..=1).prop_map(|(gauge, off)| Amount::Room(gauge, off)),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        6 => Just(Limit::None),
        1 => Just(Limit::Zero),
        3 => (1_u64..60).prop_map(Limit::Small),
        1 => Just(Limit::Max),
        3 => (0_u64..20).prop_map(Limit::Spent),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let enabled = prop_oneof![9 => Just(true), 1 => Just(false)];
    (enabled, limit(), limit(), limit()).prop_map(|(enabled, run, day, month)| Policy {
        enabled,
        run,
        day,
        month,
    })
}

fn optional_limit(range: std::ops::Range<u64>) -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 2 => range.prop_map(Some)]
}

fn plan() -> impl Strategy<Value = PlanLimits> {
    (
        optional_limit(1..6),
        optional_limit(4..40),
        optional_limit(0..4),
        optional_limit(0..200),
    )
        .prop_map(|(keys, rate, agents, tracked)| PlanLimits {
            keys,
            rate,
            agents,
            tracked,
        })
}

fn view_drift() -> impl Strategy<Value = ViewDrift> {
    prop_oneof![
        20 => Just(ViewDrift::None),
        2 => Just(ViewDrift::OlderVersion),
        1 => Just(ViewDrift::NewerVersion),
        1 => Just(ViewDrift::NewerGeneration),
        1 => Just(ViewDrift::OlderGeneration),
        1 => Just(ViewDrift::OtherPlan),
    ]
}

fn id() -> impl Strategy<Value = Id> {
    prop_oneof![9 => Just(Id::New), 1 => any::<usize>().prop_map(Id::Earlier)]
}

fn call() -> impl Strategy<Value = Op> {
    let run = prop_oneof![1 => Just(None), 3 => (0_usize..2).prop_map(Some)];
    let who = (0_usize..3, 0_usize..4, run);
    let what = (
        amount(),
        id(),
        prop::bool::weighted(0.25),
        view_drift(),
        prop::bool::weighted(0.05),
    );
    (who, what).prop_map(|((agent, key, run), (amount, id, due_at_once, drift, probe))| {
        Op::Call(CallOp {
            agent,
            key,
            run,
            amount,
            id,
            due_at_once,
            drift,
            probe,
        })
    })
}

fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        2 => Just(Cost::Estimate),
        2 => Just(Cost::Zero),
        5 => (-20_i64..20).prop_map(Cost::Off),
        1 => Just(Cost::Max),
    ]
}

fn named_estimate() -> impl Strategy<Value = NamedEstimate> {
    prop_oneof![
        6 => Just(NamedEstimate::Current),
        2 => Just(NamedEstimate::Either),
        1 => Just(NamedEstimate::NotExtended),
        1 => Just(NamedEstimate::Wrong),
    ]
}

fn extend() -> impl Strategy<Value = Op> {
    let from = prop_oneof![8 => Just(From::Now), 1 => Just(From::Repeated), 1 => Just(From::Wrong)];
    let what = (
        any::<usize>(),
        amount(),
        from,
        view_drift(),
        prop::bool::weighted(0.25),
    );
    what.prop_map(|(which, by, from, drift, due_at_once)| Op::Extend {
        which,
        by,
        from,
        drift,
        due_at_once,
    })
}

fn op() -> impl Strategy<Value = Op> {
    let which = any::<usize>();
    prop_oneof![
        24 => call(),
        8 => (which, cost(), named_estimate()).prop_map(|(which, cost, named)| Op::Settle { which, cost, named }),
        8 => extend(),
        3 => any::<usize>().prop_map(|which| Op::Void { which }),
        1 => Just(Op::VoidUnknown),
        4 => any::<usize>().prop_map(|which| Op::Reap { which }),
        3 => (prop::option::of(0_usize..3), prop::option::weighted(0.85, policy()))
            .prop_map(|(agent, policy)| Op::Policy { agent, policy }),
        1 => (0_usize..3, prop::bool::weighted(0.4)).prop_map(|(agent, frozen)| Op::Freeze { agent, frozen }),
        1 => (0_usize..3, prop::bool::weighted(0.7)).prop_map(|(agent, present)| Op::ProviderKey { agent, present }),
        1 => (0_usize..4, prop::bool::weighted(0.6)).prop_map(|(key, active)| Op::Key { key, active }),
        1 => (0_usize..3).prop_map(Op::Plan),
        1 => Just(Op::Generation),
        1 => (0_usize..3, 0_usize..2).prop_map(|(agent, run)| Op::ForgetRun { agent, run }),
    ]
}

/// A case of up to `longest` actions.
pub fn case(longest: usize) -> impl Strategy<Value = Case> {
    let plans = [plan(), plan(), plan()];
    // At 2^53 doubles lose the last digit.
    let before = prop_oneof![3 => Just(0), 1 => ((1 << 53) - 20)..(1_u64 << 53) + 3];
    (plans, before, vec(op(), 1..longest)).prop_map(|(plans, before, ops)| Case { plans, before, ops })
}
