//! `tollgate-admin deposit`: money that the operator brings in (decision D17).

use super::context::CommandContext;
use super::value;
use crate::document::document;
use crate::failure::CommandFailure;
use crate::report::Report;
use api::{FoundWallet, WALLET_ATTEMPTS, find_wallet, other_state};
use clap::{Args, Subcommand};
use clock::now_ms;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::money::Nanos;
use endpoint::{CURRENCIES, WalletName};
use serde_json::json;
use store::deposit::script::{Cancelled, DepositConfirmed, DepositMade, NewDeposit, cancel, confirm};
use store::deposit::{AnnouncedDeposit, Deposit, DepositState};
use store::idempotency::RequestIdentity;
use store::keys::Realm;
use store::script::change::Scope;
use store::wallet::BALANCE_MAX;

/// `deposit …`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct DepositCommand {
    #[command(subcommand)]
    end: Option<DepositEnd>,
    #[command(flatten)]
    make: Option<Make>,
}

#[derive(Debug, Subcommand)]
enum DepositEnd {
    /// Confirm a pending deposit: its money is the wallet's from then on
    Confirm {
        #[command(flatten)]
        name: DepositName,
        /// The amount that arrived; another one than that of the deposit is refused
        #[arg(long, value_name = "USD", value_parser = value::amount, allow_negative_numbers = true)]
        amount: Option<Nanos>,
    },
    /// Take a pending deposit back that will not arrive
    Cancel(DepositName),
}

/// A new deposit.
#[derive(Debug, Args)]
struct Make {
    /// The account
    #[arg(long, value_name = "ID", value_parser = value::id)]
    account: String,
    /// live or test
    #[arg(long, default_value = "live", value_parser = value::mode())]
    mode: Mode,
    /// The wallet: its number, its id `wal_…`, an agent's id, or `user`
    #[arg(long, value_name = "WALLET", value_parser = value::wallet, allow_hyphen_values = true)]
    wallet: WalletName,
    /// The amount
    #[arg(long, value_name = "USD", value_parser = value::amount, allow_negative_numbers = true)]
    amount: Nanos,
    /// The payment rail's reference
    #[arg(long, value_name = "TEXT", value_parser = value::reference)]
    reference: String,
    /// USD or USDC
    #[arg(long, default_value = CURRENCIES[0], value_parser = CURRENCIES)]
    currency: String,
    /// It is not confirmed yet
    #[arg(long)]
    pending: bool,
}

/// An existing deposit.
#[derive(Debug, Args)]
struct DepositName {
    /// The payment rail's reference
    #[arg(long, value_name = "TEXT", value_parser = value::reference)]
    reference: String,
    /// The account, where several know the reference
    #[arg(long, value_name = "ID", value_parser = value::id)]
    account: Option<String>,
    /// live or test, where both know the reference
    #[arg(long, value_parser = value::mode())]
    mode: Option<Mode>,
}

impl DepositCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match (self.end, self.make) {
            (Some(DepositEnd::Confirm { name, amount }), _) => name.confirm(context, amount).await,
            (Some(DepositEnd::Cancel(which)), _) => which.cancel(context).await,
            (None, Some(make)) => make.run(context).await,
            (None, None) => Err(CommandFailure::usage("say which deposit; see `deposit --help`")),
        }
    }
}

