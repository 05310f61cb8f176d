//! `GET /thresholds`: limits of which 50, 80 or 95 % are used, before they deny anything.

mod doc;

pub(crate) use doc::section;

use crate::catch_up::catch_up;
use crate::state::{ApiState, Call};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;
use domain::threshold::{Threshold, Watched};
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Problem, Reply, operations};
use serde::Serialize;
use serde_json::value::RawValue;
use store::page::{Order, Page, PageRequest};
use store::server_clock;
use store::threshold::LimitUsage;
use utoipa::ToSchema;

operations! {
    /// Operations on thresholds.
    ROUTES: ApiState, Management;

    GET "/thresholds", key(Read, Viewer), Both, PerMinute, list, Query;
}

/// Usage of a limit.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Threshold)]
struct ThresholdView<'a> {
    /// The daily or monthly limit of an agent's policy, or the plan's limit of tracked USD per month.
    #[schema(value_type = is::WatchedLimit)]
    cap: &'static str,
    /// Null for the plan.
    #[schema(value_type = Option<is::AgentId>)]
    agent_id: Option<&'a str>,
    #[schema(example = "Research bot")]
    agent_name: Option<&'a str>,
    /// The highest threshold that was reached, in percent.
    #[schema(example = 95)]
    threshold: u64,
    /// Used share of the limit, in percent with one fraction digit, rounded down.
    #[schema(value_type = f64, example = 96.4)]
    percent: Box<RawValue>,
    spent_usd: Nanos,
    limit_usd: Nanos,
    #[schema(value_type = is::Time)]
    resets_at: String,
    /// Time at which a server first recorded that the threshold was reached in this period; null before that, and in
    /// test mode.
    #[schema(value_type = Option<is::Time>)]
    noticed_at: Option<String>,
}

/// A limit usage, and its key in the list.
struct KeyedUsage {
    usage: LimitUsage,
    key: String,
}

/// `GET /thresholds`
///
/// # Errors
/// 400, 429 while the account reads as many lists as it may, 503.
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&["threshold", "cap"])?;
    let thresholds = Threshold::ALL.map(Threshold::as_str);
    let threshold = query.value("threshold", thresholds, Threshold::parse)?;
    let threshold = threshold.unwrap_or(Threshold::Half);
    let watched = query.value("cap", Watched::ALL.map(Watched::as_str), Watched::parse)?;
    let paging = call.paging(&query, "thresholds")?;
    let (store, realm) = (&call.state.store, call.realm());
    let _permit = call.state.large_lists.acquire(&call.caller.account).await?;
    let sealed = catch_up(&call).await?;
    let at_ms = server_clock::now_ms(store).await?;
    let period = Period::at(at_ms);
    let (survey, mut all) = LimitUsage::read(store, &realm, period, tracked_limit(&call)?).await?;
    all.retain(|one| one.threshold >= threshold && watched.is_none_or(|watched| one.watched == watched));
    let part = page(all, paging.page())?;
    let noticed = LimitUsage::noticed_at(&part.records, store, &realm, period).await?;
    let rows = part.records.iter().zip(noticed);
    let views: Result<_, Problem> = rows.map(|(one, noticed)| view(one, noticed, at_ms)).collect();
    Reply::ok(
        &paging
            .listing_of(&part, views?)
            .partial(Some(survey.partial || !sealed)),
    )
}

/// Returns the limit of tracked USD per month of the account's plan, which applies to live mode.
///
/// # Errors
/// 503 if the plan is not in the table.
pub(crate) fn tracked_limit(call: &Call) -> Result<Option<Nanos>, Problem> {
    match call.caller.mode {
        Mode::Live => Ok(call.plan(&call.caller.plan)?.tracked_usd_per_month),
        Mode::Test => Ok(None),
    }
}

/// Formats the used share of a limit, such as `96.4`.
pub(crate) fn percent(usage: &LimitUsage) -> String {
    let permille = usage.permille();
    format!("{}.{}", permille / 10, permille % 10)
}

/// Returns a page of a list that is already sorted by share; the keys only need to have the same order.
fn page(all: Vec<LimitUsage>, page: PageRequest<'_>) -> Result<Page<LimitUsage>, Problem> {
    let rows = all.into_iter().map(|usage| KeyedUsage {
        key: format!(
            "{} {}",
            usage.agent.as_deref().unwrap_or_default(),
            usage.watched.as_str()
        ),
        usage,
    });
    let mut rows: Vec<KeyedUsage> = rows.collect();
    let key = |row: &KeyedUsage| row.usage.permille();
    rows.sort_by(|a, b| (key(b), &b.key).cmp(&(key(a), &a.key)));
    let mut part = page.of_all(rows, Order::Descending, |row| (row.usage.permille(), &row.key))?;
    let rows = std::mem::take(&mut part.records);
    Ok(part.with(rows.into_iter().map(|row| row.usage).collect()))
}

fn view(usage: &LimitUsage, noticed_ms: Option<u64>, at_ms: u64) -> Result<ThresholdView<'_>, Problem> {
    let resets_ms = usage.watched.reset().after(at_ms).unwrap_or(at_ms);
    let percent = RawValue::from_string(percent(usage));
    Ok(ThresholdView {
        cap: usage.watched.as_str(),
        agent_id: usage.agent.as_deref(),
        agent_name: usage.name.as_deref(),
        threshold: usage.threshold.percent(),
        percent: percent.map_err(|_| endpoint::Code::Internal)?,
        spent_usd: usage.spent,
        limit_usd: usage.limit,
        resets_at: iso_from_ms(resets_ms),
        noticed_at: noticed_ms.map(iso_from_ms),
    })
}
