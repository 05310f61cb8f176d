//! Confirmation of a change by a server: the commands that wait for it, and the replies that confirm it.

use super::REPLICA_EXPECTED;
use crate::StoreError;
use crate::durability::{ALWAYS, Disk, DurabilityStatus, Offer, is_always};
use crate::keys::FOLLOWED;
use redis::{Cmd, RedisResult, Value};
use settings::durability::Durability;
use std::time::Duration;

/// Confirmation of one change: by disk, by replicas, by both, or not at all (under `auto`, if the server offers
/// neither).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Confirmation {
    disk: Option<Disk>,
    replicas: u8,
}

impl Confirmation {
    /// Chooses the confirmation on a server with this offer. The error is the reason why it cannot confirm.
    pub(super) fn new(configured: Durability, offer: &Offer) -> Result<Self, String> {
        let confirmation = |disk, replicas| Ok(Self { disk, replicas });
        match (configured, offer.disk) {
            (Durability::Replicas(count), _) => confirmation(None, count),
            (Durability::Auto, disk) => confirmation(disk.ok(), offer.auto_replicas()),
            (Durability::Async, _) => confirmation(None, 0),
            (Durability::Aof, Ok(disk)) => confirmation(Some(disk), 0),
            (Durability::Aof, Err(_)) => {
                Err(DurabilityStatus::from_offers(configured, std::slice::from_ref(offer)).sentence())
            }
        }
    }

    /// Creates the confirmation by this many replicas.
    pub(super) const fn by_replicas(replicas: u8) -> Self {
        Self { disk: None, replicas }
    }

    /// Returns whether nothing is confirmed.
    pub(super) const fn is_unconfirmed(self) -> bool {
        self.disk.is_none() && self.replicas == 0
    }

    /// Returns whether the waits cover only writes on their own connection.
    pub(super) fn needs_a_fence(self) -> bool {
        self.disk == Some(Disk::WaitAof) || self.replicas > 0
    }

    /// Returns the commands that wait for the change, each for at most `wait`.
    pub(super) fn wait_commands(self, wait: Duration) -> Vec<Cmd> {
        let wait = wait.as_millis().to_string();
        let mut commands = Vec::with_capacity(2);
        match self.disk {
            None => {}
            Some(Disk::WaitAof) => {
                let mut waitaof = redis::cmd("WAITAOF");
                waitaof.arg(1).arg(0).arg(&wait);
                commands.push(waitaof);
            }
            Some(Disk::Always) => {
                let mut config = redis::cmd("CONFIG");
                config.arg("GET").arg(ALWAYS.map(|(name, _)| name).as_slice());
                commands.push(config);
            }
        }
        if self.replicas > 0 {
            let mut waits = redis::cmd("WAIT");
            waits.arg(self.replicas).arg(&wait);
            commands.push(waits);
        }
        commands
    }

    /// Checks that the replies confirm the change. The error is the reason why they do not.
    pub(super) fn confirmed(self, answers: Vec<Value>) -> Result<(), String> {
        let mut answers = answers.into_iter();
        let mut next = || {
            let answer = answers.next().unwrap_or_default();
            answer.extract_error().map_err(|error| error.to_string())
        };
        let few = |found: i64, what: &str| Err(format!("only {found} {what} confirmed it in time"));
        match self.disk {
            None => {}
            Some(Disk::WaitAof) => match redis::from_redis_value::<(i64, i64)>(next()?) {
                Ok((local, _)) if local >= 1 => {}
                found => return few(found.map_or(0, |(local, _)| local), "disks"),
            },
            Some(Disk::Always) => match pairs(next()?) {
                Some(config) if is_always(&config) => {}
                _ => return Err("the store no longer writes through (appendfsync always)".to_owned()),
            },
        }
        if self.replicas == 0 {
            return Ok(());
        }
        match redis::from_redis_value::<i64>(next()?) {
            Ok(found) if found >= i64::from(self.replicas) => Ok(()),
            found => few(found.unwrap_or(0), "replicas"),
        }
    }
}

/// Returns the queries for the durability that a server offers.
pub(super) fn offer_queries() -> (Cmd, Cmd) {
    let (mut info, mut config) = (redis::cmd("INFO"), redis::cmd("CONFIG"));
    info.arg(["server", "persistence", "replication", "stats"].as_slice());
    config.arg("GET").arg(ALWAYS.map(|(name, _)| name).as_slice());
    (info, config)
}

/// Queries the mark that a replica followed a single server.
pub(super) fn followed_query() -> Cmd {
    let mut query = redis::cmd("GET");
    query.arg(FOLLOWED);
    query
}

