//! `tollgate-admin store`: the life of the ledger (decisions D47, D52).

use super::context::{CommandContext, open_store};
use super::{audit, value};
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::Subcommand;
use clock::now_ms;
use domain::timestamp::iso_from_ms;
use serde_json::json;
use settings::Settings;
use store::account::script as account;
use store::account::{Account, refused};
use store::audit::OPERATOR;
use store::audit::checkpoint_key;
use store::command_rights::Program;
use store::durability::DurabilityStatus;
use store::sanity;

/// Accounts that lost writes which `store check` names.
const LOST_NAMED_MAX: usize = 20;

/// `store …`
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Initialise an empty store; does nothing to an initialised one
    Init,
    /// Accept accounts whose version decreased because a failover lost writes, and a restored store
    Accept {
        /// One account; default: all
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: Option<String>,
    },
    /// Check that the store can be trusted with money and accepts writes: a ledger epoch, no eviction, no lost writes,
    /// correct clocks
    Check,
}

/// Initialises the store.
pub(super) async fn init(settings: &Settings) -> Result<Report, CommandFailure> {
    let store = open_store(settings)?;
    let before = sanity::examine(&store, Program::Management).await.is_ok();
    sanity::init(&store, &iso_from_ms(now_ms())).await?;
    let record = sanity::check(&store, Program::Management).await?;
    if let Ok(keyring) = settings.keyring() {
        // Without a master key the key is created later, when a checkpoint is first signed.
        checkpoint_key::key(&store, &keyring)
            .await
            .map_err(audit::no_key)?;
    }
    let text = match before {
        true => format!(
            "The store was initialised before; its ledger epoch is {}.",
            record.epoch
        ),
        false => format!("The store is initialised; its ledger epoch is {}.", record.epoch),
    };
    let status = store.durability().await?;
    let text = format!("{text}{}", durability(record.append_only, &status));
    Ok(Report::new(
        text,
        json!({ "ok": true, "epoch": record.epoch, "created": !before, "appendOnly": record.append_only,
            "durability": shown(&status) }),
    ))
}

impl StoreCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match self {
            Self::Init => init(&context.settings).await,
            Self::Accept { account } => accept(context, account).await,
            Self::Check => check(context).await,
        }
    }
}

async fn accept(context: &CommandContext, account: Option<String>) -> Result<Report, CommandFailure> {
    let whole = account.is_none();
    let ids = match account {
        Some(id) => vec![context.account(&id).await?.id],
        None => Account::ids(&context.store).await?,
    };
    let mut accepted = 0_u64;
    for id in &ids {
        if account::accept(&context.store, id, OPERATOR).await? {
            accepted += 1;
        }
    }
    // Last: if it fails before, every call stays denied and the command can be repeated.
    if whole {
        sanity::accept(&context.store).await?;
    }
    let restored = match (&context.record.restored, whole) {
        (None, _) => "",
        (Some(_), true) => " The restored store is in use now.",
        (Some(_), false) => {
            " The store was restored, and every call is denied until all are accepted: leave out --account."
        }
    };
    Ok(Report::new(
        format!("Accepted {accepted} account(s) as the store has them now.{restored}"),
        json!({ "ok": true, "epoch": context.record.epoch, "accepted": accepted }),
    ))
}

/// Checks the parts that opening the context did not: pending acceptance, and the durability of money.
async fn check(context: &CommandContext) -> Result<Report, CommandFailure> {
    let record = &context.record;
    if let Some(what) = &record.restored {
        return Err(sanity::UntrustedStore::Restored(what.clone()).into());
    }
    if let Some(refusal) = record.refuses_writes() {
        return Err(CommandFailure::refused(
            "STORE_TAKES_NO_WRITES",
            refusal.to_string(),
        ));
    }
    let unchecked = match context.settings.keyring() {
        Ok(keyring) => {
            record
                .check_master_key(&keyring)
                .map_err(|error| CommandFailure::refused("MASTER_KEY", error.to_string()))?;
            None
        }
        Err(error) => Some(format!(
            " The master key of its secrets was not checked: {error}."
        )),
    };
    let lost = refused::read(&context.store).await?.lost;
    if !lost.is_empty() {
        return Err(CommandFailure::refused(
            "ACCOUNTS_LOST_WRITES",
            lost_writes(lost.into_keys()),
        ));
    }
    let status = context.store.durability().await?;
    if status.refuses() {
        return Err(CommandFailure::refused("NOT_DURABLE", status.sentence()));
    }
    let text = format!(
        "The store is sound; its ledger epoch is {}.{}{}{}",
        record.epoch,
        memory(record.has_memory_limit),
        durability(record.append_only, &status),
        unchecked.as_deref().unwrap_or_default()
    );
    let json = json!({ "ok": true, "epoch": record.epoch, "appendOnly": record.append_only,
        "memoryLimited": record.has_memory_limit, "masterKeyChecked": unchecked.is_none(), "durability": shown(&status) });
    Ok(Report::new(text, json))
}

/// Returns the configured durability and its effect.
fn shown(status: &DurabilityStatus) -> serde_json::Value {
    json!({ "asked": status.requested.to_string(), "confirmed": status.confirmed.to_string(), "lacks": status.lacks,
        "exposed": status.exposed })
}

/// Returns the names of accounts that lost writes, with the commands for them.
fn lost_writes(accounts: impl ExactSizeIterator<Item = String>) -> String {
    let count = accounts.len();
    let named: Vec<String> = accounts.take(LOST_NAMED_MAX).collect();
    let more = match count - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "the store lost writes of {count} account(s), and every call of them is denied: {}{more}; look at what is \
         missing, then `tollgate-admin store accept --account ACCOUNT`",
        named.join(", ")
    )
}

const fn memory(is_limited: bool) -> &'static str {
    match is_limited {
        true => "",
        false => "\nIt has no maxmemory: the kernel kills a store that grows too large.",
    }
}

fn durability(append_only: bool, status: &DurabilityStatus) -> String {
    let file = match append_only {
        true => "",
        false => {
            "\nIt writes no append-only file: a restart of the store loses all writes since its last snapshot."
        }
    };
    format!("{file}\nDurability: {}.", status.sentence())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_accounts_is_named() {
        let text = |count: usize| {
            lost_writes(
                (0..count)
                    .map(|n| format!("acct_{n:02}"))
                    .collect::<Vec<_>>()
                    .into_iter(),
            )
        };
        assert!(
            text(2).contains("2 account(s)") && text(2).contains("acct_00, acct_01; "),
            "{}",
            text(2)
        );
        let many = text(LOST_NAMED_MAX + 3);
        assert!(
            many.contains("23 account(s)") && many.contains("acct_19 and 3 more"),
            "{many}"
        );
        assert!(!many.contains("acct_20"), "{many}");
    }
}
