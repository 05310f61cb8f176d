//! Every pair of failing conditions of `authorize`: the reply gives the first one in the documented order.

use crate::fixture::{ACCOUNT, Checked, Fixture, KEYS, open_cap, usd, within_one_day};
use crate::model::{Charge, ChargeState, NO_CHECKS};
use crate::scripts::{Scripts, Texts};
use crate::snapshot::Window;
use domain::cap::CapPolicy;
use domain::denial::Denial;
use domain::period::Period;
use harness::Redis;

/// Reasons against a call, in the order of decision D29, specification §4.4 and the list of denials.
const ORDER: [&str; 14] = [
    "lost_writes",
    "revoked",
    "other_plan",
    "plan_key_limit",
    "rate_limited",
    "no_provider_key",
    "frozen",
    "cap_disabled",
    "per_run_limit",
    "daily_limit",
    "monthly_limit",
    "plan_agent_limit",
    "plan_limit",
    "known",
];

const ESTIMATE: u64 = 10;
/// Earlier spend of another agent, which counts against the account's limits.
const OTHERS: u64 = 7;

/// Arranges the failing conditions, calls, and compares answer and store with the model.
async fn combination(scripts: &Scripts, period: Period, failing: u32) -> Checked {
    let fails = |name: &str| {
        ORDER
            .iter()
            .position(|word| *word == name)
            .is_some_and(|at| failing & (1 << at) != 0)
    };
    let mut fixture = Fixture::new(scripts, period);
    let limit = |name: &str, enough: u64| Some(usd(if fails(name) { enough - 1 } else { enough }));
    let mut call = fixture.call_in("r", ESTIMATE);
    arrange(&mut fixture, &call.name.allow_id, fails);
    let agent = fixture.model.agents.entry("a".to_owned()).or_default();
    agent.frozen = fails("frozen");
    agent.no_provider_key = fails("no_provider_key");
    agent.cap = Some(CapPolicy {
        enabled: !fails("cap_disabled"),
        per_run: limit("per_run_limit", ESTIMATE),
        daily: limit("daily_limit", ESTIMATE),
        monthly: limit("monthly_limit", ESTIMATE),
    });
    call.view.version = fixture.model.version + u64::from(fails("lost_writes"));
    if fails("other_plan") {
        call.view.plan = "p1".to_owned();
    }
    KEYS[1].clone_into(&mut call.key_id);
    call.plan.active_virtual_keys = Some(if fails("plan_key_limit") { 1 } else { 2 });
    call.plan.proxy_requests_per_minute = Some(if fails("rate_limited") { 3 } else { 4 });
    call.plan.cap_agents_per_month = Some(if fails("plan_agent_limit") { 1 } else { 2 });
    call.plan.tracked_usd_per_month = limit("plan_limit", ESTIMATE + OTHERS);
    fixture.install().await?;
    fixture.authorize(&call).await
}

/// Arranges the state outside the agent: keys, rate, another agent's charge, a hold with the call's own id.
fn arrange(fixture: &mut Fixture<'_>, id: &str, fails: impl Fn(&str) -> bool) {
    let now = Window::at(clock::now_ms());
    let period = fixture.model.period;
    let (id, state) = if fails("known") {
        (
            id,
            ChargeState::Open {
                due: now.later(60_000),
            },
        )
    } else {
        ("allow_other", ChargeState::Settled)
    };
    fixture.model.charges.push(Charge {
        id: id.to_owned(),
        agent: "b".to_owned(),
        run: "other".to_owned(),
        named: false,
        key_id: KEYS[0].to_owned(),
        period,
        estimate: OTHERS,
        checks: NO_CHECKS.to_owned(),
        amount: i128::from(OTHERS),
        state,
    });
    fixture.model.keys.entry(KEYS[1].to_owned()).or_default().rate = Some((3, now));
    if fails("revoked") {
        fixture.model.active.remove(1);
    }
    fixture.model.policy = Some(open_cap());
    debug_assert_eq!(fixture.model.account, ACCOUNT);
}

/// Every condition alone and every pair, with a comparison of the whole store after each.
pub async fn pairs(scripts: &Scripts) -> Checked {
    for first in 0..ORDER.len() {
        for second in first..ORDER.len() {
            within_one_day(&scripts.store, async |period| {
                combination(scripts, period, 1 << first | 1 << second).await
            })
            .await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_first_failing_condition_answers() {
    let redis = Redis::start();
    let scripts = Texts::real().build(&redis.store());
    pairs(&scripts).await.unwrap();
}

#[test]
fn the_order_here_is_the_order_of_the_denials() {
    let denials: Vec<Denial> = ORDER
        .iter()
        .filter_map(|word| Denial::from_reason(word))
        .collect();
    assert!(denials.is_sorted(), "{denials:?}");
    assert_eq!(
        denials.len() + 1,
        Denial::ALL.len(),
        "all but `service_unavailable`, which no script answers"
    );
}