impl Make {
    async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        context.account(&self.account).await?;
        context.learn_version(&self.account).await;
        let scope = Scope::from_operator(&self.account, self.mode);
        for _ in 0..WALLET_ATTEMPTS {
            match self.attempt(context, &scope).await? {
                DepositMade::Done { deposit, again } => {
                    let again = again.then_some("this reference was used before");
                    return Ok(report(&scope, &deposit, again));
                }
                DepositMade::Blocked(_) => return Err(closed(&self.wallet.text())),
                DepositMade::OtherDeposit => {
                    let message = format!("reference {} was used for another deposit", self.reference);
                    return Err(CommandFailure::refused("IDEMPOTENCY_KEY_REUSED", message));
                }
                DepositMade::OtherState { now } => {
                    let message = format!("reference {}: {}", self.reference, other_state(now));
                    return Err(CommandFailure::refused("IDEMPOTENCY_KEY_REUSED", message));
                }
                DepositMade::TooMuch => return Err(too_much()),
                DepositMade::Changed | DepositMade::Known => {}
            }
        }
        Err(CommandFailure::refused(
            "CONFLICT",
            "the wallet kept changing; try again",
        ))
    }

    async fn attempt(
        &self,
        context: &CommandContext,
        scope: &Scope<'_>,
    ) -> Result<DepositMade, CommandFailure> {
        let found = self.find(context, scope).await?;
        let now = now_ms();
        // No idempotency key: the reference already makes the deposit happen once.
        let request = ("deposit", &json!({}));
        let identity =
            RequestIdentity::new(&context.record.check_secret, &scope.realm(), None, request, now)?;
        let state = match self.pending {
            true => DepositState::Pending,
            false => DepositState::Confirmed,
        };
        let deposit = NewDeposit {
            identity: &identity,
            record_life: None,
            wallet: &found.place,
            closed: found.is_closed(),
            amount: self.amount,
            currency: &self.currency,
            reference: &self.reference,
            state,
            transaction: &IdKind::Transaction.mint(now)?,
            request: "{}",
            at_ms: now,
        };
        Ok(deposit.execute(&context.store, scope).await?)
    }

    /// Finds the wallet, which must belong to the account.
    async fn find(&self, context: &CommandContext, scope: &Scope<'_>) -> Result<FoundWallet, CommandFailure> {
        let found = find_wallet(&context.store, scope, &self.wallet).await?;
        let own = found.filter(|found| found.place.account == self.account);
        own.ok_or_else(|| {
            let (account, mode, wallet) = (&self.account, self.mode, self.wallet.text());
            let message = format!("account {account} has no wallet {wallet} in {mode} mode");
            CommandFailure::refused("NOT_FOUND", message)
        })
    }
}

/// Builds the report of a deposit. `again` explains why a repeated command changed nothing.
fn report(scope: &Scope<'_>, deposit: &Deposit, again: Option<&str>) -> Report {
    let state = deposit.state;
    let verb = match state {
        DepositState::Pending => "is pending; `deposit confirm` credits it",
        DepositState::Confirmed => "is confirmed",
        DepositState::Cancelled => "is cancelled, and its reference stays used",
    };
    // Balance of the wallet after the change to this state. A cancellation changes none.
    let balance = match (state, deposit.confirmed) {
        (DepositState::Cancelled, _) => None,
        (_, Some((_, balance))) => Some(balance),
        (_, None) => Some(deposit.first_balance),
    };
    let (reference, amount, wallet) = (&deposit.reference, deposit.amount, deposit.wallet);
    let holds = match (again, balance) {
        (None, None) => "The wallet waits for it no longer.".to_owned(),
        (None, Some(balance)) => format!("The wallet holds {balance} USD."),
        (Some(why), None) => format!("Nothing changed: {why}."),
        (Some(why), Some(balance)) => format!("The wallet held {balance} USD then. Nothing changed: {why}."),
    };
    let account = scope.account;
    let text = format!(
        "Deposit {reference} of {amount} USD into wallet {wallet} of account {account} {verb}. {holds}"
    );
    let document = document! { "accountId": scope.account, "mode": scope.mode.as_str(), "transactionId": deposit.id,
    "reference": reference, "walletId": wallet, "amount": amount, "currency": deposit.currency,
    "state": state.as_str(), "balance": balance, "balanceNanos": balance.map(|balance| balance.get().to_string()),
    "replayed": again.is_some() };
    Report::new(text, document)
}

impl DepositName {
    async fn confirm(
        self,
        context: &CommandContext,
        arrived: Option<Nanos>,
    ) -> Result<Report, CommandFailure> {
        let realm = self.realm(context).await?;
        context.learn_version(realm.account()).await;
        let scope = Scope::from_operator(realm.account(), realm.mode());
        if let Some(arrived) = arrived {
            self.check_amount(context, &realm, arrived).await?;
        }
        match confirm(&context.store, &scope, &self.reference).await? {
            DepositConfirmed::Done { deposit, again } => {
                let again = again.then_some("it was confirmed before");
                Ok(report(&scope, &deposit, again))
            }
            DepositConfirmed::Missing | DepositConfirmed::Known => Err(self.missing()),
            DepositConfirmed::Cancelled => Err(self.ended(DepositState::Cancelled)),
            DepositConfirmed::Closed => Err(closed(&self.reference)),
            DepositConfirmed::TooMuch => Err(too_much()),
        }
    }

