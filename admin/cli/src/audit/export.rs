//! `tollgate-admin audit export`.

use super::super::context::Context;
use super::{Whose, signing_key};
use crate::failure::Failure;
use crate::report::Report;
use archive::Archive;
use audit_verify::checkpoint::{self, Stays};
use clap::Args;
use futures::TryStreamExt;
use history::export;
use history::trail::Trail;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use telemetry::error_chain;

/// Extension of a file until it is complete.
const PART: &str = "part";

/// `audit export`
#[derive(Debug, Args)]
pub(in super::super) struct Export {
    #[command(flatten)]
    whose: Whose,
    /// The file; default: standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only what follows this entry
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    /// Also write a signed checkpoint of exactly these entries
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
}

impl Export {
    /// Whether standard output is the export.
    pub(super) const fn writes_to_stdout(&self) -> bool {
        self.out.is_none()
    }

    pub(super) async fn run(self, context: &Context) -> Result<Report, Failure> {
        let Whose { account, mode } = &self.whose;
        context.account(account).await?;
        let archive = Archive::of(&context.settings.audit)?;
        let trail = Trail::of(&context.store, &archive, account, *mode);
        let mut signing = None;
        let head = match &self.checkpoint {
            None => trail.seal().await?,
            Some(file) => {
                let key = signing_key(&context.store, &context.settings).await?;
                let last = checkpoint::last(&archive, key.public(), account, *mode).await;
                let head = checkpoint::end(&trail, last.map_err(unsigned)?.as_ref()).await;
                signing = Some((file, key));
                head.map_err(unsigned)?
            }
        };
        let lines = export::Export {
            store: context.store.clone(),
            archive: Arc::new(archive),
            account: account.clone(),
            mode: *mode,
            after: self.after,
            head,
        };
        match &self.out {
            None => write(io::stdout().lock(), lines)
                .await
                .map_err(|trouble| trouble.into_failure("standard output"))?,
            Some(file) => {
                let part = part(file);
                let out = File::create(&part).map_err(|error| unwritable(&part, &error))?;
                write(BufWriter::new(&out), lines)
                    .await
                    .map_err(|trouble| trouble.into_failure(&part.display().to_string()))?;
                let kept = out.sync_all().and_then(|()| std::fs::rename(&part, file));
                kept.map_err(|error| unwritable(file, &error))?;
            }
        }
        if let Some((file, key)) = signing {
            let note = key.sign(&checkpoint::of(account, *mode, head));
            std::fs::write(file, note).map_err(|error| unwritable(file, &error))?;
        }
        let Some(file) = self.out else {
            return Ok(Report::silent());
        };
        let entries = head.seq.saturating_sub(self.after);
        let document = json!({ "ok": true, "entries": entries, "after": self.after, "size": head.seq, "hash": head.text() });
        Ok(Report::new(
            format!("Wrote {entries} entries to {}.", file.display()),
            document,
        ))
    }
}

/// The failure when no checkpoint can be signed; the export that it would prove is not written either.
fn unsigned(stays: Stays) -> Failure {
    match stays {
        Stays::Store(error) => error.into(),
        stays => Failure::refused("CHECKPOINT", error_chain(&stays)),
    }
}

/// Why an export is not complete.
enum Trouble {
    Trail(export::ExportError),
    Out(io::Error),
}

impl Trouble {
    fn into_failure(self, out: &str) -> Failure {
        match self {
            Self::Trail(export::ExportError::Store(error)) => error.into(),
            Self::Trail(error) => Failure::refused("BROKEN", error_chain(&error)),
            Self::Out(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::reader_left(),
            Self::Out(error) => Failure::refused("OUTPUT", format!("{out}: {error}")),
        }
    }
}

async fn write(mut out: impl Write, lines: export::Export) -> Result<(), Trouble> {
    let mut lines = std::pin::pin!(lines.lines());
    while let Some(chunk) = lines.try_next().await.map_err(Trouble::Trail)? {
        out.write_all(&chunk).map_err(Trouble::Out)?;
    }
    out.flush().map_err(Trouble::Out)
}

fn part(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(PART);
    name.into()
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::refused("OUTPUT", format!("{}: {error}", file.display()))
}
