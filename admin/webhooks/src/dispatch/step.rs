//! One step of the dispatcher: its entries, and the deliveries to each webhook.

use domain::entry::Entry;
use domain::event::violations::{ViolationCounts, ViolationGroup};
use domain::event::{Event, EventName};
use serde_json::Value;
use std::collections::VecDeque;
use store::webhook::delivery::DeliveryEvent;
use store::webhook::script::dispatch::WebhookDeliveries;
use store::webhook::{WebhookRecord, WebhookStatus};

/// Maximum number of deliveries created in one step: events times the webhooks that receive them.
pub(super) const DELIVERIES_MAX: usize = 400;

/// An entry that was read, and its events.
#[derive(Debug)]
pub(super) struct ReadEntry {
    pub(super) entry: Entry,
    pub(super) events: Vec<Event>,
}

/// The entries of one step, and the deliveries of their events.
#[derive(Debug)]
pub(super) struct StepDeliveries {
    /// Number of the last entry of the step; 0 if it is empty.
    pub(super) last: u64,
    /// Number of events that follow from these entries now.
    pub(super) events: u64,
    /// Violations that wait for their minute's end.
    pub(super) coalesced: u64,
    pub(super) batches: Vec<WebhookDeliveries>,
    pub(super) tally: ViolationCounts,
}

impl StepDeliveries {
    /// Creates a step of as many entries as yield at most [`DELIVERIES_MAX`] deliveries, but at least one entry; and
    /// none of a later minute while violations wait for the end of this one.
    pub(super) fn new(
        entries: &VecDeque<ReadEntry>,
        tally: ViolationCounts,
        webhooks: &[WebhookRecord],
    ) -> Self {
        let mut step = Self {
            last: 0,
            events: 0,
            coalesced: 0,
            batches: batches_of(webhooks, &[]),
            tally,
        };
        let mut made = 0;
        for ReadEntry { entry, events } in entries {
            let most: usize = events
                .iter()
                .map(|event| {
                    webhooks
                        .iter()
                        .filter(|hook| receives(hook, entry.seq, event))
                        .count()
                })
                .sum();
            let is_full = made + most > DELIVERIES_MAX && step.last > 0;
            if is_full || step.tally.minute.has_ended(entry.at_ms) {
                break;
            }
            step.last = entry.seq;
            for event in events {
                made += step.add(entry, event, webhooks);
            }
        }
        if step.events == 0 {
            step.batches.clear();
        }
        step
    }

    /// Adds the deliveries of an event, unless it is a violation that waits; returns how many there are.
    fn add(&mut self, entry: &Entry, event: &Event, webhooks: &[WebhookRecord]) -> usize {
        if let Some(group) = ViolationGroup::from_event(event)
            && !self.tally.count(&group, entry.seq, entry.at_ms)
        {
            self.coalesced += 1;
            return 0;
        }
        self.events += 1;
        let delivery = DeliveryEvent::new(entry.seq, event.name);
        let mut made = 0;
        for (webhook, batch) in webhooks.iter().zip(&mut self.batches) {
            if receives(webhook, entry.seq, event) {
                batch.deliveries.push(delivery);
                made += 1;
            }
        }
        made
    }
}

/// Returns the deliveries of these events to each webhook. None of the events is a test.
pub(super) fn batches_of(webhooks: &[WebhookRecord], events: &[DeliveryEvent]) -> Vec<WebhookDeliveries> {
    let batch = |webhook: &WebhookRecord| {
        let wanted = events
            .iter()
            .filter(|event| is_subscribed(webhook, event.seq, event.event));
        WebhookDeliveries {
            webhook: webhook.id.clone(),
            deliveries: wanted.copied().collect(),
        }
    };
    webhooks.iter().map(batch).collect()
}

/// Returns whether a webhook receives an event of entry `seq`.
fn receives(webhook: &WebhookRecord, seq: u64, event: &Event) -> bool {
    let tested = || event.data.get("webhookId").and_then(Value::as_str);
    match event.name {
        EventName::WebhookTest => was_active(webhook, seq) && tested() == Some(webhook.id.as_str()),
        name => is_subscribed(webhook, seq, name),
    }
}

/// Returns whether a webhook has subscribed to an event of entry `seq`.
fn is_subscribed(webhook: &WebhookRecord, seq: u64, event: EventName) -> bool {
    webhook.events.contains(&event) && was_active(webhook, seq)
}

