//! Matters of an account that need attention: frozen agents, spends to approve, failing webhooks, kept holds, limits
//! that are nearly reached, low balances.

use crate::state::Call;
use crate::threshold::percent;
use domain::check::{amount_in, usd};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;
use domain::printable::is_direction_mark;
use domain::threshold::{Threshold, Watched};
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::problem::Problem;
use futures::future::try_join_all;
use serde::Serialize;
use store::agent::survey::{AgentSummary, Survey};
use store::call::{kept_holds, unsettled_holds};
use store::intent::{IntentRecord, IntentTexts};
use store::keys::USER;
use store::page::PageRequest;
use store::threshold::LimitUsage;
use store::wallet::Wallet;
use store::webhook::delivery::{Deliveries, Delivery, DeliveryState};
use store::webhook::{WebhookRecord, WebhookStatus};
use url::Url;
use utoipa::ToSchema;

/// Maximum number of items shown.
const SHOWN_MAX: usize = 50;
/// Number of items of each kind that are always shown.
const EACH: usize = 8;
/// Kinds of things.
const KINDS: usize = 6;
const _: () = assert!(KINDS * EACH <= SHOWN_MAX, "each kind has its part");
/// Number of newest deliveries of a webhook that determine whether it is failing.
const DELIVERIES: u64 = 50;
/// Maximum number of characters of a webhook's description in a sentence.
const DESCRIPTION_SHOWN: usize = 60;

/// A matter that needs a person, with the record that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AttentionItem)]
pub(super) struct AttentionItem {
    #[schema(value_type = is::AttentionKind)]
    kind: &'static str,
    /// Id of the agent, intent, webhook, decision or wallet, or name of the account's plan.
    #[schema(example = "research-bot")]
    id: String,
    #[schema(value_type = Option<is::AgentId>)]
    agent_id: Option<String>,
    /// Description for people.
    #[schema(example = "The agent is frozen.")]
    text: String,
    #[schema(value_type = Option<is::Time>)]
    since: Option<String>,
}

/// Reads of the overview that its list of open matters uses again.
pub(super) struct OverviewReads<'a> {
    pub(super) survey: &'a Survey,
    pub(super) frozen: &'a [&'a AgentSummary],
    /// The low-balance threshold of the account-wide policies.
    pub(super) low_balance: Option<Nanos>,
    /// Limits with a reached threshold, the highest share first.
    pub(super) usages: Vec<LimitUsage>,
    pub(super) period: Period,
}

/// Items of one kind: the newest ones, and their total number.
#[derive(Debug, Default)]
struct ItemsOfKind {
    items: Vec<AttentionItem>,
    total: u64,
}

impl ItemsOfKind {
    fn new(items: Vec<AttentionItem>) -> Self {
        let total = items.len() as u64;
        Self { items, total }
    }
}

/// Returns the items to show, and their total number.
///
/// # Errors
/// 503.
pub(super) async fn items(
    call: &Call,
    reads: OverviewReads<'_>,
) -> Result<(Vec<AttentionItem>, u64), Problem> {
    let kinds = [
        frozen_agents(reads.survey, reads.frozen),
        approvals(call).await?,
        failing_webhooks(call).await?,
        kept_holds(call).await?,
        near_limits(call, reads.usages, reads.period).await?,
        low_balances(call, reads.survey, reads.low_balance).await?,
    ];
    let total = kinds.iter().map(|found| found.total).sum();
    Ok((chosen(kinds.map(|found| found.items)), total))
}

/// Chooses at most [`SHOWN_MAX`] items: first [`EACH`] of every kind, then further ones kind by kind.
fn chosen(kinds: [Vec<AttentionItem>; KINDS]) -> Vec<AttentionItem> {
    let mut room = SHOWN_MAX - kinds.iter().map(|items| items.len().min(EACH)).sum::<usize>();
    let mut all = Vec::new();
    for items in kinds {
        let more = items.len().saturating_sub(EACH).min(room);
        room -= more;
        all.extend(items.into_iter().take(EACH + more));
    }
    all
}

fn frozen_agents(survey: &Survey, frozen: &[&AgentSummary]) -> ItemsOfKind {
    let mut frozen: Vec<_> = frozen
        .iter()
        .map(|agent| (survey.frozen_since.get(&agent.id).copied(), agent))
        .collect();
    frozen.sort_by(|(a, _), (b, _)| b.cmp(a));
    let items = frozen.into_iter().map(|(since, agent)| AttentionItem {
        kind: "frozen_agent",
        id: agent.id.clone(),
        agent_id: Some(agent.id.clone()),
        text: match agent.frozen.as_deref() {
            Some("operator") => "Frozen by the operator, who alone can unfreeze it.".to_owned(),
            _ => "Frozen: its calls and spends are denied.".to_owned(),
        },
        since: since.map(iso_from_ms),
    });
    ItemsOfKind::new(items.collect())
}

