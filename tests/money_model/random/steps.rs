//! Turns operations into acts.

use super::op::{Key, Op};
use super::player::{AGENTS, Player, pick, prefer};
use crate::act::{Act, Deposit, Spend, Transfer};
use crate::directed::fixture::plan;
use crate::model::mode;
use domain::mode::Mode;
use store::agent::freeze::FrozenBy;

impl Player {
    /// `None` if there is no record yet to which the operation applies.
    pub fn act(&mut self, op: Op) -> Option<Act> {
        Some(match op {
            Op::Spend { .. } => self.spend(op)?,
            Op::Transfer { .. } => self.transfer(op)?,
            Op::Deposit { .. } => self.deposit(op)?,
            Op::Escrow { .. } | Op::Fund { .. } | Op::Decide { .. } => self.escrow(op)?,
            Op::Resolve { which, grant, stale } => self.resolve(which, grant, stale)?,
            Op::Confirm { which, key, keyed } => {
                let (at, reference) = self.awaited(which)?;
                Act::Confirm {
                    request_id: self.request_id(at, key),
                    keyed,
                    reference,
                }
            }
            Op::Cancel { which } => {
                let (at, reference) = self.awaited(which)?;
                Act::Cancel { at, reference }
            }
            Op::End { which, refund, crash } => {
                let escrow = self.number(which, "disputed")?;
                Act::End {
                    escrow,
                    refund,
                    crash,
                }
            }
            Op::Deliver { which, half } => {
                let sent = self.model().sent.iter().map(|transit| &transit.id);
                let sent: Vec<&String> = sent.filter(|id| self.fixture.has_acknowledged(id)).collect();
                let id = (*pick(&sent, which)?).clone();
                Act::Deliver { id, half }
            }
            Op::Again { which, crash } => self.again(which, crash)?,
            other => self.agent(other)?,
        })
    }

    /// Operations on wallets, agents and policies.
    fn agent(&mut self, op: Op) -> Option<Act> {
        let name = |agent: usize| AGENTS[agent].to_owned();
        Some(match op {
            Op::OpenUser { at } => Act::OpenUser { at },
            Op::Freeze {
                at,
                agent,
                operator,
                lift,
            } => {
                let by = if operator {
                    FrozenBy::Operator
                } else {
                    FrozenBy::User
                };
                Act::Freeze {
                    at,
                    agent: name(agent),
                    by,
                    lift,
                }
            }
            Op::NewAgent { at, agent, most } => {
                let agent = name(agent);
                Act::NewAgent { at, agent, most }
            }
            Op::Delete { at, agent } => {
                let empty = |agent: &String| {
                    let wallet = self.model().wallet(at, agent);
                    wallet.is_some_and(|wallet| self.model().balance(at, wallet.number) == 0)
                };
                let agent = prefer(&AGENTS.map(str::to_owned), agent, empty)?;
                Act::Delete { at, agent }
            }
            Op::Policy { at, agent, policy } => {
                let limits = self.limits(at, AGENTS[agent.unwrap_or(0)], policy);
                let n = self.new_n();
                Act::Policy {
                    at,
                    agent: agent.map(name),
                    limits,
                    n,
                }
            }
            Op::DropPolicy { at, which } => {
                let ids: Vec<&String> = self.model().sides[at].policies.keys().collect();
                let id = pick(&ids, which)?;
                Act::DropPolicy {
                    at,
                    id: (*id).clone(),
                }
            }
            _ => return None,
        })
    }

    fn spend(&mut self, op: Op) -> Option<Act> {
        let Op::Spend {
            at,
            agent,
            amount,
            run,
            key,
            other_plan,
            has_text,
            injection,
        } = op
        else {
            return None;
        };
        let agents: Vec<usize> = (0..AGENTS.len()).collect();
        let agent = prefer(&agents, agent, |agent| self.model().exists(at, AGENTS[*agent]))?;
        let run = run.map(|run| format!("r{run}"));
        let amount = self.spend_amount(amount, (at, AGENTS[agent]), run.as_deref());
        let mut its_plan = (mode(at) == Mode::Live).then(|| self.plans[at / 2].clone());
        if other_plan {
            its_plan.get_or_insert_with(|| plan(None, None)).name = "q".to_owned();
        }
        Some(Act::Spend(Spend {
            request_id: self.request_id(at, key),
            agent: AGENTS[agent].to_owned(),
            amount,
            run,
            plan: its_plan,
            recipient: has_text.then(|| "Bob & Söhne".to_owned()),
            description: has_text.then(|| "a \"book\" = 5".to_owned()),
            injection,
        }))
    }