    async fn cancel(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        let realm = self.realm(context).await?;
        context.learn_version(realm.account()).await;
        let scope = Scope::from_operator(realm.account(), realm.mode());
        match cancel(&context.store, &scope, &self.reference).await? {
            Cancelled::Done { deposit, again } => {
                let again = again.then_some("it was cancelled before");
                Ok(report(&scope, &deposit, again))
            }
            Cancelled::Missing => Err(self.missing()),
            Cancelled::Confirmed => Err(self.ended(DepositState::Confirmed)),
        }
    }

    /// Refuses another amount than that of the deposit, which does not change.
    async fn check_amount(
        &self,
        context: &CommandContext,
        realm: &Realm,
        arrived: Nanos,
    ) -> Result<(), CommandFailure> {
        let deposit = Deposit::read(&context.store, realm, &self.reference).await?;
        match deposit.filter(|deposit| deposit.amount != arrived) {
            None => Ok(()),
            Some(Deposit { amount, .. }) => {
                let (reference, account) = (&self.reference, realm.account());
                let message = format!(
                    "reference {reference}: account {account} announced {amount} USD, not {arrived} USD"
                );
                Err(CommandFailure::refused("CONFLICT", message))
            }
        }
    }

    /// The deposit is in a state in which it stays.
    fn ended(&self, now: DepositState) -> CommandFailure {
        let message = format!("reference {}: {}", self.reference, other_state(now));
        CommandFailure::refused("CONFLICT", message)
    }

    /// The account and mode of the deposit, which must be clear.
    async fn realm(&self, context: &CommandContext) -> Result<Realm, CommandFailure> {
        if let Some(account) = &self.account {
            context.account(account).await?;
            if let Some(mode) = self.mode {
                return Ok(Realm::new(account, mode));
            }
        }
        let (mut announced, are_all) = match &self.account {
            Some(account) => (self.modes(context, account).await?, true),
            None => Deposit::announced(&context.store, &self.reference).await?,
        };
        announced.retain(|deposit| self.mode.is_none_or(|wanted| wanted == deposit.realm.mode()));
        match announced.as_slice() {
            [] => Err(self.missing()),
            [deposit] if are_all => Ok(deposit.realm.clone()),
            several => Err(self.ambiguous(several)),
        }
    }

    fn ambiguous(&self, announced: &[AnnouncedDeposit]) -> CommandFailure {
        let named = announced.iter().map(|deposit| {
            format!(
                "{} ({}, {})",
                deposit.realm.account(),
                deposit.realm.mode(),
                deposit.state
            )
        });
        let message = format!(
            "several accounts have a deposit of reference {}: {}; choose one with --account and --mode",
            self.reference,
            named.collect::<Vec<_>>().join(", ")
        );
        CommandFailure::refused("CONFLICT", message)
    }

    /// Returns the modes in which `account` has, or had, a pending deposit with the reference.
    async fn modes(
        &self,
        context: &CommandContext,
        account: &str,
    ) -> Result<Vec<AnnouncedDeposit>, CommandFailure> {
        let mut known = Vec::new();
        for realm in Mode::ALL.map(|mode| Realm::new(account, mode)) {
            let deposit = Deposit::read(&context.store, &realm, &self.reference).await?;
            let announced = deposit.filter(Deposit::was_announced);
            let state = announced.map(|deposit| deposit.state);
            known.extend(state.map(|state| AnnouncedDeposit { realm, state }));
        }
        Ok(known)
    }

    fn missing(&self) -> CommandFailure {
        let message = format!("there is no pending deposit of reference {}", self.reference);
        CommandFailure::refused("NOT_FOUND", message)
    }
}

fn closed(what: &str) -> CommandFailure {
    let message = format!("{what}: the wallet is closed; choose another one of the account (--wallet)");
    CommandFailure::refused("WALLET_CLOSED", message)
}

fn too_much() -> CommandFailure {
    let message = format!(
        "the wallet cannot hold that much (at most {BALANCE_MAX} USD): its account must move money out of it first"
    );
    CommandFailure::refused("BALANCE_LIMIT", message)
}
