//! `tollgate-admin audit verify`: verifies the store's trail, or an export with or without the store.

use super::super::context::{CommandContext, CommandKind};
use super::{TrailArgs, signing_key};
use crate::failure::CommandFailure;
use crate::report::Report;
use archive::Archive;
use audit_verify::checkpoint::{self, Checkpoints, Largest};
use audit_verify::file::{self, ExportReadError};
use audit_verify::{Broken, ChainVerifier, KnownEnd, Source, Verdict, online, young};
use clap::Args;
use crypto::checkpoint_key::PublicKey;
use domain::checkpoint::NOTE_BYTES_MAX;
use history::trail::Trail;
use settings::Settings;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::server_clock;
use telemetry::error_chain;

/// `audit verify`
#[derive(Debug, Args)]
pub(in super::super) struct VerifyArgs {
    #[command(flatten)]
    trail_args: TrailArgs,
    /// Verify this export instead of the trail in the store
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The export begins after this entry
    #[arg(long, value_name = "SEQ", default_value_t = 0, requires = "file")]
    after: u64,
    /// A signed checkpoint that the entries must match. Without it an export must match the store's trail and the
    /// archive's checkpoint
    #[arg(long, value_name = "NOTE")]
    checkpoint: Option<PathBuf>,
    /// The checkpoint may be older than the export: entries after it are not proven to be complete
    #[arg(long, requires_all = ["file", "checkpoint"])]
    older: bool,
    /// The public key of checkpoints (`audit key`); default: the store's
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    key: Option<PublicKey>,
    /// Exit with 3 unless the end is proven: also where no checkpoint is left
    #[arg(long)]
    require_proof: bool,
}

/// The known ends that an export is compared with.
#[derive(Default)]
struct Against {
    /// Known ends of its trail.
    known: Vec<KnownEnd>,
    /// The trail in the store, and its number of entries.
    store: Option<(Box<CommandContext>, u64)>,
    /// A fault of the known ends themselves, independent of the export.
    bad: Option<Broken>,
    /// Why the checkpoint in the archive could not be read.
    unread: Option<String>,
    /// Why some ends are unknown.
    warnings: Vec<String>,
}

fn public_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse(text).ok_or_else(|| "it must be an Ed25519 key as `audit key` shows it".to_owned())
}

impl VerifyArgs {
    pub(super) async fn run(self, settings: Settings, kind: CommandKind) -> Result<Report, CommandFailure> {
        let verdict = match &self.file {
            None => self.online(settings, kind).await?,
            Some(file) => self.offline(file, settings, kind).await?,
        };
        let report = Report::new(verdict.text(), verdict.document());
        Ok(if !verdict.ok() {
            report.incomplete()
        } else if self.require_proof && !verdict.end_proven {
            report.inconclusive()
        } else {
            report
        })
    }

    async fn online(&self, settings: Settings, kind: CommandKind) -> Result<Verdict, CommandFailure> {
        let context = CommandContext::open(settings, kind).await?;
        let archive = context.own_archive().await?;
        context.account(&self.trail_args.account).await?;
        let realm = self.trail_args.realm();
        let key = self.key(&context).await?;
        let mut against = Against::default();
        against
            .add_archived(&context.settings, &self.trail_args, key)
            .await;
        if let Some(note) = self.checkpoint.as_deref().map(note_of).transpose()? {
            against.add(KnownEnd::from_note(&note, key, &self.trail_args.origin()));
        }
        let every = every(&context.settings);
        let Against {
            known,
            bad,
            unread,
            warnings,
            ..
        } = against;
        let mut verdict = online(&context.store, &archive, &realm, known, every, |_, _| {}).await?;
        verdict.broken = verdict.broken.or(bad);
        verdict.warnings.extend(warnings);
        compared(verdict, unread)
    }

    async fn offline(
        &self,
        path: &Path,
        settings: Settings,
        kind: CommandKind,
    ) -> Result<Verdict, CommandFailure> {
        let mut verifier = ChainVerifier::starting_after(self.after);
        let against = self.against(&settings, kind).await?;
        for one in &against.known {
            one.mark(&mut verifier);
        }
        let broken = file::verify(reader(path)?, &mut verifier).map_err(|error| unreadable(path, &error))?;
        let now_ms = match &against.store {
            Some((context, _)) => server_clock::now_ms(&context.store).await?,
            None => clock::now_ms(),
        };
        let young = young(now_ms, every(&settings));
        let mut verdict = file::verdict(&verifier, broken, against.known, self.older, &young);
        if let Some((context, stored)) = &against.store {
            let both = (*stored).min(verifier.end());
            self.compare_whole(path, context, &verifier, both, &mut verdict)
                .await?;
        }
        verdict.broken = verdict.broken.or(against.bad);
        verdict.warnings.extend(against.warnings);
        compared(verdict, against.unread)
    }

