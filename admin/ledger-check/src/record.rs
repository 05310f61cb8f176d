//! The records that the scan reads immediately: intents, escrows, deposits, runs and holds.

use super::book::{AccountMode, HeldEscrow, OwnerHold};
use super::pass::Pass;
use super::reconcile::{Comparison, Side};
use super::scan::FoundRecord;
use super::violation::Invariant;
use domain::intent::{IntentKind, IntentState};
use store::call::hold::Hold;
use store::call::unsettled_holds::HoldState;
use store::deposit::{Deposit, DepositState};
use store::escrow::EscrowStatus;
use store::intent::{IntentRecord, is_claim};
use store::keys::Bucket;
use store::read::Answers;
use store::record_fields::{FieldValues, RecordFields};

impl Pass<'_> {
    pub(super) fn record(&mut self, record: FoundRecord, mut answers: Answers) {
        match record {
            FoundRecord::Hold { bucket, id, state } => self.hold(bucket, &id, state, answers),
            FoundRecord::Run(account_mode, run, key) => {
                self.trail_run(account_mode, run);
                self.named_run(&key, answers);
            }
            FoundRecord::Place(series, number) => self.placed(series, number, answers),
            FoundRecord::Users(account, key) => self.users(&account, &key, answers),
            FoundRecord::EmailLookup(key) => self.email_lookup(&key, answers),
            FoundRecord::KeyLookup(kind, key) => self.key_lookup(kind, key, answers),
            FoundRecord::Key(kind, account, id, key) => self.named_key(kind, (&account, &id, key), answers),
            FoundRecord::Intent(account_mode, id) => {
                let key = self.accounts.realm(account_mode).intent(&id);
                match answers.read::<FieldValues>() {
                    // It ended between the scan and the read.
                    Some(fields) if fields.is_empty() => {}
                    fields => {
                        if let Some(fields) = &fields {
                            self.add_text_of_intent(account_mode, fields);
                        }
                        self.intent(account_mode, &id, &key, fields.as_ref());
                    }
                }
            }
            FoundRecord::Escrow(account_mode, number) => {
                let key = self.accounts.realm(account_mode).escrow(number);
                let fields = answers.read::<FieldValues>().unwrap_or_default();
                self.add_text_of_escrow(account_mode, &fields);
                self.escrow(account_mode, number, &key, &fields);
            }
            FoundRecord::Deposit(account_mode, key) => match answers.read::<FieldValues>() {
                Some(fields) if fields.is_empty() => {}
                fields => match fields.as_ref().and_then(Deposit::from_fields) {
                    Some(deposit) => self.deposit(account_mode, &key, &deposit),
                    None => self.add_violation(Invariant::Pending, &[&key], "the deposit is malformed"),
                },
            },
        }
    }

    fn named_run(&mut self, key: &str, mut answers: Answers) {
        match answers.read::<Option<i128>>() {
            Some(spent) if spent.is_none_or(|spent| spent >= 0) => {}
            _ => self.add_violation(
                Invariant::Counters,
                &[key],
                "the spent amount of the run is invalid",
            ),
        }
    }

    fn intent(&mut self, account_mode: AccountMode, id: &str, key: &str, fields: Option<&FieldValues>) {
        if fields.is_some_and(is_claim) {
            return; // its outcome is in transit, or was never decided
        }
        let Some(intent) = fields.and_then(IntentRecord::from_fields) else {
            return self.add_violation(Invariant::Intent, &[key], "the record is malformed");
        };
        if intent.id != id {
            return self.add_violation(Invariant::Intent, &[key], format!("its id is {}", intent.id));
        }
        self.decided(account_mode, key, &intent);
        if matches!(intent.kind, IntentKind::Transfer | IntentKind::Deposit) {
            return;
        }
        for parts in [
            ["all", ""],
            ["kind", intent.kind.as_str()],
            ["agent", &intent.agent],
            ["state", intent.state.as_str()],
        ] {
            self.reconcile(Comparison::IntentList, Side::Record, (account_mode, id), &parts);
        }
    }

    /// Checks a decided intent, in the store or the archive.
    pub(super) fn decided(&mut self, account_mode: AccountMode, key: &str, intent: &IntentRecord) {
        if !intent.is_intact() {
            let detail = "its timeline does not match its stored hash";
            self.add_violation(Invariant::Intent, &[key], detail);
        }
        let is_intent = !matches!(intent.kind, IntentKind::Transfer | IntentKind::Deposit);
        if is_intent && intent.state == IntentState::Settled {
            self.trail_intent(account_mode, intent);
            self.settled(account_mode, key, intent);
        }
    }

    fn settled(&mut self, account_mode: AccountMode, key: &str, intent: &IntentRecord) {
        if let Some(transaction) = &intent.transaction {
            let parts = [transaction.as_str(), &intent.amount.get().to_string()];
            self.reconcile(
                Comparison::IntentTransaction,
                Side::Record,
                (account_mode, &intent.id),
                &parts,
            );
        }
        let moved = intent.transaction.is_some();
        match (intent.kind, intent.escrow) {
            (IntentKind::Spend, _) => {
                if intent.balance.is_some() != moved {
                    let detail = "it has only one of balance and transaction";
                    self.add_violation(Invariant::Intent, &[key], detail);
                }
                match intent.charged {
                    None => self.add_violation(Invariant::Intent, &[key], "it has no charged period"),
                    Some(period) => {
                        let charged = &mut self.owner(account_mode, &intent.agent).charged;
                        *charged.entry(period).or_default() += u128::from(intent.amount.get());
                    }
                }
            }
            (IntentKind::EscrowRelease | IntentKind::EscrowDispute, Some(escrow)) => {
                let escrow = escrow.to_string();
                self.reconcile_across(Comparison::EscrowWinner, Side::Match, &escrow, &[&intent.id]);
            }
            (IntentKind::EscrowFund, Some(_)) if !moved => {
                self.add_violation(
                    Invariant::Intent,
                    &[key],
                    "the escrow was funded without a transaction",
                );
            }
            (IntentKind::EscrowCreate | IntentKind::EscrowFund, Some(_))
            | (IntentKind::Transfer | IntentKind::Deposit, _) => {}
            (_, None) => self.add_violation(Invariant::Intent, &[key], "it names no escrow"),
        }
    }

    fn deposit(&mut self, account_mode: AccountMode, key: &str, deposit: &Deposit) {
        let amount = deposit.amount.get();
        if self.accounts.realm(account_mode).deposit(&deposit.reference) != key {
            self.add_violation(Invariant::Pending, &[key], "its reference does not match its key");
        }
        self.trail_deposit(account_mode, deposit);
        if deposit.state == DepositState::Confirmed {
            let parts = [amount.to_string(), deposit.wallet.to_string()];
            let parts = parts.each_ref().map(String::as_str);
            self.reconcile(
                Comparison::Deposit,
                Side::Record,
                (account_mode, &deposit.id),
                &parts,
            );
        }
        if deposit.state == DepositState::Pending {
            self.named_deposit(account_mode, key, &deposit.reference);
        }
        self.pending(account_mode, deposit);
    }

    fn escrow(&mut self, account_mode: AccountMode, number: u64, key: &str, fields: &FieldValues) {
        let to_account = RecordFields(fields).get("to_account");
        self.named_escrow(account_mode, number, to_account);
        let Some(escrow) = EscrowFields::parse(number, fields) else {
            return self.add_violation(Invariant::EscrowState, &[key], "the record is malformed");
        };
        let (number_text, amount) = (number.to_string(), escrow.amount.to_string());
        let here = |account: &str| self.accounts.find(account).is_some();
        let mut items: Vec<(Comparison, Vec<&str>)> = Vec::new();
        if escrow.status != "pending" {
            items.push((Comparison::EscrowMoney, vec!["fund", &amount, escrow.from]));
        }
        match escrow.status {
            "released" if here(escrow.to_account) => {
                items.push((
                    Comparison::EscrowMoney,
                    vec!["release", &amount, escrow.to_account],
                ));
            }
            "refunded" => {
                let payer = self.accounts.id(account_mode);
                items.push((Comparison::EscrowMoney, vec!["refund", &amount, payer]));
            }
            _ => {}
        }
        match escrow.winner {
            Some((winner, account)) if here(account) => items.push((Comparison::EscrowWinner, vec![winner])),
            None if matches!(escrow.status, "released" | "disputed" | "refunded") => {
                let detail = "it is resolved but names no intent that resolved it";
                self.found.add(Invariant::EscrowState, &[key], detail);
            }
            _ => {}
        }
        for (comparison, parts) in items {
            self.reconcile_across(comparison, Side::Record, &number_text, &parts);
        }
        self.wallets_of_escrow(account_mode, key, &escrow);
        self.trail_escrow(account_mode, number, fields);
        if let Some(funded) = escrow.funded_at {
            let when = (funded, escrow.resolved_at);
            self.flows[account_mode.index() % 2].escrow((number, escrow.amount), when, &self.rows);
        }
        if matches!(escrow.status, "funded" | "disputed") {
            let held = HeldEscrow {
                number,
                from_owner: escrow.from_owner.to_owned(),
                to_account: escrow.to_account.to_owned(),
                to_owner: escrow.to_owner.to_owned(),
            };
            self.page(account_mode).held.push(held);
        }
    }

    fn hold(&mut self, bucket: Bucket, id: &str, state: HoldState, mut answers: Answers) {
        let text = answers.text();
        let listed = answers.read::<Option<f64>>().flatten();
        let after = answers.text();
        // Resolved or extended during the read, or the tombstone of a voided one.
        if text.is_none() || text != after || text.as_deref() == Some("V") {
            return;
        }
        let key = state.record(bucket, id);
        let Some(hold) = text.and_then(|text| Hold::parse(id, &text)) else {
            return self.add_violation(Invariant::Holds, &[&key], "the hold is malformed");
        };
        let mode = domain::mode::Mode::Live;
        let Some(account) = self.accounts.find(&hold.name.account) else {
            if !self.accounts.partial {
                self.add_violation(Invariant::Holds, &[&key], "its account does not exist");
            }
            return;
        };
        if listed.is_none() {
            let index = state.index(bucket);
            self.add_violation(Invariant::Holds, &[&key, &index], "the hold is not in its index");
        }
        let holds = &mut self.owner(AccountMode { account, mode }, &hold.name.agent).holds;
        if !holds.iter().any(|other| other.id == id) {
            holds.push(OwnerHold {
                id: id.to_owned(),
                state,
                period: hold.period,
                nanos: hold.estimate.get(),
            });
        }
    }
}

