//! A store and the model side by side: each action is done to both, then both must agree in everything.

mod execute;
mod execute_agents;
mod execute_escrows;

pub use harness::scripts::{Checked, within_one_day};

use crate::act::Act;
use crate::model::{ACCOUNTS, At, Drawn, Model, realm};
use crate::names::Window;
use harness::scripts::{compare, crashing_at, install};
use std::collections::BTreeMap;
use store::Store;
use store::audit::long_text;
use store::keys::{AccountKeys, IntentIndex, Series};
use store::script::Script;
use store::transaction::LONG_TRANSACTION;
use store::transit::Transit;
use store::versions::AccountVersion;

/// Longest attempt, in ms.
const LONGEST_MS: u64 = 60_000;

pub struct ModelFixture {
    store: Store,
    /// The same store for a process that crashes before each delivery.
    crashing: Store,
    pub model: Model,
    /// Every row that was ever in transit, by id.
    rows: BTreeMap<String, Transit>,
}

impl ModelFixture {
    /// Removes a claim directly in the store.
    pub async fn forget_claim(&mut self, at: At, id: &str) -> Checked {
        self.model.sides[at].claims.remove(id);
        let key = realm(at).intent(id);
        let gone: Result<i64, _> = self.store.command(redis::cmd("DEL").arg(key)).await;
        gone.map(drop).map_err(|error| format!("{error:?}"))
    }

    /// Removes an intent as an archiver does.
    pub async fn archive(&mut self, at: At, id: &str) -> Checked {
        let realm = realm(at);
        let request = self.model.request(at, id).ok_or("no intent")?;
        let lists = [
            IntentIndex::All,
            IntentIndex::Kind(request.kind),
            IntentIndex::Agent(&request.agent),
            IntentIndex::State(request.state),
        ];
        let mut remove = redis::pipe();
        remove.cmd("DEL").arg(realm.intent(id)).ignore();
        for list in lists {
            remove
                .cmd("LREM")
                .arg(realm.intents(list))
                .arg(1)
                .arg(id)
                .ignore();
        }
        self.model.archive(at, id);
        let (account, count) = (realm.keys().record(), format!("{}_text_bytes", realm.mode()));
        match self.model.text_bytes(at) {
            0 => remove.cmd("HDEL").arg(account).arg(count),
            bytes => remove.cmd("HSET").arg(account).arg(count).arg(bytes),
        };
        let removed: Result<(i64,), _> = self.store.pipeline(&remove).await;
        removed.map(drop).map_err(|error| format!("{error:?}"))
    }

    /// A store with the records of the model.
    pub async fn with_model(store: &Store, mut model: Model) -> Result<Self, String> {
        model.names.settle();
        install(store, &ACCOUNTS, &model.render(), &model.names).await?;
        Ok(Self {
            store: store.clone(),
            crashing: crashing_at(&crashing_at(store, "transit_arrive"), "escrow_list"),
            model,
            rows: BTreeMap::new(),
        })
    }

    /// Performs an action on both and compares everything.
    pub async fn go(&mut self, act: &Act) -> Result<String, String> {
        let from = clock::now_ms();
        let found = self.perform(act).await;
        let to = clock::now_ms();
        let found = found.map_err(|error| format!("{act:?}: {error}"))?;
        self.model.window = Window { from, to };
        self.model.found = self.drawn().await?;
        let expected = self.model.act(act);
        if !self.model.names.agree(&expected, &found) {
            let expected = self.model.names.show(&expected);
            return Err(format!("{act:?} answered {found:?}, expected {expected:?}"));
        }
        self.see_transits().await?;
        let compared = self.compared().await;
        compared.map_err(|error| format!("after {act:?}: {error}"))?;
        self.model
            .is_conserved()
            .map_err(|error| format!("after {act:?}: {error}"))?;
        self.versions_are_known()
            .await
            .map_err(|error| format!("after {act:?}: {error}"))?;
        Ok(expected)
    }

    /// Compares the store with the model.
    async fn compared(&mut self) -> Checked {
        for at in 0..self.model.audit_texts.len() {
            let lines = self.audit_lines(at).await?;
            let texts = (1..).zip(&lines).map(|(seq, line)| long_text(seq, line));
            self.model.audit_texts[at] = texts.sum();
            self.model.kept_texts[at] = self.kept_text(at).await?;
        }
        compare(&self.store, &self.model.render(), &mut self.model.names).await
    }

