//! `tollgate-admin audit verify`: on the store, or on an export with or without one.

use super::super::context::Context;
use super::super::failure::with_causes;
use super::super::{Failure, Report};
use super::{Whose, signing_key};
use crate::archive::Archive;
use crate::checkpoint;
use crate::trail::Trail;
use crate::verify::file::{self, Trouble};
use crate::verify::{Broken, Known, Source, Verdict, Walk, online};
use clap::Args;
use shared::crypto::checkpoint_key::PublicKey;
use shared::domain::checkpoint::NOTE_BYTES_MAX;
use shared::settings::Settings;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

/// `audit verify`
#[derive(Debug, Args)]
pub(in super::super) struct Verify {
    #[command(flatten)]
    whose: Whose,
    /// Verify this export instead of the trail in the store
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The export begins behind this entry
    #[arg(long, value_name = "SEQ", default_value_t = 0, requires = "file")]
    after: u64,
    /// A signed checkpoint that the entries must fit. Without it an export must end where the store's trail ends, or where
    /// the store cannot be reached, must hold what the archive's checkpoint says
    #[arg(long, value_name = "NOTE")]
    checkpoint: Option<PathBuf>,
    /// The public key of checkpoints (`audit key`), instead of asking the store
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    key: Option<PublicKey>,
}

/// What the end of an export can be compared with.
enum Against {
    /// A note; the store is not needed.
    Note(Result<Known, Broken>),
    /// The trail in the store.
    Store(Box<Context>, Known),
    /// Nothing that proves it, for this reason.
    Nothing(String),
}

fn public_key(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse(text).ok_or_else(|| "it must be an Ed25519 key as `audit key` shows it".to_owned())
}

impl Verify {
    pub(super) async fn run(self, settings: Settings) -> Result<Report, Failure> {
        let verdict = match &self.file {
            None => self.online(settings).await?,
            Some(file) => self.offline(file, settings).await?,
        };
        let report = Report::new(verdict.text(), verdict.document());
        Ok(if verdict.ok() { report } else { report.incomplete() })
    }

    async fn online(&self, settings: Settings) -> Result<Verdict, Failure> {
        let context = Context::open(settings).await?;
        let archive = Archive::of(&context.settings.audit)?;
        let Whose { account, mode } = &self.whose;
        context.account(account).await?;
        let key = self.key(&context).await?;
        let mut warnings = Vec::new();
        let mut known = Vec::new();
        let mut bad = Vec::new();
        let archived = match archived_note(&context.settings, &self.whose).await {
            Ok(note) => note.map(|note| (Source::Archive, note)),
            Err(why) => {
                warnings.push(why);
                None
            }
        };
        let given = self.checkpoint.as_deref().map(note_of).transpose()?;
        let given = given.map(|note| (Source::Note, note));
        for (source, note) in archived.into_iter().chain(given) {
            match Known::of_note(source, &note, key, &self.whose.origin()) {
                Ok(one) => known.push(one),
                Err(broken) => bad.push(broken),
            }
        }
        let mut verdict = online(&context.store, &archive, account, *mode, known).await?;
        verdict.warnings.append(&mut warnings);
        verdict.broken = verdict.broken.or_else(|| bad.into_iter().next());
        Ok(verdict)
    }

    async fn offline(&self, path: &Path, settings: Settings) -> Result<Verdict, Failure> {
        let mut walk = Walk::behind(self.after);
        let against = self.against(&settings).await?;
        let (known, bad, why) = match &against {
            Against::Note(Ok(known)) | Against::Store(_, known) => (Some(known.clone()), None, None),
            Against::Note(Err(broken)) => (None, Some(broken.clone()), None),
            Against::Nothing(why) => (None, None, Some(why.clone())),
        };
        walk.mark(known.as_ref().map_or(0, |known| known.size));
        let broken = file::walk(reader(path)?, &mut walk).map_err(|error| unreadable(path, &error))?;
        let mut verdict = file::verdict(&walk, broken, known);
        if let Against::Store(context, _) = &against {
            self.compare_whole(path, context, &walk, &mut verdict).await?;
        }
        verdict.broken = verdict.broken.or(bad);
        verdict.warnings.extend(why);
        Ok(verdict)
    }

