//! Checks that the store can be trusted with money (decision D47): it must never evict, must have all its writes, must
//! be the ledger that was initialised, and its clock must be right. A wiped store is an error, not a fresh budget.

use crate::audit::reseal_checkpoint_key::FIELD;
use crate::clock_difference::{self, ClockDiffers};
use crate::command_rights::{self, Program, RefusedCommands};
use crate::info::{field, number};
use crate::keys::STORE;
use crate::server_report::{self, ServerReport};
use crate::write_refusal::{SECTIONS, WriteRefusal};
use crate::{Store, StoreError};
use crypto::seal::Keyring;
use crypto::virtual_key::CheckSecret;
use futures::future::join;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sentence about a store without an epoch.
pub(crate) const NO_EPOCH: &str = "the store has no ledger epoch: it was wiped, so restore a backup \
    (docs/guides/backup.md), or it is new and was never initialised (`tollgate-admin store init`)";

/// Why the store may not be used.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedStore {
    /// No answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No epoch: never initialised, or wiped.
    #[error("{NO_EPOCH}")]
    NoEpoch,
    /// It may evict keys.
    #[error("the store's maxmemory-policy is {0}; it must be noeviction, or counters could vanish")]
    Evicts(String),
    /// It lost writes of its append-only file or of its primary.
    #[error(
        "a server of the store refused {0} writes of its own append-only file or of its primary (unexpected_error_replies), so it lacks them: its log says why (docs/guides/runbook.md, TollgateStoreLostWrites)"
    )]
    RejectedWrites(u64),
    /// One of its servers refuses commands that this program's scripts call.
    #[error(
        "{server} refuses to the store's user what scripts of this program call, and would end them midway: {commands}. \
         The address names the user of another program, or the users are those of another version \
         (deploy/redis/users.acl)"
    )]
    LacksRights {
        /// `host:port`, or the path of a socket.
        server: String,
        /// The commands, separated by commas.
        commands: String,
    },
    /// The clock of one of its servers, or of this process, is wrong.
    #[error(transparent)]
    ClockDiffers(#[from] ClockDiffers),
    /// One of its servers does not report its time, so its clock may be wrong.
    #[error(
        "{0} does not report its time (`server_time_usec` in its reply to INFO), so its clock cannot be checked"
    )]
    NoClock(String),
    /// It was restored from a backup, and the operator has not accepted it yet.
    #[error(
        "the store was restored from a backup ({0}) and may lack charges that were made since: look at what is missing, then `tollgate-admin store accept`"
    )]
    Restored(String),
    /// No randomness for a new epoch.
    #[error(transparent)]
    NoEntropy(#[from] entropy::NoEntropy),
    /// `init` on a store that holds something.
    #[error("the store is not empty ({0} keys); `store init` works on an empty store only")]
    NotEmpty(u64),
}

impl UntrustedStore {
    /// Returns whether the check got no reply. It found no fault of the store then.
    pub const fn is_unreachable(&self) -> bool {
        matches!(self, Self::Store(_))
    }
}

/// The store's own record.
#[derive(Debug, Clone)]
pub struct StoreRecord {
    /// Identifies this ledger; created by `init`.
    pub epoch: String,
    /// For the checksum of virtual keys.
    pub check_secret: CheckSecret,
    /// True if the server reports that it writes an append-only file.
    pub append_only: bool,
    /// True if every server has a `maxmemory`.
    pub has_memory_limit: bool,
    /// Note of a restore, such as the backup's time; removed when the operator accepts the store.
    pub restored: Option<String>,
    /// The sealed checkpoint key, if it exists. It contains the id of the master key of this store's secrets.
    checkpoint_key: Option<String>,
    /// Servers that refuse writes, and the number of checked servers. Such a store can still be trusted: reads are
    /// correct, and a refused write has no effect.
    refusing: (Vec<WriteRefusal>, usize),
}

/// The master keys of this process do not match the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secrets of this store are sealed under a master key that this process does not have (secrets.master_key_file)"
)]
pub struct WrongMasterKey;

/// Last result of comparing this process's master keys with the store's secrets.
#[derive(Debug, Default)]
pub struct MasterKeyCheck {
    is_wrong: AtomicBool,
}

impl MasterKeyCheck {
    /// Records the result of a check. Returns it if it differs from the last one, so that each change is logged once.
    pub fn record(&self, checked: Result<(), WrongMasterKey>) -> Option<Result<(), WrongMasterKey>> {
        let is_wrong = checked.is_err();
        (self.is_wrong.swap(is_wrong, Ordering::AcqRel) != is_wrong).then_some(checked)
    }

