//! Requests, deposits, runs, escrows and rows in transit, as the store should hold them.

use super::{Cells, Page, cells};
use crate::model::{At, Escrow, Model, Request, Transit, USD, account, keys, mode, realm};
use crate::snapshot::{Row, Shape};
use std::collections::{BTreeMap, BTreeSet};
use store::keys::{AccountKeys, IntentIndex};

impl Model {
    pub(super) fn requests_of(&self, page: &mut Page, at: At) {
        let (side, realm) = (&self.sides[at], realm(at));
        for (id, request) in &side.requests {
            let key = realm.intent(id);
            let mut record = request.render(id);
            if let Some((seq, filed)) = side.places.get(id) {
                record.insert("seq".to_owned(), seq.to_string());
                record.extend(filed.map(|filed| ("filed".to_owned(), filed.to_string())));
            }
            page.put(key.clone(), Shape::Intent(record));
            if let Some(expires) = request.expires {
                page.expire(&key, expires);
            }
        }
        for (id, fp) in &side.claims {
            let claim = cells([("id", id), ("state", "claimed"), ("fp", fp)]);
            page.put(realm.intent(id), Shape::Hash(claim));
        }
        page.put(realm.intents(IntentIndex::All), Shape::List(side.order.clone()));
        let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for id in &side.order {
            let request = &side.requests[id];
            for which in [
                IntentIndex::Kind(request.kind),
                IntentIndex::Agent(&request.agent),
            ] {
                lists.entry(realm.intents(which)).or_default().push(id.clone());
            }
        }
        for (key, ids) in lists {
            page.put(key, Shape::List(ids));
        }
        let state = |state| realm.intents(IntentIndex::State(state));
        page.put(state("settled"), Shape::List(side.settled.clone()));
        page.put(state("blocked"), Shape::List(side.blocked.clone()));
        page.put(state("pending_approval"), Shape::Zset(side.waiting.clone()));
        self.deposits_of(page, at);
        self.runs_of(page, at);
    }

    fn deposits_of(&self, page: &mut Page, at: At) {
        for (reference, deposit) in &self.sides[at].deposits {
            let state = |pending: bool| if pending { "pending" } else { "confirmed" };
            let mut record = cells([
                ("id", &deposit.id),
                ("reference", reference),
                ("owner", &deposit.owner),
                ("number", &deposit.wallet.to_string()),
                ("amount", &deposit.amount.to_string()),
                ("currency", USD),
                (
                    "state",
                    deposit
                        .cancelled
                        .as_ref()
                        .map_or(state(deposit.pending), |_| "cancelled"),
                ),
                ("first", state(deposit.first_pending)),
                ("at", &deposit.at),
                ("first_balance", &deposit.first_balance.to_string()),
            ]);
            if let Some((moment, balance)) = &deposit.confirmed {
                record.extend(cells([
                    ("confirmed_at", moment),
                    ("balance", &balance.to_string()),
                ]));
            }
            if let Some(moment) = &deposit.cancelled {
                record.extend(cells([("cancelled_at", moment)]));
            }
            page.put(realm(at).deposit(reference), Shape::Hash(record));
        }
    }

    fn runs_of(&self, page: &mut Page, at: At) {
        for ((agent, name), run) in &self.sides[at].runs {
            let key = realm(at).run(agent, name);
            let mut record = cells([("first", &run.first), ("last", &run.last)]);
            if let Some(calls) = run.calls {
                let spent = self.run_spent(at, agent, name).to_string();
                record.extend(cells([("spent", &spent), ("calls", &calls.to_string())]));
            }
            if run.denied > 0 {
                record.extend(cells([("denied", &run.denied.to_string())]));
            }
            if run.called {
                record.extend(cells([("called", "1")]));
            }
            if let Some(status) = run.status {
                record.extend(cells([("status", status), ("ended", "1")]));
            }
            page.put(key.clone(), Shape::Hash(record));
            page.expire(&key, run.expires);
        }
        let side = &self.sides[at];
        let counted = side.runs.iter();
        let mut counted: BTreeMap<_, _> = counted
            .map(|((agent, name), run)| (format!("{agent}/{name}"), run.last.clone()))
            .collect();
        let before = side.counted_before.iter();
        counted.extend(before.map(|agent| (format!("{agent}/ended"), "1".to_owned())));
        let all_runs = realm(at).all_runs();
        page.put(all_runs.clone(), Shape::Zset(counted));
        if let Some(expires) = side.counted_expires {
            page.expire(&all_runs, expires);
        }
        let named = side.runs.keys().map(|(agent, _)| agent);
        let agents: BTreeSet<&String> = named.chain(&side.listed_before).collect();
        for agent in agents {
            let runs = side.runs.iter().filter(|((of, _), _)| of == agent);
            let mut listed: BTreeMap<_, _> = runs
                .map(|((_, name), run)| (name.clone(), run.last.clone()))
                .collect();
            if side.listed_before.contains(agent) {
                listed.insert("ended".to_owned(), "1".to_owned());
            }
            let index = realm(at).runs(agent);
            page.put(index.clone(), Shape::Zset(listed));
            if let Some(expires) = side.listed_expires.get(agent) {
                page.expire(&index, *expires);
            }
        }
    }

