//! Twin of `void.lua`: guarantees that an `authorize` whose reply was lost never charges.

use crate::call::hold::{END_HOLD, HoldName, LOST_WRITES};
use crate::script::{script, with_fragments};
use crate::versions::AccountVersion;
use crate::{Store, StoreError};
use std::time::Duration;

script! {
    /// Voids a hold, even one that does not exist yet.
    pub static VOID = "void",
    kind: Timed,
    source: [&with_fragments(include_str!("void.lua"), &[LOST_WRITES, END_HOLD])],
    when_full: Run,
    /// Those of `EndKeys` in the same order, and the two indexes of the run.
    keys: struct VoidKeys<'a>: &'a str {
        account, agent, run, hold, due, kept_index, kept_hold, audit_log, agent_runs, account_runs
    },
    /// The tombstone's life is in ms.
    args: struct VoidArgs<'a>: &'a str { allow_id, tombstone_life, generation, version, run },
}

/// Time for which a voided id is refused. A delayed command can only arrive while its connection lives; an hour is far
/// longer.
pub const TOMBSTONE_LIFE: Duration = Duration::from_secs(3600);

/// Outcome of a void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voided {
    /// The `authorize` had run; its charge was given back.
    Refunded,
    /// The `authorize` had not run, and never will.
    Barred,
}

/// Voids the hold `name`. Safe to repeat. Accepts a missing hold only from an account whose version is at least
/// `as_of`, the version known before the `authorize`.
///
/// # Errors
/// [`StoreError`]; retry until it succeeds. [`StoreError::LacksWrites`] if the account's version is older, or the
/// account does not exist; nothing is written then.
pub async fn void(store: &Store, name: &HoldName, as_of: AccountVersion) -> Result<Voided, StoreError> {
    let keys = name.keys();
    let [generation, version] = as_of.to_args();
    let args = VoidArgs {
        allow_id: &name.allow_id,
        tombstone_life: &TOMBSTONE_LIFE.as_millis().to_string(),
        generation: &generation,
        version: &version,
        run: &name.run,
    };
    let (agent_runs, account_runs) = (keys.realm.runs(&name.agent), keys.realm.all_runs());
    let end = keys.to_end();
    let keys = VoidKeys {
        account: end.account,
        agent: end.agent,
        run: end.run,
        hold: end.hold,
        due: end.due,
        kept_index: end.kept_index,
        kept_hold: end.kept_hold,
        audit_log: end.audit_log,
        agent_runs: &agent_runs,
        account_runs: &account_runs,
    };
    let mut reply = store.reply(&VOID, keys, args).await?;
    match reply.word()?.as_str() {
        "refunded" => Ok(Voided::Refunded),
        "voided" => Ok(Voided::Barred),
        "lost_writes" => Err(StoreError::LacksWrites),
        _ => reply.unexpected(),
    }
}