/// Returns whether a webhook is active, and has been since before entry `seq`.
fn was_active(webhook: &WebhookRecord, seq: u64) -> bool {
    webhook.status == WebhookStatus::Active && webhook.since < seq
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::event::violations::{AT_ONCE_MAX, MINUTE_MS};
    use serde_json::{Map, json};

    fn webhook(id: &str, events: &[EventName]) -> WebhookRecord {
        WebhookRecord {
            id: id.to_owned(),
            url: "https://example.com/".to_owned(),
            events: events.to_vec(),
            description: None,
            status: WebhookStatus::Active,
            since: 5,
            created_at_ms: 1,
            updated_at_ms: 1,
            secret_at_ms: 1,
        }
    }

    fn event(name: EventName) -> Event {
        let mut data = Map::new();
        data.insert("webhookId".to_owned(), json!("wh_1"));
        data.insert("reason".to_owned(), json!("frozen"));
        Event {
            name,
            agent: None,
            data,
        }
    }

    fn read(seq: u64, at_ms: u64, events: &[EventName]) -> ReadEntry {
        let line = format!("{seq} {at_ms} nonsense");
        let entry = Entry {
            at_ms,
            ..Entry::from_line(seq, line.as_bytes())
        };
        ReadEntry {
            entry,
            events: events.iter().copied().map(event).collect(),
        }
    }

    fn deliveries(step: &StepDeliveries) -> usize {
        step.batches.iter().map(|batch| batch.deliveries.len()).sum()
    }

    #[test]
    fn a_webhook_receives_what_it_wants_and_what_came_after_it() {
        let frozen = event(EventName::AgentFrozen);
        let one = webhook("wh_1", &[EventName::AgentFrozen]);
        assert!(receives(&one, 6, &frozen));
        assert!(!receives(&one, 5, &frozen), "it came before");
        assert!(!receives(
            &webhook("wh_1", &[EventName::WalletDeposit]),
            6,
            &frozen
        ));
        let disabled = WebhookRecord {
            status: WebhookStatus::Disabled,
            ..one.clone()
        };
        assert!(!receives(&disabled, 6, &frozen));
        let test = event(EventName::WebhookTest);
        assert!(receives(&one, 6, &test), "nobody subscribes to a test");
        assert!(!receives(&disabled, 6, &test) && !receives(&one, 5, &test));
        assert!(
            !receives(&webhook("wh_2", EventName::ALL), 6, &test),
            "it is another's"
        );
    }

    #[test]
    fn a_step_makes_a_bounded_number_of_deliveries() {
        let hooks: Vec<_> = (0..20)
            .map(|n| webhook(&format!("wh_{n}"), EventName::ALL))
            .collect();
        let two = [EventName::AgentFrozen, EventName::WalletLowBalance];
        let entries: VecDeque<ReadEntry> = (6..40).map(|seq| read(seq, 1, &two)).collect();
        let step = StepDeliveries::new(&entries, ViolationCounts::default(), &hooks);
        assert_eq!((step.last, step.events, deliveries(&step)), (15, 20, 400));
        assert!(step.batches.iter().all(|batch| batch.deliveries.len() == 20));
        let odd: VecDeque<ReadEntry> = std::iter::once(read(6, 1, &two[..1]))
            .chain((7..40).map(|seq| read(seq, 1, &two)))
            .collect();
        let step = StepDeliveries::new(&odd, ViolationCounts::default(), &hooks);
        assert_eq!(
            (step.last, deliveries(&step)),
            (15, 380),
            "not one more than there may be"
        );
        let quiet: VecDeque<ReadEntry> = (6..8).map(|seq| read(seq, 1, &[])).collect();
        let quiet = StepDeliveries::new(&quiet, ViolationCounts::default(), &hooks);
        assert_eq!((quiet.last, quiet.events, quiet.batches.len()), (7, 0, 0));
    }

    #[test]
    fn violations_beyond_the_first_ten_make_no_deliveries_and_the_next_minute_waits_for_them() {
        let hooks = [webhook("wh_1", EventName::ALL)];
        let violation = [EventName::PolicyViolation];
        let entries: VecDeque<ReadEntry> = (6..506)
            .map(|seq| read(seq, if seq < 406 { 1 } else { MINUTE_MS }, &violation))
            .collect();
        let step = StepDeliveries::new(&entries, ViolationCounts::default(), &hooks);
        assert_eq!((step.last, step.events, step.coalesced), (405, AT_ONCE_MAX, 390));
        assert_eq!(deliveries(&step), 10);
        assert!(step.tally.minute.waits);
        let few: VecDeque<ReadEntry> = (6..26)
            .map(|seq| read(seq, if seq < 16 { 1 } else { MINUTE_MS }, &violation))
            .collect();
        let step = StepDeliveries::new(&few, ViolationCounts::default(), &hooks);
        assert_eq!((step.last, step.events, step.coalesced), (25, 20, 0));
        assert_eq!((step.tally.minute.number, step.tally.begun), (1, true));
    }
}