    /// Names the first entry that is another one in the store: in order on its own, with all hashes computed again.
    async fn compare_whole(
        &self,
        path: &Path,
        context: &Context,
        walk: &Walk,
        verdict: &mut Verdict,
    ) -> Result<(), Failure> {
        let Whose { account, mode } = &self.whose;
        let archive = Archive::of(&context.settings.audit)?;
        let trail = Trail::of(&context.store, &archive, account, *mode);
        let stored = verdict.checkpoint.as_ref().map_or(0, |known| known.size);
        let both = stored.min(walk.end());
        if both <= self.after {
            return Ok(());
        }
        let head = checkpoint::head_at(&trail, both).await?;
        if head.is_some_and(|head| head.hash == walk.hash_of(both)) {
            return Ok(());
        }
        let found = file::first_difference(reader(path)?, self.after, &trail).await;
        let first = found.map_err(|trouble| match trouble {
            Trouble::File(error) => unreadable(path, &error),
            Trouble::Store(error) => error.into(),
        })?;
        if let Some(seq) = first {
            let problem =
                "it is another entry than in the store: it was changed, and its hash computed again.";
            verdict.broken = Some(Broken {
                seq: Some(seq),
                problem: problem.to_owned(),
            });
        }
        Ok(())
    }

    /// What the end of an export is compared with: the note that was given, else the store, else the archive's note.
    async fn against(&self, settings: &Settings) -> Result<Against, Failure> {
        let origin = self.whose.origin();
        if let Some(file) = &self.checkpoint {
            let note = note_of(file)?;
            let key = match self.key {
                Some(key) => key,
                None => match Context::open(settings.clone()).await {
                    Ok(context) => self.key(&context).await?,
                    Err(failure) => {
                        let why = failure.message();
                        let message = format!(
                            "--key is needed to check the note, since the store cannot be asked: {why}"
                        );
                        return Err(Failure::usage(message));
                    }
                },
            };
            return Ok(Against::Note(Known::of_note(Source::Note, &note, key, &origin)));
        }
        let unreachable = match Context::open(settings.clone()).await {
            Ok(context) => {
                let Whose { account, mode } = &self.whose;
                context.account(account).await?;
                let archive = Archive::of(&settings.audit)?;
                let head = Trail::of(&context.store, &archive, account, *mode).seal().await?;
                let end = checkpoint::of(account, *mode, head);
                let known = Known {
                    source: Source::Store,
                    size: end.size,
                    hash: end.hash,
                };
                return Ok(Against::Store(Box::new(context), known));
            }
            Err(failure) => failure.message().to_owned(),
        };
        let unreachable = format!("the store cannot be asked: {unreachable}");
        let Some(key) = self.key else {
            return Ok(Against::Nothing(unreachable));
        };
        Ok(match archived_note(settings, &self.whose).await {
            Ok(Some(note)) => Against::Note(Known::of_note(Source::Archive, &note, key, &origin)),
            Ok(None) => Against::Nothing(unreachable),
            Err(why) => Against::Nothing(format!("{unreachable}; {why}")),
        })
    }

    async fn key(&self, context: &Context) -> Result<PublicKey, Failure> {
        match self.key {
            Some(key) => Ok(key),
            None => Ok(signing_key(&context.store, &context.settings).await?.public()),
        }
    }
}

/// The trail's note in the archive; a sentence when the archive cannot be read.
async fn archived_note(settings: &Settings, whose: &Whose) -> Result<Option<String>, String> {
    let archive = Archive::of(&settings.audit).map_err(|error| error.to_string())?;
    let found = archive
        .place()
        .get(&checkpoint::path(&whose.account, whose.mode))
        .await;
    let found = found.map_err(|error| with_causes(&error))?;
    Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn note_of(path: &Path) -> Result<String, Failure> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut text = String::new();
    // One more than is read tells that it is no note.
    let read = file.take(NOTE_BYTES_MAX as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(path, &error))?;
    Ok(text)
}

fn reader(path: &Path) -> Result<BufReader<File>, Failure> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(BufReader::new(file))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()))
}
