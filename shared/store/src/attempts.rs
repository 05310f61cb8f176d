//! Twin of `attempts/take.lua`: guesses are counted before they are looked at (decision D9).

use crate::keys::{Tries, attempts};
use crate::script::change::{CLOCK, unexpected_reply};
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use std::sync::LazyLock;
use std::time::Duration;

/// The script.
pub static TAKE_ATTEMPT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "attempts_take",
        WhenFull::Refuse,
        &[CLOCK, include_str!("attempts/take.lua")],
    )
});

/// The span in which attempts are counted, and for which a lock stands (decision D9).
const SPAN: Duration = Duration::from_secs(15 * 60);
/// Attempts of one kind with one e-mail or as one user in that span (decision D9).
const PER_PERSON: u32 = 10;
/// Attempts of one kind from one address in that span.
const PER_ADDRESS: u32 = 100;

/// Whose attempts are meant.
#[derive(Debug, Clone, Copy)]
pub struct Attempts<'a> {
    /// How they are counted.
    pub tries: Tries,
    /// The e-mail, user id or address.
    pub of: &'a str,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It may be looked at.
    Yes,
    /// There are no more; after this time there are some again.
    Locked(Duration),
}

impl Attempts<'_> {
    /// Takes one.
    ///
    /// # Errors
    /// [`StoreError`]; the attempt may be taken then, and must not be looked at.
    pub async fn take(&self, store: &Store) -> Result<Taken, StoreError> {
        let most = match self.tries {
            Tries::Login | Tries::Reset | Tries::Confirm => PER_PERSON,
            Tries::LoginAddress | Tries::ResetAddress | Tries::InvitationAddress => PER_ADDRESS,
        };
        let key = attempts(self.tries, self.of);
        let args = [most.to_string(), SPAN.as_millis().to_string()];
        let reply: Vec<String> = store
            .script(&TAKE_ATTEMPT, &[&key], &args.each_ref().map(String::as_str))
            .await?;
        let mut words = reply.iter().map(String::as_str);
        match (words.next(), words.next().and_then(|ms| ms.parse().ok())) {
            (Some("taken"), None) => Ok(Taken::Yes),
            (Some("locked"), Some(ms)) => Ok(Taken::Locked(Duration::from_millis(ms))),
            _ => unexpected_reply(&TAKE_ATTEMPT),
        }
    }

    /// Gives the last one back: it was right.
    ///
    /// # Errors
    /// [`StoreError`]; then it stays taken.
    pub async fn give_back(&self, store: &Store) -> Result<(), StoreError> {
        let key = attempts(self.tries, self.of);
        let _: Option<String> = store.command(redis::cmd("RPOP").arg(key)).await?;
        Ok(())
    }

    /// Gives all back, which also ends a lock; whether there were any.
    ///
    /// # Errors
    /// [`StoreError`]; then they may stay taken.
    pub async fn clear(&self, store: &Store) -> Result<bool, StoreError> {
        let key = attempts(self.tries, self.of);
        let gone: i64 = store.command(redis::cmd("DEL").arg(key)).await?;
        Ok(gone > 0)
    }
}
