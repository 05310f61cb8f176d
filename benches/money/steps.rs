//! The measured scripts, each called through its twin.

use crate::load::{ACCOUNT, ACTIVE, MODE, agent};
use crypto::virtual_key::CheckSecret;
use domain::cap::CapPlan;
use domain::id::IdKind;
use domain::money::Nanos;
use serde_json::json;
use std::error::Error;
use std::time::Duration;
use store::deposit::DepositState;
use store::deposit::script::{DepositMade, NewDeposit};
use store::escrow::script::{CallOutcome, NewEscrow, PartyDecision, Requester, decide, fund};
use store::escrow::{Escrow, Party};
use store::idempotency::RequestIdentity;
use store::keys::Realm;
use store::script::change::Scope;
use store::spend::{PlanCap, Spend, SpendStep, Spent};
use store::transfer::{NewTransfer, Transferred};
use store::wallet::WalletPlace;
use store::{Store, sanity};

type StepResult = Result<(), Box<dyn Error>>;

const LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
const SCOPE: Scope<'static> = Scope {
    account: ACCOUNT,
    mode: MODE,
    actor: "key_bench",
};
/// Amount of each step, in nano-USD.
const AMOUNT: u64 = 1000;

/// A measured step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Spend,
    Replay,
    Denial,
    Transfer,
    Deposit,
    Create,
    Fund,
    Release,
}

impl Step {
    /// All of them, in an order in which each finds the records that it needs.
    pub const ALL: [Self; 8] = [
        Self::Spend,
        Self::Replay,
        Self::Denial,
        Self::Transfer,
        Self::Deposit,
        Self::Create,
        Self::Fund,
        Self::Release,
    ];

    /// Name of the step in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spend => "spend, settled",
            Self::Replay => "spend, the same key again",
            Self::Denial => "spend, denied",
            Self::Transfer => "transfer within the account",
            Self::Deposit => "deposit",
            Self::Create => "escrow create",
            Self::Fund => "escrow fund",
            Self::Release => "escrow release",
        }
    }

    /// Scripts of one call. The number of an escrow is drawn first.
    pub const fn scripts(self) -> u64 {
        match self {
            Self::Create => 2,
            _ => 1,
        }
    }
}

/// Calls the scripts.
#[derive(Default)]
pub struct Actor {
    secret: Option<CheckSecret>,
    calls: u64,
    spent: Vec<String>,
    escrows: Vec<u64>,
}

impl Actor {
    /// Prepares what `step` needs, outside of the measurement.
    pub async fn prepare(&mut self, store: &Store, step: Step) -> StepResult {
        if self.secret.is_none() {
            self.secret = Some(sanity::record(store).await?.check_secret);
        }
        if step == Step::Spend {
            self.spent.clear();
        }
        if step == Step::Create {
            self.escrows.clear();
        }
        Ok(())
    }

    /// Executes the script of `step` `calls` times.
    pub async fn execute(&mut self, store: &Store, step: Step, calls: u64) -> StepResult {
        for at in 0..calls {
            self.calls += 1;
            match step {
                Step::Spend => self.spend(store, None, AMOUNT).await?,
                Step::Replay => {
                    let key = usize::try_from(at)
                        .ok()
                        .and_then(|at| self.spent.get(at))
                        .cloned();
                    self.spend(store, key, AMOUNT).await?;
                }
                Step::Denial => self.spend(store, None, Nanos::MAX.get() + 1).await?,
                Step::Transfer => self.transfer(store).await?,
                Step::Deposit => self.deposit(store).await?,
                Step::Create => self.create(store).await?,
                Step::Fund | Step::Release => {
                    let number = usize::try_from(at)
                        .ok()
                        .and_then(|at| self.escrows.get(at))
                        .copied();
                    self.resolve(store, number.ok_or("no escrow")?, step).await?;
                }
            }
        }
        Ok(())
    }

    fn identity(&self, key: &str) -> Result<RequestIdentity, Box<dyn Error>> {
        let secret = self.secret.as_ref().ok_or("no secret")?;
        let request = json!({ "amountNanos": "1000" });
        Ok(RequestIdentity::new(
            secret,
            &Realm::new(ACCOUNT, MODE),
            Some(key),
            ("bench", &request),
            clock::now_ms(),
        )?)
    }

    fn key(&self) -> String {
        format!("key-{}", self.calls)
    }

    fn place(&self, offset: u64) -> WalletPlace {
        let number = (self.calls + offset) % ACTIVE;
        WalletPlace {
            account: ACCOUNT.to_owned(),
            mode: MODE,
            owner: agent(number),
            number: number + 1,
        }
    }

