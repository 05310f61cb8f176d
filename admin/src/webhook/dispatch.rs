//! The dispatcher: walks the sealed entries of an account behind its cursor and makes the deliveries of their events, each
//! once (decision D43). It runs whenever the account was sealed, on any server; of several that try, one succeeds.

use crate::serve::App;
use crate::trail::Trail;
use serde_json::Value;
use shared::domain::entry::{Entry, Sealed};
use shared::domain::event::{self, Event, EventName};
use shared::domain::mode::Mode;
use shared::store::StoreError;
use shared::store::keys::AccountKeys;
use shared::store::script::webhook::Endpoint;
use shared::store::script::webhook::dispatch::{Batch, Cursor, Dispatch, Dispatched};
use shared::store::webhook::{Status, WebhookRecord};

/// Rows of entries that one call dispatches at most; the rest has its turn in the next round.
const ROWS_MAX: usize = 5;
/// Deliveries made in one step, unless a single entry makes more.
const DELIVERIES_MAX: usize = 400;

/// Dispatches what is sealed of an account and mode; returns how many events there were.
///
/// # Errors
/// [`StoreError`]; the cursor says how far it came.
pub async fn dispatch(app: &App, account: &str, mode: Mode) -> Result<u64, StoreError> {
    let keys = AccountKeys::of(account);
    let trail = Trail::of(&app.store, &app.archive, account, mode);
    let mut all = 0;
    for _ in 0..ROWS_MAX {
        let cursor = Cursor::read(&app.store, &keys, mode).await?;
        if cursor.webhooks == 0 {
            return Ok(all);
        }
        let sealed = trail.read(cursor.dispatched + 1).await?;
        if sealed.is_empty() {
            return Ok(all);
        }
        let told = told(&sealed)?;
        let webhooks = match told.iter().any(|(_, events)| !events.is_empty()) {
            true => WebhookRecord::all(&app.store, &keys, mode).await?,
            false => Vec::new(),
        };
        let row = Row::of(&told, &webhooks);
        let step = Dispatch {
            account,
            mode,
            cursor,
            last: row.last,
            events: row.events,
            batches: &row.batches,
            waiting_max: app.webhooks.waiting_max,
            history_max: app.webhooks.history_max,
        };
        let Dispatched::Done { refused } = step.run(&app.store).await? else {
            continue;
        };
        all += row.events;
        app.metrics
            .webhooks
            .dispatched(row.events, row.deliveries(), refused);
        if refused > 0 {
            tracing::warn!(account, %mode, refused, "deliveries refused: too many wait for the same webhook");
        }
        app.wake.these(row.batches.into_iter().map(|batch| Endpoint {
            account: account.to_owned(),
            mode,
            webhook: batch.webhook,
        }));
    }
    Ok(all)
}

/// The events of entries. One that cannot be read holds the cursor: passed over, its events would be lost without a word.
fn told(sealed: &[Sealed]) -> Result<Vec<(u64, Vec<Event>)>, StoreError> {
    let read = |sealed: &Sealed| {
        let entry = Entry::of_json(&sealed.json);
        let entry = entry.ok_or_else(|| StoreError::Nonsense("sealed entry".to_owned()))?;
        Ok((entry.seq, event::of(&entry)))
    };
    sealed.iter().map(read).collect()
}

/// A row of entries, and what the webhooks are told of it.
struct Row {
    last: u64,
    events: u64,
    batches: Vec<Batch>,
}

