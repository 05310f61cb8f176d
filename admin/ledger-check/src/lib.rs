//! Recomputes the ledger from its records and reports all violated invariants (decision D13): balances, escrows,
//! intents, counters, holds, the audit sequence, the look-ups of numbers and keys, and the sum of all money.
//!
//! It runs on a live system without a snapshot. A pass compares data that must agree at any time; its findings count
//! only if the next pass confirms them. Memory grows with agents, wallets and open escrows, not with transactions and
//! intents: those are summed while they are read.
//!
//! On request it also compares the records with the audit trail, whose hashes it verifies. That finds edits of the
//! store that keep its records consistent with each other.
//!
//! Uses the store and the archive. Changes nothing except that it seals the trails that it reads.

mod active_keys;
mod archived;
mod book;
mod checkpoints;
mod counters;
mod drive;
mod emails;
mod escrow_wallets;
mod held;
mod hold_indexes;
mod kept_text;
mod logs;
mod names;
mod open_escrows;
mod pass;
mod pending;
mod policies;
mod reconcile;
mod record;
mod replay;
mod run_index;
mod scan;
mod snapshot;
mod texts;
mod trail;
mod transactions;
mod transfers;
mod transit;
mod versions;
mod violation;

pub use pass::Progress;
pub use violation::{Inconclusive, Invariant, Violation};

use archive::Archive;
use book::Accounts;
use pass::Pass;
use pending::PendingChecks;
use reconcile::{Reconciliation, Suspects};
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::error::Error;
use std::time::Duration;
use store::account::Account;
use store::keys::ACCOUNTS;
use store::{Store, StoreError};
use violation::Findings;

/// Maximum number of violations that are listed.
pub const LISTED_MAX: usize = 1000;
/// Maximum number of passes of a round: one, and three that check its findings again.
const PASSES: usize = 4;
/// Maximum number of rounds, each of up to [`PASSES`]: one, and others while the last was inconclusive.
const ROUNDS: usize = 3;
/// Pause before the next pass, in which operations in progress can complete.
const PAUSE: Duration = Duration::from_millis(250);
/// Pause on a cluster before the next round, after which uncertain data is certain on all of its clocks.
const PAUSE_OF_A_CLUSTER: Duration = Duration::from_millis(2 * transit::CLOCKS_APART_MS + 250);

/// Scope of a check.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckScope<'a> {
    /// One account; `None` for the whole store.
    pub account: Option<&'a str>,
    /// True if the records are compared with the audit trails.
    pub with_trail: bool,
}

/// Result of a check.
#[derive(Debug)]
pub struct Checked {
    /// The violations, at most [`LISTED_MAX`].
    pub violations: Vec<Violation>,
    /// Number of further violations.
    pub more: u64,
    /// Invariants that could not be decided.
    pub inconclusive: Vec<Inconclusive>,
    /// Records that were read in one pass.
    pub records: u64,
    /// Passes that were made.
    pub passes: usize,
}

impl Checked {
    /// Returns whether all invariants hold with certainty.
    pub const fn ok(&self) -> bool {
        !self.is_violated() && self.inconclusive.is_empty()
    }

    /// Returns whether any invariant is violated.
    pub const fn is_violated(&self) -> bool {
        !self.violations.is_empty() || self.more > 0
    }
}

/// Checks one account or the whole store, including archived intents. Repeats an inconclusive check, up to [`ROUNDS`]
/// rounds in all.
pub async fn check(
    store: &Store,
    archive: &Archive,
    scope: CheckScope<'_>,
    progress: &Progress,
) -> Result<Checked, StoreError> {
    let mut checked = run_passes((store, archive), scope, progress).await?;
    for _ in 1..ROUNDS {
        if checked.inconclusive.is_empty() || checked.is_violated() {
            break;
        }
        let pause = if store.is_cluster() {
            PAUSE_OF_A_CLUSTER
        } else {
            PAUSE
        };
        tokio::time::sleep(pause).await;
        let passes = checked.passes;
        checked = run_passes((store, archive), scope, progress).await?;
        checked.passes += passes;
    }
    // Another archive, or a mount point without its volume, has no checkpoint that the trail could differ from.
    if scope.with_trail
        && let Err(error) = archive.check_own(store).await
    {
        checked.inconclusive.push(Inconclusive {
            invariant: Invariant::Trail,
            records: Vec::new(),
            reason: error.to_string(),
        });
    }
    Ok(checked)
}

