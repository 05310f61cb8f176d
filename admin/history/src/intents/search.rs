//! One page of the intents of a list that fit a filter without an index: a bounded number of intents is read for it,
//! and the texts of those only that are on the page.

use super::Intents;
use store::StoreError;
use store::filtered_page::FilteredPage;
use store::intent::{IntentRecord, IntentTexts};
use store::keys::IntentIndex;
use store::page::{Page, PageRequest, PageStart};

/// Most intents read for a page.
pub const READ_MAX: usize = 1000;
/// Intents read in one go.
const STEP: usize = 200;
/// Maximum delay between an intent's time and its entry in its list, in ms: an escrow call that another account decides
/// enters its caller's list once that account's node has answered.
const LATE_MS: u64 = 600_000;

impl Intents<'_> {
    /// The intents of a list that fit, newest first. None of a time before `since_ms` fits, so the search ends where
    /// the list is older. `fits` judges an intent without its texts. A page with a next position may be short or empty;
    /// its total counts the matches up to its end.
    ///
    /// # Errors
    /// As [`Intents::list`].
    pub async fn search(
        &self,
        (index, since_ms): (IntentIndex<'_>, Option<u64>),
        page: PageRequest<'_>,
        fits: impl Fn(&IntentRecord) -> bool,
    ) -> Result<FilteredPage<IntentRecord>, StoreError> {
        let (mut skip, mut next) = match page.start {
            PageStart::Offset(offset) => (offset, None),
            PageStart::After(position) => (0, Some(position.to_owned())),
        };
        let is_over = |record: &IntentRecord| {
            let at_ms = record.listed_ms(index).saturating_add(LATE_MS);
            since_ms.is_some_and(|since| at_ms < since)
        };
        let (mut found, mut total, mut read) = (Vec::new(), 0, 0);
        loop {
            let start = next.as_deref().map_or(PageStart::Offset(0), PageStart::After);
            let limit = STEP.min(READ_MAX - read);
            let room = skip.saturating_add(page.limit - found.len());
            let step = self
                .step(index, PageRequest { limit, start }, room, &fits)
                .await?;
            let count = step.records.len();
            read += count;
            next = step.next.filter(|_| !step.records.last().is_some_and(is_over));
            for record in step.records.into_iter().filter(&fits) {
                total += 1;
                match skip {
                    0 => found.push(record),
                    _ => skip -= 1,
                }
            }
            // A short step opened as many segments of the archive as one may.
            let is_short = count < limit;
            if next.is_none() || is_short || found.len() >= page.limit || read >= READ_MAX {
                break;
            }
        }
        self.add_texts(&mut found).await?;
        Ok(FilteredPage {
            is_partial: next.is_some(),
            part: Page {
                records: found,
                total,
                next,
            },
        })
    }

    /// Reads one page, shortened to end with the `room`th match if it has that many, so that the returned position is
    /// directly after that match.
    async fn step(
        &self,
        index: IntentIndex<'_>,
        mut page: PageRequest<'_>,
        room: usize,
        fits: impl Fn(&IntentRecord) -> bool,
    ) -> Result<Page<IntentRecord>, StoreError> {
        loop {
            let part = self.page((index, IntentTexts::Without), page).await?;
            let matches = part.records.iter().enumerate();
            let mut matches = matches.filter(|(_, record)| fits(record));
            let last = matches.nth(room.saturating_sub(1)).map(|(at, _)| at + 1);
            match last.filter(|end| *end < part.records.len()) {
                Some(end) => page.limit = end,
                None => return Ok(part),
            }
        }
    }

    /// Reads the texts of the brief intents, from the archive where an intent moved meanwhile.
    async fn add_texts(&self, records: &mut [IntentRecord]) -> Result<(), StoreError> {
        IntentRecord::add_texts(self.store, &self.realm, records).await?;
        for record in records.iter_mut().filter(|record| record.is_brief()) {
            let whole = self.read(&record.id).await?;
            *record = whole.ok_or_else(|| StoreError::unexpected("an intent that left the store"))?;
        }
        Ok(())
    }
}