    fn resolve(&mut self, which: usize, grant: bool, stale: bool) -> Option<Act> {
        let sides = self.model().sides.iter().enumerate();
        let spends: Vec<(usize, String)> = sides
            .flat_map(|(at, side)| {
                let request_id = side
                    .requests
                    .iter()
                    .filter(|(_, request)| request.first == "pending_approval");
                request_id.map(move |(id, _)| (at, id.clone()))
            })
            .collect();
        let waits = |(at, id): &(usize, String)| self.model().sides[*at].waiting.contains_key(id);
        let (at, id) = prefer(&spends, which, waits)?;
        let plan = (mode(at) == Mode::Live).then(|| self.plans[at / 2].clone());
        let (n, at_ms) = (self.new_n(), clock::now_ms());
        Some(Act::Resolve {
            at,
            id,
            grant,
            stale,
            at_ms,
            plan,
            n,
        })
    }

    fn transfer(&mut self, op: Op) -> Option<Act> {
        let Op::Transfer {
            from,
            to,
            amount,
            key,
            keyed,
            crash,
            sees_closed,
        } = op
        else {
            return None;
        };
        let from = self.wallet(from)?;
        let to = self.other(&from, to)?;
        let amount = self.amount(amount, Some(&from), Some(&to));
        let closed = sees_closed && (self.is_closed(&from) || self.is_closed(&to));
        let request_id = self.request_id(from.at, key);
        let memo = amount.is_multiple_of(2).then(|| "two words".to_owned());
        Some(Act::Transfer(Transfer {
            request_id,
            keyed,
            from,
            to,
            amount,
            memo,
            closed,
            crash,
        }))
    }

    /// A deposit, preferably a pending one.
    fn awaited(&self, which: usize) -> Option<(usize, String)> {
        let all = self.model().sides.iter().enumerate();
        let all: Vec<(usize, &String)> = all
            .flat_map(|(at, side)| side.deposits.keys().map(move |reference| (at, reference)))
            .collect();
        let is_pending =
            |(at, reference): &(usize, &String)| self.model().sides[*at].deposits[*reference].pending;
        let (at, reference) = prefer(&all, which, is_pending)?;
        Some((at, reference.clone()))
    }

    fn deposit(&mut self, op: Op) -> Option<Act> {
        let Op::Deposit {
            to,
            amount,
            key,
            keyed,
            pending,
            again,
            sees_closed,
        } = op
        else {
            return None;
        };
        let to = self.wallet(to)?;
        let request_id = self.request_id(to.at, key);
        let mut amount = self.amount(amount, None, Some(&to));
        let mut reference = format!("ref {}", request_id.n);
        if let Some(which) = again {
            let known: Vec<(&String, u64)> = self.model().sides[to.at]
                .deposits
                .iter()
                .map(|(reference, deposit)| (reference, deposit.amount))
                .collect();
            if let Some((earlier, its_amount)) = pick(&known, which) {
                reference = (*earlier).clone();
                amount = if which % 3 == 0 { amount } else { *its_amount };
            }
        }
        let closed = sees_closed && self.is_closed(&to);
        Some(Act::Deposit(Deposit {
            request_id,
            keyed,
            to,
            amount,
            reference,
            pending,
            closed,
        }))
    }

    /// Repeats an earlier request: its key and content stay, the values that each attempt generates are new.
    fn again(&mut self, which: usize, crash: bool) -> Option<Act> {
        let keyed: Vec<&Act> = self
            .past
            .iter()
            .filter(|act| act.request_id().is_some())
            .collect();
        let mut act = (*pick(&keyed, which)?).clone();
        let fresh = self.request_id(0, Key::New);
        if let Some(request_id) = act.request_id_mut() {
            (request_id.n, request_id.spare) = (fresh.n, fresh.spare);
        }
        if let Act::Decide(decide) = &mut act {
            decide.crash = crash;
        }
        Some(act)
    }
}