async fn approvals(call: &Call) -> Result<ItemsOfKind, Problem> {
    let page = PageRequest::at(0, SHOWN_MAX);
    let realm = call.realm();
    let waiting = IntentRecord::waiting(&call.state.store, &realm, page, IntentTexts::Without).await?;
    let total = waiting.total;
    let items = waiting.records.into_iter().map(|intent| AttentionItem {
        kind: "approval_waiting",
        text: format!(
            "A spend of {} waits for approval.",
            amount_in(&intent.currency, intent.amount.get())
        ),
        id: intent.id,
        agent_id: Some(intent.agent),
        since: Some(iso_from_ms(intent.at_ms)),
    });
    Ok(ItemsOfKind {
        items: items.collect(),
        total,
    })
}

async fn failing_webhooks(call: &Call) -> Result<ItemsOfKind, Problem> {
    let (store, realm) = (&call.state.store, call.realm());
    let mut active = WebhookRecord::all(store, &realm).await?;
    active.retain(|webhook| webhook.status == WebhookStatus::Active);
    // An account has few webhooks, so their deliveries are read concurrently.
    let newest = active.iter().map(|webhook| {
        let deliveries = Deliveries {
            realm: &realm,
            webhook: &webhook.id,
        };
        deliveries.newest(store, DELIVERIES)
    });
    let newest = try_join_all(newest).await?;
    let mut items = Vec::new();
    for (webhook, newest) in active.into_iter().zip(newest) {
        let given_up = newest.iter().filter(|delivery| is_given_up(delivery));
        let retried = newest.iter().filter(|delivery| is_retried(delivery));
        let (given_up, retried) = (given_up.count(), retried.count());
        if given_up + retried == 0 {
            continue;
        }
        let first = newest
            .iter()
            .rfind(|delivery| is_given_up(delivery) || is_retried(delivery));
        items.push(AttentionItem {
            kind: "failing_webhook",
            text: failing(&name(&webhook), newest.len(), given_up, retried),
            id: webhook.id,
            agent_id: None,
            since: first.map(|delivery| iso_from_ms(delivery.created_at_ms)),
        });
    }
    Ok(ItemsOfKind::new(items))
}

/// Returns the sentence about the number of the newest deliveries of the webhook `name` that failed, finally or
/// temporarily. At least one has failed.
fn failing(name: &str, newest: usize, given_up: usize, retried: usize) -> String {
    let last = match newest {
        1 => "its last delivery".to_owned(),
        all if all == given_up + retried => format!("all of its last {all} deliveries"),
        all => format!("{} of its last {all} deliveries", given_up + retried),
    };
    match (given_up, retried) {
        (_, 0) => format!("{name}: {last} failed for good."),
        (0, _) => format!("{name}: {last} failed and will be tried again."),
        _ => format!("{name}: {last} failed, {given_up} for good; {retried} will be tried again."),
    }
}

/// Returns a webhook's description, shortened, and the host and port of its URL. The path may contain a secret of the
/// receiver.
fn name(webhook: &WebhookRecord) -> String {
    let url = Url::parse(&webhook.url).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    let host = match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => webhook.id.clone(),
    };
    let description = webhook.description.as_deref().unwrap_or_default();
    // Marks of direction would turn the rest of the sentence.
    let mut readable = description.chars().filter(|c| !is_direction_mark(*c));
    let mut shown: String = readable.by_ref().take(DESCRIPTION_SHOWN).collect();
    if readable.next().is_some() {
        shown.push('…');
    }
    match shown.trim() {
        "" => host,
        shown => format!("{shown} ({host})"),
    }
}

fn is_given_up(delivery: &Delivery) -> bool {
    matches!(delivery.state, DeliveryState::Failed | DeliveryState::Refused)
}

fn is_retried(delivery: &Delivery) -> bool {
    delivery.state == DeliveryState::Pending && delivery.attempts_of_turn() > 0
}

async fn kept_holds(call: &Call) -> Result<ItemsOfKind, Problem> {
    if call.caller.mode == Mode::Test {
        return Ok(ItemsOfKind::default()); // calls exist only in live mode
    }
    let kept = kept_holds::newest(&call.state.store, &call.keys(), SHOWN_MAX).await?;
    let items = kept.newest.into_iter().map(|unsettled_holds::HoldWithState { hold, at_ms, .. }| AttentionItem {
        kind: "kept_hold",
        id: hold.name.allow_id,
        agent_id: Some(hold.name.agent),
        text: format!(
            "A call that nobody settled: its estimate of {} stays charged unless the operator corrects it.",
            usd(hold.estimate.get())
        ),
        since: Some(iso_from_ms(at_ms)),
    });
    Ok(ItemsOfKind {
        items: items.collect(),
        total: kept.total,
    })
}

/// Finds agents, and the account itself, that have used at least [`Threshold::Most`] of a limit.
async fn near_limits(
    call: &Call,
    mut usages: Vec<LimitUsage>,
    period: Period,
) -> Result<ItemsOfKind, Problem> {
    usages.retain(|usage| usage.threshold >= Threshold::Most);
    let total = usages.len() as u64;
    usages.truncate(SHOWN_MAX);
    let (store, realm) = (&call.state.store, call.realm());
    let noticed = LimitUsage::noticed_at(&usages, store, &realm, period).await?;
    let items = usages
        .into_iter()
        .zip(noticed)
        .map(|(usage, noticed_ms)| AttentionItem {
            kind: "near_limit",
            text: near_limit(&usage),
            id: usage.agent.clone().unwrap_or_else(|| call.caller.plan.clone()),
            agent_id: usage.agent,
            since: noticed_ms.map(iso_from_ms),
        });
    Ok(ItemsOfKind {
        items: items.collect(),
        total,
    })
}

