//! Twin of `credential_attempts/take.lua`: counts attempts before the credential is checked (decision D9).

use crate::keys::{Tries, attempts};
use crate::script::script;
use crate::{Store, StoreError};
use std::time::Duration;

script! {
    /// Takes one attempt.
    pub static TAKE_ATTEMPT = "attempts_take",
    kind: Timed,
    source: [include_str!("credential_attempts/take.lua")],
    when_full: Refuse,
    keys: struct TakeKeys<'a>: &'a str { attempts },
    /// `span` is in ms.
    args: struct TakeArgs<'a>: &'a str { attempts_max, span },
}

/// Window in which attempts are counted, and duration of a lock (decision D9).
pub const SPAN: Duration = Duration::from_secs(15 * 60);
/// Most attempts that are counted of the same thing in a window.
const ONCE: u32 = 1;
/// Most attempts of one kind by one e-mail or user in a window (decision D9).
const PER_PERSON: u32 = 10;
/// Maximum number of attempts of one kind from one address in a window.
const PER_ADDRESS: u32 = 100;

/// A counter of attempts.
#[derive(Debug, Clone, Copy)]
pub struct Attempts<'a> {
    /// Kind of attempt.
    pub tries: Tries,
    /// E-mail, with or without an account, user id or client address.
    pub of: &'a str,
}

/// Outcome of taking an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptPermit {
    /// The credential may be checked.
    Yes,
    /// Locked for this long.
    Locked(Duration),
}

impl Attempts<'_> {
    /// Takes one attempt.
    ///
    /// # Errors
    /// [`StoreError`]; the attempt may be counted, and the credential must not be checked.
    pub async fn take(&self, store: &Store) -> Result<AttemptPermit, StoreError> {
        let most = self.most();
        let keys = TakeKeys {
            attempts: &attempts(self.tries, self.of),
        };
        let args = TakeArgs {
            attempts_max: &most.to_string(),
            span: &SPAN.as_millis().to_string(),
        };
        let mut reply = store.reply(&TAKE_ATTEMPT, keys, args).await?;
        match reply.word()?.as_str() {
            "taken" => Ok(AttemptPermit::Yes),
            "locked" => Ok(AttemptPermit::Locked(Duration::from_millis(reply.number()?))),
            _ => reply.unexpected(),
        }
    }

    /// Reads for how long the attempts are locked, without taking one; `None` if they are not.
    ///
    /// # Errors
    /// [`StoreError`]; the credential must not be checked.
    pub async fn locked(&self, store: &Store) -> Result<Option<Duration>, StoreError> {
        let key = attempts(self.tries, self.of);
        let mut query = redis::pipe();
        query.cmd("LLEN").arg(&key);
        query.cmd("PTTL").arg(&key);
        let (taken, left_ms): (u64, i64) = store.pipeline(&query).await?;
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
        // Longer than a span: taken while the store's clock was ahead, as in the script.
        Ok((taken >= u64::from(self.most()) && left <= SPAN).then_some(left))
    }

    const fn most(&self) -> u32 {
        match self.tries {
            Tries::Login
            | Tries::LoginAccount
            | Tries::LoginNamed
            | Tries::RightPasswords
            | Tries::Reset
            | Tries::Confirm => PER_PERSON,
            Tries::RightPassword => ONCE,
            Tries::LoginAddress | Tries::ResetAddress | Tries::InvitationAddress => PER_ADDRESS,
        }
    }

    /// Gives the last attempt back, since the credential was right.
    ///
    /// # Errors
    /// [`StoreError`]; the attempt stays counted.
    pub async fn give_back(&self, store: &Store) -> Result<(), StoreError> {
        let key = attempts(self.tries, self.of);
        let _: Option<String> = store.command(redis::cmd("RPOP").arg(key)).await?;
        Ok(())
    }

    /// Clears all attempts, which also ends a lock. Returns whether there were any.
    ///
    /// # Errors
    /// [`StoreError`]; the attempts may stay counted.
    pub async fn clear(&self, store: &Store) -> Result<bool, StoreError> {
        let key = attempts(self.tries, self.of);
        let gone: i64 = store.command(redis::cmd("DEL").arg(key)).await?;
        Ok(gone > 0)
    }
}
