//! Checkpoints in the archive, which a writer of the store cannot remove: an account that is gone from the store leaves
//! its notes behind, and so does a trail that was cut off.
//!
//! The notes are read before the accounts' records, so a trail has at least as many entries as its notes say. Their
//! signatures are verified by `audit verify`. No command deletes an account.

use super::book::{AccountMode, Noted};
use super::pass::Pass;
use super::violation::Invariant;
use archive::Archive;
use archive::location::LocationError;
use audit_verify::checkpoint::{FOLDER, kept_folder_of, path_of, size_of};
use domain::checkpoint::Note;
use domain::mode::Mode;
use futures::{StreamExt, TryStreamExt, stream};
use store::keys::Realm;

/// Maximum number of accounts whose notes are read at the same time.
const IN_FLIGHT: usize = 8;

impl Pass<'_> {
    /// Reads the notes of all accounts, also of those that the store lacks, if the trails are compared.
    pub(super) async fn read_checkpoints(&mut self) {
        if !self.with_trail || self.accounts.partial {
            return;
        }
        match noted(self.archive).await {
            Ok(noted) => self.noted = noted,
            Err(error) => {
                let reason = format!("the checkpoints cannot be read: {error}");
                self.add_inconclusive(Invariant::Trail, &[FOLDER], reason);
                self.no_archive = Some(error.to_string());
            }
        }
    }

    /// Compares the notes with the accounts.
    pub(super) fn check_checkpoints(&mut self) {
        for noted in std::mem::take(&mut self.noted) {
            let Noted {
                account,
                mode,
                path,
                entries,
            } = noted;
            let Some(account) = self.accounts.find(&account) else {
                let detail =
                    format!("it covers {entries} entries of {account}, but the store has no such account");
                self.add_violation(Invariant::Trail, &[&path], detail);
                continue;
            };
            let account_mode = AccountMode { account, mode };
            let written = self.page(account_mode).audit_seq;
            if entries > written {
                let audit = self.accounts.realm(account_mode).audit();
                let detail = format!("it covers {entries} entries, but the account has written {written}");
                self.add_violation(Invariant::Trail, &[&audit, &path], detail);
            }
        }
    }
}

async fn noted(archive: &Archive) -> Result<Vec<Noted>, LocationError> {
    let accounts = archive.location().folders(FOLDER).await?;
    let reads = accounts
        .into_iter()
        .map(|account| read_checkpoints(archive, account));
    let noted: Vec<Vec<Noted>> = stream::iter(reads).buffered(IN_FLIGHT).try_collect().await?;
    Ok(noted.into_iter().flatten().collect())
}

async fn read_checkpoints(archive: &Archive, account: String) -> Result<Vec<Noted>, LocationError> {
    let mut all = Vec::new();
    for mode in Mode::ALL {
        let realm = Realm::new(&account, mode);
        let (path, folder) = (path_of(&realm), kept_folder_of(&realm));
        let last = archive.location().get(&path).await?;
        let last = last.and_then(|note| {
            let note = Note::parse(std::str::from_utf8(&note).ok()?)?;
            Some((note.checkpoint.end().size, path))
        });
        let names = archive.location().list(&folder).await?;
        let kept = names.into_iter().filter_map(|name| {
            let (size, _) = size_of(&folder, &name)?;
            Some((size, name))
        });
        all.extend(kept.chain(last).max().map(|(entries, path)| Noted {
            account: account.clone(),
            mode,
            path,
            entries,
        }));
    }
    Ok(all)
}