    pub(super) fn escrows_of(&self, page: &mut Page) {
        for escrow in self.escrows.values() {
            let (realm, number) = (realm(escrow.at), escrow.number);
            page.put(realm.escrow(number), Shape::Hash(escrow.render()));
            let siblings = escrow
                .siblings
                .iter()
                .map(|(at, id)| format!("{} {id}", account(*at)));
            page.put(realm.escrow_siblings(number), Shape::List(siblings.collect()));
        }
    }

    pub(super) fn on_the_way(&self, page: &mut Page) {
        let mut rows: BTreeMap<String, BTreeMap<String, Row>> = BTreeMap::new();
        for transit in self
            .sent
            .iter()
            .filter(|transit| self.waiting.contains(&transit.id))
        {
            let key = keys(transit.from).bucket().transit();
            rows.entry(key)
                .or_default()
                .insert(transit.id.clone(), transit.render());
        }
        for (key, rows) in rows {
            page.put(key, Shape::Rows(rows));
        }
        for notice in &self.notices {
            let bucket = AccountKeys::new(account(notice.to)).bucket();
            let key = bucket.arrived(&format!("{}:notice", notice.id));
            page.put(key, Shape::Text(notice.at.clone()));
        }
        for arrival in &self.arrivals {
            let key = AccountKeys::new(account(arrival.to))
                .bucket()
                .arrived(&arrival.id);
            page.put(key.clone(), Shape::Text(arrival.at.clone()));
            if let Some(expires) = arrival.expires {
                page.expire(&key, expires);
            }
        }
    }
}

impl Request {
    /// All fields but the head.
    fn render(&self, id: &str) -> Cells {
        let mut record = cells([
            ("id", id),
            ("kind", self.kind),
            ("fp", &self.fp),
            ("amount", &self.amount.to_string()),
            ("currency", USD),
            ("actor", self.actor),
            ("agent", &self.agent),
            ("at", &self.at),
            ("request", &self.request),
            ("state", self.state),
            ("first", self.first),
            ("reason", self.reason),
        ]);
        let input: serde_json::Value = serde_json::from_str(&self.request).unwrap_or_default();
        let run = input["runId"].as_str().unwrap_or_default().to_owned();
        let optional = [
            ("run", (self.kind == "spend").then_some(run)),
            ("note", self.note.clone()),
            ("txn", self.txn.clone()),
            ("escrow", self.escrow.map(|number| number.to_string())),
            ("balance", self.balance.clone()),
            ("wallet_number", self.wallet.clone()),
            ("policy", self.charged.as_ref().map(|(policy, _)| policy.clone())),
            (
                "day",
                self.charged.as_ref().map(|(_, period)| period.day.to_string()),
            ),
            (
                "month",
                self.charged.as_ref().map(|(_, period)| period.month.to_string()),
            ),
        ];
        record.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
        if let Some((granted, by, at)) = &self.decision {
            let word = if *granted { "granted" } else { "denied" };
            record.extend(cells([
                ("decision", word),
                ("decided_by", by),
                ("decided_at", &at.to_string()),
            ]));
        }
        record
    }
}

impl Escrow {
    fn render(&self) -> Cells {
        let mut record = cells([
            ("id", &self.number.to_string()),
            ("status", self.status),
            ("amount", &self.amount.to_string()),
            ("currency", USD),
            ("from", &self.from.1.to_string()),
            ("from_owner", &self.from.0),
            ("to", &self.to.1.to_string()),
            ("to_account", account(self.to_at)),
            ("to_owner", &self.to.0),
            ("conditions", &self.conditions),
            ("intent", &self.intent),
            ("created_at", &self.made),
            ("updated_at", &self.updated),
        ]);
        let optional = [
            ("dispute_reason", &self.dispute_reason),
            ("funded_at", &self.funded),
            ("resolved_at", &self.resolved),
        ];
        for (name, value) in optional {
            record.extend(value.as_ref().map(|value| (name.to_owned(), value.clone())));
        }
        if let Some((id, at, kind)) = &self.winner {
            let won = [
                ("winner", id.as_str()),
                ("winner_account", account(*at)),
                ("winner_kind", kind),
            ];
            record.extend(cells(won));
        }
        record
    }
}

impl Transit {
    /// The compared fields of the row, by JSON pointer.
    fn render(&self) -> Row {
        let text = |text: &str| text.to_owned();
        let mut row = vec![
            ("/id", self.id.clone()),
            ("/from_account", text(account(self.from))),
            ("/to_account", text(account(self.to))),
            ("/mode", text(mode(self.to).as_str())),
            ("/to_owner", self.owner.clone()),
            ("/to_wallet", self.wallet.to_string()),
            (
                "/lists",
                self.lists.map_or_else(|| text("-"), |number| number.to_string()),
            ),
            (
                "/escrow",
                self.escrow.map_or_else(|| text("-"), |number| number.to_string()),
            ),
            (
                "/intent/id",
                self.intent
                    .as_ref()
                    .map_or_else(|| text("-"), |(id, _)| id.clone()),
            ),
        ];
        match &self.credit {
            None => row.push(("/credit", text("-"))),
            Some(credit) => row.extend([
                ("/credit/nanos", credit.amount.to_string()),
                ("/credit/kind", text(credit.kind.as_str())),
                ("/credit/transaction", credit.id.clone()),
                ("/credit/counterparty", credit.other.clone()),
                ("/credit/currency", text(USD)),
                ("/credit/memo", credit.memo.clone().unwrap_or_else(|| text("-"))),
            ]),
        }
        row
    }
}
