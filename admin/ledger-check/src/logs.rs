//! Records with an order: the audit log, and the lists of intents.

use super::book::AccountMode;
use super::drive::{BATCH, Job, drive};
use super::pass::Pass;
use super::reconcile::{Comparison, Side};
use super::texts::differs;
use super::violation::Invariant;
use domain::intent::IntentState;
use std::collections::HashMap;
use store::StoreError;
use store::account::ModeField;
use store::audit::long_text;
use store::keys::parse::{Key, ModeKey};
use store::keys::{IntentIndex, Realm};
use store::read::Read;

/// Maximum number of attempts to read an audit log while parts of it are archived.
const READ_ATTEMPTS: usize = 8;

/// The part of an audit log that is in the store.
struct LivePart {
    account_mode: AccountMode,
    /// Number of the last archived entry.
    base: u64,
    /// Lines that the list has, and should have.
    count: u64,
    /// The counter of the bytes of long entries, as stored.
    long_text: Option<String>,
}

impl Pass<'_> {
    /// Reads the audit logs and the lists of intents.
    pub(super) async fn read_logs(&mut self) -> Result<(), StoreError> {
        self.read_audit_sizes().await?;
        self.read_audit().await?;
        self.read_intent_lists().await
    }

    /// Checks that the archived part of each audit trail and the lines in the store are as many as were written.
    async fn read_audit_sizes(&mut self) -> Result<(), StoreError> {
        let accounts = self.accounts;
        let mut wanted: Vec<AccountMode> = accounts.account_modes().collect();
        for _ in 0..READ_ATTEMPTS {
            wanted = self.compare_audit_sizes(wanted).await?;
        }
        self.archived_meanwhile(&wanted);
        Ok(())
    }

    /// Adds an inconclusive result for each audit log of which a part was archived in each attempt to read it.
    fn archived_meanwhile(&mut self, account_modes: &[AccountMode]) {
        for account_mode in account_modes {
            let audit = self.accounts.realm(*account_mode).audit();
            let reason = "a part of it was archived during each read";
            self.add_inconclusive(Invariant::AuditSequence, &[&audit], reason);
        }
    }

    /// Compares the sizes of audit logs. Returns those of which a part was archived meanwhile.
    async fn compare_audit_sizes(
        &mut self,
        account_modes: Vec<AccountMode>,
    ) -> Result<Vec<AccountMode>, StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut again = Vec::new();
        let jobs = account_modes.into_iter().map(|account_mode| {
            let realm = accounts.realm(account_mode);
            let base = || archived(realm);
            let size = Read::list_length(realm.bucket(), realm.audit());
            let seq = Read::field(
                realm.bucket(),
                realm.record(),
                &ModeField::AuditSeq.name(account_mode.mode),
            );
            Job::new([base(), size, seq, base()], account_mode)
        });
        drive(store, jobs, |account_mode, mut answers| {
            let Some(base) = answers.read::<Option<u64>>() else {
                let key = accounts.realm(account_mode).audit_base();
                return self.add_violation(Invariant::AuditSequence, &[&key], "it is malformed");
            };
            let base = base.unwrap_or(0);
            let size = answers.read::<u64>();
            let now = answers.number().unwrap_or(0);
            if answers.number().unwrap_or(0) != base {
                return again.push(account_mode);
            }
            let given = self.page(account_mode).audit_seq;
            let last = size.map(|size| base.saturating_add(size));
            if last.is_none_or(|last| last < given || last > now) {
                let key = accounts.realm(account_mode).audit();
                let assigned = now.max(given);
                let detail = match size {
                    None => "it is not a list".to_owned(),
                    Some(size) => format!(
                        "it has {size} entries after {base} archived ones, but the last assigned number is {assigned}"
                    ),
                };
                self.add_violation(Invariant::AuditSequence, &[&key], detail);
            }
        })
        .await?;
        Ok(again)
    }

    async fn read_audit(&mut self) -> Result<(), StoreError> {
        let mut wanted: Vec<AccountMode> = self.accounts.account_modes().collect();
        for _ in 0..READ_ATTEMPTS {
            wanted = self.read_audit_lines(wanted).await?;
        }
        self.archived_meanwhile(&wanted);
        Ok(())
    }

    /// Reads the lines of audit logs. Returns the logs of which a part was archived meanwhile.
    async fn read_audit_lines(
        &mut self,
        account_modes: Vec<AccountMode>,
    ) -> Result<Vec<AccountMode>, StoreError> {
        let mut again = Vec::new();
        let live = self.read_live_parts(account_modes, &mut again).await?;
        let sums = self.check_lines(&live, &mut again).await?;
        for part in live {
            if let Some(sum) = sums.get(&part.account_mode) {
                self.compare_long_text(&part, *sum);
            }
        }
        Ok(again)
    }

    /// Reads the extent of each audit log in the store. Adds the logs of which a part was archived meanwhile to
    /// `again`.
    async fn read_live_parts(
        &self,
        account_modes: Vec<AccountMode>,
        again: &mut Vec<AccountMode>,
    ) -> Result<Vec<LivePart>, StoreError> {
        let accounts = self.accounts;
        let jobs = account_modes.into_iter().map(|account_mode| {
            let realm = accounts.realm(account_mode);
            let fields = [ModeField::AuditSeq, ModeField::AuditText].map(|field| field.name(realm.mode()));
            let record = Read::fields(realm.bucket(), realm.record(), &fields);
            let length = Read::list_length(realm.bucket(), realm.audit());
            Job::new([archived(realm), record, length, archived(realm)], account_mode)
        });
        let mut live = Vec::new();
        drive(self.store, jobs, |account_mode, mut answers| {
            let base = answers.number().unwrap_or(0);
            let mut fields = answers
                .read::<Vec<Option<String>>>()
                .unwrap_or_default()
                .into_iter();
            let seq = fields.next().flatten().and_then(|text| text.parse::<u64>().ok());
            let long_text = fields.next().flatten();
            // Lines that the list lacks are reported with its size.
            let length = answers.read::<u64>().unwrap_or(0);
            if answers.number().unwrap_or(0) != base {
                return again.push(account_mode);
            }
            live.push(LivePart {
                account_mode,
                base,
                count: seq.unwrap_or(0).saturating_sub(base).min(length),
                long_text,
            });
        })
        .await?;
        Ok(live)
    }

    /// Checks the numbers of the lines. Returns the bytes of the long entries of each log; of which a part was archived
    /// meanwhile is added to `again` instead.
    async fn check_lines(
        &mut self,
        live: &[LivePart],
        again: &mut Vec<AccountMode>,
    ) -> Result<HashMap<AccountMode, u64>, StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut sums: HashMap<AccountMode, u64> = live.iter().map(|part| (part.account_mode, 0)).collect();
        let jobs = live.iter().flat_map(|part| {
            let realm = accounts.realm(part.account_mode);
            (0..part.count).step_by(BATCH).map(move |first| {
                let count = (part.count - first).min(BATCH as u64);
                let lines = Read::list(realm.bucket(), realm.audit(), first, count);
                Job::new([lines, archived(realm)], (part, first)).with_weight(BATCH)
            })
        });
        drive(store, jobs, |(part, first), mut answers| {
            let (account_mode, base) = (part.account_mode, part.base);
            let entries = answers.read::<Vec<Vec<u8>>>().unwrap_or_default();
            if answers.number().unwrap_or(0) != base {
                if again.last() != Some(&account_mode) {
                    again.push(account_mode);
                }
                sums.remove(&account_mode);
                return;
            }
            self.count(entries.len());
            let mut numbered = entries.iter().zip(base + first + 1..);
            if let Some(sum) = sums.get_mut(&account_mode) {
                *sum += numbered
                    .clone()
                    .map(|(line, seq)| long_text(seq, line))
                    .sum::<u64>();
            }
            if let Some((entry, number)) = numbered.find(|(entry, number)| leading(entry) != Some(*number)) {
                let key = accounts.realm(account_mode).audit();
                let found =
                    leading(entry).map_or("a line without number".to_owned(), |is| format!("entry {is}"));
                let detail = format!("entry {number} is missing: {found} is in its place");
                self.add_violation(Invariant::AuditSequence, &[&key], detail);
            }
        })
        .await?;
        Ok(sums)
    }

    /// Compares the counter of long entries with the `sum` of their bytes.
    fn compare_long_text(&mut self, part: &LivePart, sum: u64) {
        let realm = self.accounts.realm(part.account_mode);
        if let Some((apart, detail)) = differs(part.long_text.as_deref(), sum, "long audit entries") {
            let record = format!("{} {}", realm.record(), ModeField::AuditText.name(realm.mode()));
            self.found
                .add_moving(Invariant::Counters, &[&record], apart, detail);
        }
    }

    async fn read_intent_lists(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut lists = Vec::new();
        for account_mode in accounts.account_modes() {
            let prefix = accounts.realm(account_mode).keys().prefix();
            let names = self.page(account_mode).intent_lists.iter();
            lists.extend(names.map(|name| (account_mode, format!("{prefix}{name}"))));
        }
        let jobs = lists.into_iter().map(|(account_mode, key)| {
            let bucket = accounts.realm(account_mode).bucket();
            let read = match waits(&key) {
                true => Read::sorted_length(bucket, &key),
                false => Read::list_length(bucket, &key),
            };
            Job::new([read], (account_mode, key))
        });
        let mut sized = Vec::new();
        drive(store, jobs, |(account_mode, key), mut answers| {
            match answers.read::<u64>() {
                Some(size) => sized.push((account_mode, key, size)),
                None => self.add_violation(Invariant::Intent, &[&key], "it is not a list of intents"),
            }
        })
        .await?;
        let jobs = sized.iter().flat_map(|(account_mode, key, size)| {
            let bucket = accounts.realm(*account_mode).bucket();
            (0..*size).step_by(BATCH).map(move |first| {
                let count = BATCH as u64;
                let read = match waits(key) {
                    true => Read::sorted(bucket, key, first, count),
                    false => Read::list(bucket, key, first, count),
                };
                Job::new([read], (*account_mode, key.as_str())).with_weight(BATCH / 2)
            })
        });
        drive(store, jobs, |(account_mode, key), mut answers| {
            let ids: Vec<String> = match waits(key) {
                true => {
                    let scored = answers.read::<Vec<(String, f64)>>().unwrap_or_default();
                    scored.into_iter().map(|(id, _)| id).collect()
                }
                false => answers.read().unwrap_or_default(),
            };
            self.count(ids.len());
            let Some(Key::Mode(_, _, ModeKey::Intents(index))) = Key::parse(key) else {
                return;
            };
            let parts = match index {
                IntentIndex::All => ["all", ""],
                IntentIndex::Kind(kind) => ["kind", kind],
                IntentIndex::Agent(agent) => ["agent", agent],
                IntentIndex::State(state) => ["state", state],
            };
            for id in ids {
                self.reconcile(Comparison::IntentList, Side::Match, (account_mode, &id), &parts);
            }
        })
        .await
    }
}

/// Returns whether it is the list of intents that wait for approval, which is a sorted set.
fn waits(key: &str) -> bool {
    key.strip_suffix(IntentState::PendingApproval.as_str())
        .is_some_and(|rest| rest.ends_with("/intents/state/"))
}

/// Reads the number of the last archived entry.
fn archived(realm: &Realm) -> Read {
    Read::field(realm.bucket(), realm.audit_base(), "seq")
}

/// Returns the number at the start of an entry.
fn leading(entry: &[u8]) -> Option<u64> {
    let word = entry.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_begins_with_its_number() {
        assert_eq!(leading(b"12 1795 {}"), Some(12));
        assert_eq!(leading(b"x 1795 {}"), None);
        assert_eq!(leading(b""), None);
    }

    #[test]
    fn an_agent_called_like_a_state_has_a_plain_list() {
        assert!(waits("{b0001}/acct_1/live/intents/state/pending_approval"));
        assert!(!waits("{b0001}/acct_1/live/intents/agent/pending_approval"));
        assert!(!waits("{b0001}/acct_1/live/intents/state/settled"));
    }
}