/// The compared fields of an escrow's record.
pub(super) struct EscrowFields<'a> {
    status: &'a str,
    amount: u64,
    pub(super) from: &'a str,
    pub(super) from_owner: &'a str,
    pub(super) to: &'a str,
    pub(super) to_account: &'a str,
    pub(super) to_owner: &'a str,
    funded_at: Option<u64>,
    resolved_at: Option<u64>,
    /// The intent that resolved it, and the account of the intent.
    winner: Option<(&'a str, &'a str)>,
}

impl<'a> EscrowFields<'a> {
    /// Parses the fields; `None` if they are not a valid record of escrow `number`.
    fn parse(number: u64, fields: &'a FieldValues) -> Option<Self> {
        let record = RecordFields(fields);
        let escrow = Self {
            status: record.get("status")?,
            amount: record.number("amount")?,
            from: record.get("from")?,
            from_owner: record.get("from_owner")?,
            to: record.get("to")?,
            to_account: record.get("to_account")?,
            to_owner: record.get("to_owner")?,
            funded_at: record.optional("funded_at")?,
            resolved_at: record.optional("resolved_at")?,
            winner: record.get("winner").zip(record.get("winner_account")),
        };
        let is_known = EscrowStatus::parse(escrow.status).is_some();
        (is_known && record.number("id") == Some(number)).then_some(escrow)
    }
}
