//! Reads deliveries of a webhook: a page, the newest, or one.

use super::{Delivery, State};
use crate::keys::{AccountKeys, DeliverySet};
use crate::page::{Order, Page, Part};
use crate::{Store, StoreError};
use domain::event::EventName;
use domain::mode::Mode;

/// Deliveries read in one round trip by a search.
const SCANNED: usize = 500;

/// A delivery in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDelivery {
    /// The delivery.
    pub delivery: Delivery,
    /// Time of the next attempt, in ms since 1970, if it is scheduled.
    pub next_at_ms: Option<u64>,
}

/// A filter for deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFilter {
    /// Every variant.
    All,
    /// Waiting ones.
    Pending,
    /// Accepted ones.
    Delivered,
    /// Given up, or never attempted.
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

    const fn takes(self, state: State) -> bool {
        match self {
            Self::All => true,
            Self::Pending => matches!(state, State::Pending),
            Self::Delivered => matches!(state, State::Delivered),
            Self::Failed => matches!(state, State::Failed | State::Refused),
        }
    }
}

/// Formats a number like `dispatch.lua`.
fn number_text(number: u64) -> String {
    format!("{number:016}")
}

impl Delivery {
    /// Returns the newest `most` deliveries of a webhook, newest first; bounded work at any count.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed text.
    pub async fn newest(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        webhook: &str,
        most: u64,
    ) -> Result<Vec<Self>, StoreError> {
        let mut query = redis::cmd("HGET");
        query.arg(account.webhook(mode, webhook)).arg("next");
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
        query.arg(account.deliveries(mode, webhook)).arg(&numbers);
        let texts: Vec<Option<String>> = store.command(&query).await?;
        let found = texts.into_iter().flatten().map(|text| Self::parse(&text));
        found.collect::<Option<_>>().ok_or_else(unexpected_reply)
    }

    /// Finds the delivery with this entry and event: number, text and parsed form. Reads at most `webhooks.waiting_max`
    /// + `webhooks.history_max`, some hundred at a time.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        webhook: &str,
        fits: impl Fn(u64, EventName) -> bool,
    ) -> Result<Option<(String, String, Self)>, StoreError> {
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(account.deliveries(mode, webhook)).arg(&cursor);
            scan.arg("COUNT").arg(SCANNED);
            let (next, page): (String, Vec<(String, String)>) = store.command(&scan).await?;
            for (number, text) in page {
                if let Some(delivery) = Self::parse(&text).filter(|found| fits(found.seq, found.event)) {
                    return Ok(Some((number, text, delivery)));
                }
            }
            if next == "0" {
                return Ok(None);
            }
            cursor = next;
        }
    }

    /// Lists the deliveries of a webhook, newest first. At most `webhooks.waiting_max` + `webhooks.history_max` exist;
    /// each page reads all their numbers, but only its own deliveries.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed text.
    pub async fn list(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        webhook: &str,
        wanted: DeliveryFilter,
        page: Page<'_>,
    ) -> Result<Part<ListedDelivery>, StoreError> {
        let mut query = redis::pipe();
        query.atomic();
        for set in wanted.sets() {
            let key = account.deliveries_in(mode, webhook, *set);
            query.cmd("ZRANGE").arg(key).arg(0).arg(-1);
        }
        let found: Vec<Vec<String>> = store.pipeline(&query).await?;
        let numbers = found.iter().flatten().map(|number| number.parse().ok());
        let mut numbers: Vec<u64> = numbers.collect::<Option<_>>().ok_or_else(unexpected_reply)?;
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let mut part = page.of_all(numbers, Order::Descending, |number| (*number, ""))?;
        let shown: Vec<String> = part.records.drain(..).map(number_text).collect();
        if shown.is_empty() {
            return Ok(part.with(Vec::new()));
        }
        // Texts and due times are read in one transaction.
        let mut query = redis::pipe();
        query.atomic();
        let due = account.deliveries_in(mode, webhook, DeliverySet::Due);
        query
            .cmd("HMGET")
            .arg(account.deliveries(mode, webhook))
            .arg(&shown);
        query.cmd("ZMSCORE").arg(due).arg(&shown);
        let (texts, due): (Vec<Option<String>>, Vec<Option<u64>>) = store.pipeline(&query).await?;
        let mut listed = Vec::with_capacity(shown.len());
        for (text, next_at_ms) in texts.into_iter().zip(due) {
            // Skips deliveries that were removed or ended since their numbers were read.
            let Some(text) = text else { continue };
            let delivery = Self::parse(&text).ok_or_else(unexpected_reply)?;
            if wanted.takes(delivery.state) {
                listed.push(ListedDelivery { delivery, next_at_ms });
            }
        }
        Ok(part.with(listed))
    }
}

fn unexpected_reply() -> StoreError {
    StoreError::UnexpectedReply("delivery".to_owned())
}
