//! `tollgate-admin audit export`.

use super::super::context::CommandContext;
use super::{TrailArgs, signing_key};
use crate::failure::CommandFailure;
use crate::report::Report;
use archive::Archive;
use audit_verify::checkpoint::{self, Checkpoints, NotSigned};
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
/// Maximum number of consecutive symbolic links, as in the operating system.
const LINKS_MAX: usize = 40;

/// `audit export`
#[derive(Debug, Args)]
pub(in super::super) struct ExportArgs {
    #[command(flatten)]
    trail_args: TrailArgs,
    /// The file; default: standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only entries after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    /// Also write a signed checkpoint of exactly these entries
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
}

impl ExportArgs {
    /// Returns whether the export goes to standard output.
    pub(super) const fn writes_to_stdout(&self) -> bool {
        self.out.is_none()
    }

    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        context.account(&self.trail_args.account).await?;
        let realm = self.trail_args.realm();
        let archive = Archive::from_settings(&context.settings.audit)?;
        let trail = Trail::new(&context.store, &archive, realm.clone());
        let mut signing = None;
        let head = match &self.checkpoint {
            None => trail.seal().await?,
            Some(file) => {
                let key = signing_key(&context.store, &context.settings).await?;
                let checkpoints = Checkpoints::new(&archive, key.public(), &realm);
                let last = checkpoints.largest().await;
                let last = last.map_err(unsigned)?.map(|largest| largest.checkpoint);
                let head = checkpoint::end(&trail, last.as_ref()).await;
                signing = Some((file, key));
                head.map_err(unsigned)?
            }
        };
        let lines = export::TrailExport {
            store: context.store.clone(),
            archive: Arc::new(archive),
            realm: realm.clone(),
            after: self.after,
            head,
        };
        match &self.out {
            None => write(io::stdout().lock(), lines)
                .await
                .map_err(|trouble| trouble.into_failure("standard output has only a part of the export"))?,
            Some(file) => write_to(file, lines).await?,
        }
        if let Some((file, key)) = signing {
            let note = key.sign(&checkpoint::of_head(&realm, head));
            let written = NewFile::create(file).and_then(|new| {
                new.out().write_all(note.as_bytes())?;
                new.complete()
            });
            written.map_err(|error| {
                let failure = unwritable(file, &error);
                match &self.out {
                    Some(out) => failure.and(&format!("{} is complete", out.display())),
                    None => failure,
                }
            })?;
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

/// Returns the failure if no checkpoint can be signed. The export that it would prove is then not written either.
fn unsigned(error: NotSigned) -> CommandFailure {
    match error {
        NotSigned::Store(error) => error.into(),
        error => CommandFailure::refused("CHECKPOINT", error_chain(&error)),
    }
}

/// Why an export is incomplete.
enum ExportIncomplete {
    Trail(export::ExportError),
    Out(io::Error),
}

impl ExportIncomplete {
    fn into_failure(self, problem: &str) -> CommandFailure {
        match self {
            Self::Trail(export::ExportError::Store(error)) => error.into(),
            Self::Trail(error) => CommandFailure::refused("BROKEN", error_chain(&error)),
            Self::Out(error) if error.kind() == io::ErrorKind::BrokenPipe => CommandFailure::reader_left(),
            Self::Out(error) => CommandFailure::refused("OUTPUT", format!("{problem}: {error}")),
        }
    }
}

/// A file that appears only when it is complete; removed on drop until then. A device, pipe or socket is written
/// directly.
struct NewFile {
    out: File,
    /// The file under its first name, and its name in the end; `None` if the output is no regular file.
    names: Option<(PathBuf, PathBuf)>,
}

impl NewFile {
    fn create(file: &Path) -> io::Result<Self> {
        if std::fs::metadata(file).is_ok_and(|found| !found.is_file()) {
            let out = File::options().write(true).open(file)?;
            return Ok(Self { out, names: None });
        }
        let file = end_of_links(file)?;
        let part = part(&file);
        Ok(Self {
            out: File::create(&part)?,
            names: Some((part, file)),
        })
    }

    const fn out(&self) -> &File {
        &self.out
    }

    /// Gives a file its name once the disk has it.
    fn complete(mut self) -> io::Result<()> {
        if let Some((part, file)) = &self.names {
            self.out.sync_all()?;
            std::fs::rename(part, file)?;
        }
        self.names = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.names {
            drop(std::fs::remove_file(part));
        }
    }
}

async fn write_to(file: &Path, lines: export::TrailExport) -> Result<(), CommandFailure> {
    let new = NewFile::create(file).map_err(|error| unwritable(file, &error))?;
    write(BufWriter::new(new.out()), lines)
        .await
        .map_err(|trouble| trouble.into_failure(&not_written(file)))?;
    new.complete().map_err(|error| unwritable(file, &error))
}

/// Follows symbolic links to their target, which need not exist.
fn end_of_links(file: &Path) -> io::Result<PathBuf> {
    let mut file = file.to_owned();
    for _ in 0..LINKS_MAX {
        let is_link = std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_symlink());
        if !is_link {
            return Ok(file);
        }
        let target = std::fs::read_link(&file)?;
        // An absolute target replaces the whole path.
        file = file.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::ErrorKind::InvalidInput.into())
}

async fn write(mut out: impl Write, lines: export::TrailExport) -> Result<(), ExportIncomplete> {
    let mut lines = std::pin::pin!(lines.lines());
    while let Some(chunk) = lines.try_next().await.map_err(ExportIncomplete::Trail)? {
        out.write_all(&chunk).map_err(ExportIncomplete::Out)?;
    }
    out.flush().map_err(ExportIncomplete::Out)
}

fn part(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(PART);
    name.into()
}

fn unwritable(file: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::refused("OUTPUT", format!("{}: {error}", not_written(file)))
}

fn not_written(file: &Path) -> String {
    format!("{} was not written", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(end_of_links(&at("none")).unwrap(), at("none"));
        symlink("b", at("a")).unwrap();
        symlink(at("c"), at("b")).unwrap();
        assert_eq!(end_of_links(&at("a")).unwrap(), at("c"), "it need not exist");
        std::fs::write(at("c"), "x").unwrap();
        assert_eq!(end_of_links(&at("a")).unwrap(), at("c"));
        symlink("circle", at("circle")).unwrap();
        end_of_links(&at("circle")).unwrap_err();
    }
}