    /// Returns the last result.
    ///
    /// # Errors
    /// [`WrongMasterKey`]
    pub fn last(&self) -> Result<(), WrongMasterKey> {
        match self.is_wrong.load(Ordering::Acquire) {
            true => Err(WrongMasterKey),
            false => Ok(()),
        }
    }
}

impl StoreRecord {
    /// Checks that this process has the master key of the store's secrets. Passes for a store that has no sealed secret
    /// of its own yet.
    ///
    /// # Errors
    /// [`WrongMasterKey`]
    pub fn check_master_key(&self, keyring: &Keyring) -> Result<(), WrongMasterKey> {
        let sealed = self.checkpoint_key.as_deref();
        match sealed.is_none_or(|sealed| keyring.has_key_of(sealed)) {
            true => Ok(()),
            false => Err(WrongMasterKey),
        }
    }

    /// Returns why the store accepts no writes: all of its servers refuse them.
    pub fn takes_no_writes(&self) -> Option<&WriteRefusal> {
        let (refusing, servers) = &self.refusing;
        refusing.first().filter(|_| refusing.len() == *servers)
    }

    /// Returns why one of its servers refuses writes.
    pub fn refuses_writes(&self) -> Option<&WriteRefusal> {
        self.refusing.0.first()
    }
}

/// Field of the store's record that a restore sets before the store is reachable (`deploy/backup/restore.sh`).
const RESTORED: &str = "restored";

/// `INFO` counter of error replies to the server's own append-only file or primary; 0 at its start.
pub(super) const LOST_WRITES: &str = "unexpected_error_replies";

/// Reads the record of a store, if the store may be used.
///
/// # Errors
/// [`UntrustedStore::NoEpoch`] if there is none, [`UntrustedStore::Restored`] until a restored store was accepted.
pub async fn record(store: &Store) -> Result<StoreRecord, UntrustedStore> {
    trusted(read_record(store).await?)
}

fn trusted(record: StoreRecord) -> Result<StoreRecord, UntrustedStore> {
    match record.restored {
        Some(what) => Err(UntrustedStore::Restored(what)),
        None => Ok(record),
    }
}

/// Reads the store's record, also of a restored store.
async fn read_record(store: &Store) -> Result<StoreRecord, UntrustedStore> {
    let fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(STORE)).await?;
    let field = |name: &str| fields.get(name).cloned().ok_or(UntrustedStore::NoEpoch);
    let epoch = field("epoch")?;
    let check_secret = CheckSecret::from_stored(field("check_secret")?);
    Ok(StoreRecord {
        epoch,
        check_secret,
        append_only: false,
        has_memory_limit: false,
        restored: fields.get(RESTORED).cloned(),
        checkpoint_key: fields.get(FIELD).cloned(),
        refusing: (Vec::new(), 0),
    })
}

/// Checks everything that is visible from outside: the epoch exists, no node evicts, lost writes or has a wrong clock,
/// and no acceptance is pending. Skips unreachable cluster nodes, so that the loss of one denies only its own accounts.
///
/// # Errors
/// [`UntrustedStore`] with the fault.
pub async fn check(store: &Store, program: Program) -> Result<StoreRecord, UntrustedStore> {
    trusted(examine(store, program).await?)
}

/// Accepts a restored store.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn accept(store: &Store) -> Result<(), StoreError> {
    let _: i64 = store.command(redis::cmd("HDEL").arg(STORE).arg(RESTORED)).await?;
    Ok(())
}

/// Like [`check`], but allows a restored store, which the operator examines before accepting it.
///
/// # Errors
/// [`UntrustedStore`], never [`UntrustedStore::Restored`].
pub async fn examine(store: &Store, program: Program) -> Result<StoreRecord, UntrustedStore> {
    let read = read_record(store).await;
    // Without the node of the record, the other nodes continue and are checked too.
    let is_partly_away = store.is_cluster() && read.as_ref().is_err_and(UntrustedStore::is_unreachable);
    if read.is_err() && !is_partly_away {
        return read;
    }
    let reports = check_servers(store, program).await?;
    Ok(with_reports(read?, &reports))
}

fn with_reports(record: StoreRecord, reports: &[ServerReport]) -> StoreRecord {
    let append_only = reports
        .iter()
        .all(|report| field(&report.info, "aof_enabled") == Some("1"));
    let has_memory_limit = reports.iter().all(|report| number(&report.info, "maxmemory") > 0);
    let refusing = reports.iter().filter_map(WriteRefusal::from_report).collect();
    StoreRecord {
        append_only,
        has_memory_limit,
        refusing: (refusing, reports.len()),
        ..record
    }
}

