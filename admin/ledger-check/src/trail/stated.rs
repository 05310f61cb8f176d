//! The records that the scan reads and the trail states: each side adds them to their comparison.

use super::records::{MADE, RecordInTrail, RecordKind, of_deposit, of_escrow, of_intent};
use crate::book::AccountMode;
use crate::pass::Pass;
use crate::reconcile::{Comparison, Side};
use domain::intent::IntentKind;
use store::deposit::{Deposit, DepositState};
use store::intent::IntentRecord;
use store::record_fields::{FieldValues, RecordFields};

impl Pass<'_> {
    /// Adds a record to its comparison with the trail: that of entry `seq`, or of the store if `None`.
    pub(super) fn reconcile_record(
        &mut self,
        account_mode: AccountMode,
        record: &RecordInTrail,
        seq: Option<u64>,
    ) {
        let comparison = match record.kind {
            RecordKind::Intent => Comparison::TrailIntent,
            RecordKind::Deposit => Comparison::TrailDeposit,
            RecordKind::Escrow => Comparison::TrailEscrow,
        };
        let side = match seq {
            Some(_) => Side::Match,
            None => Side::Record,
        };
        let parts: Vec<&str> = record.parts.iter().map(String::as_str).collect();
        self.reconcile(comparison, side, (account_mode, &record.name), &parts);
        if let Some(seq) = seq {
            let word = self.accounts.word(account_mode);
            self.reconciliation
                .add_entry(comparison, (word, &record.name), seq);
        }
    }

    /// Collects a run: its agent and its id.
    pub(crate) fn trail_run(&mut self, account_mode: AccountMode, run: (String, String)) {
        if self.with_trail {
            self.page(account_mode).runs.insert(run);
        }
    }

    /// Processes a settled intent, in the store or the archive.
    pub(crate) fn trail_intent(&mut self, account_mode: AccountMode, intent: &IntentRecord) {
        if !self.with_trail {
            return;
        }
        let day = intent.charged.map_or(0, |(day, _)| day);
        let spend = (intent.kind == IntentKind::Spend).then_some((intent.agent.as_str(), day));
        let record = RecordInTrail {
            kind: RecordKind::Intent,
            name: intent.id.clone(),
            parts: of_intent(intent.kind.as_str(), intent.amount.get(), spend),
        };
        self.reconcile_record(account_mode, &record, None);
    }

    /// Processes a deposit: its first state, and its cancellation.
    pub(crate) fn trail_deposit(&mut self, account_mode: AccountMode, deposit: &Deposit) {
        if !self.with_trail {
            return;
        }
        let cancelled = (deposit.state == DepositState::Cancelled).then_some(deposit.state);
        for state in [deposit.first].into_iter().chain(cancelled) {
            let record = RecordInTrail {
                kind: RecordKind::Deposit,
                name: deposit.id.clone(),
                parts: of_deposit(state.as_str(), deposit.amount.get(), deposit.wallet),
            };
            self.reconcile_record(account_mode, &record, None);
        }
    }

    /// Processes an escrow of the payer's account, with the fields of its valid record.
    pub(crate) fn trail_escrow(&mut self, account_mode: AccountMode, number: u64, fields: &FieldValues) {
        if !self.with_trail {
            return;
        }
        let record = RecordFields(fields);
        let number_or_zero = |name: &str| record.number(name).unwrap_or(0);
        let amount = number_or_zero("amount");
        let wallets = (number_or_zero("from"), number_or_zero("to"));
        let mut steps = vec![of_escrow(MADE, amount, Some(wallets))];
        let status = record.get("status").unwrap_or_default();
        let was_disputed =
            status == "refunded" || record.get("winner_kind") == Some(IntentKind::EscrowDispute.as_str());
        if was_disputed && status != "disputed" {
            steps.push(of_escrow("disputed", amount, None));
        }
        if matches!(status, "disputed" | "released" | "refunded") {
            steps.push(of_escrow(status, amount, None));
        }
        for parts in steps {
            let record = RecordInTrail {
                kind: RecordKind::Escrow,
                name: number.to_string(),
                parts,
            };
            self.reconcile_record(account_mode, &record, None);
        }
    }
}