    /// Returns the first entry that differs from the store, among the `both` entries that both have: an export that is
    /// valid in itself, with all hashes recomputed.
    async fn compare_whole(
        &self,
        path: &Path,
        context: &CommandContext,
        verifier: &ChainVerifier,
        both: u64,
        verdict: &mut Verdict,
    ) -> Result<(), CommandFailure> {
        let archive = Archive::from_settings(&context.settings.audit)?;
        let trail = Trail::new(&context.store, &archive, self.trail_args.realm());
        if both <= self.after {
            return Ok(());
        }
        let head = checkpoint::head_at(&trail, both).await?;
        if head.is_some_and(|head| head.hash == verifier.hash_of(both)) {
            return Ok(());
        }
        let found = file::first_difference(reader(path)?, self.after, &trail).await;
        let first = found.map_err(|trouble| match trouble {
            ExportReadError::File(error) => unreadable(path, &error),
            ExportReadError::Store(error) => error.into(),
        })?;
        if let Some(seq) = first {
            let problem = "it differs from the entry in the store: it was changed, and its hash recomputed.";
            verdict.broken = Some(Broken {
                seq: Some(seq),
                problem: problem.to_owned(),
            });
        }
        Ok(())
    }

    /// Returns the known ends for an export: the given note; otherwise the store's and the archive's note, or only the
    /// latter.
    async fn against(&self, settings: &Settings, kind: CommandKind) -> Result<Against, CommandFailure> {
        if let Some(file) = &self.checkpoint {
            return self.against_note(&note_of(file)?, settings, kind).await;
        }
        let unreachable = match CommandContext::open(settings.clone(), kind).await {
            Ok(context) => return self.against_store(context).await,
            Err(failure) => format!("the store cannot be reached: {}", failure.message()),
        };
        let mut against = Against {
            warnings: vec![unreachable],
            ..Against::default()
        };
        if let Some(key) = self.key {
            against.add_archived(settings, &self.trail_args, key).await;
        }
        Ok(against)
    }

    async fn against_note(
        &self,
        note: &str,
        settings: &Settings,
        kind: CommandKind,
    ) -> Result<Against, CommandFailure> {
        let key = match self.key {
            Some(key) => key,
            None => match CommandContext::open(settings.clone(), kind).await {
                Ok(context) => self.key(&context).await?,
                Err(failure) => {
                    let why = failure.message();
                    let message = format!(
                        "--key is needed to check the note, since the store cannot be reached: {why}"
                    );
                    return Err(CommandFailure::usage(message));
                }
            },
        };
        let mut against = Against::default();
        against.add(KnownEnd::from_note(note, key, &self.trail_args.origin()));
        Ok(against)
    }

    async fn against_store(&self, context: CommandContext) -> Result<Against, CommandFailure> {
        context.account(&self.trail_args.account).await?;
        let realm = self.trail_args.realm();
        let key = self.key(&context).await?;
        let archive = context.own_archive().await?;
        let mut against = Against::default();
        // The note first: a server may move it on while entries are sealed here.
        against
            .add_archived(&context.settings, &self.trail_args, key)
            .await;
        let head = Trail::new(&context.store, &archive, realm.clone()).seal().await?;
        let end = checkpoint::of_head(&realm, head);
        against.known.push(KnownEnd {
            source: Source::Store,
            size: end.size,
            hash: end.hash,
            later: None,
        });
        against.store = Some((Box::new(context), end.size));
        Ok(against)
    }

    async fn key(&self, context: &CommandContext) -> Result<PublicKey, CommandFailure> {
        match self.key {
            Some(key) => Ok(key),
            None => Ok(signing_key(&context.store, &context.settings).await?.public()),
        }
    }
}

impl Against {
    fn add(&mut self, one: Result<KnownEnd, Broken>) {
        match one {
            Ok(one) => self.known.push(one),
            Err(broken) => self.bad = self.bad.take().or(Some(broken)),
        }
    }

    /// Adds the trail's largest note in the archive, if there is one. An archive that cannot be read is no proof that
    /// there is none.
    async fn add_archived(&mut self, settings: &Settings, trail_args: &TrailArgs, key: PublicKey) {
        let archive = match Archive::from_settings(&settings.audit) {
            Ok(archive) => archive,
            Err(error) => return self.unread = Some(error.to_string()),
        };
        let realm = trail_args.realm();
        let checkpoints = Checkpoints::new(&archive, key, &realm);
        match checkpoints.largest().await {
            Ok(found) => {
                self.warnings.extend(found.as_ref().and_then(Largest::warning));
                let known = found.map(|found| KnownEnd::from_archive(&found.checkpoint));
                self.known.extend(known);
            }
            Err(error) if error.is_tampering() => self.add(Err(Broken {
                seq: None,
                problem: format!("{error}."),
            })),
            Err(error) => self.unread = Some(error_chain(&error)),
        }
    }
}

/// Returns the verdict, unless there is none: without a fault, and with a checkpoint that could not be read.
fn compared(verdict: Verdict, unread: Option<String>) -> Result<Verdict, CommandFailure> {
    match unread.filter(|_| verdict.ok()) {
        Some(why) => {
            let message = format!("the checkpoint in the archive cannot be read: {why}");
            Err(CommandFailure::no_archive(message))
        }
        None => Ok(verdict),
    }
}

/// Returns the interval of signing the end of a trail that has grown.
const fn every(settings: &Settings) -> Duration {
    Duration::from_millis(settings.audit.checkpoint_every_ms)
}

fn note_of(path: &Path) -> Result<String, CommandFailure> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut text = String::new();
    // One byte more than the limit shows that it is not a note.
    let read = file.take(NOTE_BYTES_MAX as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(path, &error))?;
    Ok(text)
}

fn reader(path: &Path) -> Result<BufReader<File>, CommandFailure> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(BufReader::new(file))
}

fn unreadable(path: &Path, error: &std::io::Error) -> CommandFailure {
    CommandFailure::usage(format!("{}: {error}", path.display()))
}