fn near_limit(usage: &LimitUsage) -> String {
    let percent = percent(usage);
    let [spent, limit] = [usage.spent, usage.limit].map(|amount| usd(amount.get()));
    match usage.watched {
        Watched::Day => format!("Spent {percent} % of its daily limit: {spent} of {limit}."),
        Watched::Month => format!("Spent {percent} % of its monthly limit: {spent} of {limit}."),
        Watched::Spend => format!("Spent {percent} % of its spend limit of the day: {spent} of {limit}."),
        Watched::Plan => {
            format!(
                "The account has spent {percent} % of what its plan tracks in a month: {spent} of {limit}."
            )
        }
    }
}

async fn low_balances(
    call: &Call,
    survey: &Survey,
    threshold: Option<Nanos>,
) -> Result<ItemsOfKind, Problem> {
    let mut low: Vec<(Nanos, AttentionItem)> = Vec::new();
    let mut add = |wallet: &str, agent: Option<&str>, balance: Nanos, threshold: Option<Nanos>| {
        let Some(threshold) = threshold.filter(|threshold| balance < *threshold) else {
            return;
        };
        let item = AttentionItem {
            kind: "low_balance",
            id: wallet.to_owned(),
            agent_id: agent.map(str::to_owned),
            text: format!(
                "The wallet holds {}, less than the threshold of {}.",
                usd(balance.get()),
                usd(threshold.get())
            ),
            since: None,
        };
        low.push((balance, item));
    };
    for agent in &survey.agents {
        if let Some(wallet) = &agent.wallet {
            let threshold = agent.own_threshold.unwrap_or(threshold);
            add(wallet, Some(&agent.id), agent.balance, threshold);
        }
    }
    let realm = call.realm();
    if threshold.is_some()
        && let Some(wallet) = Wallet::find_by_owner(&call.state.store, &realm, USER).await?
    {
        add(&wallet.id, None, wallet.balance, threshold);
    }
    low.sort_by_key(|(balance, _)| *balance);
    Ok(ItemsOfKind::new(low.into_iter().map(|(_, item)| item).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(kind: &'static str, count: usize) -> Vec<AttentionItem> {
        let item = |n: usize| AttentionItem {
            kind,
            id: n.to_string(),
            agent_id: None,
            text: String::new(),
            since: None,
        };
        (0..count).map(item).collect()
    }

    fn webhook(url: &str, description: Option<&str>) -> WebhookRecord {
        WebhookRecord {
            id: "wh_1".to_owned(),
            url: url.to_owned(),
            events: Vec::new(),
            description: description.map(str::to_owned),
            status: WebhookStatus::Active,
            since: 0,
            created_at_ms: 0,
            updated_at_ms: 0,
            secret_at_ms: 0,
        }
    }

    #[test]
    fn a_failing_webhook_is_named() {
        let local = webhook("http://127.0.0.1:44971/secret?token=1", Some("Pager"));
        assert_eq!(
            failing(&name(&local), 17, 17, 0),
            "Pager (127.0.0.1:44971): all of its last 17 deliveries failed for good."
        );
        let bare = webhook("https://hooks.example/secret", None);
        assert_eq!(
            failing(&name(&bare), 1, 0, 1),
            "hooks.example: its last delivery failed and will be tried again."
        );
        assert_eq!(
            failing(&name(&bare), 5, 1, 2),
            "hooks.example: 3 of its last 5 deliveries failed, 1 for good; 2 will be tried again."
        );
        let turned = webhook("https://a.example/", Some("\u{202e}evil\u{202c} "));
        assert_eq!(name(&turned), "evil (a.example)");
        let long = webhook("https://a.example/", Some(&"x".repeat(61)));
        assert_eq!(name(&long), format!("{}… (a.example)", "x".repeat(60)));
        assert_eq!(name(&webhook("nonsense", Some(" "))), "wh_1");
    }

    #[test]
    fn no_kind_hides_the_others_and_no_room_is_wasted() {
        let of = |counts: [usize; KINDS]| {
            let kinds = ["a", "b", "c", "d", "e", "f"];
            let mut at = 0;
            let all = chosen(counts.map(|count| {
                at += 1;
                items(kinds[at - 1], count)
            }));
            kinds.map(|kind| all.iter().filter(|item| item.kind == kind).count())
        };
        assert_eq!(of([100; KINDS]), [10, 8, 8, 8, 8, 8]);
        assert_eq!(of([0, 100, 0, 3, 2, 0]), [0, 45, 0, 3, 2, 0]);
        assert_eq!(of([12, 0, 0, 0, 0, 200]), [12, 0, 0, 0, 0, 38]);
        assert_eq!(of([1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6]);
    }
}