/// Runs passes until one finds nothing, or the same as the previous one. Where the last one finds a record wrong in
/// another way than the previous one, or has more to compare than it can store, the result is inconclusive.
async fn run_passes(
    (store, archive): (&Store, &Archive),
    scope: CheckScope<'_>,
    progress: &Progress,
) -> Result<Checked, StoreError> {
    let seed = RandomState::new();
    let mut suspects = Suspects::new();
    let mut earlier_checks = PendingChecks::new();
    let mut before: Option<Findings> = None;
    let (mut records, mut inconclusive) = (0, Vec::new());
    let mut ids: Vec<String> = scope.account.map(str::to_owned).into_iter().collect();
    for pass in 1..=PASSES {
        if scope.account.is_none() {
            match Account::ids(store).await {
                Err(StoreError::MalformedData { source, .. }) => return Ok(no_accounts(&source)),
                now => add_new(&mut ids, now?),
            }
        }
        let accounts = Accounts::new(ids.clone(), scope.account.is_some());
        let reconciliation = Reconciliation::new(seed.clone(), suspects.clone());
        let sources = (store, archive, scope.with_trail);
        let pass_outcome = Pass::run(sources, &accounts, (reconciliation, earlier_checks), progress).await?;
        (records, inconclusive) = (pass_outcome.checked, pass_outcome.inconclusive);
        let left_out = pass_outcome.left_out;
        let clean = pass_outcome.found.is_empty() && left_out.is_empty();
        let is_unconfirmed =
            pass == 1 && !(pass_outcome.suspects.is_empty() && pass_outcome.pending_checks.is_empty());
        if clean && !is_unconfirmed {
            return Ok(outcome(Vec::new(), 0, inconclusive, (records, pass)));
        }
        if let Some(before) = &before
            && (pass == PASSES || left_out.is_empty() && pass_outcome.found.same(before))
        {
            let dropped = pass_outcome.found.dropped;
            let (found, undecided) = pass_outcome.found.confirmed_by(before);
            inconclusive.extend(left_out.into_iter().chain(undecided));
            return Ok(outcome(found, dropped, inconclusive, (records, pass)));
        }
        suspects = pass_outcome.suspects;
        earlier_checks = pass_outcome.pending_checks;
        before = Some(pass_outcome.found);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(outcome(Vec::new(), 0, inconclusive, (records, PASSES)))
}

/// Appends the accounts created since the previous pass, whose pending checks name accounts by their index.
fn add_new(ids: &mut Vec<String>, now: Vec<String>) {
    let known: HashSet<String> = ids.iter().cloned().collect();
    ids.extend(now.into_iter().filter(|id| !known.contains(id)));
}

/// Returns the result for a malformed list of accounts, without which nothing can be checked.
fn no_accounts(why: &dyn Error) -> Checked {
    let malformed = Violation {
        invariant: Invariant::Names,
        records: vec![ACCOUNTS.to_owned()],
        detail: format!("it is malformed, so nothing was checked: {why}"),
    };
    outcome(vec![malformed], 0, Vec::new(), (0, 1))
}

fn outcome(
    mut violations: Vec<Violation>,
    dropped: u64,
    inconclusive: Vec<Inconclusive>,
    (records, passes): (u64, usize),
) -> Checked {
    let beyond = violations.len().saturating_sub(LISTED_MAX);
    violations.truncate(LISTED_MAX);
    Checked {
        violations,
        more: dropped + beyond as u64,
        inconclusive,
        records,
        passes,
    }
}