impl Row {
    /// As many of the entries as make about [`DELIVERIES_MAX`] deliveries.
    fn of(told: &[(u64, Vec<Event>)], webhooks: &[WebhookRecord]) -> Self {
        let mut row = Self {
            last: 0,
            events: 0,
            batches: webhooks
                .iter()
                .map(|webhook| Batch {
                    webhook: webhook.id.clone(),
                    deliveries: Vec::new(),
                })
                .collect(),
        };
        let mut made = 0;
        for (seq, events) in told {
            row.last = *seq;
            for event in events {
                row.events += 1;
                for (webhook, batch) in webhooks.iter().zip(&mut row.batches) {
                    if is_told(webhook, *seq, event) {
                        batch.deliveries.push((*seq, event.name));
                        made += 1;
                    }
                }
            }
            if made >= DELIVERIES_MAX {
                break;
            }
        }
        if row.events == 0 {
            row.batches.clear();
        }
        row
    }

    fn deliveries(&self) -> u64 {
        self.batches
            .iter()
            .map(|batch| batch.deliveries.len() as u64)
            .sum()
    }
}

/// Whether a webhook is told of an event of entry `seq`.
fn is_told(webhook: &WebhookRecord, seq: u64, event: &Event) -> bool {
    let wants = match event.name {
        EventName::WebhookTest => {
            event.data.get("webhookId").and_then(Value::as_str) == Some(webhook.id.as_str())
        }
        name => webhook.events.contains(&name),
    };
    wants && webhook.status == Status::Active && webhook.since < seq
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn webhook(id: &str, events: &[EventName]) -> WebhookRecord {
        WebhookRecord {
            id: id.to_owned(),
            url: "https://example.com/".to_owned(),
            events: events.to_vec(),
            description: None,
            status: Status::Active,
            since: 5,
            created_at_ms: 1,
            updated_at_ms: 1,
            secret_at_ms: 1,
        }
    }

    fn event(name: EventName) -> Event {
        let mut data = Map::new();
        data.insert("webhookId".to_owned(), json!("wh_1"));
        Event {
            name,
            agent: None,
            data,
        }
    }

    #[test]
    fn a_webhook_is_told_of_what_it_wants_and_what_came_after_it() {
        let frozen = event(EventName::AgentFrozen);
        let one = webhook("wh_1", &[EventName::AgentFrozen]);
        assert!(is_told(&one, 6, &frozen));
        assert!(!is_told(&one, 5, &frozen), "it came before");
        assert!(!is_told(
            &webhook("wh_1", &[EventName::WalletDeposit]),
            6,
            &frozen
        ));
        let disabled = WebhookRecord {
            status: Status::Disabled,
            ..one.clone()
        };
        assert!(!is_told(&disabled, 6, &frozen));
        let test = event(EventName::WebhookTest);
        assert!(is_told(&one, 6, &test), "nobody subscribes to a test");
        assert!(
            !is_told(&webhook("wh_2", EventName::ALL), 6, &test),
            "it is another's"
        );
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_not_passed_over() {
        let sealed = Entry::of_line(7, b"7 5 nonsense").seal("genesis").unwrap();
        let broken = Sealed {
            json: "{".to_owned(),
            hash: sealed.hash,
        };
        let whole = told(std::slice::from_ref(&sealed)).unwrap();
        assert_eq!(whole.first().map(|(seq, _)| *seq), Some(7));
        told(&[sealed, broken.clone()]).unwrap_err();
        told(&[broken]).unwrap_err();
    }

    #[test]
    fn a_row_ends_at_an_entry() {
        let hooks: Vec<_> = (0..20)
            .map(|n| webhook(&format!("wh_{n}"), EventName::ALL))
            .collect();
        let two = || {
            vec![
                event(EventName::PolicyViolation),
                event(EventName::WalletLowBalance),
            ]
        };
        let told: Vec<_> = (6..40).map(|seq| (seq, two())).collect();
        let row = Row::of(&told, &hooks);
        assert_eq!((row.last, row.events, row.deliveries()), (15, 20, 400));
        assert!(row.batches.iter().all(|batch| batch.deliveries.len() == 20));
        let quiet = Row::of(&[(6, Vec::new()), (7, Vec::new())], &hooks);
        assert_eq!((quiet.last, quiet.events, quiet.batches.len()), (7, 0, 0));
    }
}
