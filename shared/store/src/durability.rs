//! `store.durability`: how safely the store must have a change of money before its caller is told that it was done.
//!
//! Metering (holds and their settlement) does not wait for it: what a crash takes from there is said in
//! `docs/explanation/durability.md`.

use crate::info::{field, number};
use settings::durability::Durability;

/// What one server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// How it confirms that a change is on its disk; else why it cannot.
    pub disk: Result<Disk, &'static str>,
    /// Replicas that follow it now.
    pub replicas: u64,
    /// Replicas that may take its place: those that follow it, and those that the cluster lists for it.
    pub listed: u64,
}

/// How a server confirms that a change is on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// `WAITAOF`, where it can be believed.
    WaitAof,
    /// `appendfsync always`: each answer comes after its fsync.
    Always,
}

/// Where the operator reads what an exposed store can lose.
const EXPOSED: &str = "docs/explanation/durability.md, What can be lost";

/// The first version of Redis whose `WAITAOF` says what is on disk. Earlier ones, and Valkey as far as known (8.1.1 was
/// watched), have the command and answer before the fsync, unless they sync always:
/// <https://github.com/redis/redis/pull/13793>.
const WAITAOF_SINCE: u64 = 8;

/// The settings that [`Disk::Always`] hangs on, with the values that it needs.
pub(super) const ALWAYS: [(&str, &str); 3] = [
    ("appendonly", "yes"),
    ("appendfsync", "always"),
    ("no-appendfsync-on-rewrite", "no"),
];

impl Offer {
    /// Reads it from `INFO`, and from `CONFIG GET` where that is allowed.
    #[must_use]
    pub fn from_info(info: &str, config: Option<&[(String, String)]>) -> Self {
        let version = field(info, "redis_version").and_then(|text| text.split('.').next()?.parse().ok());
        let tells = field(info, "valkey_version").is_none()
            && version.is_some_and(|major: u64| major >= WAITAOF_SINCE);
        let disk = if field(info, "aof_enabled") != Some("1") {
            Err("the store writes no append-only file (appendonly no)")
        } else if tells {
            Ok(Disk::WaitAof)
        } else {
            match config {
                None => Err("the store does not let us read its appendfsync (CONFIG GET)"),
                Some(config) if is_always(config) => Ok(Disk::Always),
                Some(_) => Err(
                    "a store before Redis 8.0, or Valkey, confirms what is on disk only with `appendfsync always` and `no-appendfsync-on-rewrite no`",
                ),
            }
        };
        let replicas = number(info, "connected_slaves");
        Self {
            disk,
            replicas,
            listed: replicas,
        }
    }

    /// The same of a master for which its cluster lists so many replicas.
    #[must_use]
    pub fn listed(self, listed: u64) -> Self {
        Self {
            listed: self.listed.max(listed),
            ..self
        }
    }

    /// How many replicas a change waits for under `auto`: one, where there is one that may take the server's place,
    /// also while it is out of step.
    #[must_use]
    pub fn auto_replicas(&self) -> u8 {
        u8::from(self.listed > 0)
    }
}

/// Whether each answer comes after its fsync.
pub(super) fn is_always(config: &[(String, String)]) -> bool {
    ALWAYS
        .iter()
        .all(|(name, wanted)| config.iter().any(|(key, value)| key == name && value == wanted))
}

/// How changes of money stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What is configured.
    pub asked: Durability,
    /// What is confirmed now: never [`Durability::Auto`].
    pub confirmed: Durability,
    /// What speaks against `asked`, or for `auto` against more than `async`.
    pub lacks: Option<String>,
    /// Whether a replica may take the place of a server without having what was acknowledged: then a failover takes
    /// that back.
    pub exposed: bool,
}

impl Status {
    /// What `asked` comes to on servers that offer this.
    #[must_use]
    pub fn from_offers(asked: Durability, offers: &[Offer]) -> Self {
        let why_not = offers
            .iter()
            .find_map(|offer| offer.disk.err())
            .map(str::to_owned);
        let replicas = offers.iter().map(|offer| offer.replicas).min().unwrap_or(0);
        let each_has_one = !offers.is_empty() && offers.iter().all(|offer| offer.auto_replicas() > 0);
        let (confirmed, lacks) = match asked {
            Durability::Async => (asked, None),
            Durability::Auto if each_has_one && replicas == 0 => {
                let lacks = "a server of the store has a replica that does not follow it, and changes of money wait for it";
                (Durability::Replicas(1), Some(lacks.to_owned()))
            }
            Durability::Auto if each_has_one => (Durability::Replicas(1), None),
            Durability::Auto | Durability::Aof if why_not.is_none() => (Durability::Aof, None),
            Durability::Auto | Durability::Aof => (Durability::Async, why_not),
            Durability::Replicas(count) if replicas >= u64::from(count) => (asked, None),
            Durability::Replicas(_) => {
                let lacks = format!("a server of the store has {replicas} replicas");
                (Durability::Async, Some(lacks))
            }
        };
        let has_replicas = offers.iter().any(|offer| offer.listed > 0);
        Self {
            asked,
            confirmed,
            lacks,
            exposed: matches!(asked, Durability::Async | Durability::Aof) && has_replicas,
        }
    }

    /// Whether changes of money are refused.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        matches!(self.asked, Durability::Aof | Durability::Replicas(_)) && self.lacks.is_some()
    }

    /// One sentence for the operator.
    #[must_use]
    pub fn sentence(&self) -> String {
        let asked = self.asked;
        match (&self.lacks, asked) {
            _ if self.exposed && !self.refuses() => format!(
                "store.durability = {asked} waits for no replica, and the store has some: a failover may take back what callers were told was done, and money that arrived in another account may then be there twice; use auto or replicas(n) ({EXPOSED})"
            ),
            (None, Durability::Async) => {
                "money is acknowledged before it is on disk (store.durability = async)".to_owned()
            }
            (None, _) => format!("money is acknowledged when it is safe as {}", self.confirmed),
            (Some(why), Durability::Auto) if self.confirmed != Durability::Async => {
                format!("store.durability = auto: {why}")
            }
            (Some(why), Durability::Auto) => format!(
                "money is acknowledged before it is on disk (store.durability = auto): {why}; a crash of the store's machine may take back what callers were told was done"
            ),
            (Some(why), _) => format!(
                "store.durability = {asked} cannot be met, and changes of money are refused: {why}; change the store's configuration, or store.durability"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