    /// Executes a spend. The policy denies a spend of more than the largest amount.
    async fn spend(&mut self, store: &Store, again: Option<String>, nanos: u64) -> StepResult {
        let key = again.clone().unwrap_or_else(|| self.key());
        let (identity, at_ms) = (self.identity(&key)?, clock::now_ms());
        let (agent, transaction) = (self.place(0).owner, IdKind::Transaction.mint(at_ms)?);
        let spend = Spend {
            agent: &agent,
            amount: Nanos::from_stored(nanos),
            currency: "USD",
            run: None,
            recipient: Some("Books Ltd"),
            description: Some("A book"),
            transaction: &transaction,
            plan: Some(PlanCap {
                name: "enterprise",
                cap: CapPlan::default(),
            }),
        };
        let ask = SpendStep::Request {
            identity: &identity,
            at_ms,
            request: "{}",
            injection: None,
        };
        let spent = spend.execute(store, &SCOPE, ask).await?;
        match (&spent, again.is_some(), nanos > Nanos::MAX.get()) {
            (Spent::Settled { .. }, false, false) => self.spent.push(key),
            (Spent::Known, true, false) | (Spent::Blocked { .. }, false, true) => {}
            _ => return Err(format!("a spend became {spent:?}").into()),
        }
        Ok(())
    }

    async fn transfer(&self, store: &Store) -> StepResult {
        let (identity, at_ms) = (self.identity(&self.key())?, clock::now_ms());
        let (from, to) = (self.place(0), self.place(1));
        let ids = [IdKind::Transaction.mint(at_ms)?, IdKind::Transaction.mint(at_ms)?];
        let transfer = NewTransfer {
            identity: &identity,
            record_life: Some(LIFE),
            from: &from,
            to: &to,
            amount: Nanos::from_stored(AMOUNT),
            currency: "USD",
            memo: Some("rent"),
            transaction: &ids[0],
            arrival: &ids[1],
            closed: false,
            request: "{}",
            at_ms,
        };
        match transfer.execute(store, &SCOPE).await? {
            Transferred::Done { .. } => Ok(()),
            other => Err(format!("a transfer became {other:?}").into()),
        }
    }

    async fn deposit(&self, store: &Store) -> StepResult {
        let (identity, at_ms) = (self.identity(&self.key())?, clock::now_ms());
        let (wallet, reference) = (self.place(0), format!("ref-{}", self.calls));
        let deposit = NewDeposit {
            identity: &identity,
            record_life: Some(LIFE),
            wallet: &wallet,
            closed: false,
            amount: Nanos::from_stored(AMOUNT),
            currency: "USD",
            reference: &reference,
            state: DepositState::Confirmed,
            transaction: &IdKind::Transaction.mint(at_ms)?,
            request: "{}",
            at_ms,
        };
        match deposit.execute(store, &SCOPE).await? {
            DepositMade::Done { again: false, .. } => Ok(()),
            other => Err(format!("a deposit became {other:?}").into()),
        }
    }

    fn party(&self, offset: u64) -> Party {
        let place = self.place(offset);
        Party {
            account: place.account,
            owner: place.owner,
            wallet: place.number,
        }
    }

    async fn create(&mut self, store: &Store) -> StepResult {
        let identity = self.identity(&self.key())?;
        let requester = Requester {
            scope: SCOPE,
            identity: &identity,
            at_ms: clock::now_ms(),
        };
        let (payer, payee) = (self.party(0), self.party(1));
        let new = NewEscrow {
            payer: &payer,
            payee: &payee,
            amount: Nanos::from_stored(AMOUNT),
            currency: "USD",
            conditions: "{}",
        };
        match new.create(store, &requester).await? {
            CallOutcome::Done(made) => self.escrows.push(made.number),
            other => return Err(format!("an escrow became {other:?}").into()),
        }
        Ok(())
    }

    async fn resolve(&self, store: &Store, number: u64, step: Step) -> StepResult {
        let identity = self.identity(&self.key())?;
        let requester = Requester {
            scope: SCOPE,
            identity: &identity,
            at_ms: clock::now_ms(),
        };
        let escrow = Escrow::read(store, number).await?.ok_or("no escrow")?;
        let done = match step {
            Step::Fund => matches!(fund(store, &requester, &escrow).await?, CallOutcome::Done(_)),
            _ => matches!(
                decide(store, &requester, &escrow, PartyDecision::Release).await?,
                CallOutcome::Done(())
            ),
        };
        done.then_some(())
            .ok_or_else(|| format!("{}: refused", step.name()).into())
    }
}
