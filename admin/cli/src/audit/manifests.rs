//! `tollgate-admin audit manifests`.

use super::super::context::CommandContext;
use super::TrailArgs;
use crate::failure::CommandFailure;
use crate::report::Report;
use clap::Args;
use serde_json::json;
use store::StoreError;
use store::audit::chain::Chain;

/// `audit manifests`
#[derive(Debug, Args)]
pub(in super::super) struct ManifestsArgs {
    #[command(flatten)]
    trail_args: TrailArgs,
}

impl ManifestsArgs {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        context.account(&self.trail_args.account).await?;
        let realm = self.trail_args.realm();
        let archive = context.own_archive().await?;
        let chain = Chain::new(&context.store, realm);
        let (realm, segments) = (chain.realm(), archive.segments(&chain).await?);
        let (mut made, mut failed) = (Vec::new(), Vec::new());
        for segment in segments.iter() {
            let (_, path) = segment.paths(realm);
            let found = match archive.fault_of_manifest(realm, segment).await {
                Ok(None) => continue,
                Ok(Some(_)) => archive.remake_manifest(realm, segment).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(()) => made.push(path),
                Err(StoreError::Archive(why)) => failed.push(why),
                Err(error) => return Err(error.into()),
            }
        }
        let count = segments.len();
        let mut lines = vec![format!("Of {count} manifests {} were rebuilt.", made.len())];
        lines.extend(made.iter().map(|path| format!("Made again: {path}")));
        lines.extend(failed.iter().map(|why| format!("FAILED: {why}")));
        let is_whole = failed.is_empty();
        let document = json!({ "ok": is_whole, "segments": count, "made": made, "failed": failed });
        let report = Report::new(lines.join("\n"), document);
        Ok(if is_whole { report } else { report.incomplete() })
    }
}