/// Checks the report of each server and the rights of its user, and returns all reports.
async fn check_servers(store: &Store, program: Program) -> Result<Vec<ServerReport>, UntrustedStore> {
    let sections = [&["server", "stats"][..], &SECTIONS].concat();
    let reads = join(
        server_report::read(store, &sections),
        command_rights::refused(store, program),
    );
    let (reports, refused) = reads.await;
    let (reports, refused) = (reports?, refused?);
    for report in &reports {
        let info = &report.info;
        let policy = field(info, "maxmemory_policy").unwrap_or("unknown");
        if policy != "noeviction" {
            return Err(UntrustedStore::Evicts(policy.to_owned()));
        }
        let lost = number(info, LOST_WRITES);
        if lost > 0 {
            return Err(UntrustedStore::RejectedWrites(lost));
        }
        check_clock(report, store.clock_difference_max_ms())?;
    }
    if let Some(RefusedCommands { server, commands }) = refused {
        return Err(UntrustedStore::LacksRights { server, commands });
    }
    Ok(reports)
}

fn check_clock(report: &ServerReport, allowed_ms: u64) -> Result<(), UntrustedStore> {
    let Some(ahead_ms) = report.clock_ahead_ms else {
        return Err(UntrustedStore::NoClock(report.server.clone()));
    };
    Ok(clock_difference::check(&report.server, ahead_ms, allowed_ms)?)
}

/// Initialises an empty store that passes the other checks: sets a new epoch, and the secret of the key checksum.
/// Repeating it changes nothing.
///
/// # Errors
/// [`UntrustedStore::NotEmpty`] if the store has keys but no epoch, or the fault of a server found by [`check`].
/// Nothing was written then.
pub async fn init(store: &Store, at_iso: &str) -> Result<StoreRecord, UntrustedStore> {
    match read_record(store).await {
        Err(UntrustedStore::NoEpoch) => {}
        other => return other,
    }
    check_servers(store, Program::Management).await?;
    let mut keys = 0;
    for node in store.every_node(&redis::cmd("DBSIZE")).await? {
        keys += node
            .parse::<u64>()
            .map_err(|_| StoreError::unexpected("DBSIZE"))?;
    }
    if keys > 0 {
        // A concurrent call may have initialised it.
        return read_record(store).await.map_err(|error| match error {
            UntrustedStore::NoEpoch => UntrustedStore::NotEmpty(keys),
            error => error,
        });
    }
    // Each field is set only if absent, and all together, so exactly one of two concurrent calls sets all of them.
    let epoch = hex::encode(entropy::random_bytes::<16>()?);
    let mut set = redis::pipe();
    set.atomic();
    for (field, value) in [
        ("epoch", epoch),
        ("check_secret", CheckSecret::mint()?),
        ("initialised_at", at_iso.to_owned()),
    ] {
        set.cmd("HSETNX").arg(STORE).arg(field).arg(value);
    }
    let _: [i64; 3] = store.pipeline(&set).await?;
    read_record(store).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(checkpoint_key: Option<&str>) -> StoreRecord {
        StoreRecord {
            epoch: String::new(),
            check_secret: CheckSecret::from_stored(String::new()),
            append_only: false,
            has_memory_limit: false,
            restored: None,
            checkpoint_key: checkpoint_key.map(str::to_owned),
            refusing: (Vec::new(), 0),
        }
    }

    #[test]
    fn a_store_has_what_all_of_its_servers_report() {
        let report = |info: &str| ServerReport {
            server: String::new(),
            info: info.to_owned(),
            clock_ahead_ms: None,
        };
        let [both, disk, memory] =
            ["aof_enabled:1\r\nmaxmemory:9", "aof_enabled:1", "maxmemory:9"].map(report);
        for (reports, has_both) in [
            (vec![both.clone(), both.clone()], (true, true)),
            (vec![both.clone(), disk], (true, false)),
            (vec![both, memory], (false, true)),
        ] {
            let found = with_reports(record(None), &reports);
            assert_eq!((found.append_only, found.has_memory_limit), has_both);
            assert_eq!(found.refusing, (Vec::new(), 2));
        }
    }

    #[test]
    fn sealed_secrets_need_their_master_key() {
        let keyring = Keyring::new([format!("{}=", "A".repeat(43)).as_str()].into_iter()).unwrap();
        let check = |checkpoint_key: Option<&str>| record(checkpoint_key).check_master_key(&keyring);
        assert_eq!(check(None), Ok(()), "no secret yet");
        assert_eq!(check(Some("v1.01234567.AAAA")), Err(WrongMasterKey));
    }
}
