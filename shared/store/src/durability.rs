//! `store.durability`: how durable a change of money must be before it is acknowledged.
//!
//! Metering (holds and settlements) does not wait for durability; `docs/explanation/durability.md` describes what a
//! crash can lose.

use crate::info::{field, number, replica_lines};
use settings::durability::Durability;

/// The confirmations that one server can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Method by which it confirms that a change is on its disk; the error is the reason why it cannot.
    pub disk: Result<Disk, &'static str>,
    /// Replicas that follow now.
    pub replicas: u64,
    /// Number of replicas that may take over: those that follow, and those that the cluster lists.
    pub listed: u64,
    /// True if a replica may have followed within `repl-backlog-ttl` (an hour by default): the server has synchronised
    /// one since its start, and keeps the backlog that the replica would need to follow again. A backup
    /// (`redis-cli --rdb`) leaves the same traces. So a cluster has to list a node that may be it, if only a failed
    /// one, and on a single server [`FOLLOWED`](crate::keys::FOLLOWED) counts instead.
    pub had_replica: bool,
    /// `run_id` of the server's process.
    pub run_id: String,
}

/// Method by which a server confirms that a change is on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// `WAITAOF`, where it is reliable.
    WaitAof,
    /// `appendfsync always`: each reply follows its fsync.
    Always,
}

/// Section of the documentation about the losses of an exposed store.
const EXPOSED: &str = "docs/explanation/durability.md, What can be lost";

/// First major version of Redis whose `WAITAOF` replies after the fsync. Earlier versions, and Valkey as of 8.1.1,
/// reply before it unless they always sync: <https://github.com/redis/redis/pull/13793>.
const WAITAOF_SINCE: u64 = 8;

/// Settings that [`Disk::Always`] requires.
pub(super) const ALWAYS: [(&str, &str); 3] = [
    ("appendonly", "yes"),
    ("appendfsync", "always"),
    ("no-appendfsync-on-rewrite", "no"),
];

impl Offer {
    /// Parses `INFO`, and `CONFIG GET` where that is permitted.
    pub fn from_info(info: &str, config: Option<&[(String, String)]>) -> Self {
        let version = field(info, "redis_version").and_then(|text| text.split('.').next()?.parse().ok());
        let waitaof_follows_fsync = field(info, "valkey_version").is_none()
            && version.is_some_and(|major: u64| major >= WAITAOF_SINCE);
        let disk = if field(info, "aof_enabled") != Some("1") {
            Err("the store writes no append-only file (appendonly no)")
        } else if waitaof_follows_fsync {
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
        let replicas = replicas_online(info);
        let synchronised = number(info, "sync_full") + number(info, "sync_partial_ok");
        Self {
            disk,
            replicas,
            listed: replicas,
            had_replica: synchronised > 0 && number(info, "repl_backlog_active") > 0,
            run_id: field(info, "run_id").unwrap_or_default().to_owned(),
        }
    }

    /// Returns the offer of a single server whose mark names the process `followed`, or is not there.
    #[must_use]
    pub fn marked(self, followed: Option<&str>) -> Self {
        Self {
            had_replica: followed == Some(self.run_id.as_str()),
            ..self
        }
    }

    /// Returns the offer of a master for which the cluster lists `listed` replicas.
    #[must_use]
    pub fn listed(self, listed: u64) -> Self {
        Self {
            listed: self.listed.max(listed),
            ..self
        }
    }

    /// Returns how many replicas a change waits for under `auto`: one, if any may take over, also while it lags.
    pub(crate) fn auto_replicas(&self) -> u8 {
        u8::from(self.listed > 0)
    }
}

/// Returns how many replicas follow. One that receives a snapshot does not follow yet, and a backup never will: it only
/// looks like a replica (`redis-cli --rdb`).
pub(crate) fn replicas_online(info: &str) -> u64 {
    let online = replica_lines(info).filter(|line| line.contains(",state=online,"));
    online.count() as u64
}

/// Returns whether each reply follows its fsync.
pub(super) fn is_always(config: &[(String, String)]) -> bool {
    ALWAYS
        .iter()
        .all(|(name, wanted)| config.iter().any(|(key, value)| key == name && value == wanted))
}

/// Durability of changes of money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurabilityStatus {
    /// The configured durability.
    pub requested: Durability,
    /// The durability in effect; never [`Durability::Auto`].
    pub confirmed: Durability,
    /// Why the servers cannot do `requested`, or under `auto` more than `async`.
    pub lacks: Option<String>,
    /// True if a replica may take over without acknowledged changes, so that a failover loses them.
    pub exposed: bool,
}

impl DurabilityStatus {
    /// Evaluates `requested` on servers with these offers.
    pub(crate) fn from_offers(requested: Durability, offers: &[Offer]) -> Self {
        let why_not = offers
            .iter()
            .find_map(|offer| offer.disk.err())
            .map(str::to_owned);
        let replicas = offers.iter().map(|offer| offer.replicas).min().unwrap_or(0);
        let each_has_one = !offers.is_empty() && offers.iter().all(|offer| offer.auto_replicas() > 0);
        let (confirmed, lacks) = match requested {
            Durability::Async => (requested, None),
            Durability::Auto if each_has_one && replicas == 0 => {
                let lacks = "a server of the store has a replica that does not follow it, and changes of money wait for it";
                (Durability::Replicas(1), Some(lacks.to_owned()))
            }
            Durability::Auto if each_has_one => (Durability::Replicas(1), None),
            Durability::Auto | Durability::Aof if why_not.is_none() => (Durability::Aof, None),
            Durability::Auto | Durability::Aof => (Durability::Async, why_not),
            Durability::Replicas(count) if replicas >= u64::from(count) => (requested, None),
            Durability::Replicas(_) => {
                let lacks = format!("a server of the store has {replicas} replicas");
                (Durability::Async, Some(lacks))
            }
        };
        let has_replicas = offers.iter().any(|offer| offer.listed > 0);
        Self {
            requested,
            confirmed,
            lacks,
            exposed: matches!(requested, Durability::Async | Durability::Aof) && has_replicas,
        }
    }

    /// Returns whether a required durability is lacking: changes of money are refused (`aof`) or not confirmed
    /// (`replicas(n)`).
    pub const fn refuses(&self) -> bool {
        self.requested.is_required() && self.lacks.is_some()
    }

    /// Returns one sentence for the operator.
    pub fn sentence(&self) -> String {
        let requested = self.requested;
        match (&self.lacks, requested) {
            _ if self.exposed && !self.refuses() => format!(
                "store.durability = {requested} waits for no replica, and the store has some: a failover may take back changes that were confirmed to callers, and money that arrived in another account may then be there twice; use auto or replicas(n) ({EXPOSED})"
            ),
            (None, Durability::Async) => {
                "money is acknowledged before it is on disk (store.durability = async)".to_owned()
            }
            (None, _) => format!("money is acknowledged when it is safe as {}", self.confirmed),
            (Some(why), Durability::Auto) if self.confirmed != Durability::Async => {
                format!("store.durability = auto: {why}")
            }
            (Some(why), Durability::Auto) => format!(
                "money is acknowledged before it is on disk (store.durability = auto): {why}; a crash of the store's machine may take back changes that were confirmed to callers"
            ),
            (Some(why), _) => format!(
                "store.durability = {requested} cannot be met, and changes of money are refused (aof) or not confirmed (replicas): {why}; change the store's configuration, or store.durability"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