/// Returns the command that makes or renews that mark, which lasts for [`REPLICA_EXPECTED`].
pub(super) fn followed_mark(run_id: &str) -> Cmd {
    let mut mark = redis::cmd("SET");
    mark.arg(FOLLOWED)
        .arg(run_id)
        .arg("PX")
        .arg(REPLICA_EXPECTED.as_millis().to_string());
    mark
}

/// Returns the query for the replicas that the cluster lists.
pub(super) fn nodes_query() -> Cmd {
    let mut nodes = redis::cmd("CLUSTER");
    nodes.arg("NODES");
    nodes
}

/// Parses the reply of `CONFIG GET`; `None` if the server refused it.
pub(super) fn readable_config(answer: RedisResult<Value>) -> RedisResult<Option<Vec<(String, String)>>> {
    match answer {
        Ok(answer) => Ok(pairs(answer)),
        Err(error) if error.code().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Like [`readable_config`], for an answer of [`Store::send_to`](crate::Store::send_to).
pub(super) fn config_of_server(
    answer: Result<Value, StoreError>,
) -> Result<Option<Vec<(String, String)>>, StoreError> {
    match answer {
        Ok(answer) => Ok(pairs(answer)),
        Err(StoreError::Refused { reply: source, .. } | StoreError::NoAnswer(Some(source))) => {
            Ok(readable_config(Err(source))?)
        }
        Err(error) => Err(error),
    }
}

/// Parses the reply of `CONFIG GET`.
fn pairs(answer: Value) -> Option<Vec<(String, String)>> {
    redis::from_redis_value(answer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Confirmation = Confirmation {
        disk: Some(Disk::WaitAof),
        replicas: 0,
    };
    const THROUGH: Confirmation = Confirmation {
        disk: Some(Disk::Always),
        replicas: 0,
    };
    const BOTH: Confirmation = Confirmation {
        disk: Some(Disk::WaitAof),
        replicas: 1,
    };

    #[test]
    fn too_few_is_no_confirmation() {
        let pair = |local, replicas| Value::Array(vec![Value::Int(local), Value::Int(replicas)]);
        let two = Confirmation::by_replicas(2);
        assert!(two.confirmed(vec![Value::Int(2)]).is_ok());
        assert!(
            two.confirmed(vec![Value::Int(1)])
                .unwrap_err()
                .contains("only 1 replicas")
        );
        assert!(DISK.confirmed(vec![pair(1, 0)]).is_ok());
        assert!(DISK.confirmed(vec![pair(0, 3)]).is_err());
        assert!(BOTH.confirmed(vec![pair(1, 0), Value::Int(1)]).is_ok());
        assert!(BOTH.confirmed(vec![pair(1, 0), Value::Int(0)]).is_err());
        assert!(BOTH.confirmed(vec![pair(0, 0), Value::Int(1)]).is_err());
        for confirmation in [two, DISK, THROUGH, BOTH] {
            assert!(
                confirmation.confirmed(vec![Value::Nil]).is_err(),
                "{confirmation:?}"
            );
            assert!(confirmation.confirmed(Vec::new()).is_err(), "{confirmation:?}");
            let waits = confirmation.wait_commands(Duration::from_secs(1)).len();
            assert_eq!(
                waits,
                usize::from(confirmation.disk.is_some()) + usize::from(confirmation.replicas > 0)
            );
        }
    }

    #[test]
    fn each_server_confirms_in_its_own_way_or_refuses_for_itself() {
        let of = |requested, disk, listed| {
            let offer = Offer {
                disk,
                replicas: 0,
                listed,
                had_replica: false,
                run_id: String::new(),
            };
            Confirmation::new(requested, &offer)
        };
        for requested in [Durability::Auto, Durability::Aof] {
            assert_eq!(of(requested, Ok(Disk::WaitAof), 0), Ok(DISK));
            assert_eq!(of(requested, Ok(Disk::Always), 0), Ok(THROUGH));
        }
        let none = of(Durability::Auto, Err("no file"), 0).unwrap();
        assert!(none.is_unconfirmed() && !none.needs_a_fence());
        assert_eq!(
            of(Durability::Auto, Err("no file"), 2),
            Ok(Confirmation::by_replicas(1)),
            "a replica that may take its place has to have it"
        );
        assert_eq!(of(Durability::Auto, Ok(Disk::WaitAof), 1), Ok(BOTH));
        assert_eq!(
            of(Durability::Aof, Ok(Disk::WaitAof), 1),
            Ok(DISK),
            "what was named counts"
        );
        assert!(
            of(Durability::Aof, Err("no file"), 0)
                .unwrap_err()
                .contains("no file")
        );
        assert_eq!(
            of(Durability::Replicas(2), Err("no file"), 0),
            Ok(Confirmation::by_replicas(2)),
            "each change queries them"
        );
    }
}
