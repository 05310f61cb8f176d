//! Usage of each budget of records by an account and mode (decision D71), and an estimate of its bytes.

mod audit_lines;

use crate::account::ModeField;
use crate::call::authorize::RUN_LIFE_MS;
use crate::keys::{IntentIndex, Realm};
use crate::{Store, StoreError, server_clock};
use domain::budget::Budget;
use domain::mode::Mode;

/// Bytes of a hash and of index entries for each audit line.
const BESIDE_LINE_BYTES: u64 = 100;
/// Bytes of a list's count in the archived part of the trail, beside its name, and of a segment's descriptor.
const BESIDE_KEPT_BYTES: u64 = 40;
/// Bytes of a frozen agent, which stays when its policies, keys and wallet row are deleted.
const FROZEN_AGENT_BYTES: u64 = 600;
/// Bytes of a webhook's delivery.
const DELIVERY_BYTES: u64 = 250;

/// Usage of an account and mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealmUsage {
    used: [u64; Budget::ALL.len()],
    /// Average length of an audit line that the account caused, without the text that [`Budget::AuditText`] counts.
    line_bytes: u64,
    /// Bytes of text in agents' rows and transactions, which no budget counts.
    kept_text: u64,
    /// Number of deliveries of all its webhooks.
    deliveries: u64,
    /// Number of frozen agents.
    frozen_agents: u64,
    /// Records and bytes that the archived part of the trail keeps in the store.
    archived: ArchivedUsage,
}

/// The rest of archived audit entries that stays in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ArchivedUsage {
    /// Segments, and lists with a count.
    records: u64,
    /// Bytes of their descriptors and names: `kept_bytes` of `archive.lua`.
    bytes: u64,
}

/// Returns the bytes that one record of a kind takes in the store, including index entries and look-ups: measured,
/// rounded up (docs/guides/sizing.md).
const fn bytes_of(budget: Budget) -> u64 {
    match budget {
        Budget::Agents => 1_200,
        Budget::Policies => 900,
        Budget::ProviderKeys => 1_700,
        Budget::Keys => 900,
        Budget::Runs => 600,
        Budget::Intents => 2_000,
        Budget::TextBytes | Budget::AuditText => 1,
        Budget::Transactions => 600,
        Budget::Escrows => 1_500,
        Budget::Deposits => 800,
        Budget::Refusals => 900,
        Budget::AuditEntries => 0,
    }
}

/// Fields of the account's record that count its records in a mode.
const FIELDS: [ModeField; 9] = [
    ModeField::ClosedWallets,
    ModeField::TextBytes,
    ModeField::TransactionsIn,
    ModeField::Escrows,
    ModeField::Deposits,
    ModeField::Refusals,
    ModeField::AuditText,
    ModeField::Webhooks,
    ModeField::KeptText,
];

/// Counters in the account's record.
struct RecordCounters {
    /// Virtual keys and API keys that were ever created.
    keys: u64,
    /// The values of [`FIELDS`], in their order.
    fields: Vec<Option<String>>,
}

impl RecordCounters {
    fn text(&self, field: ModeField) -> Option<&str> {
        let at = FIELDS.iter().position(|read| *read == field)?;
        self.fields.get(at)?.as_deref()
    }

