//! Records of the model: wallet, movement, charge, request, deposit, escrow and transit.

use super::At;
use crate::act::{ACTOR, RequestId};
use crate::names::Window;
use crate::snapshot::Entry;
use domain::period::Period;
use std::collections::{BTreeMap, BTreeSet};
use store::transaction::TransactionType;

/// The identity of a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub at: At,
    pub owner: String,
    pub number: u64,
    pub id: String,
}

#[derive(Debug, Clone, Default)]
pub struct Side {
    pub agents: BTreeMap<String, Agent>,
    pub user: Option<Wallet>,
    pub closed: Vec<Closed>,
    pub movements: Vec<Movement>,
    pub charges: Vec<Charge>,
    pub runs: BTreeMap<(String, String), Run>,
    /// Agents whose index lists a run that has ended.
    pub listed_before: BTreeSet<String>,
    /// The same for the index of all agents' runs.
    pub counted_before: BTreeSet<String>,
    /// When the index of an agent's runs expires, once a run was seen.
    pub listed_expires: BTreeMap<String, Window>,
    /// When the index of all agents' runs expires.
    pub counted_expires: Option<Window>,
    /// Intents, transfers and deposits by id.
    pub requests: BTreeMap<String, Request>,
    /// Ids claimed by requests that another account decides, with their fingerprints.
    pub claims: BTreeMap<String, String>,
    /// Ids of intents in order of arrival; `settled` and `blocked` in the order of their final states.
    pub order: Vec<String>,
    pub settled: Vec<String>,
    pub blocked: Vec<String>,
    /// The number of each intent in the lists, and the one of its decision; then the last number given.
    pub places: BTreeMap<String, (usize, Option<usize>)>,
    pub last_place: usize,
    /// Pending intents, and since when they are pending.
    pub waiting: BTreeMap<String, String>,
    pub deposits: BTreeMap<String, Deposit>,
    pub policies: BTreeMap<String, Policy>,
    /// Escrows noted as open, by owner.
    pub open: BTreeMap<String, BTreeSet<u64>>,
    /// Escrows listed.
    pub escrows: BTreeSet<u64>,
    pub audit: Vec<Entry>,
    /// Recorded refusals under a key: the span of the last one, the count in that span, and in the span before.
    pub refusals: Option<(u64, u64, u64)>,
}

