//! The sealer: audit entries get their hashes soon after they were written, so that chains stay short of unsealed lines and
//! events go out. Readers do not depend on it: they seal before they read.
//!
//! Accounts in which something happened lately are looked at in every round, all others in turn, at a bounded rate.

use super::pause;
use crate::problem::chain;
use crate::serve::App;
use futures::{StreamExt, stream};
use shared::domain::mode::Mode;
use shared::store::StoreError;
use shared::store::account::Account;
use shared::store::chain::Chain;
use shared::store::read::Read;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Accounts looked at in one round beside the busy ones: 5,000 a second at the usual pause.
const LOOKS: usize = 1000;
/// Rounds without anything new after which an account is no longer busy.
const QUIET_ROUNDS: u32 = 50;
/// Chains sealed at the same time.
const AT_ONCE: usize = 8;
/// Rounds between two looks for new accounts.
const ACCOUNTS_EVERY: u32 = 5;

/// What the sealer remembers from one round to the next.
#[derive(Debug, Default)]
struct Memory {
    /// Accounts in the order in which they are looked at.
    turn: VecDeque<String>,
    /// The last number sealed of each account and mode that had one.
    sealed: HashMap<(String, Mode), u64>,
    /// Accounts in which something happened lately, and for how many rounds nothing did.
    busy: HashMap<String, u32>,
    /// Chains that could not be sealed the last time.
    failing: HashSet<(String, Mode)>,
    rounds: u32,
}

/// Seals until it is time to stop. Several servers may do so at once.
pub(super) async fn run(app: Arc<App>, mut stopping: watch::Receiver<bool>) {
    let every = Duration::from_millis(app.audit.seal_every_ms);
    let mut memory = Memory::default();
    while pause(&mut stopping, every).await {
        if let Err(error) = round(&app, &mut memory).await {
            app.metrics.seals_failed.inc();
            tracing::error!(error = %chain(&error), "round of sealing cut off");
        }
    }
}

async fn round(app: &App, memory: &mut Memory) -> Result<(), StoreError> {
    if memory.rounds.is_multiple_of(ACCOUNTS_EVERY) {
        // Accounts never go, so their number tells whether there are new ones.
        if Account::count(&app.store).await? != memory.turn.len() {
            memory.turn = Account::ids(&app.store).await?.into();
        }
    }
    memory.rounds = memory.rounds.wrapping_add(1);
    let grown = look(app, memory).await?;
    let sealing = stream::iter(grown).map(async |(account, mode)| {
        let head = Chain::of(&app.store, &account, mode).seal().await;
        (account, mode, head)
    });
    let mut sealing = std::pin::pin!(sealing.buffer_unordered(AT_ONCE));
    while let Some((account, mode, head)) = sealing.next().await {
        match head {
            Ok(head) => {
                memory.failing.remove(&(account.clone(), mode));
                let before = memory.sealed.insert((account, mode), head.seq);
                let fresh = head.seq.saturating_sub(before.unwrap_or(head.seq));
                app.metrics.entries_sealed.inc_by(fresh);
            }
            Err(error) => {
                app.metrics.seals_failed.inc();
                // It is tried in every round; the log hears of it once.
                if memory.failing.insert((account.clone(), mode)) {
                    tracing::error!(account, %mode, error = %chain(&error), "a chain cannot be sealed");
                }
            }
        }
    }
    Ok(())
}

/// Which chains have more lines than were sealed when they were last looked at.
async fn look(app: &App, memory: &mut Memory) -> Result<Vec<(String, Mode)>, StoreError> {
    let mut accounts: Vec<String> = memory.busy.keys().cloned().collect();
    for _ in 0..LOOKS.min(memory.turn.len()) {
        memory.turn.rotate_left(1);
        if let Some(account) = memory
            .turn
            .back()
            .filter(|account| !memory.busy.contains_key(*account))
        {
            accounts.push(account.clone());
        }
    }
    let fields = Mode::ALL.map(|mode| format!("{mode}_audit_seq"));
    let reads: Vec<Read> = accounts
        .iter()
        .map(|account| {
            let keys = shared::store::keys::AccountKeys::of(account);
            Read::fields(keys.bucket(), keys.record(), &fields)
        })
        .collect();
    let mut answers = app.store.many(&reads).await?;
    let mut grown = Vec::new();
    for account in accounts {
        let last: Vec<Option<u64>> = answers.read().unwrap_or_default();
        let before = grown.len();
        for (mode, last) in Mode::ALL.into_iter().zip(last) {
            let sealed = memory.sealed.get(&(account.clone(), mode)).copied();
            if last.unwrap_or(0) != sealed.unwrap_or(0) {
                grown.push((account.clone(), mode));
            }
        }
        if grown.len() > before {
            memory.busy.insert(account, 0);
        } else if let Some(quiet) = memory.busy.get_mut(&account) {
            *quiet += 1;
            if *quiet > QUIET_ROUNDS {
                memory.busy.remove(&account);
            }
        }
    }
    Ok(grown)
}