    /// The bytes beyond their common length of the transactions that an account caused, as they are in the store.
    async fn kept_text(&self, at: At) -> Result<u64, String> {
        let read = redis::Cmd::hgetall(realm(at).transactions());
        let lines: Result<BTreeMap<usize, Vec<u8>>, _> = self.store.command(&read).await;
        let lines = lines.map_err(|error| format!("{error:?}"))?;
        let known = 1..=self.model.sides[at].movements.len();
        let own = lines
            .iter()
            .filter(|(number, _)| known.contains(number) && !self.model.is_arrival(at, **number));
        let beyond = own.map(|(_, line)| line.len().saturating_sub(LONG_TRANSACTION) as u64);
        Ok(beyond.sum())
    }

    /// The lines of an audit log as they are in the store.
    pub async fn audit_lines(&self, at: At) -> Result<Vec<Vec<u8>>, String> {
        let mut read = redis::cmd("LRANGE");
        read.arg(realm(at).audit()).arg(0).arg(-1);
        let lines = self.store.command(&read).await;
        lines.map_err(|error| format!("{error:?}"))
    }

    /// Checks that each account's version is the one that the last script returned.
    async fn versions_are_known(&self) -> Checked {
        for id in ACCOUNTS {
            let mut read = redis::cmd("HMGET");
            read.arg(AccountKeys::new(id).record())
                .arg(["generation", "version"].as_slice());
            let found: Result<(Option<u64>, Option<u64>), _> = self.store.command(&read).await;
            let (generation, version) = found.map_err(|error| format!("{error:?}"))?;
            let there = AccountVersion {
                generation: generation.unwrap_or(0),
                version: version.unwrap_or(0),
            };
            let acknowledged = self.store.versions().newest(id);
            if acknowledged != AccountVersion::default() && acknowledged != there {
                return Err(format!(
                    "{} is at {there:?}, and was said to be at {acknowledged:?}",
                    id
                ));
            }
        }
        Ok(())
    }

    /// The last numbers that were drawn.
    async fn drawn(&self) -> Result<Drawn, String> {
        let mut drawn = Drawn::default();
        for (series, places) in Series::ALL.into_iter().zip(&mut drawn) {
            for (of, place) in places.iter_mut().enumerate() {
                let counter = crate::model::keys(of * 2).bucket().counter(series);
                let found = self.store.command(redis::cmd("GET").arg(counter)).await;
                *place = found.map_err(|error| format!("{error:?}"))?;
            }
        }
        Ok(drawn)
    }

    /// Like [`Self::go`]; also requires that the outcome begins with `outcome`, so that a directed check hits its case.
    pub async fn want(&mut self, outcome: &str, act: impl Into<Act>) -> Checked {
        let act = act.into();
        let expected = self.go(&act).await?;
        match expected.starts_with(outcome) {
            true => Ok(()),
            false => Err(format!(
                "{act:?} should be {outcome}, is {expected} in the model, too"
            )),
        }
    }

    /// Runs a script with the arguments of a twin whose read is outdated; it must answer `words` and change nothing.
    pub async fn refused(
        &mut self,
        words: &[&str],
        script: &Script,
        keys: &[String],
        args: &[&str],
    ) -> Checked {
        self.answers(words, script, keys, &[&["live", "{}"], args].concat())
            .await
    }

    /// Like [`Self::refused`], for a script that does not change an account.
    pub async fn answers(
        &mut self,
        words: &[&str],
        script: &Script,
        keys: &[String],
        args: &[&str],
    ) -> Checked {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let budgets = self.store.budgets().words();
        let mut args = args.to_vec();
        if script.has_budgets() {
            args.push(&budgets);
        }
        let reply: Result<Vec<String>, _> = self.store.script(script, &keys, &args).await;
        let reply = reply.map_err(|error| format!("{}: {error:?}", script.name()))?;
        if reply != words {
            return Err(format!(
                "{} answered {reply:?}, expected {words:?}",
                script.name()
            ));
        }
        self.compared().await
    }

    /// Performs an action on the store alone.
    pub async fn attempt(&self, act: &Act) -> Result<String, String> {
        self.perform(act).await
    }

    /// Checks that the store still equals the model. A refused action has still drawn its number.
    pub async fn unchanged(&mut self, act: &Act) -> Checked {
        let to = clock::now_ms();
        let from = to - LONGEST_MS;
        self.model.window = Window { from, to };
        self.model.found = self.drawn().await?;
        match act {
            Act::Escrow(new) => {
                self.model.draw(Series::Escrow, new.request_id.at);
                self.model.asked_escrows += 1;
            }
            Act::NewAgent { at, .. } => {
                self.model.draw(Series::Wallet, *at);
            }
            _ => {}
        }
        let compared = self.compared().await;
        compared.map_err(|error| format!("after {act:?}, which was refused: {error}"))
    }