#[derive(Debug, Clone, Default)]
pub struct Agent {
    pub wallet: Option<Wallet>,
    pub frozen: Option<&'static str>,
    /// When the agent was frozen.
    pub frozen_at: Option<String>,
    pub policy: Option<String>,
    pub virtual_keys: BTreeSet<String>,
    pub provider_key: bool,
    /// More counters, of days long past.
    pub old: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub struct Wallet {
    pub number: u64,
    pub id: String,
    /// True since the first announced deposit: the field exists from then on.
    pub awaits: bool,
    pub spend_limit: Option<u64>,
    pub made: String,
    /// When the balance, the pending deposits or its agent's freeze last changed.
    pub updated: String,
}

#[derive(Debug, Clone)]
pub struct Closed {
    pub wallet: Wallet,
    pub agent: String,
    pub at: String,
}

#[derive(Debug, Clone)]
pub struct Movement {
    pub at: String,
    pub wallet: u64,
    pub owner: String,
    pub kind: TransactionType,
    pub amount: u64,
    pub id: String,
    pub intent: Option<String>,
    pub other: String,
    pub memo: Option<String>,
}

/// A charge of the counters.
#[derive(Debug, Clone)]
pub struct Charge {
    pub agent: String,
    pub amount: u64,
    pub run: Option<String>,
    pub from_wallet: bool,
    pub period: Period,
}

#[derive(Debug, Clone)]
pub struct Run {
    pub first: String,
    pub last: String,
    /// `None` before the first settled spend.
    pub calls: Option<u64>,
    pub denied: u64,
    pub expires: Window,
    /// The status of a run that has ended.
    pub status: Option<&'static str>,
    /// Whether a void of its calls may remove it, as `authorize` writes it.
    pub called: bool,
}

#[derive(Debug, Clone)]
pub struct Request {
    pub kind: &'static str,
    pub fp: String,
    pub amount: u64,
    pub actor: &'static str,
    pub agent: String,
    pub at: String,
    pub request: String,
    pub note: Option<String>,
    pub txn: Option<String>,
    pub escrow: Option<u64>,
    pub state: &'static str,
    pub first: &'static str,
    pub reason: &'static str,
    pub balance: Option<String>,
    /// The policy and the period of a spend that was charged.
    pub charged: Option<(String, Period)>,
    pub decision: Option<(bool, &'static str, u64)>,
    /// The wallet's number, if the spend was pending; empty without a wallet.
    pub wallet: Option<String>,
    /// Set for transfers and deposits: their records expire and are not listed.
    pub expires: Option<Window>,
}

#[derive(Debug, Clone)]
pub struct Deposit {
    pub id: String,
    pub wallet: u64,
    pub owner: String,
    pub amount: u64,
    pub pending: bool,
    pub first_pending: bool,
    pub first_balance: i128,
    pub at: String,
    pub confirmed: Option<(String, i128)>,
    pub cancelled: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub disabled: bool,
    pub run: Option<u64>,
    pub day: Option<u64>,
    pub month: Option<u64>,
    pub txn: Option<u64>,
    pub approval: Option<u64>,
    pub low: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Policy {
    pub agent: Option<String>,
    pub limits: Limits,
    pub made: String,
    pub set: String,
    pub revision: u64,
}

#[derive(Debug, Clone)]
pub struct Escrow {
    pub number: u64,
    pub at: At,
    pub from: (String, u64),
    pub to_at: At,
    pub to: (String, u64),
    pub status: &'static str,
    pub amount: u64,
    pub intent: String,
    pub conditions: String,
    pub dispute_reason: Option<String>,
    pub made: String,
    pub updated: String,
    pub funded: Option<String>,
    pub resolved: Option<String>,
    pub winner: Option<(String, At, &'static str)>,
    pub siblings: Vec<(At, String)>,
}

/// A departure from one account to another.
#[derive(Debug, Clone)]
pub struct Transit {
    pub id: String,
    pub from: At,
    pub to: At,
    pub owner: String,
    pub wallet: u64,
    /// The movement at the receiver; its wallet and owner are those above, unless that wallet is closed.
    pub credit: Option<Movement>,
    pub escrow: Option<u64>,
    /// The escrow that the receiver lists; such a row does nothing else.
    pub lists: Option<u64>,
    pub intent: Option<(String, Request)>,
    pub entry: Entry,
}

#[derive(Debug, Clone)]
pub struct Arrival {
    pub id: String,
    pub to: At,
    pub at: String,
    pub expires: Option<Window>,
}

impl Side {
    /// Lists a pending intent after its decision.
    pub fn decided(&mut self, id: &str, moment: &str) {
        self.file(id, moment);
        self.last_place += 1;
        let place = self.places.get_mut(id).expect("a place");
        place.1 = Some(self.last_place);
    }

    /// Lists an intent by its state.
    pub fn file(&mut self, id: &str, moment: &str) {
        self.waiting.remove(id);
        match self.requests[id].state {
            "settled" => self.settled.push(id.to_owned()),
            "blocked" => self.blocked.push(id.to_owned()),
            _ => drop(self.waiting.insert(id.to_owned(), moment.to_owned())),
        }
    }
}

impl Movement {
    pub fn signed(&self) -> i128 {
        match self.kind.sign() {
            "-" => -i128::from(self.amount),
            _ => i128::from(self.amount),
        }
    }
}

impl Request {
    pub fn new(kind: &'static str, request_id: &RequestId, owner: &str, amount: u64) -> Self {
        Self {
            kind,
            fp: request_id.fp.clone(),
            amount,
            actor: ACTOR,
            agent: owner.to_owned(),
            at: request_id.at_ms.to_string(),
            request: "{}".to_owned(),
            note: None,
            txn: None,
            escrow: None,
            state: "settled",
            first: "settled",
            reason: "",
            balance: None,
            charged: None,
            decision: None,
            wallet: None,
            expires: None,
        }
    }
}
