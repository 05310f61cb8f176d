//! `/account`: the plan of the account, its limits and their usage, and the change to another plan.

mod doc;

pub(crate) use doc::section;

use crate::state::{ApiState, Call};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;
use domain::plan::{Plan, Plans};
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, Problem, Reply, operations};
use serde::Serialize;
use store::account::Account;
use store::account::counters::AccountCounters;
use store::account::script::{PlanMove, PlanSet, move_plan};
use store::api_key::ApiKey;
use store::server_clock;
use utoipa::ToSchema;

operations! {
    /// Operations on the account.
    ROUTES: ApiState, Management;

    GET  "/account",      key(Read, Viewer), Both, PerMinute, get;
    POST "/account/plan", session(Owner),    Both, Uncounted, choose_plan, AlwaysAllowed;
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AccountStanding)]
struct AccountStanding<'a> {
    success: bool,
    account: AccountFacts<'a>,
    limits: PlanLimitsView,
    usage: PlanUsageView,
    features: Features,
    /// The next plan up; null on the largest.
    #[schema(example = "startup")]
    upgrade_to: Option<&'a str>,
    /// Page on which an owner upgrades.
    #[schema(example = "https://tollgate.example/plan?to=startup")]
    upgrade_url: Option<String>,
    /// False if only the operator moves the account to a larger plan; an owner moves it to a smaller one.
    self_service_plans: bool,
    /// Every plan, the smallest first.
    plans: Vec<PlanView<'a>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AccountFacts)]
struct AccountFacts<'a> {
    #[schema(value_type = is::AccountId)]
    id: &'a str,
    #[schema(example = "Acme")]
    name: &'a str,
    #[schema(example = "builder")]
    plan: &'a str,
    #[schema(value_type = is::Time)]
    created_at: String,
}

/// Limits of a plan; null is unlimited.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PlanLimits)]
struct PlanLimitsView {
    #[schema(example = 10)]
    active_virtual_keys: Option<u64>,
    /// Of each virtual key.
    #[schema(example = 120)]
    proxy_requests_per_minute: Option<u64>,
    /// Agents that may spend in a UTC month.
    #[schema(example = 10)]
    cap_agents_per_month: Option<u64>,
    /// USD of all agents in a UTC month.
    tracked_usd_per_month: Option<Nanos>,
    #[schema(example = 50)]
    custom_agents: Option<u64>,
    #[schema(example = 1000)]
    wallet_requests_per_minute: Option<u64>,
    #[schema(example = 1000)]
    agent_requests_per_day: Option<u64>,
    #[schema(example = 1000)]
    management_requests_per_minute: Option<u64>,
}

/// Usage of the limits. Except for webhooks it is that of live mode, which alone counts against a plan.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PlanUsage)]
struct PlanUsageView {
    #[schema(example = 3)]
    active_virtual_keys: u64,
    #[schema(example = 2)]
    cap_agents_this_month: u64,
    tracked_usd_this_month: Nanos,
    #[schema(example = 4)]
    custom_agents: u64,
    #[schema(example = 1)]
    webhooks: u64,
    #[schema(example = 2)]
    users: u64,
    /// Keys that work.
    #[schema(example = 2)]
    api_keys: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PlanFeatures)]
struct Features {
    /// True if webhooks can be managed in the dashboard; API keys always can.
    webhooks_in_dashboard: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Plan)]
struct PlanView<'a> {
    #[schema(example = "builder")]
    name: &'a str,
    limits: PlanLimitsView,
    features: Features,
    /// True for the account's plan.
    current: bool,
}

impl PlanLimitsView {
    const fn new(plan: &Plan) -> Self {
        Self {
            active_virtual_keys: plan.active_virtual_keys,
            proxy_requests_per_minute: plan.proxy_requests_per_minute,
            cap_agents_per_month: plan.cap_agents_per_month,
            tracked_usd_per_month: plan.tracked_usd_per_month,
            custom_agents: plan.custom_agents,
            wallet_requests_per_minute: plan.wallet_requests_per_minute,
            agent_requests_per_day: plan.agent_requests_per_day,
            management_requests_per_minute: plan.management_requests_per_minute,
        }
    }
}

impl Features {
    const fn new(plan: &Plan) -> Self {
        Self {
            webhooks_in_dashboard: plan.webhooks_in_dashboard,
        }
    }
}

