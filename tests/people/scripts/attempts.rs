//! `attempts_take`: counts attempts to sign in, until there are too many in a span of time.

use super::{EMAIL, NOW_MS, describe, fresh};
use harness::scripts::{Checked, execute};
use harness::{Store, same};
use store::credential_attempts::{AttemptPermit, Attempts};
use store::keys::{Tries, attempts};

const SPAN_MS: u64 = 900_000;

pub async fn take(store: &Store) -> Checked {
    fresh(store).await?;
    let tries = Attempts {
        tries: Tries::Login,
        of: EMAIL,
    };
    let key = attempts(Tries::Login, EMAIL);
    // Two attempts are just too old, one is just recent enough.
    for ago in [SPAN_MS + 1, SPAN_MS, SPAN_MS - 1] {
        execute::<i64>(store, &["RPUSH", &key, &(NOW_MS - ago).to_string()]).await?;
    }
    for taken in 2..=10 {
        same!(tries.take(store).await.map_err(describe)?, AttemptPermit::Yes);
        same!(execute::<u64>(store, &["LLEN", &key]).await?, taken);
        let last: u64 = execute(store, &["LINDEX", &key, "-1"]).await?;
        same!(last, NOW_MS);
        let left: u64 = execute(store, &["PTTL", &key]).await?;
        same!((SPAN_MS - 5000..=SPAN_MS).contains(&left), true);
        execute::<i64>(store, &["PEXPIRE", &key, "60000"]).await?;
    }
    let first: u64 = execute(store, &["LINDEX", &key, "0"]).await?;
    same!(first, NOW_MS - SPAN_MS + 1);
    for _ in 0..2 {
        let AttemptPermit::Locked(left) = tries.take(store).await.map_err(describe)? else {
            return Err("an eleventh attempt".to_owned());
        };
        same!((55_000..=60_000).contains(&left.as_millis()), true);
    }
    same!(execute::<u64>(store, &["LLEN", &key]).await?, 10);
    // A counter that lasts longer than a span is from a clock that was ahead.
    let left = (SPAN_MS + 60_000).to_string();
    execute::<i64>(store, &["PEXPIRE", &key, &left]).await?;
    same!(tries.take(store).await.map_err(describe)?, AttemptPermit::Yes);
    same!(execute::<u64>(store, &["LLEN", &key]).await?, 1);
    same!(execute::<u64>(store, &["PTTL", &key]).await? <= SPAN_MS, true);
    fresh(store).await?;
    execute::<i64>(store, &["RPUSH", &key, &(NOW_MS - SPAN_MS).to_string()]).await?;
    same!(tries.take(store).await.map_err(describe)?, AttemptPermit::Yes);
    same!(execute::<u64>(store, &["LLEN", &key]).await?, 1);
    Ok(())
}
