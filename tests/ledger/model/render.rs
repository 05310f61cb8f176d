//! The model's state as the keys and values that the store should hold.

use super::{Agent, Charge, ChargeState, Counted, Key, MINUTE_MS, MODEL, Model, PRICE_VERSION, Run, millis};
use crate::snapshot::{Cell, Expected, Record, Shape, Window};
use domain::cap::CapPolicy;
use std::collections::BTreeMap;
use store::call::reap::KEPT_LIFE;
use store::keys::{self, AccountKeys};

type Cells = BTreeMap<String, Cell>;

impl Model {
    /// Everything that the store should hold.
    pub fn render(&self) -> Expected {
        let keys = AccountKeys::new(&self.account);
        let mut all = Expected::new();
        put(&mut all, keys.record(), None, Shape::Hash(self.record()));
        let active = self
            .active
            .iter()
            .map(|(number, key)| (key.clone(), Cell::new(number)));
        put(&mut all, keys.active_keys(), None, Shape::Zset(active.collect()));
        for (id, key) in &self.keys {
            render_key(&mut all, &keys, id, key);
        }
        for (id, agent) in &self.agents {
            put(
                &mut all,
                keys.live().agent(id),
                None,
                Shape::Hash(self.agent(id, agent)),
            );
        }
        for ((agent, run), meta) in &self.runs {
            let cells = self.run(agent, run, meta);
            put(
                &mut all,
                keys.live().run(agent, run),
                Some(meta.expires),
                Shape::Hash(cells),
            );
        }
        for agent in self.agents.keys() {
            let listed = self.listed.iter().filter(|((of, _), _)| of == agent);
            let cells = listed.map(|((_, run), at)| (run.clone(), Cell::Within(*at)));
            put(
                &mut all,
                keys.live().runs(agent),
                self.listed_expires.get(agent).copied(),
                Shape::Zset(cells.collect()),
            );
        }
        let counted = self.counted_runs.iter();
        let cells = counted.map(|((agent, run), at)| (format!("{agent}/{run}"), Cell::Within(*at)));
        put(
            &mut all,
            keys.live().all_runs(),
            self.counted_expires,
            Shape::Zset(cells.collect()),
        );
        self.render_holds(&mut all, &keys);
        let counts = self.counted.iter().map(|counted| {
            let Counted { ends, name, count } = counted;
            (*ends, name.clone(), *count)
        });
        let counts = Shape::Counts(counts.collect());
        put(&mut all, keys.bucket().counted_denials(), None, counts);
        let log = self
            .log
            .iter()
            .enumerate()
            .map(|(at, (when, line))| (at as u64 + 1, *when, line.clone()));
        put(&mut all, keys.live().audit(), None, Shape::Log(log.collect()));
        all
    }

    fn record(&self) -> Cells {
        let mut cells = Cells::new();
        let mut set = |name: &str, cell: Cell| cells.insert(name.to_owned(), cell);
        set("generation", Cell::new(self.generation));
        set("version", Cell::new(self.version));
        set("plan", Cell::new(&self.plan));
        if !self.log.is_empty() {
            set("live_audit_seq", Cell::new(self.log.len()));
        }
        for month in self.charges.iter().map(|charge| charge.period.month) {
            let tracked = self.sum(|charge| charge.period.month == month);
            if is_kept(tracked) {
                set(&format!("t{month}"), Cell::new(tracked));
            }
            set(&format!("n{month}"), Cell::new(self.slots(month)));
        }
        policy(
            &mut cells,
            ["live_cap", "live_run", "live_day", "live_month"],
            self.policy,
        );
        cells
    }

    fn run(&self, agent: &str, run: &str, meta: &Run) -> Cells {
        let mut cells = Cells::new();
        let mut set = |name: &str, cell: Cell| cells.insert(name.to_owned(), cell);
        set("first", Cell::Within(meta.first));
        set("last", Cell::Within(meta.last));
        if let Some(calls) = meta.calls {
            set("calls", Cell::new(calls));
            if meta.by_calls {
                set("called", Cell::new(1));
            }
            set("spent", Cell::new(self.run_spent(agent, run)));
        }
        if meta.denied > 0 {
            set("denied", Cell::new(meta.denied));
        }
        if let Some(status) = meta.status {
            set("status", Cell::new(status));
            set("ended", Cell::new(1));
        }
        cells
    }

