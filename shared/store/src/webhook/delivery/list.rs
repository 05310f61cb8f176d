//! Reads deliveries of a webhook: a page, the newest, or one.

use super::{Delivery, DeliveryState};
use crate::keys::{DeliverySet, Realm};
use crate::page::{Order, Page, PageRequest};
use crate::read::Read;
use crate::{Store, StoreError};
use domain::event::EventName;

/// Deliveries read in one round trip by a search.
const SCANNED: usize = 500;

/// A delivery with its schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDelivery {
    /// As stored, with its attempts.
    pub delivery: Delivery,
    /// Time of the next attempt, in ms since 1970, if it is scheduled.
    pub next_at_ms: Option<u64>,
}

/// A filter for deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFilter {
    /// Every variant.
    All,
    /// Waiting deliveries.
    Pending,
    /// Accepted deliveries.
    Delivered,
    /// Deliveries that were given up or never attempted.
    Failed,
}

impl DeliveryFilter {
    /// Returns the sets that contain them.
    const fn sets(self) -> &'static [DeliverySet] {
        match self {
            Self::All => &DeliverySet::ALL,
            Self::Pending => &[DeliverySet::Due, DeliverySet::Parked],
            Self::Delivered => &[DeliverySet::Delivered],
            Self::Failed => &[DeliverySet::Failed],
        }
    }

    const fn takes(self, state: DeliveryState) -> bool {
        match self {
            Self::All => true,
            Self::Pending => matches!(state, DeliveryState::Pending),
            Self::Delivered => matches!(state, DeliveryState::Delivered),
            Self::Failed => matches!(state, DeliveryState::Failed | DeliveryState::Refused),
        }
    }
}

/// Formats a number like `dispatch.lua`.
fn number_text(number: u64) -> String {
    format!("{number:016}")
}

/// The deliveries of a webhook.
#[derive(Debug, Clone, Copy)]
pub struct Deliveries<'a> {
    /// Account and mode.
    pub realm: &'a Realm,
    /// Webhook id, `wh_…`.
    pub webhook: &'a str,
}

/// A delivery with its place and text in the store.
#[derive(Debug)]
pub(crate) struct StoredDelivery {
    pub(crate) number: String,
    pub(crate) text: String,
    pub(crate) delivery: Delivery,
}

impl Deliveries<'_> {
    /// Returns the newest `most` deliveries, newest first; bounded work at any count.
    pub async fn newest(self, store: &Store, most: u64) -> Result<Vec<Delivery>, StoreError> {
        let mut query = redis::cmd("HGET");
        let webhook = self.realm.webhook(self.webhook);
        query.arg(webhook).arg("next");
        let last: Option<u64> = store.command(&query).await?;
        let last = last.unwrap_or(0);
        if last == 0 {
            return Ok(Vec::new());
        }
        let numbers: Vec<String> = (last.saturating_sub(most) + 1..=last)
            .rev()
            .map(number_text)
            .collect();
        let mut query = redis::cmd("HMGET");
        query.arg(self.texts()).arg(&numbers);
        let texts: Vec<Option<String>> = store.command(&query).await?;
        let found = texts.into_iter().flatten().map(|text| Delivery::parse(&text));
        found
            .collect::<Option<_>>()
            .ok_or_else(|| StoreError::unexpected("delivery"))
    }

    /// Finds the delivery with this entry and event. Reads at most `webhooks.waiting_max`
    /// + `webhooks.history_max`, some hundred at a time.
    pub(crate) async fn find(
        self,
        store: &Store,
        fits: impl Fn(u64, EventName) -> bool,
    ) -> Result<Option<StoredDelivery>, StoreError> {
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(self.texts()).arg(&cursor);
            scan.arg("COUNT").arg(SCANNED);
            let (next, page): (String, Vec<(String, String)>) = store.command(&scan).await?;
            for (number, text) in page {
                if let Some(delivery) = Delivery::parse(&text).filter(|found| fits(found.seq, found.event)) {
                    return Ok(Some(StoredDelivery {
                        number,
                        text,
                        delivery,
                    }));
                }
            }
            if next == "0" {
                return Ok(None);
            }
            cursor = next;
        }
    }

    /// Lists the deliveries, newest first. At most `webhooks.waiting_max` + `webhooks.history_max` exist;
    /// each page reads all their numbers, but only its own deliveries.
    pub async fn list(
        self,
        store: &Store,
        wanted: DeliveryFilter,
        page: PageRequest<'_>,
    ) -> Result<Page<ListedDelivery>, StoreError> {
        let bucket = self.realm.bucket();
        let sets = wanted.sets().iter();
        let sets: Vec<Read> = sets.map(|set| Read::members(bucket, self.set(*set))).collect();
        let found: Vec<Vec<String>> = store.read_atomically(&sets).await?;
        let numbers = found.iter().flatten().map(|number| number.parse().ok());
        let mut numbers: Vec<u64> = numbers
            .collect::<Option<_>>()
            .ok_or_else(|| StoreError::unexpected("delivery"))?;
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let mut part = page.of_all(numbers, Order::Descending, |number| (*number, ""))?;
        let shown: Vec<String> = part.records.drain(..).map(number_text).collect();
        if shown.is_empty() {
            return Ok(part.with(Vec::new()));
        }
        let reads = [
            Read::fields(bucket, self.texts(), &shown),
            Read::scores(bucket, self.set(DeliverySet::Due), &shown),
        ];
        let (texts, due): (Vec<Option<String>>, Vec<Option<u64>>) = store.read_atomically(&reads).await?;
        let mut listed = Vec::with_capacity(shown.len());
        for (text, next_at_ms) in texts.into_iter().zip(due) {
            // Skips deliveries that were removed or ended since their numbers were read.
            let Some(text) = text else { continue };
            let delivery = Delivery::parse(&text).ok_or_else(|| StoreError::unexpected("delivery"))?;
            if wanted.takes(delivery.state) {
                listed.push(ListedDelivery { delivery, next_at_ms });
            }
        }
        Ok(part.with(listed))
    }

    fn texts(self) -> String {
        self.realm.deliveries(self.webhook)
    }

    fn set(self, set: DeliverySet) -> String {
        self.realm.deliveries_in(self.webhook, set)
    }
}