/// `GET /account`
pub async fn get(call: Call) -> Answer {
    show(&call).await
}

/// `POST /account/plan`
///
/// # Errors
/// 400; 403 `PLAN_BY_OPERATOR` if only the operator changes plans; 503.
pub async fn choose_plan(call: Call) -> Answer {
    let body = call.body()?.only(&["plan"])?;
    let plan = body.string("plan")?.required("plan")?;
    let plans = call.admission.plans.load_full();
    if plans.get(&plan).is_none() {
        let names: Vec<&str> = plans.by_rank();
        return Err(Problem::validation(format!(
            "plan must be one of {}.",
            names.join(", ")
        )));
    }
    let (store, caller) = (&call.state.store, &call.caller);
    for _ in 0..MOVE_ATTEMPTS {
        // The operator may change the plan meanwhile: the change must start from the plan that was checked.
        let account = Account::read(store, &caller.account).await?;
        let current = account.ok_or(Code::ServiceUnavailable)?.plan;
        if !call.state.self_service_plans && !is_no_move_up(&plans, &current, &plan) {
            return Err(Code::PlanByOperator.into());
        }
        let plans = PlanMove {
            from: &current,
            to: &plan,
        };
        match move_plan(store, &caller.account, plans, &caller.actor).await? {
            Some(PlanSet::Done | PlanSet::AlreadySo) => return show(&call).await,
            Some(PlanSet::NoAccount) => break,
            None => {}
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// Attempts of a move, while others move the account.
const MOVE_ATTEMPTS: usize = 8;

/// The plan to which any account can be moved.
const FREE: &str = "free";

/// Compares two plans by rank: true if `wanted` is not above `current`. If the file no longer contains `current`, only
/// [`FREE`] counts as not above it.
fn is_no_move_up(plans: &Plans, current: &str, wanted: &str) -> bool {
    let ranked = plans.by_rank();
    let rank = |name: &str| ranked.iter().position(|known| *known == name);
    wanted == FREE || matches!((rank(current), rank(wanted)), (Some(before), Some(after)) if after <= before)
}

/// Answers with the current state of the account.
async fn show(call: &Call) -> Answer {
    let (store, keys) = (&call.state.store, call.keys());
    let account = Account::read(store, &call.caller.account).await?;
    let account = account.ok_or(Code::ServiceUnavailable)?;
    let plans = call.admission.plans.load_full();
    let plan = call.plan(&account.plan)?;
    Reply::ok(&AccountStanding {
        success: true,
        account: AccountFacts {
            id: &account.id,
            name: &account.name,
            plan: &account.plan,
            created_at: iso_from_ms(account.created_at_ms),
        },
        limits: PlanLimitsView::new(&plan),
        usage: usage(call, &keys).await?,
        features: Features::new(&plan),
        upgrade_to: plan.upgrade_to.as_deref(),
        upgrade_url: call.upgrade_url(&plan),
        self_service_plans: call.state.self_service_plans,
        plans: all(&plans, &account.plan),
    })
}

async fn usage(call: &Call, keys: &store::keys::AccountKeys) -> Result<PlanUsageView, Problem> {
    let (store, mode) = (&call.state.store, call.caller.mode);
    let now_ms = server_clock::now_ms(store).await?;
    let period = Period::at(now_ms);
    let live = AccountCounters::read(store, &keys.live(), period).await?;
    let webhooks = match mode {
        Mode::Live => live.webhooks,
        Mode::Test => {
            AccountCounters::read(store, &call.realm(), period)
                .await?
                .webhooks
        }
    };
    Ok(PlanUsageView {
        active_virtual_keys: live.active_keys,
        cap_agents_this_month: live.cap_agents,
        tracked_usd_this_month: live.tracked,
        custom_agents: live.custom_agents,
        webhooks,
        users: live.users,
        api_keys: ApiKey::count_active(store, keys, now_ms).await?,
    })
}

fn all<'a>(plans: &'a Plans, current: &str) -> Vec<PlanView<'a>> {
    let named = plans
        .by_rank()
        .into_iter()
        .filter_map(|name| Some((name, plans.get(name)?)));
    let views = named.map(|(name, plan)| PlanView {
        name,
        limits: PlanLimitsView::new(plan),
        features: Features::new(plan),
        current: name == current,
    });
    views.collect()
}
