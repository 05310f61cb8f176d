//! Usage of each budget of records by an account and mode (decision D71), and an estimate of its bytes.

mod audit_lines;

use crate::account::ModeField;
use crate::call::authorize::RUN_LIFE;
use crate::keys::{IntentIndex, Realm};
use crate::{Store, StoreError, server_clock};
use domain::budget::Budget;
use domain::mode::Mode;

/// Bytes of a hash and of index entries for each audit line.
const BESIDE_LINE_BYTES: u64 = 100;
/// Bytes of a webhook's delivery.
const DELIVERY_BYTES: u64 = 250;

/// Usage of an account and mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    used: [u64; Budget::ALL.len()],
    /// Average length of an audit line that the account caused.
    line_bytes: u64,
    /// Number of deliveries of all its webhooks.
    deliveries: u64,
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
        Budget::TextBytes => 1,
        Budget::Transactions => 600,
        Budget::Escrows => 1_500,
        Budget::Deposits => 800,
        Budget::Refusals => 900,
        Budget::AuditEntries => 0,
    }
}

impl Usage {
    /// Reads the usage, in two to four round trips.
    pub async fn read(store: &Store, realm: &Realm) -> Result<Self, StoreError> {
        let life = u64::try_from(RUN_LIFE.as_millis()).unwrap_or(u64::MAX);
        let ended_ms = server_clock::now_ms(store).await?.saturating_sub(life);
        let mut query = redis::pipe();
        let fields = [
            ModeField::ClosedWallets,
            ModeField::TextBytes,
            ModeField::TransactionsIn,
            ModeField::Escrows,
            ModeField::Deposits,
            ModeField::Refusals,
            ModeField::Webhooks,
        ];
        let record = query.cmd("HMGET").arg(realm.record()).arg("key_seq");
        for field in fields {
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
        query.cmd("LLEN").arg(realm.audit());
        audit_lines::count_arrivals(&mut query, realm);
        type Found = (
            Vec<Option<String>>,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
            u64,
        );
        let (
            record,
            agents,
            policies,
            sealed,
            runs,
            intents,
            transactions,
            all_entries,
            in_1,
            in_2,
            in_3,
            in_4,
        ): Found = store.pipeline(&query).await?;
        let entries = all_entries.saturating_sub(in_1 + in_2 + in_3 + in_4);
        let field = |at: usize| record.get(at).and_then(Option::as_deref);
        let count = |at: usize| field(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let used = Budget::ALL.map(|budget| match budget {
            Budget::Agents => agents + count(1),
            Budget::Policies => policies,
            // Provider keys have no test mode.
            Budget::ProviderKeys if realm.mode() == Mode::Live => sealed,
            Budget::ProviderKeys => 0,
            Budget::Keys => count(0),
            Budget::Runs => runs,
            Budget::Intents => intents,
            Budget::TextBytes => count(2),
            Budget::Transactions => transactions.saturating_sub(count(3)),
            Budget::Escrows => count(4),
            Budget::Deposits => count(5),
            Budget::Refusals => refusals(field(6)),
            Budget::AuditEntries => entries,
        });
        let deliveries = match count(7) {
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
            deliveries,
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
        let rest = [audit, self.deliveries.saturating_mul(DELIVERY_BYTES)];
        records.into_iter().chain(rest).fold(0, u64::saturating_add)
    }
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
        let mut usage = Usage {
            used: [0; Budget::ALL.len()],
            line_bytes: 300,
            deliveries: 2,
        };
        assert_eq!(usage.bytes(), 500);
        usage.used[Budget::AuditEntries as usize] = 10;
        usage.used[Budget::TextBytes as usize] = 7;
        assert_eq!(usage.bytes(), 500 + 4_000 + 7);
        usage.used[Budget::Agents as usize] = 1;
        assert_eq!(usage.bytes(), 500 + 4_000 + 7 + 1_200);
    }
}
