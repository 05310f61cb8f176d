//! The context of every operator command: the configuration and a store that holds a ledger.

use crate::failure::CommandFailure;
use archive::Archive;
use settings::Settings;
use store::Store;
use store::account::Account;
use store::command_rights::Program;
use store::sanity::{self, StoreRecord};
use tokio::runtime::{Builder, Runtime};

/// Effect of a command on the store. A restored store allows changes only after the operator has accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandKind {
    /// Only reads and checks, or needs no store. May seal entries that the trail already has.
    Read,
    /// Accepts the store.
    Accept,
    /// Changes the store or the archive: refused until the store is accepted.
    Change,
}

/// The configuration and the opened store.
#[derive(Debug)]
pub(super) struct CommandContext {
    pub(super) settings: Settings,
    pub(super) store: Store,
    pub(super) record: StoreRecord,
}

impl CommandContext {
    /// Opens the store for a command of this kind, and checks that it has a ledger. A restored store can be read, since
    /// the operator has to examine it before accepting it, and refuses changes until then: they would be made on old
    /// balances, and take the numbers of lost entries.
    pub(super) async fn open(settings: Settings, kind: CommandKind) -> Result<Self, CommandFailure> {
        let store = open_store(&settings)?;
        let record = match kind {
            CommandKind::Change => sanity::check(&store, Program::Management).await?,
            CommandKind::Read | CommandKind::Accept => sanity::examine(&store, Program::Management).await?,
        };
        Ok(Self {
            settings,
            store,
            record,
        })
    }

    /// Reads the account `id`, which must exist.
    pub(super) async fn account(&self, id: &str) -> Result<Account, CommandFailure> {
        Account::read(&self.store, id)
            .await?
            .ok_or_else(|| CommandFailure::no_account(id))
    }

    /// Opens the archive, which must be the one to which the store's entries have gone: another one, or a mount point
    /// without its volume, proves nothing.
    pub(super) async fn own_archive(&self) -> Result<Archive, CommandFailure> {
        let archive = Archive::from_settings(&self.settings.audit)?;
        archive.check_own(&self.store).await?;
        Ok(archive)
    }

    /// Reads the newest acknowledged version of the account `id` from its witness. Call it before a change of money:
    /// the store refuses the change then if the account lost writes, which this process cannot know.
    pub(super) async fn learn_version(&self, id: &str) {
        self.store.floor(id).await;
    }
}

/// Opens the store without checks.
pub(super) fn open_store(settings: &Settings) -> Result<Store, CommandFailure> {
    let store =
        Store::from_settings(&settings.store).map(|store| store.with_budgets(settings.limits.budgets()));
    store.map_err(|error| CommandFailure::usage(error.to_string()))
}

pub(super) fn command_runtime() -> Result<Runtime, CommandFailure> {
    started(Builder::new_current_thread().enable_all().build())
}

pub(super) fn server_runtime() -> Result<Runtime, CommandFailure> {
    started(Builder::new_multi_thread().enable_all().build())
}

fn started(runtime: std::io::Result<Runtime>) -> Result<Runtime, CommandFailure> {
    runtime
        .map_err(|error| CommandFailure::refused("RUNTIME", format!("the runtime does not start: {error}")))
}
