//! `user_change`: changes and removes users, never the last owner; sessions and API keys end with the user.

use super::{EMAIL, NOW_MS, SCOPE, after, changes, describe, fresh, left, look_ups, three, user};
use harness::scripts::{Checked, execute};
use harness::{Role, Store, same};
use serde_json::json;
use store::user::StoredUser;
use store::user::script::{ChangeUser, SessionsToEnd, UserChanged};

pub async fn change(store: &Store) -> Checked {
    let keys = fresh(store).await?;
    let (users, sessions, logins, reset) = (
        keys.users(),
        keys.sessions("usr_1"),
        keys.last_logins(),
        keys.reset("usr_1"),
    );
    let (owner, other) = (
        user("usr_1", EMAIL, Role::Owner),
        user("usr_2", "b@example.com", Role::Admin),
    );
    for stored in [&owner, &other] {
        execute::<i64>(store, &["HSET", &users, &stored.user.email, &stored.text]).await?;
        execute::<i64>(store, &["HSET", &logins, &stored.user.id, "5"]).await?;
    }
    three(store, &sessions).await?;
    execute::<()>(store, &["SET", &reset, "0a"]).await?;
    let made = |n: u64| keys.api_key(&format!("key_{n}"));
    for (n, by) in [(1, "usr_1"), (2, "usr_2"), (3, "usr_1")] {
        execute::<i64>(store, &["HSET", &made(n), "created_by", by]).await?;
    }
    execute::<i64>(store, &["HSET", &made(3), "revoked_at", "5"]).await?;
    let ids = [1, 2, 3, 4].map(|n| format!("key_{n}"));
    let demoted = user("usr_1", EMAIL, Role::Admin);
    let run = async |old: &StoredUser, new: Option<&StoredUser>, ending: SessionsToEnd<'_>| {
        let change = ChangeUser {
            old,
            new: new.map(|stored| &stored.user),
            ending,
            api_keys: if new.is_none() { &ids } else { &[] },
            kind: "user.changed",
            data: json!({}),
        };
        change.execute(store, &SCOPE).await.map_err(describe)
    };
    let stored = async |email: &str| execute::<Option<String>>(store, &["HGET", &users, email]).await;
    let exists = async |key: &str| execute::<u64>(store, &["EXISTS", key]).await;
    same!(
        run(&demoted, Some(&owner), SessionsToEnd::All).await?,
        UserChanged::Changed
    );
    same!(
        run(&owner, Some(&demoted), SessionsToEnd::All).await?,
        UserChanged::LastOwner
    );
    same!(
        run(&owner, None, SessionsToEnd::All).await?,
        UserChanged::LastOwner
    );
    let revoked = async |n: u64| execute::<Option<String>>(store, &["HGET", &made(n), "revoked_at"]).await;
    same!(revoked(1).await?, None);
    same!(changes(store, &keys).await?, after(0));
    same!(
        (left(store, &sessions).await?.len(), exists(&reset).await?),
        (6, 1)
    );
    // An owner who keeps the role needs no second owner.
    let mut renamed = owner.clone();
    renamed.user.password = "another".to_owned();
    renamed.text = renamed.user.to_stored();
    same!(
        run(&owner, Some(&renamed), SessionsToEnd::None).await?,
        UserChanged::Done { last_key: 0 }
    );
    same!(stored(EMAIL).await?, Some(renamed.text.clone()));
    same!(
        (left(store, &sessions).await?.len(), exists(&reset).await?),
        (6, 1)
    );
    same!(
        run(&renamed, Some(&owner), SessionsToEnd::AllBut("ses_2")).await?,
        UserChanged::Done { last_key: 0 }
    );
    same!(left(store, &sessions).await?, ["seen:ses_2", "ses_2"]);
    same!(look_ups(store).await?, ["0a2"]);
    same!(exists(&reset).await?, 0);
    same!(changes(store, &keys).await?, after(2));
    execute::<i64>(store, &["HSET", &keys.record(), "key_seq", "7"]).await?;
    let second = user("usr_2", "b@example.com", Role::Owner);
    same!(
        run(&other, Some(&second), SessionsToEnd::None).await?,
        UserChanged::Done { last_key: 7 }
    );
    same!(
        run(&owner, Some(&demoted), SessionsToEnd::All).await?,
        UserChanged::Done { last_key: 7 }
    );
    same!(left(store, &sessions).await?, Vec::<String>::new());
    same!(look_ups(store).await?, Vec::<&str>::new());
    same!(stored(EMAIL).await?, Some(demoted.text.clone()));
    same!(execute::<u64>(store, &["HLEN", &logins]).await?, 2);
    same!(revoked(1).await?, None);
    same!(
        run(&demoted, None, SessionsToEnd::All).await?,
        UserChanged::Done { last_key: 7 }
    );
    same!(stored(EMAIL).await?, None);
    same!(revoked(1).await?, Some(NOW_MS.to_string()));
    same!(
        (revoked(2).await?, revoked(3).await?),
        (None, Some("5".to_owned()))
    );
    same!(exists(&made(4)).await?, 0);
    same!(left(store, &logins).await?, ["usr_2"]);
    same!(
        run(&demoted, None, SessionsToEnd::All).await?,
        UserChanged::Changed
    );
    same!(changes(store, &keys).await?, after(5));
    Ok(())
}
