//! `tollgate-admin audit`: proving the audit trail, writing it down, and the key that signs its checkpoints.

mod export;
mod manifests;
mod verify;

use super::context::Context;
use super::value;
use crate::failure::Failure;
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
use telemetry::error_chain;

/// `audit …`
#[derive(Debug, Subcommand)]
pub(super) enum Audit {
    /// Check an audit trail in the store or in an export; exit code 1 names the first entry that is wrong
    Verify(Box<verify::Verify>),
    /// Write an audit trail as JSON Lines, one entry a line
    Export(export::Export),
    /// Make missing or changed manifests of the archive again
    Manifests(manifests::Manifests),
    /// Show the public key that proves signed checkpoints
    Key,
}

/// Whose trail.
#[derive(Debug, Args)]
pub(super) struct Whose {
    /// The account
    #[arg(long, value_name = "ID", value_parser = value::id)]
    account: String,
    /// live or test
    #[arg(long, default_value = "live", value_parser = value::mode())]
    mode: Mode,
}

impl Whose {
    fn origin(&self) -> String {
        origin(&self.account, self.mode)
    }
}

impl Audit {
    /// Whether standard output is not for a report.
    pub(super) const fn writes_to_stdout(&self) -> bool {
        matches!(self, Self::Export(export) if export.writes_to_stdout())
    }

    /// Opens the store where it is needed: an export is verified without one, too.
    pub(super) async fn run(self, settings: Settings) -> Result<Report, Failure> {
        match self {
            Self::Verify(verify) => verify.run(settings).await,
            Self::Export(export) => export.run(&Context::open(settings).await?).await,
            Self::Manifests(manifests) => manifests.run(&Context::open(settings).await?).await,
            Self::Key => key(&Context::open(settings).await?).await,
        }
    }
}

async fn key(context: &Context) -> Result<Report, Failure> {
    let public = signing_key(&context.store, &context.settings).await?.public();
    let text = public.text();
    let document = json!({ "publicKey": text, "algorithm": "Ed25519" });
    Ok(Report::new(text, document))
}

/// The store's key of checkpoints.
async fn signing_key(store: &Store, settings: &Settings) -> Result<CheckpointKey, Failure> {
    let key = checkpoint_key::key(store, &settings.keyring()?).await;
    key.map_err(no_key)
}

/// Why there is none.
pub(super) fn no_key(error: KeyError) -> Failure {
    match error {
        KeyError::Store(error) => error.into(),
        KeyError::Seal(_) => Failure::refused("SEAL", error_chain(&error)),
        KeyError::NoLedger => Failure::refused("STORE_NOT_INITIALISED", error.to_string()),
    }
}
