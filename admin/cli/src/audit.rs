//! `tollgate-admin audit`: verify and export the audit trail, recompute its charges, and show the key that signs its
//! checkpoints.

mod export;
mod manifests;
mod recompute;
mod verify;

use super::context::{CommandContext, CommandKind};
use super::value;
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::{Args, Subcommand};
use crypto::checkpoint_key::CheckpointKey;
use domain::checkpoint::origin;
use domain::mode::Mode;
use serde_json::json;
use settings::Settings;
use store::Store;
use store::audit::checkpoint_key;
use store::audit::checkpoint_key::KeyError;
use store::keys::Realm;
use telemetry::error_chain;

/// `audit …`
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Verify an audit trail in the store or in an export; exit code 1 names the first wrong entry
    Verify(Box<verify::VerifyArgs>),
    /// Write an audit trail as JSON Lines, one entry per line
    Export(export::ExportArgs),
    /// Recompute the charges of calls from their records and the kept price tables; exit code 1 if one is different
    Recompute(recompute::RecomputeArgs),
    /// Make missing or changed manifests of the archive again
    Manifests(manifests::ManifestsArgs),
    /// Show the public key that proves signed checkpoints
    Key,
}

/// The trail's account and mode.
#[derive(Debug, Args)]
pub(super) struct TrailArgs {
    /// The account
    #[arg(long, value_name = "ID", value_parser = value::id)]
    account: String,
    /// live or test
    #[arg(long, default_value = "live", value_parser = value::mode())]
    mode: Mode,
}

impl TrailArgs {
    fn realm(&self) -> Realm {
        Realm::new(&self.account, self.mode)
    }

    fn origin(&self) -> String {
        origin(&self.account, self.mode)
    }
}

impl AuditCommand {
    /// Returns whether standard output is used for data instead of a report.
    pub(super) const fn writes_to_stdout(&self) -> bool {
        matches!(self, Self::Export(export) if export.writes_to_stdout())
    }

    /// Opens the store if it is needed: an export can be verified without it.
    pub(super) async fn run(self, settings: Settings, kind: CommandKind) -> Result<Report, CommandFailure> {
        let open = |settings| CommandContext::open(settings, kind);
        match self {
            Self::Verify(verify) => verify.run(settings, kind).await.map_err(CommandFailure::of_check),
            Self::Export(export) => export.run(&open(settings).await?).await,
            Self::Recompute(recompute) => recompute.run(&open(settings).await?).await,
            Self::Manifests(manifests) => manifests.run(&open(settings).await?).await,
            Self::Key => key(&open(settings).await?).await,
        }
    }
}

async fn key(context: &CommandContext) -> Result<Report, CommandFailure> {
    let public = signing_key(&context.store, &context.settings).await?.public();
    let text = public.text();
    let document = json!({ "publicKey": text, "algorithm": "Ed25519" });
    Ok(Report::new(text, document))
}

/// Returns the store's key of checkpoints.
async fn signing_key(store: &Store, settings: &Settings) -> Result<CheckpointKey, CommandFailure> {
    let key = checkpoint_key::key(store, &settings.keyring()?).await;
    key.map_err(no_key)
}

/// Explains why there is no key.
pub(super) fn no_key(error: KeyError) -> CommandFailure {
    match error {
        KeyError::Store(error) => error.into(),
        KeyError::Seal(_) => CommandFailure::refused("SEAL", error_chain(&error)),
        KeyError::NoLedger => CommandFailure::refused("STORE_NOT_INITIALISED", error.to_string()),
    }
}
