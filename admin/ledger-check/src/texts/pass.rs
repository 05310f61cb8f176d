//! Reads the counters of text and the texts, and compares them.

use super::{PassTexts, RECENT_MS, RecentEscrow, TextSum, differs};
use crate::book::AccountMode;
use crate::drive::{Job, drive};
use crate::pass::Pass;
use crate::violation::Invariant;
use store::account::ModeField;
use store::keys::Realm;
use store::read::Read;
use store::record_fields::{FieldValues, RecordFields};
use store::{StoreError, server_clock};

impl Pass<'_> {
    /// Reads the counters, before the scan.
    pub(crate) async fn read_text_counters(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let read_ms = server_clock::now_ms(store).await?;
        let jobs = accounts.account_modes().map(|account_mode| {
            let realm = accounts.realm(account_mode);
            let fields = [counter(realm), format!("{}_intent_seq", realm.mode())];
            let record = Read::fields(realm.bucket(), realm.record(), &fields);
            Job::new([segments(realm), record], ())
        });
        let mut sums = Vec::new();
        drive(store, jobs, |(), mut answers| {
            let segments = answers.read::<u64>().unwrap_or(0);
            let mut fields = answers
                .read::<Vec<Option<String>>>()
                .unwrap_or_default()
                .into_iter();
            let says = fields.next().flatten();
            let last = fields.next().flatten().and_then(|text| text.parse().ok());
            sums.push(TextSum {
                says,
                last: last.unwrap_or(0),
                segments,
                sum: 0,
            });
        })
        .await?;
        self.texts = PassTexts {
            sums,
            read_ms,
            recent: Vec::new(),
        };
        Ok(())
    }

    /// Adds the text of an intent. Records of transfers and deposits have no number, and count elsewhere.
    pub(crate) fn add_text_of_intent(&mut self, account_mode: AccountMode, fields: &FieldValues) {
        let record = RecordFields(fields);
        let seq = record.number::<u64>("seq");
        if let (Some(seq), Some(sum)) = (seq, self.texts.sum(account_mode))
            && seq <= sum.last
        {
            sum.sum += record.length("request") + record.length("note");
        }
    }

    pub(crate) fn add_text_of_escrow(&mut self, account_mode: AccountMode, fields: &FieldValues) {
        let record = RecordFields(fields);
        let bytes = record.length("conditions");
        let created_ms = record.number::<u64>("created_at");
        match record.text("intent") {
            Some(intent) if created_ms.is_some_and(|ms| ms + RECENT_MS > self.texts.read_ms) => {
                self.texts.recent.push(RecentEscrow {
                    account_mode,
                    intent,
                    bytes,
                });
            }
            _ => {
                if let Some(sum) = self.texts.sum(account_mode) {
                    sum.sum += bytes;
                }
            }
        }
    }

    /// Compares the counters with the sums, after the scan.
    pub(crate) async fn check_texts(&mut self) -> Result<(), StoreError> {
        let (store, accounts) = (self.store, self.accounts);
        let mut texts = std::mem::take(&mut self.texts);
        let recent = std::mem::take(&mut texts.recent);
        let jobs = recent.into_iter().map(|escrow| {
            let realm = accounts.realm(escrow.account_mode);
            let seq = Read::field(realm.bucket(), realm.intent(&escrow.intent), "seq");
            Job::new([seq], escrow)
        });
        drive(store, jobs, |escrow, mut answers| {
            // An archived intent, which is no longer there, is old.
            let seq = answers.number().unwrap_or(0);
            if let Some(sum) = texts.sum(escrow.account_mode)
                && seq <= sum.last
            {
                sum.sum += escrow.bytes;
            }
        })
        .await?;
        let jobs = accounts
            .account_modes()
            .zip(texts.sums)
            .map(|(account_mode, sum)| {
                Job::new([segments(accounts.realm(account_mode))], (account_mode, sum))
            });
        drive(store, jobs, |(account_mode, sum), mut answers| {
            let is_same = answers.read::<u64>().unwrap_or(0) == sum.segments;
            self.compare_text(account_mode, &sum, is_same);
        })
        .await
    }

    fn compare_text(&mut self, account_mode: AccountMode, text: &TextSum, is_same: bool) {
        let realm = self.accounts.realm(account_mode);
        let record = format!("{} {}", realm.record(), counter(realm));
        if let Some((apart, detail)) = differs(text.says.as_deref(), text.sum, "intents and escrows") {
            if is_same {
                return self
                    .found
                    .add_moving(Invariant::Counters, &[&record], apart, detail);
            }
            let reason = "intents were archived while they were read";
            self.add_inconclusive(Invariant::Counters, &[&record], reason);
        }
    }
}

fn counter(realm: &Realm) -> String {
    ModeField::TextBytes.name(realm.mode())
}

fn segments(realm: &Realm) -> Read {
    Read::list_length(realm.bucket(), realm.intent_segments())
}