    /// Sets a field of a record directly in the store.
    pub async fn put_field(&self, key: &str, field: &str, value: &str) -> Checked {
        let mut set = redis::cmd("HSET");
        let set = set.arg(key).arg(field).arg(value);
        let done: Result<i64, _> = self.store.command(set).await;
        done.map(drop).map_err(|error| format!("{error:?}"))
    }

    /// Returns true if the row was seen in transit, so that it can be delivered. An undisturbed call leaves no row.
    pub fn has_acknowledged(&self, id: &str) -> bool {
        self.rows
            .contains_key(&self.model.names.show(&self.model.transit_id(id)))
    }

    /// Keeps the rows in transit, so that they can be delivered once more later.
    async fn see_transits(&mut self) -> Checked {
        for at in [0, 2] {
            let waiting = Transit::waiting(&self.store, crate::model::keys(at).bucket(), |_| true).await;
            let waiting = waiting.map_err(|error| format!("{error:?}"))?;
            for (_, row) in waiting.rows {
                let row = row.map_err(|error| format!("{error:?}"))?;
                self.rows.insert(row.id.clone(), row);
            }
        }
        Ok(())
    }
}

impl Model {
    /// Applies an action to the model; returns the expected answer.
    pub fn act(&mut self, act: &Act) -> String {
        match act {
            Act::Spend(spend) => self.spend(spend),
            Act::Resolve {
                at,
                id,
                grant,
                stale,
                at_ms,
                plan,
                n,
            } => {
                let txn = format!("txn_{n}");
                self.resolve((*at, id), *grant, *stale, *at_ms, plan.as_ref(), &txn)
            }
            Act::Transfer(transfer) => self.transfer(transfer),
            Act::Deposit(deposit) => self.deposit(deposit),
            Act::Confirm {
                request_id,
                keyed,
                reference,
            } => self.confirm(request_id, *keyed, reference),
            Act::Cancel { at, reference } => self.cancel(*at, reference),
            Act::Escrow(new) => self.create(new),
            Act::Fund { request_id, escrow } => self.fund(request_id, *escrow),
            Act::Decide(decide) => self.decide_escrow(decide),
            Act::End {
                escrow,
                refund,
                crash,
            } => self.end_dispute(*escrow, *refund, *crash),
            Act::Deliver { id, half } => match self.deliver(&self.transit_id(id), *half) {
                true => "delivered".to_owned(),
                false => "no_room".to_owned(),
            },
            Act::OpenUser { at } => {
                let number = self.user_wallet(*at, crate::act::ACTOR);
                format!("wallet {number}")
            }
            Act::Freeze { at, agent, by, lift } => self.freeze(*at, agent, *by, *lift),
            Act::NewAgent { at, agent, most, .. } => self.new_agent(*at, agent, *most),
            Act::Delete { at, agent } => self.delete(*at, agent),
            Act::Policy { at, agent, limits, n } => {
                self.set_policy(*at, agent.as_deref(), *limits, &format!("pol_{n}"))
            }
            Act::DropPolicy { at, id } => self.drop_policy(*at, id),
        }
    }

    /// Checks conservation (ARCHITECTURE.md, invariant 6) from the movements alone: what came in from outside and did
    /// not leave is in wallets, in escrows or in transit; and no wallet is below zero.
    pub fn is_conserved(&self) -> Checked {
        for at in 0..2 {
            let sides = [at, at + 2];
            let movements = sides.iter().flat_map(|at| self.sides[*at].movements.iter());
            let outside: i128 = movements
                .filter(|movement| ["deposit", "spend"].contains(&movement.kind.as_str()))
                .map(crate::model::Movement::signed)
                .sum();
            let of_mode = self.wallets.iter().filter(|place| sides.contains(&place.at));
            let balances: Vec<i128> = of_mode
                .map(|place| self.balance(place.at, place.number))
                .collect();
            let escrows = self.escrows.values().filter(|escrow| sides.contains(&escrow.at));
            let held = escrows.filter(|escrow| ["funded", "disputed"].contains(&escrow.status));
            let held: i128 = held.map(|escrow| i128::from(escrow.amount)).sum();
            let on_the_way = self.sent.iter().filter(|transit| sides.contains(&transit.to));
            let on_the_way =
                on_the_way.filter(|transit| !self.arrivals.iter().any(|mark| mark.id == transit.id));
            let transit: i128 = on_the_way
                .filter_map(|transit| Some(i128::from(transit.credit.as_ref()?.amount)))
                .sum();
            let inside = balances.iter().sum::<i128>() + held + transit;
            if inside != outside || balances.iter().any(|balance| *balance < 0) {
                return Err(format!(
                    "{outside} came in, {inside} is there: {balances:?} {held} {transit}"
                ));
            }
        }
        Ok(())
    }
}
