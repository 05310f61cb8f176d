//! The command line of `tollgate-admin` (decision D13). Exit codes: 0 done, 1 refused, 2 wrong usage or configuration,
//! 3 a check could not be made.
//!
//! Each command is a file; its help is in `help`. This crate is at the top: only the binary uses it.

mod account;
mod agent;
mod api_key;
mod audit;
mod bench;
mod closed_stdout;
mod context;
mod decision;
mod deposit;
mod document;
mod escrow;
mod failure;
mod health;
mod help;
mod holds;
mod ip;
mod ledger;
mod master_keys;
mod output;
mod password;
mod price_tables;
mod prices;
mod report;
mod sandbox;
mod shell;
mod stdin;
mod store;
mod table;
mod user;
mod value;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use context::{CommandContext, CommandKind};
use failure::CommandFailure;
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;

/// Position of the common options: after a command's own.
const LAST: usize = 900;

/// Administers Tollgate: runs the management API, and operates on the store.
///
/// Secrets are printed once, when they are created, and never stored in clear. No command waits for a confirmation: its
/// help says what it changes, and every change is audited.
#[derive(Debug, Parser)]
#[command(name = "tollgate-admin", version, max_term_width = 100)]
struct Cli {
    /// Configuration file [default: config/tollgate.toml, if there is one]; every key also as TOLLGATE_<SECTION>__<KEY>
    #[arg(long, global = true, value_name = "FILE", display_order = LAST)]
    config: Option<PathBuf>,
    /// Print exactly one JSON document on standard output
    #[arg(long, global = true, display_order = LAST)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the management API and the workers, in the foreground
    Serve,
    /// Run a stand-in for the provider, to try all paths without a provider account
    SandboxUpstream(sandbox::SandboxArgs),
    /// Check whether a server on this machine is ready: for probes without a shell
    Health(health::Health),
    /// Send load to an edge, and check that it charged what it reported
    Bench(Box<bench::BenchArgs>),
    /// Print a script with which a shell completes this command line
    Completions(shell::Completions),
    /// Write manual pages
    Man(shell::Man),
    #[command(flatten)]
    Operate(Operate),
}

/// The operator's commands on the store.
#[derive(Debug, Subcommand)]
enum Operate {
    #[command(flatten)]
    OnLedger(OnLedger),
    /// Check that everything in the ledger is consistent
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Verify and export the audit trail, show the key of its checkpoints
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

/// The commands that open a store with a ledger before anything else.
#[derive(Debug, Subcommand)]
enum OnLedger {
    /// Create accounts, list them, change their plans
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Create dashboard users, change their roles, help those who cannot sign in
    #[command(subcommand)]
    User(user::UserCommand),
    /// Issue, list and revoke API keys of the management API
    #[command(subcommand)]
    ApiKey(api_key::ApiKeyCommand),
    /// Block addresses: both servers refuse all their requests
    #[command(subcommand)]
    Ip(ip::IpCommand),
    /// Freeze and unfreeze agents; an operator's freeze can be lifted by the operator only
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Bring money into a wallet, confirm a pending deposit
    Deposit(deposit::DepositCommand),
    /// Rotate the master key
    #[command(subcommand)]
    Keys(master_keys::KeysCommand),
    /// Import model prices, look at one
    #[command(subcommand)]
    Prices(prices::PricesCommand),
    /// Initialise the store, check it, accept it after it lost writes
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Show an escrow, and end its dispute
    #[command(subcommand)]
    Escrow(escrow::EscrowCommand),
    /// List and correct charges of calls that were never settled
    #[command(subcommand)]
    Holds(holds::HoldsCommand),
    /// Show why a call was allowed or denied, and what it was charged
    #[command(subcommand)]
    Decision(decision::DecisionCommand),
}

/// Returns the whole command line: for parsing, completion and documentation.
pub fn command() -> clap::Command {
    help::with_help(Cli::command())
}

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let parsed = command().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, help::kind_of(&matches))));
    let (cli, kind) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return report::usage(&error),
    };
    if let Err(error) = file_size_limit::fail_writes() {
        let message = format!("SIGXFSZ cannot be handled: {error}");
        return CommandFailure::refused("RUNTIME", message).print(cli.json);
    }
    let _logs = match telemetry::start() {
        Ok(logs) => logs,
        Err(error) => return CommandFailure::from(error).print(cli.json),
    };
    let json = cli.json;
    match execute(cli, kind) {
        Ok(report) => report.print(json),
        Err(failure) => failure.print(json),
    }
}

fn execute(cli: Cli, kind: CommandKind) -> Result<Report, CommandFailure> {
    let Cli {
        config,
        json,
        command,
    } = cli;
    let config = config.as_deref();
    let settings = || settings::load(config).map_err(CommandFailure::from);
    match command {
        Command::Completions(completions) => Ok(completions.run(self::command())),
        Command::Man(man) => man.run(self::command()),
        Command::Serve => {
            let source = settings::source(config);
            let served = context::server_runtime()?.block_on(server::serve(settings()?, &source));
            served.map(|()| Report::silent()).map_err(CommandFailure::from)
        }
        Command::SandboxUpstream(args) => {
            settings()?;
            let served = context::server_runtime()?.block_on(args.run());
            served.map(|()| Report::silent())
        }
        Command::Health(health) => context::command_runtime()?.block_on(health.run(&settings()?)),
        Command::Bench(args) => context::server_runtime()?.block_on(args.run(settings()?, kind)),
        Command::Operate(Operate::Audit(command)) if json && command.writes_to_stdout() => Err(
            CommandFailure::usage("--json needs --out: without it the export itself goes to standard output"),
        ),
        Command::Operate(command) => {
            let settings = settings()?;
            let address = settings.store.clone();
            let done = context::command_runtime()?.block_on(operate(command, settings, kind));
            done.map_err(|failure| failure.with_address(&address, config))
        }
    }
}

async fn operate(
    command: Operate,
    settings: settings::Settings,
    kind: CommandKind,
) -> Result<Report, CommandFailure> {
    let command = match command {
        // An export can be verified without a store.
        Operate::Audit(command) => return command.run(settings, kind).await,
        Operate::Ledger(command) => {
            let checked = command.run(settings, kind).await;
            return checked.map_err(CommandFailure::of_check);
        }
        // The only command that works on a store without a ledger.
        Operate::OnLedger(OnLedger::Store(store::StoreCommand::Init)) => return store::init(&settings).await,
        Operate::OnLedger(command) => command,
    };
    let context = &CommandContext::open(settings, kind).await?;
    match command {
        OnLedger::Account(command) => command.run(context).await,
        OnLedger::User(command) => command.run(context).await,
        OnLedger::ApiKey(command) => command.run(context).await,
        OnLedger::Ip(command) => command.run(context).await,
        OnLedger::Agent(command) => command.run(context).await,
        OnLedger::Deposit(command) => command.run(context).await,
        OnLedger::Keys(command) => command.run(context).await,
        OnLedger::Prices(command) => command.run(context).await,
        OnLedger::Store(command) => command.run(context).await,
        OnLedger::Escrow(command) => command.run(context).await,
        OnLedger::Holds(command) => command.run(context).await,
        OnLedger::Decision(command) => command.run(context).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
