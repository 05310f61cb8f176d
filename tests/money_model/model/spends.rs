//! Spends and their approvals, as they should be (decisions D21, D23, D53).

use super::audit_entries::entry;
use super::{At, Charge, Model, Movement, Request, Run, as_double, mode};
use crate::act::{ACTOR, DECIDER, Plan, Spend};
use crate::model::CEILING;
use domain::mode::Mode;
use harness::old_counters;
use store::call::authorize::RUN_LIFE_MS;
use store::transaction::TransactionType;

/// Input of the checks of counters and wallet.
pub struct SpendInput<'a> {
    pub at: At,
    pub agent: &'a str,
    pub amount: u64,
    pub run: Option<&'a str>,
    pub plan: Option<&'a Plan>,
    pub injection: bool,
    /// Of the transaction: its id, the other side, the memo, the intent.
    pub words: [Option<&'a str>; 4],
}

impl Model {
    /// The first reason to refuse, in the documented order, and its limit as the audit log has it.
    fn refusal(&self, input: &SpendInput<'_>) -> Option<(&'static str, String)> {
        if input.injection {
            return Some(("injection_detected", String::new()));
        }
        let (at, agent, period) = (input.at, input.agent, self.period);
        let over = |limit: Option<u64>, spent: i128| {
            let limit = limit.filter(|limit| spent + i128::from(input.amount) > i128::from(*limit));
            limit.map(|limit| format!(" limit_nanos={limit} spent_nanos={spent}"))
        };
        let plain = |refused: bool| refused.then(String::new);
        let Some((limits, _)) = self.effective(at, agent).filter(|_| !self.is_frozen(at, agent)) else {
            let reason = match self.is_frozen(at, agent) {
                true => "frozen",
                false => "cap_disabled",
            };
            return Some((reason, String::new()));
        };
        let run = input.run.map_or(0, |run| self.run_spent(at, agent, run));
        let live = mode(at) == Mode::Live;
        let plan_agents = input.plan.and_then(|plan| plan.agents).filter(|_| live);
        let slots = self.slots(at, period.month);
        let no_place = plan_agents.filter(|most| slots >= *most && !self.has_slot(at, agent, period.month));
        let no_place = no_place.map(|most| format!(" limit_agents={most} spent_agents={slots}"));
        let tracked = input.plan.and_then(|plan| plan.tracked).filter(|_| live);
        let wallet = self.wallet(at, agent);
        let own_limit = wallet.and_then(|wallet| wallet.spend_limit);
        let short = wallet.is_some_and(|wallet| self.balance(at, wallet.number) < i128::from(input.amount));
        let checks = [
            ("cap_disabled", plain(limits.disabled)),
            ("per_transaction_limit", over(limits.txn, 0)),
            ("per_run_limit", over(limits.run, run)),
            (
                "daily_limit",
                over(limits.day, self.day_spent(at, agent, period.day)),
            ),
            (
                "monthly_limit",
                over(limits.month, self.month_spent(at, agent, period.month)),
            ),
            ("plan_agent_limit", no_place),
            ("plan_limit", over(tracked, self.tracked(at, period.month))),
            (
                "spend_limit",
                over(own_limit, self.wallet_spent(at, agent, period.day)),
            ),
            ("insufficient_balance", plain(short)),
        ];
        checks
            .into_iter()
            .find_map(|(reason, refused)| Some((reason, refused?)))
    }

    /// Returns true if a counter would pass the ceiling.
    fn is_too_much(&self, input: &SpendInput<'_>) -> bool {
        let (at, agent, period) = (input.at, input.agent, self.period);
        let sums = [
            input.run.map_or(0, |run| self.run_spent(at, agent, run)),
            self.day_spent(at, agent, period.day),
            self.month_spent(at, agent, period.month),
            self.wallet_spent(at, agent, period.day),
            self.tracked(at, period.month),
        ];
        let amount = as_double(input.amount.into());
        sums.into_iter().any(|sum| as_double(sum) + amount > CEILING)
    }

