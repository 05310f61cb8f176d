//! `session_use` and `session_end`: the use and the end of sessions.

use super::{EMAIL, NOW_MS, SCOPE, after, changes, describe, fresh, left, look_ups, three, user};
use harness::scripts::{Checked, execute};
use harness::{Role, Store, same};
use std::time::Duration;
use store::session::SessionPlace;
use store::session::script::{self, SessionEnd};

const HASH: &str = "0a0a";

pub async fn in_use(store: &Store) -> Checked {
    const IDLE_MS: u64 = 600_000;
    const NOTE_MS: u64 = 60_000;
    let place = SessionPlace {
        account: "acct_1".to_owned(),
        user: "usr_1".to_owned(),
        id: "ses_1".to_owned(),
    };
    let keys = fresh(store).await?;
    let (sessions, users) = (keys.sessions("usr_1"), keys.users());
    let somebody = user("usr_1", EMAIL, Role::Viewer);
    let put = async |ends: u64, seen: u64| {
        let text = format!("5 {ends} {HASH} ::1 {EMAIL} Fire fox");
        let words = ["HSET", &sessions, "ses_1", &text, "seen:ses_1", &seen.to_string()];
        execute::<i64>(store, &words).await
    };
    let open = async |hash: &str| {
        let (idle, note) = (Duration::from_millis(IDLE_MS), Duration::from_millis(NOTE_MS));
        script::in_use(store, &place, hash, idle, note)
            .await
            .map_err(describe)
    };
    let noted = async || execute::<u64>(store, &["HGET", &sessions, "seen:ses_1"]).await;
    same!(open(HASH).await?.is_none(), true);
    put(NOW_MS + 1, NOW_MS - NOTE_MS + 1).await?;
    same!(open(HASH).await?.is_none(), true);
    execute::<i64>(store, &["HSET", &users, EMAIL, &somebody.text]).await?;
    let Some(found) = open(HASH).await? else {
        return Err("a session that is open".to_owned());
    };
    same!(found.user, somebody.clone());
    same!(
        (found.session.expires_at_ms, found.session.last_seen_ms),
        (NOW_MS + 1, NOW_MS - NOTE_MS + 1)
    );
    same!(
        (found.account_name.as_str(), found.plan.as_str()),
        ("Acme", "free")
    );
    same!(
        (found.account_created_at_ms, found.generation, found.version),
        (5, 3, 7)
    );
    same!(noted().await?, NOW_MS - NOTE_MS + 1);
    same!(open("0b0b").await?.is_none(), true);
    for (ends, seen, is_open) in [
        (NOW_MS + 1, NOW_MS - NOTE_MS, true),
        (NOW_MS + 1, NOW_MS - IDLE_MS + 1, true),
        (NOW_MS + 1, NOW_MS - IDLE_MS, false),
        (NOW_MS + 1, NOW_MS - IDLE_MS - 1, false),
        (NOW_MS, NOW_MS, false),
        (NOW_MS - 1, NOW_MS, false),
    ] {
        put(ends, seen).await?;
        same!((ends, seen, open(HASH).await?.is_some()), (ends, seen, is_open));
        same!(noted().await?, if is_open { NOW_MS } else { seen });
    }
    // Times that are ahead by more than a minute are from a clock that was ahead.
    for (created, seen, is_open) in [
        (NOW_MS + 60_000, NOW_MS, true),
        (NOW_MS + 60_001, NOW_MS, false),
        (5, NOW_MS + 60_000, true),
        (5, NOW_MS + 60_001, false),
    ] {
        let text = format!("{created} {} {HASH} ::1 {EMAIL} Fire fox", NOW_MS * 2);
        let words = ["HSET", &sessions, "ses_1", &text, "seen:ses_1", &seen.to_string()];
        execute::<i64>(store, &words).await?;
        same!(
            (created, seen, open(HASH).await?.is_some()),
            (created, seen, is_open)
        );
    }
    put(NOW_MS + 1, NOW_MS).await?;
    execute::<i64>(store, &["HDEL", &sessions, "seen:ses_1"]).await?;
    same!(open(HASH).await?.is_none(), true);
    put(NOW_MS + 1, NOW_MS).await?;
    execute::<i64>(store, &["HDEL", &keys.record(), "generation"]).await?;
    same!(open(HASH).await?.is_none(), true);
    same!(
        execute::<u64>(store, &["HGET", &keys.record(), "version"]).await?,
        7
    );
    Ok(())
}

pub async fn end(store: &Store) -> Checked {
    let keys = fresh(store).await?;
    let key = keys.sessions("usr_1");
    let run = async |which| {
        script::end(store, &SCOPE, "usr_1", which, "session.revoked")
            .await
            .map_err(describe)
    };
    for which in [SessionEnd::One("ses_1"), SessionEnd::AllBut("ses_1")] {
        same!(run(which).await?, false);
    }
    same!(changes(store, &keys).await?, after(0));
    three(store, &key).await?;
    same!(run(SessionEnd::One("ses_2")).await?, true);
    same!(
        left(store, &key).await?,
        ["seen:ses_1", "seen:ses_3", "ses_1", "ses_3"]
    );
    same!(look_ups(store).await?, ["0a1", "0a3"]);
    same!(run(SessionEnd::One("ses_2")).await?, false);
    same!(changes(store, &keys).await?, after(1));
    same!(run(SessionEnd::AllBut("ses_3")).await?, true);
    same!(left(store, &key).await?, ["seen:ses_3", "ses_3"]);
    same!(look_ups(store).await?, ["0a3"]);
    same!(run(SessionEnd::AllBut("ses_3")).await?, false);
    same!(changes(store, &keys).await?, after(2));
    same!(run(SessionEnd::One("ses_3")).await?, true);
    same!(left(store, &key).await?, Vec::<String>::new());
    same!(look_ups(store).await?, Vec::<&str>::new());
    Ok(())
}
