//! How a server confirms a change: what it is asked for that, and what of its answers counts.

use crate::store::StoreError;
use crate::store::durability::{ALWAYS, Disk, Durability, Offer, Status, is_always};
use redis::{Cmd, RedisResult, Value};

/// How one change is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    WaitAof,
    Always,
    Replicas(u8),
    /// Not at all: the server cannot, and it is only asked for where it can.
    Unconfirmed,
}

impl How {
    /// On a server that offers this; else why not.
    pub(super) fn of(asked: Durability, offer: &Offer) -> Result<Self, String> {
        match (asked, offer.disk) {
            (Durability::Replicas(count), _) => Ok(Self::Replicas(count)),
            (_, Ok(Disk::WaitAof)) => Ok(Self::WaitAof),
            (_, Ok(Disk::Always)) => Ok(Self::Always),
            (_, Err(_)) => {
                let status = Status::of(asked, std::slice::from_ref(offer));
                match status.refuses() {
                    true => Err(status.sentence()),
                    false => Ok(Self::Unconfirmed),
                }
            }
        }
    }

    /// Whether this answer confirms a change; else why not.
    pub(super) fn confirmed(self, answer: Value) -> Result<(), String> {
        let answer = answer.extract_error().map_err(|error| error.to_string())?;
        let few = |found: i64, what: &str| Err(format!("only {found} {what} confirmed it in time"));
        match self {
            Self::Unconfirmed => Ok(()),
            Self::Replicas(wanted) => match redis::from_redis_value::<i64>(answer) {
                Ok(found) if found >= i64::from(wanted) => Ok(()),
                found => few(found.unwrap_or(0), "replicas"),
            },
            Self::WaitAof => match redis::from_redis_value::<(i64, i64)>(answer) {
                Ok((local, _)) if local >= 1 => Ok(()),
                found => few(found.map_or(0, |(local, _)| local), "disks"),
            },
            Self::Always => match pairs(answer) {
                Some(config) if is_always(&config) => Ok(()),
                _ => Err("the store no longer writes through (appendfsync always)".to_owned()),
            },
        }
    }
}

/// What a server is asked, to know what it offers.
pub(super) fn questions() -> (Cmd, Cmd) {
    let (mut info, mut config) = (redis::cmd("INFO"), redis::cmd("CONFIG"));
    info.arg(["server", "persistence", "replication"].as_slice());
    config.arg("GET").arg(ALWAYS.map(|(name, _)| name).as_slice());
    (info, config)
}

/// A server that does not let us read its configuration says so, and then confirms nothing by it.
pub(super) fn readable(answer: RedisResult<Value>) -> RedisResult<Option<Vec<(String, String)>>> {
    match answer {
        Ok(answer) => Ok(pairs(answer)),
        Err(error) if error.code().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same from what was asked of all servers.
pub(super) fn of_a_server(
    answer: Result<Value, StoreError>,
) -> Result<Option<Vec<(String, String)>>, StoreError> {
    match answer {
        Ok(answer) => Ok(pairs(answer)),
        Err(StoreError::Refused { source, .. } | StoreError::NoAnswer(Some(source))) => {
            Ok(readable(Err(source))?)
        }
        Err(error) => Err(error),
    }
}

/// What `CONFIG GET` says.
fn pairs(answer: Value) -> Option<Vec<(String, String)>> {
    redis::from_redis_value(answer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_is_no_confirmation() {
        let pair = |local, replicas| Value::Array(vec![Value::Int(local), Value::Int(replicas)]);
        assert!(How::Replicas(2).confirmed(Value::Int(2)).is_ok());
        assert!(
            How::Replicas(2)
                .confirmed(Value::Int(1))
                .unwrap_err()
                .contains("only 1 replicas")
        );
        assert!(How::WaitAof.confirmed(pair(1, 0)).is_ok());
        assert!(How::WaitAof.confirmed(pair(0, 3)).is_err());
        for how in [How::Replicas(1), How::WaitAof, How::Always] {
            assert!(how.confirmed(Value::Nil).is_err(), "{how:?}");
        }
    }

    #[test]
    fn each_server_confirms_in_its_own_way_or_refuses_for_itself() {
        let of = |asked, disk| How::of(asked, &Offer { disk, replicas: 0 });
        for asked in [Durability::Auto, Durability::Aof] {
            assert_eq!(of(asked, Ok(Disk::WaitAof)), Ok(How::WaitAof));
            assert_eq!(of(asked, Ok(Disk::Always)), Ok(How::Always));
        }
        assert_eq!(of(Durability::Auto, Err("no file")), Ok(How::Unconfirmed));
        assert!(
            of(Durability::Aof, Err("no file"))
                .unwrap_err()
                .contains("no file")
        );
        assert_eq!(
            of(Durability::Replicas(2), Err("no file")),
            Ok(How::Replicas(2)),
            "each change asks them"
        );
    }
}