    /// Returns a count; 0 if the record has none.
    fn count(&self, field: ModeField) -> u64 {
        self.text(field).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

impl RealmUsage {
    /// Reads the usage, in two to four round trips.
    pub async fn read(store: &Store, realm: &Realm) -> Result<Self, StoreError> {
        let ended_ms = server_clock::now_ms(store).await?.saturating_sub(RUN_LIFE_MS);
        let replies: Vec<redis::Value> = store.pipeline(&query(realm, ended_ms)).await?;
        let (record, counts) = decode(replies)?;
        let &[
            agents,
            policies,
            sealed,
            runs,
            intents,
            transactions,
            frozen_agents,
            segments,
            lists,
            kept_bytes,
            all_entries,
            ref arrivals @ ..,
        ] = counts.as_slice()
        else {
            return Err(StoreError::unexpected("counts of an account's records"));
        };
        let entries = all_entries.saturating_sub(arrivals.iter().sum());
        let count = |field: ModeField| record.count(field);
        let used = Budget::ALL.map(|budget| match budget {
            Budget::Agents => agents + count(ModeField::ClosedWallets),
            Budget::Policies => policies,
            // Provider keys have no test mode.
            Budget::ProviderKeys if realm.mode() == Mode::Live => sealed,
            Budget::ProviderKeys => 0,
            Budget::Keys => record.keys,
            Budget::Runs => runs,
            Budget::Intents => intents,
            Budget::TextBytes => count(ModeField::TextBytes),
            Budget::Transactions => transactions.saturating_sub(count(ModeField::TransactionsIn)),
            Budget::Escrows => count(ModeField::Escrows),
            Budget::Deposits => count(ModeField::Deposits),
            Budget::Refusals => refusals(record.text(ModeField::Refusals)),
            Budget::AuditEntries => entries,
            Budget::AuditText => count(ModeField::AuditText),
        });
        let deliveries = match count(ModeField::Webhooks) {
            0 => 0,
            _ => deliveries(store, realm).await?,
        };
        let line_bytes = match entries {
            0 => 0,
            _ => audit_lines::own_bytes(store, realm, all_entries).await?,
        };
        Ok(Self {
            used,
            line_bytes,
            kept_text: count(ModeField::KeptText),
            deliveries,
            frozen_agents,
            archived: ArchivedUsage {
                records: segments + lists,
                bytes: kept_bytes,
            },
        })
    }

    /// Returns the count of records of a kind.
    pub const fn count(&self, budget: Budget) -> u64 {
        self.used[budget as usize]
    }

    /// Estimates the bytes of the store used by the account and mode.
    pub fn bytes(&self) -> u64 {
        let records = Budget::ALL.map(|budget| self.count(budget).saturating_mul(bytes_of(budget)));
        let entries = self.count(Budget::AuditEntries);
        let audit = entries.saturating_mul(self.line_bytes + BESIDE_LINE_BYTES);
        let archived = self.archived.records.saturating_mul(BESIDE_KEPT_BYTES);
        let rest = [
            audit,
            self.kept_text,
            archived.saturating_add(self.archived.bytes),
            self.frozen_agents.saturating_mul(FROZEN_AGENT_BYTES),
            self.deliveries.saturating_mul(DELIVERY_BYTES),
        ];
        records.into_iter().chain(rest).fold(0, u64::saturating_add)
    }
}

/// The reads of [`RealmUsage::read`]: fields of the account's record, then counts.
fn query(realm: &Realm, ended_ms: u64) -> redis::Pipeline {
    let mut query = redis::pipe();
    let record = query.cmd("HMGET").arg(realm.record()).arg("key_seq");
    for field in FIELDS {
        record.arg(field.name(realm.mode()));
    }
    query.cmd("ZCARD").arg(realm.agents());
    query.cmd("ZCARD").arg(realm.policies());
    query.cmd("SCARD").arg(realm.keys().sealed_agents());
    // Counted as in `live_runs.lua`.
    let runs = query.cmd("ZCOUNT").arg(realm.all_runs());
    runs.arg(format!("({ended_ms}")).arg("+inf");
    query.cmd("LLEN").arg(realm.intents(IntentIndex::All));
    query.cmd("HLEN").arg(realm.transactions());
    query.cmd("ZCARD").arg(realm.frozen_agents());
    query.cmd("LLEN").arg(realm.audit_segments());
    query.cmd("HLEN").arg(realm.audit_archived());
    query.cmd("HGET").arg(realm.audit_base()).arg("kept_bytes");
    query.cmd("LLEN").arg(realm.audit());
    audit_lines::count_arrivals(&mut query, realm);
    query
}

/// Decodes the replies to [`query`]: the counters of the record, then counts, 0 for each that does not exist.
fn decode(replies: Vec<redis::Value>) -> Result<(RecordCounters, Vec<u64>), StoreError> {
    let mut replies = replies.into_iter();
    let record = redis::from_redis_value(replies.next().unwrap_or_default());
    let record: Vec<Option<String>> = record.map_err(StoreError::unexpected)?;
    let mut values = record.into_iter();
    let keys = values.next().flatten().and_then(|text| text.parse().ok());
    let record = RecordCounters {
        keys: keys.unwrap_or(0),
        fields: values.collect(),
    };
    let counts: Result<Vec<Option<u64>>, _> = replies.map(redis::from_redis_value).collect();
    let counts = counts.map_err(StoreError::unexpected)?;
    Ok((
        record,
        counts.into_iter().map(Option::unwrap_or_default).collect(),
    ))
}

/// Counts the refusals of this span and the one before: see `refusals.lua`.
fn refusals(text: Option<&str>) -> u64 {
    let counts = text.unwrap_or_default().split(' ').skip(1);
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

async fn deliveries(store: &Store, realm: &Realm) -> Result<u64, StoreError> {
    let webhooks = redis::Cmd::zrange(realm.webhooks(), 0, -1);
    let webhooks: Vec<String> = store.command(&webhooks).await?;
    let texts = webhooks.iter().map(|webhook| realm.deliveries(webhook));
    let counts: Vec<u64> = store.each("HLEN", texts).await?;
    Ok(counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_two_spans_count() {
        assert_eq!(refusals(None), 0);
        assert_eq!(refusals(Some("685 3 4")), 7);
    }

    #[test]
    fn bytes_are_those_of_all_kinds() {
        let mut usage = RealmUsage {
            used: [0; Budget::ALL.len()],
            line_bytes: 300,
            kept_text: 0,
            deliveries: 2,
            frozen_agents: 0,
            archived: ArchivedUsage::default(),
        };
        assert_eq!(usage.bytes(), 500);
        usage.used[Budget::AuditEntries as usize] = 10;
        usage.used[Budget::TextBytes as usize] = 5;
        usage.used[Budget::AuditText as usize] = 2;
        assert_eq!(usage.bytes(), 500 + 4_000 + 7);
        usage.used[Budget::Agents as usize] = 1;
        assert_eq!(usage.bytes(), 500 + 4_000 + 7 + 1_200);
        usage.frozen_agents = 1;
        usage.archived = ArchivedUsage {
            records: 3,
            bytes: 900,
        };
        assert_eq!(usage.bytes(), 500 + 4_000 + 7 + 1_200 + 600 + 120 + 900);
        usage.kept_text = 8_000;
        assert_eq!(usage.bytes(), 500 + 4_000 + 7 + 1_200 + 600 + 120 + 900 + 8_000);
    }
}