    pub(super) fn agent(&self, id: &str, agent: &Agent) -> Cells {
        let extra = agent
            .extra
            .iter()
            .map(|(name, value)| (name.clone(), Cell::new(value)));
        let mut cells: Cells = extra.collect();
        // A hash cannot be empty; the product's agents have fields like this one, too.
        cells.insert("name".to_owned(), Cell::new(id));
        policy(&mut cells, ["cap", "cap_run", "cap_day", "cap_month"], agent.cap);
        if agent.frozen {
            cells.insert("frozen".to_owned(), Cell::new("user"));
        }
        if !agent.no_provider_key {
            cells.insert(
                keys::provider_key_id_field("openai"),
                Cell::new(format!("pk_{id}")),
            );
            cells.insert(
                keys::provider_key_sealed_field("openai"),
                Cell::new(format!("sealed-{id}")),
            );
        }
        for charge in self.charges.iter().filter(|charge| charge.agent == id) {
            let (day, month) = (charge.period.day, charge.period.month);
            let daily = self.sum(|charge| charge.agent == id && charge.period.day == day);
            let monthly = self.sum(|charge| charge.agent == id && charge.period.month == month);
            for (counter, spent) in [(format!("d{day}"), daily), (format!("m{month}"), monthly)] {
                if is_kept(spent) {
                    cells.insert(counter, Cell::new(spent));
                }
            }
            let slot = format!("s{month}");
            match (self.keeps_slot(id, month), self.users(id, month)) {
                (false, 0) => {}
                (true, _) => drop(cells.insert(slot, Cell::new(1))),
                (false, users) => drop(cells.insert(slot, Cell::new(format!("c{users}")))),
            }
            let held = self.held(|charge| charge.agent == id);
            cells.insert("held".to_owned(), Cell::new(held));
        }
        cells
    }

    fn render_holds(&self, all: &mut Expected, keys: &AccountKeys) {
        let bucket = keys.bucket();
        let (mut due_index, mut kept_index) = (Cells::new(), Cells::new());
        for charge in &self.charges {
            let text = Shape::Text(self.hold_text(charge));
            match charge.state {
                ChargeState::Open { due } => {
                    due_index.insert(charge.id.clone(), Cell::Within(due));
                    put(all, bucket.hold(&charge.id), None, text);
                }
                ChargeState::Kept { at } => {
                    kept_index.insert(charge.id.clone(), Cell::Within(at));
                    let life = millis(KEPT_LIFE);
                    put(all, bucket.kept_hold(&charge.id), Some(at.later(life)), text);
                }
                ChargeState::Settled | ChargeState::Voided => {}
            }
        }
        kept_index.extend(
            self.kept_extra
                .iter()
                .map(|(id, moment)| (id.clone(), Cell::new(moment))),
        );
        due_index.extend(
            self.due_extra
                .iter()
                .map(|(id, deadline)| (id.clone(), Cell::new(deadline))),
        );
        put(all, bucket.due(), None, Shape::Zset(due_index));
        put(all, bucket.kept(), None, Shape::Zset(kept_index));
        for (id, expires) in &self.tombstones {
            put(all, bucket.hold(id), Some(*expires), Shape::Text("V".to_owned()));
        }
    }

    pub fn hold_text(&self, charge: &Charge) -> String {
        let Charge {
            agent,
            run,
            named,
            key_id,
            period,
            estimate,
            checks,
            ..
        } = charge;
        format!(
            "H {estimate} {} {} {} {checks} {} {agent} {run} {key_id} {PRICE_VERSION} {MODEL}",
            period.day,
            period.month,
            u8::from(*named),
            self.account
        )
    }
}

/// Adds a key, unless it would be empty, which Redis does not store.
fn put(all: &mut Expected, key: String, expires: Option<Window>, shape: Shape) {
    let empty = match &shape {
        Shape::Text(_) => false,
        Shape::Hash(cells) | Shape::Zset(cells) => cells.is_empty(),
        Shape::Counts(counts) => counts.is_empty(),
        Shape::Log(entries) => entries.is_empty(),
    };
    if !empty {
        all.insert(key, Record { expires, shape });
    }
}

fn render_key(all: &mut Expected, keys: &AccountKeys, id: &str, key: &Key) {
    if let Some((count, opened)) = key.rate {
        put(
            all,
            keys.rate(id),
            Some(opened.later(MINUTE_MS)),
            Shape::Text(count.to_string()),
        );
    }
    if let Some(at) = key.last_used {
        let cells = [("last_used".to_owned(), Cell::Within(at))];
        put(all, keys.virtual_key(id), None, Shape::Hash(cells.into()));
    }
}

fn policy(cells: &mut Cells, names: [&str; 4], policy: Option<CapPolicy>) {
    let Some(policy) = policy else { return };
    let [enabled, run, day, month] = names;
    cells.insert(enabled.to_owned(), Cell::new(u8::from(policy.enabled)));
    for (name, limit) in [
        (run, policy.per_run),
        (day, policy.daily),
        (month, policy.monthly),
    ] {
        // A limit that is not set is written as the empty text or not at all; both must be read alike.
        match limit {
            Some(limit) => cells.insert(name.to_owned(), Cell::new(limit.get())),
            // One limit of the account and one of the agent are written as the empty text.
            None if name == "cap_day" || name == "live_month" => cells.insert(name.to_owned(), Cell::new("")),
            None => None,
        };
    }
}

/// Whether a counter is there: one that would be below zero, since it was lost before a hold of it ended, is removed.
const fn is_kept(spent: i128) -> bool {
    spent >= 0
}