    /// The record of the named run, updated to the current moment.
    fn touch_run(&mut self, input: &SpendInput<'_>, moment: &str) -> Option<&mut Run> {
        let life = RUN_LIFE_MS;
        let expires = self.window.later(life);
        let name = (input.agent.to_owned(), input.run?.to_owned());
        let side = &mut self.sides[input.at];
        side.listed_before.remove(input.agent);
        side.counted_before.clear();
        side.listed_expires.insert(input.agent.to_owned(), expires);
        side.counted_expires = Some(expires);
        let run = side.runs.entry(name).or_insert(Run {
            first: moment.to_owned(),
            last: String::new(),
            calls: None,
            denied: 0,
            expires,
            status: None,
            called: false,
        });
        (run.last, run.expires) = (moment.to_owned(), expires);
        Some(run)
    }

    /// Charges a spend. Returns the wallet's balance after it and the id of the policy.
    fn charge(&mut self, input: &SpendInput<'_>, moment: &str) -> (Option<String>, String) {
        let (at, agent, period) = (input.at, input.agent, self.period);
        let (_, policy) = self.effective(at, agent).expect("a policy that allowed it");
        let wallet = self.wallet(at, agent).map(|wallet| wallet.number);
        let first_today = self.day_spent(at, agent, period.day) == 0;
        if first_today {
            let mut record = self.sides[at].agents.remove(agent).unwrap_or_default();
            let old = old_counters(self.counters(at, agent, &record).keys(), period);
            record.old.retain(|field, _| !old.contains(field));
            self.sides[at].agents.insert(agent.to_owned(), record);
        }
        let side = &mut self.sides[at];
        side.charges.push(Charge {
            agent: agent.to_owned(),
            amount: input.amount,
            run: input.run.map(str::to_owned),
            from_wallet: wallet.is_some(),
            period,
        });
        if let Some(run) = self.touch_run(input, moment) {
            run.calls = Some(run.calls.unwrap_or(0) + 1);
            run.status = None;
        }
        let balance = wallet.map(|number| {
            let [id, other, memo, intent] = input.words.map(|word| word.map(str::to_owned));
            let movement = Movement {
                at: moment.to_owned(),
                wallet: number,
                owner: agent.to_owned(),
                kind: TransactionType::Spend,
                amount: input.amount,
                id: id.unwrap_or_default(),
                intent,
                other: other.unwrap_or_default(),
                memo,
            };
            self.post(at, movement);
            self.balance(at, number).to_string()
        });
        (balance, policy)
    }

    /// Runs the checks and applies the outcome to `request`, which becomes the record. Returns the moment and the words
    /// of the audit log without the intent's id; `Err` is the answer if nothing is written.
    fn decide(
        &mut self,
        input: &SpendInput<'_>,
        approving: bool,
        request: &mut Request,
    ) -> Result<(String, String), String> {
        let plan = &self.plans[input.at / 2];
        if input.plan.is_some_and(|wanted| wanted.name != *plan) {
            return Err(format!("other_plan {plan}"));
        }
        let wallet = self.wallet(input.at, input.agent);
        let wallet = wallet.map(|wallet| wallet.number.to_string()).unwrap_or_default();
        if approving && request.wallet.as_ref().is_some_and(|asked| *asked != wallet) {
            (request.state, request.reason) = ("blocked", "wallet_closed");
            return Ok((self.now(), String::new()));
        }
        if !self.exists(input.at, input.agent) {
            return Err("not_found".to_owned());
        }
        let moment = self.now();
        if let Some((reason, limit)) = self.refusal(input) {
            (request.state, request.reason) = ("blocked", reason);
            let known = input.run.is_some_and(|run| {
                let name = (input.agent.to_owned(), run.to_owned());
                self.sides[input.at].runs.contains_key(&name)
            });
            if known
                && !["insufficient_balance", "injection_detected"].contains(&reason)
                && let Some(run) = self.touch_run(input, &moment)
            {
                run.denied += 1;
            }
            return Ok((moment, limit));
        }
        if self.is_too_much(input) {
            return Err("too_much".to_owned());
        }
        let (limits, _) = self.effective(input.at, input.agent).expect("a policy");
        if !approving && limits.approval.is_some_and(|threshold| input.amount > threshold) {
            request.state = "pending_approval";
            request.wallet = Some(wallet);
            if let Some(run) = self.touch_run(input, &moment) {
                run.called = false;
            }
            return Ok((moment, "outcome=pending_approval".to_owned()));
        }
        let (balance, policy) = self.charge(input, &moment);
        request.state = "settled";
        request.txn = balance.as_ref().and(input.words[0]).map(str::to_owned);
        request.balance = Some(balance.unwrap_or_default());
        request.charged = Some((policy, self.period));
        let after = request.balance.as_ref().and_then(|balance| balance.parse().ok());
        let words = after.map_or_else(
            || "outcome=settled".to_owned(),
            |after| self.debit_words(input.at, input.agent, input.amount, after),
        );
        Ok((moment, words))
    }

