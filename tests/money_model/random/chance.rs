//! Probabilities of the random operations.

use super::op::{Amount, Case, Gauge, Key, Limit, Op, Policy};
use proptest::collection::vec;
use proptest::prelude::*;

fn gauge() -> impl Strategy<Value = Gauge> {
    prop_oneof![
        Just(Gauge::Transaction),
        Just(Gauge::Run),
        Just(Gauge::Day),
        Just(Gauge::Month),
        Just(Gauge::Tracked),
        Just(Gauge::Wallet),
        Just(Gauge::Threshold),
    ]
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        1 => Just(Amount::One),
        6 => (1_u64..30).prop_map(Amount::Small),
        1 => Just(Amount::Max),
        6 => prop_oneof![2 => Just(0), 1 => Just(1), 1 => Just(-1)].prop_map(Amount::Balance),
        1 => (-1_i64..=1).prop_map(Amount::Ceiling),
    ]
}

fn spend_amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        1 => amount(),
        1 => (gauge(), -1_i64..=1).prop_map(|(gauge, off)| Amount::Room(gauge, off)),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        8 => Just(Limit::None),
        1 => Just(Limit::Zero),
        3 => (1_u64..60).prop_map(Limit::Small),
        1 => Just(Limit::Max),
        3 => (0_u64..20).prop_map(Limit::Spent),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let enabled = prop::bool::weighted(0.9);
    let limits = (limit(), limit(), limit(), limit(), limit(), limit());
    (enabled, limits).prop_map(|(enabled, (run, day, month, txn, approval, low))| Policy {
        enabled,
        run,
        day,
        month,
        txn,
        approval,
        low,
    })
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![12 => Just(Key::New), 1 => any::<usize>().prop_map(Key::Earlier)]
}

fn moving() -> impl Strategy<Value = Op> {
    let which = any::<usize>;
    let often = || prop::bool::weighted(0.8);
    let rarely = || prop::bool::weighted(0.2);
    let run = prop_oneof![1 => Just(None), 1 => (0_usize..2).prop_map(Some)];
    let spend = (
        0_usize..4,
        any::<usize>(),
        spend_amount(),
        run,
        key(),
        prop::bool::weighted(0.05),
        any::<bool>(),
        prop::bool::weighted(0.05),
    );
    let spend = spend.prop_map(
        |(at, agent, amount, run, key, other_plan, has_text, injection)| Op::Spend {
            at,
            agent,
            amount,
            run,
            key,
            other_plan,
            has_text,
            injection,
        },
    );
    let transfer = (which(), which(), amount(), key(), often(), rarely(), often());
    let transfer = transfer.prop_map(
        |(from, to, amount, key, keyed, crash, sees_closed)| Op::Transfer {
            from,
            to,
            amount,
            key,
            keyed,
            crash,
            sees_closed,
        },
    );
    let again = prop::option::weighted(0.15, which());
    let deposit = (which(), amount(), key(), often(), any::<bool>(), again, often());
    let deposit = deposit.prop_map(
        |(to, amount, key, keyed, pending, again, sees_closed)| Op::Deposit {
            to,
            amount,
            key,
            keyed,
            pending,
            again,
            sees_closed,
        },
    );
    prop_oneof![
        6 => spend,
        3 => (which(), often(), prop::bool::weighted(0.1))
            .prop_map(|(which, grant, stale)| Op::Resolve { which, grant, stale }),
        5 => transfer,
        3 => deposit,
        2 => (which(), key(), any::<bool>()).prop_map(|(which, key, keyed)| Op::Confirm { which, key, keyed }),
        1 => which().prop_map(|which| Op::Cancel { which }),
    ]
}

fn escrows() -> impl Strategy<Value = Op> {
    let which = any::<usize>;
    let rarely = || prop::bool::weighted(0.2);
    let create = (which(), which(), amount(), key(), prop::bool::weighted(0.8));
    prop_oneof![
        2 => create.prop_map(|(from, to, amount, key, sees_closed)| Op::Escrow { from, to, amount, key, sees_closed }),
        4 => (which(), key()).prop_map(|(which, key)| Op::Fund { which, key }),
        6 => (which(), any::<bool>(), prop::bool::weighted(0.4), key(), rarely())
            .prop_map(|(which, by_payee, dispute, key, crash)| Op::Decide { which, by_payee, dispute, key, crash }),
        2 => (which(), any::<bool>(), rarely()).prop_map(|(which, refund, crash)| Op::End { which, refund, crash }),
        2 => (which(), prop::bool::weighted(0.3)).prop_map(|(which, half)| Op::Deliver { which, half }),
        2 => (which(), rarely()).prop_map(|(which, crash)| Op::Again { which, crash }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let at = || 0_usize..4;
    let agent = || 0_usize..3;
    prop_oneof![
        30 => moving(),
        30 => escrows(),
        1 => at().prop_map(|at| Op::OpenUser { at }),
        2 => (at(), agent(), prop::bool::weighted(0.3), prop::bool::weighted(0.6))
            .prop_map(|(at, agent, operator, lift)| Op::Freeze { at, agent, operator, lift }),
        1 => (at(), agent(), prop::option::weighted(0.2, 0_u64..4))
            .prop_map(|(at, agent, most)| Op::NewAgent { at, agent, most }),
        3 => (at(), any::<usize>()).prop_map(|(at, agent)| Op::Delete { at, agent }),
        2 => (at(), prop::option::weighted(0.8, agent()), policy())
            .prop_map(|(at, agent, policy)| Op::Policy { at, agent, policy }),
        1 => (at(), any::<usize>()).prop_map(|(at, which)| Op::DropPolicy { at, which }),
    ]
}

fn plan() -> impl Strategy<Value = (Option<u64>, Option<u64>)> {
    (
        prop::option::weighted(0.3, 0_u64..4),
        prop::option::weighted(0.3, 0_u64..200),
    )
}

/// A case of up to `longest` actions.
pub fn case(longest: usize) -> impl Strategy<Value = Case> {
    let rich = prop::option::weighted(0.2, any::<usize>());
    let spent = prop::option::weighted(0.1, 0_usize..12);
    let spend_limit = prop::option::weighted(0.3, 0_u64..60);
    let threshold = prop::option::weighted(0.5, 0_u64..20);
    let start = (
        [plan(), plan()],
        rich,
        spent,
        spend_limit,
        threshold,
        any::<bool>(),
    );
    (start, vec(op(), 1..longest)).prop_map(|((plans, rich, spent, spend_limit, threshold, third), ops)| {
        Case {
            plans,
            rich,
            spent,
            spend_limit,
            threshold,
            third,
            ops,
        }
    })
}
