//! Counted denials: denials of a virtual key beyond its rate, by reason and rate window (decision D70). `authorize`
//! counts them in one hash per bucket; the count of an ended window becomes its record in the audit trail.

pub mod script;

use self::script::{WindowRecorded, record};
use crate::keys::{AccountKeys, Bucket};
use crate::{Store, StoreError};
use domain::denial::Denial;
use domain::denial_window::{DenialWindow, ID_FIELD, KIND, OWN_RECORDS, end_of};
use domain::entry::Entry;
use domain::timestamp::iso_from_ms;
use serde_json::{Value, json};

/// Approximate windows per `HSCAN`.
const SCANNED: usize = 100;
/// Maximum number of reads of a bucket in one sweep, enough for about 20,000 windows. Later sweeps reach the others.
const SCANS_MAX: usize = 200;

/// Denials of one window so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedDenials {
    /// Field in the bucket's hash: `<end> <reason> <account> <agent> <key>`.
    pub field: String,
    /// When the window ends, in ms since 1970 on the store's clock.
    pub ends_ms: u64,
    /// Reason of the denials.
    pub denial: Denial,
    /// Account id, `acct_…`.
    pub account: String,
    /// Agent of the key.
    pub agent: String,
    /// Id of the virtual key.
    pub key_id: String,
    /// Count, denials with a record of their own included.
    pub count: u64,
}

impl CountedDenials {
    /// Parses a field and its value; `None` if malformed.
    pub fn parse(field: &str, count: &str) -> Option<Self> {
        let mut words = field.split(' ');
        let mut next = || words.next();
        let counted = Self {
            field: field.to_owned(),
            ends_ms: next()?.parse().ok()?,
            denial: Denial::from_reason(next()?)?,
            account: next()?.to_owned(),
            agent: next()?.to_owned(),
            key_id: next()?.to_owned(),
            count: count.parse().ok()?,
        };
        words.next().is_none().then_some(counted)
    }

    /// Returns the number of denials without a record of their own, which the window's record covers.
    pub const fn unrecorded(&self) -> u64 {
        self.count.saturating_sub(OWN_RECORDS)
    }

    /// Returns the id of the window's record.
    pub fn record_id(&self) -> String {
        let window = DenialWindow {
            key_id: &self.key_id,
            denial: self.denial,
            ends_ms: self.ends_ms,
        };
        window.record_id()
    }

    /// Returns the details of the window's record.
    pub(crate) fn details(&self) -> Value {
        json!({
            ID_FIELD: self.record_id(),
            "approved": false,
            "reason": self.denial.reason(),
            "outcome": "denied",
            "keyId": self.key_id,
            "count": self.unrecorded(),
            "windowEndsAt": iso_from_ms(self.ends_ms),
            "chargedUsd": 0,
            "chargedNanos": "0",
        })
    }

    /// Returns the entry as if it were written now; `None` while each denial has its own record.
    pub fn entry(&self) -> Option<Entry> {
        let Value::Object(data) = self.details() else {
            return None;
        };
        (self.unrecorded() > 0).then(|| Entry {
            seq: 0,
            id: self.record_id(),
            at_ms: self.ends_ms,
            kind: KIND.to_owned(),
            agent: Some(self.agent.clone()),
            actor: self.key_id.clone(),
            data,
        })
    }
}

/// Calls `found` for each window of a bucket that has no record yet, within [`SCANS_MAX`] reads.
async fn scan_windows(
    store: &Store,
    bucket: Bucket,
    mut found: impl FnMut(CountedDenials),
) -> Result<(), StoreError> {
    let key = bucket.counted_denials();
    let mut cursor = "0".to_owned();
    for _ in 0..SCANS_MAX {
        let mut scan = redis::cmd("HSCAN");
        scan.arg(&key).arg(&cursor).arg("COUNT").arg(SCANNED);
        let (next, pairs): (String, Vec<(String, String)>) = store.command(&scan).await?;
        for (field, count) in pairs {
            if let Some(counted) = CountedDenials::parse(&field, &count) {
                found(counted);
            }
        }
        if next == "0" {
            break;
        }
        cursor = next;
    }
    Ok(())
}

/// Records the windows of a bucket that ended before `now_ms`. Returns the number of records written. A window that
/// cannot be recorded, since the store lost writes of its account, does not delay those of others.
///
/// # Errors
/// [`StoreError`]; recorded windows stay recorded, and the next sweep records the others.
pub async fn sweep(store: &Store, bucket: Bucket, now_ms: u64) -> Result<u64, StoreError> {
    let mut ended = Vec::new();
    scan_windows(store, bucket, |counted| {
        if counted.ends_ms <= now_ms {
            ended.push(counted);
        }
    })
    .await?;
    // If each denial has a record of its own, the count is only removed.
    let (to_record, to_remove): (Vec<CountedDenials>, Vec<CountedDenials>) =
        ended.into_iter().partition(|counted| counted.unrecorded() > 0);
    for windows in to_remove.chunks(SCANNED) {
        let mut remove = redis::cmd("HDEL");
        remove.arg(bucket.counted_denials());
        for window in windows {
            remove.arg(&window.field);
        }
        let _: u64 = store.command(&remove).await?;
    }
    let (mut recorded, mut failed) = (0, None);
    for window in &to_record {
        match record(store, window).await {
            Ok(outcome) => recorded += u64::from(outcome == WindowRecorded::Done),
            Err(error) if error.is_server_failure() => return Err(error),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(recorded), Err)
}

/// Finds the open window of `account` whose record will have the id `record_id`.
pub async fn find_open(
    store: &Store,
    account: &str,
    record_id: &str,
) -> Result<Option<CountedDenials>, StoreError> {
    let ends_ms = end_of(record_id);
    let mut window = None;
    scan_windows(store, AccountKeys::new(account).bucket(), |counted| {
        let may_be_it = Some(counted.ends_ms) == ends_ms && counted.account == account;
        if may_be_it && counted.record_id() == record_id {
            window = Some(counted);
        }
    })
    .await?;
    Ok(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_fields_are_read() {
        let field = "1795000060000 rate_limited acct_1 my-bot vk_1";
        let counted = CountedDenials::parse(field, "37").unwrap();
        assert_eq!((counted.ends_ms, counted.unrecorded()), (1_795_000_060_000, 27));
        assert_eq!(
            (counted.agent.as_str(), counted.key_id.as_str()),
            ("my-bot", "vk_1")
        );
        assert_eq!(counted.entry().unwrap().data["count"], json!(27));
        assert_eq!(
            CountedDenials::parse(field, "10").unwrap().entry(),
            None,
            "each has its own"
        );
        for (field, count) in [
            ("", "1"),
            (field, "x"),
            ("x rate_limited acct_1 my-bot vk_1", "1"),
            ("1 no_such_reason acct_1 my-bot vk_1", "1"),
            ("1 rate_limited acct_1 my-bot", "1"),
            ("1 rate_limited acct_1 my-bot vk_1 more", "1"),
        ] {
            assert_eq!(CountedDenials::parse(field, count), None, "{field}");
        }
    }
}