    pub fn spend(&mut self, spend: &Spend) -> String {
        let (at, request_id) = (spend.request_id.at, &spend.request_id);
        if self.is_taken(at, &request_id.id) {
            return "known".to_owned();
        }
        let (txn, description) = (request_id.txn(), spend.description.as_deref());
        let input = SpendInput {
            at,
            agent: &spend.agent,
            amount: spend.amount,
            run: spend.run.as_deref(),
            plan: spend.plan.as_ref(),
            injection: spend.injection,
            words: [
                Some(&txn),
                spend.recipient.as_deref(),
                description,
                Some(&request_id.id),
            ],
        };
        let mut request = Request::new("spend", request_id, &spend.agent, spend.amount);
        request.note = spend.description.clone();
        request.request = spend.request();
        let (moment, words) = match self.decide(&input, false, &mut request) {
            Ok(decided) => decided,
            Err(outcome) => return outcome,
        };
        request.first = request.state;
        let spare = request.reason == "insufficient_balance";
        let id = if spare { &request_id.spare } else { &request_id.id };
        let (words, outcome) = summary(&request, id, words);
        self.keep(at, id, &moment, request);
        self.record(
            at,
            entry(
                moment,
                "spend.requested",
                ACTOR,
                &spend.agent,
                spend.amount,
                Some(words),
            ),
        );
        outcome
    }

    /// Approves or denies a pending spend.
    pub fn resolve(
        &mut self,
        (at, id): (At, &str),
        grant: bool,
        stale: bool,
        at_ms: u64,
        plan: Option<&Plan>,
        txn: &str,
    ) -> String {
        let Some(mut request) = self
            .request(at, id)
            .cloned()
            .filter(|request| request.state == "pending_approval" && !stale)
        else {
            return "changed".to_owned();
        };
        let (agent, amount) = (request.agent.clone(), request.amount);
        request.decision = Some((grant, DECIDER, at_ms));
        if !grant {
            (request.state, request.reason) = ("blocked", "approval_denied");
            let moment = self.now();
            self.sides[at].requests.insert(id.to_owned(), request);
            self.sides[at].decided(id, &moment);
            self.record(at, entry(moment, "spend.denied", DECIDER, &agent, amount, None));
            return "denied".to_owned();
        }
        let input: serde_json::Value = serde_json::from_str(&request.request).expect("a request");
        let note = request.note.clone();
        let input = SpendInput {
            at,
            agent: &agent,
            amount,
            run: input["runId"].as_str(),
            plan,
            injection: false,
            words: [Some(txn), input["recipient"].as_str(), note.as_deref(), Some(id)],
        };
        let (moment, words) = match self.decide(&input, true, &mut request) {
            Ok(decided) => decided,
            Err(outcome) => return outcome,
        };
        let (words, outcome) = summary(&request, id, words);
        self.sides[at].requests.insert(id.to_owned(), request);
        self.sides[at].decided(id, &moment);
        self.record(
            at,
            entry(moment, "spend.approved", DECIDER, &agent, amount, Some(words)),
        );
        outcome
    }
}

/// Words of the audit log and of the reply.
fn summary(request: &Request, id: &str, words: String) -> (String, String) {
    match request.state {
        "blocked" => (
            format!("outcome=blocked reason={} intentId={id}{words}", request.reason),
            format!("blocked {} {id}", request.reason),
        ),
        "settled" => {
            let balance = request.balance.clone().unwrap_or_default();
            (words, format!("settled {balance}"))
        }
        _ => (words, "pending".to_owned()),
    }
}
