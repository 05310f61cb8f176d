//! The scripts that decide who is in: what each leaves in the store, and that every small change of them is noticed.

use crate::noticed::all_are_noticed;
use domain::mode::Mode;
use harness::{Role, Store};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use store::attempts::{Attempts, Taken};
use store::keys::{AccountKeys, Tries, attempts};
use store::lookup::script::{join, leave};
use store::script::all::all;
use store::script::change::{Scope, VERSION_STEP};
use store::script::names::Names;
use store::script::{Script, WhenFull};
use store::session::SessionPlace;
use store::session::script::{End, end, in_use};
use store::user::script::{ChangeUser, Ending, UserChanged};
use store::user::{Stored, User};

const TAKE: &str = include_str!("../../shared/store/src/attempts/take.lua");
const USE: &str = include_str!("../../shared/store/src/session/use.lua");
const END: &str = include_str!("../../shared/store/src/session/end.lua");
const CHANGE_USER: &str = include_str!("../../shared/store/src/user/change.lua");
const JOIN: &str = include_str!("../../shared/store/src/lookup/join.lua");
const LEAVE: &str = include_str!("../../shared/store/src/lookup/leave.lua");
/// The fragment that each change of an account begins and ends with.
const CHANGE: &str = include_str!("../../shared/store/src/script/change.lua");
/// The time of these tests.
const NOW_MS: u64 = 1_800_000_012_345;
const SPAN_MS: u64 = 900_000;
const HASH: &str = "0a0a";
const EMAIL: &str = "a@example.com";
const SCOPE: Scope<'static> = Scope {
    account: "acct_1",
    mode: Mode::Live,
    actor: "test",
};

/// Changes that cannot be noticed, because the changed script does the same.
const EQUIVALENT: &[(&str, &str)] = &[
    (
        "if #taken >= most then return {'locked', string.format('%d', math.max(left, 1))} end | 77: 1 -> 0",
        "only in the last millisecond of a lock is there none left, and no test can wait for that one",
    ),
    (
        "if old > 0 then redis.call('LTRIM', KEYS[1], old, -1) end | 4: old > 0 -> true",
        TRIM_NOTHING,
    ),
    (
        "if old > 0 then redis.call('LTRIM', KEYS[1], old, -1) end | 8: > -> >=",
        TRIM_NOTHING,
    ),
    (
        "if string.find(record, '\"role\":\"owner\"', 1, true) and record ~= ARGV[4] then owners = owners + 1 end | 42: 1 -> 0",
        FROM_THE_FIRST,
    ),
    (
        "from = from or string.find(lines_text, '\\n' .. account_text .. '\\n', 1, true) | 70: 1 -> 0",
        FROM_THE_FIRST,
    ),
    (
        "from = string.find(lines_text, line_text, 1, true) | 43: 1 -> 0",
        FROM_THE_FIRST,
    ),
    (
        "local from = string.find(lines_text, line_text, 1, true) | 49: 1 -> 0",
        FROM_THE_FIRST,
    ),
    (
        "local before_text = string.sub(lines_text, 1, from) | 44: 1 -> 0",
        FROM_THE_FIRST,
    ),
    (
        "local from = string.find(lines_text, '\\n' .. account_text .. ' ', 1, true) | 67: 1 -> 0",
        FROM_THE_FIRST,
    ),
    (
        "local _, breaks = string.gsub(named_text, '\\n', '\\n') | 49: '\\n' -> '\\nx'",
        "only their number is used",
    ),
    (
        "if string.find(record, '\"role\":\"owner\"', 1, true) and record ~= ARGV[4] then owners = owners + 1 end | 94: + -> -",
        "only none is refused, and the number is not told",
    ),
];
const FROM_THE_FIRST: &str = "Lua begins at the first character for both";
const TRIM_NOTHING: &str = "to trim nothing changes nothing";

/// `Err` is the difference that a check found.
type Checked = Result<(), String>;

macro_rules! same {
    ($found:expr, $expected:expr) => {
        let (found, expected) = ($found, $expected);
        if found != expected {
            return Err(format!("{}: {found:?} is not {expected:?}", line!()));
        }
    };
}

async fn execute<T: redis::FromRedisValue>(store: &Store, words: &[&str]) -> Result<T, String> {
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    store.command(&command).await.map_err(describe)
}

fn describe(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

async fn fresh(store: &Store) -> Result<AccountKeys, String> {
    let keys = AccountKeys::new("acct_1");
    store.versions().forget_all();
    execute::<()>(store, &["FLUSHALL"]).await?;
    let words = [
        "HSET",
        &keys.record(),
        "generation",
        "3",
        "version",
        "7",
        "name",
        "Acme",
        "plan",
        "free",
    ];
    execute::<i64>(store, &[&words[..], &["created_at", "5"]].concat()).await?;
    Ok(keys)
}

/// Version and number of log lines of a fresh account after so many changes.
const fn after(changes: u64) -> (u64, u64) {
    (7 + changes * VERSION_STEP, changes)
}

/// Version of the account and number of its log lines.
async fn changes(store: &Store, keys: &AccountKeys) -> Result<(u64, u64), String> {
    let version: u64 = execute(store, &["HGET", &keys.record(), "version"]).await?;
    Ok((version, execute(store, &["LLEN", &keys.audit(Mode::Live)]).await?))
}

async fn takes(store: &Store) -> Checked {
    fresh(store).await?;
    let tries = Attempts {
        tries: Tries::Login,
        of: EMAIL,
    };
    let key = attempts(Tries::Login, EMAIL);
    // Two are just too old, one is just not.
    for ago in [SPAN_MS + 1, SPAN_MS, SPAN_MS - 1] {
        execute::<i64>(store, &["RPUSH", &key, &(NOW_MS - ago).to_string()]).await?;
    }
    for taken in 2..=10 {
        same!(tries.take(store).await.map_err(describe)?, Taken::Yes);
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
        let Taken::Locked(left) = tries.take(store).await.map_err(describe)? else {
            return Err("an eleventh attempt".to_owned());
        };
        same!((55_000..=60_000).contains(&left.as_millis()), true);
    }
    same!(execute::<u64>(store, &["LLEN", &key]).await?, 10);
    fresh(store).await?;
    execute::<i64>(store, &["RPUSH", &key, &(NOW_MS - SPAN_MS).to_string()]).await?;
    same!(tries.take(store).await.map_err(describe)?, Taken::Yes);
    same!(execute::<u64>(store, &["LLEN", &key]).await?, 1);
    Ok(())
}

/// The e-mail `x` leads to what these lines say, and the lines are there for an hour.
async fn leads_to(store: &Store, lines: &[&str]) -> Result<(), String> {
    execute::<i64>(store, &["DEL", "x"]).await?;
    match lines.is_empty() {
        true => Ok(()),
        false => execute(store, &["SET", "x", &lines.join("\n"), "PX", "3600000"]).await,
    }
}

/// The lines of a look-up before and after a change.
type LookUp = (&'static [&'static str], &'static [&'static str]);

/// The look-up `x` after a change, which lasts.
async fn leads(store: &Store, (before, after): LookUp) -> Checked {
    let there: Option<String> = execute(store, &["GET", "x"]).await?;
    let expected = (!after.is_empty()).then(|| after.join("\n"));
    if there != expected {
        return Err(format!("{before:?}: {there:?} is not {after:?}"));
    }
    let lasts = if after.is_empty() { -2 } else { -1 };
    same!(execute::<i64>(store, &["PTTL", "x"]).await?, lasts);
    Ok(())
}

/// An account has one user of an e-mail; accounts and users whose names begin alike are others.
async fn joins(store: &Store) -> Checked {
    fresh(store).await?;
    const CASES: &[LookUp] = &[
        (&[], &["a u"]),
        (&["a u"], &["a u"]),
        (&["a v"], &["a u"]),
        (&["a"], &["a u"]),
        (&["aa v", "ba w"], &["aa v", "ba w", "a u"]),
        (&["b a", "c"], &["b a", "c", "a u"]),
        (&["a v", "b w"], &["a u", "b w"]),
        (&["b w", "a", "c x"], &["b w", "a u", "c x"]),
        (&["b", "c", "a v"], &["b", "c", "a u"]),
        // Three are the most here.
        (&["b", "c", "d"], &["b", "c", "d"]),
        (&["b", "c", "d", "a v"], &["b", "c", "d", "a u"]),
    ];
    for case in CASES {
        leads_to(store, case.0).await?;
        join(store, "x", "a", "u", 3).await.map_err(describe)?;
        leads(store, *case).await?;
    }
    Ok(())
}

async fn leaves(store: &Store) -> Checked {
    fresh(store).await?;
    const CASES: &[LookUp] = &[
        (&[], &[]),
        (&["a u"], &[]),
        (&["a"], &[]),
        (&["a v"], &["a v"]),
        (&["a uu", "aa u", "a.", "ba u"], &["a uu", "aa u", "a.", "ba u"]),
        (&["a u", "b u"], &["b u"]),
        (&["a", "b u"], &["b u"]),
        (&["b u", "a u"], &["b u"]),
        (&["b u", "a", "c"], &["b u", "c"]),
        (&["b u", "a u", "c"], &["b u", "c"]),
    ];
    for case in CASES {
        leads_to(store, case.0).await?;
        leave(store, "x", "a", "u").await.map_err(describe)?;
        leads(store, *case).await?;
    }
    Ok(())
}

fn user(id: &str, email: &str, role: Role) -> Stored {
    let user = User {
        id: id.to_owned(),
        email: email.to_owned(),
        role,
        password: "hash".to_owned(),
        created_at_ms: 5,
        totp: None,
        totp_pending: None,
    };
    Stored {
        text: user.to_stored(),
        user,
    }
}

async fn uses(store: &Store) -> Checked {
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
    let look = async |hash: &str| {
        let (idle, note) = (Duration::from_millis(IDLE_MS), Duration::from_millis(NOTE_MS));
        in_use(store, &place, hash, idle, note).await.map_err(describe)
    };
    let noted = async || execute::<u64>(store, &["HGET", &sessions, "seen:ses_1"]).await;
    same!(look(HASH).await?.is_none(), true);
    put(NOW_MS + 1, NOW_MS - NOTE_MS + 1).await?;
    same!(look(HASH).await?.is_none(), true);
    execute::<i64>(store, &["HSET", &users, EMAIL, &somebody.text]).await?;
    let Some(found) = look(HASH).await? else {
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
    same!(look("0b0b").await?.is_none(), true);
    for (ends, seen, open) in [
        (NOW_MS + 1, NOW_MS - NOTE_MS, true),
        (NOW_MS + 1, NOW_MS - IDLE_MS + 1, true),
        (NOW_MS + 1, NOW_MS - IDLE_MS, false),
        (NOW_MS + 1, NOW_MS - IDLE_MS - 1, false),
        (NOW_MS, NOW_MS, false),
        (NOW_MS - 1, NOW_MS, false),
    ] {
        put(ends, seen).await?;
        same!((ends, seen, look(HASH).await?.is_some()), (ends, seen, open));
        same!(noted().await?, if open { NOW_MS } else { seen });
    }
    put(NOW_MS + 1, NOW_MS).await?;
    execute::<i64>(store, &["HDEL", &sessions, "seen:ses_1"]).await?;
    same!(look(HASH).await?.is_none(), true);
    put(NOW_MS + 1, NOW_MS).await?;
    execute::<i64>(store, &["HDEL", &keys.record(), "generation"]).await?;
    same!(look(HASH).await?.is_none(), true);
    same!(
        execute::<u64>(store, &["HGET", &keys.record(), "version"]).await?,
        7
    );
    Ok(())
}

/// Three sessions of a user.
async fn three(store: &Store, key: &str) -> Checked {
    for id in ["ses_1", "ses_2", "ses_3"] {
        let seen = format!("seen:{id}");
        execute::<i64>(store, &["HSET", key, id, "5 9 0a - a@example.com x", &seen, "5"]).await?;
    }
    Ok(())
}

async fn left(store: &Store, key: &str) -> Result<Vec<String>, String> {
    let fields: BTreeMap<String, String> = execute(store, &["HGETALL", key]).await?;
    Ok(fields.into_keys().collect())
}

async fn ends(store: &Store) -> Checked {
    let keys = fresh(store).await?;
    let key = keys.sessions("usr_1");
    let run = async |which| {
        end(store, &SCOPE, "usr_1", which, "session.revoked")
            .await
            .map_err(describe)
    };
    for which in [End::One("ses_1"), End::AllBut("ses_1")] {
        same!(run(which).await?, false);
    }
    same!(changes(store, &keys).await?, after(0));
    three(store, &key).await?;
    same!(run(End::One("ses_2")).await?, true);
    same!(
        left(store, &key).await?,
        ["seen:ses_1", "seen:ses_3", "ses_1", "ses_3"]
    );
    same!(run(End::One("ses_2")).await?, false);
    same!(changes(store, &keys).await?, after(1));
    same!(run(End::AllBut("ses_3")).await?, true);
    same!(left(store, &key).await?, ["seen:ses_3", "ses_3"]);
    same!(run(End::AllBut("ses_3")).await?, false);
    same!(changes(store, &keys).await?, after(2));
    same!(run(End::One("ses_3")).await?, true);
    same!(left(store, &key).await?, Vec::<String>::new());
    Ok(())
}

async fn user_changes(store: &Store) -> Checked {
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
    let run = async |old: &Stored, new: Option<&Stored>, ending: Ending<'_>| {
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
        run(&demoted, Some(&owner), Ending::All).await?,
        UserChanged::Changed
    );
    same!(
        run(&owner, Some(&demoted), Ending::All).await?,
        UserChanged::LastOwner
    );
    same!(run(&owner, None, Ending::All).await?, UserChanged::LastOwner);
    let revoked = async |n: u64| execute::<Option<String>>(store, &["HGET", &made(n), "revoked_at"]).await;
    same!(revoked(1).await?, None);
    same!(changes(store, &keys).await?, after(0));
    same!(
        (left(store, &sessions).await?.len(), exists(&reset).await?),
        (6, 1)
    );
    // An owner who stays one needs no second owner.
    let mut renamed = owner.clone();
    renamed.user.password = "another".to_owned();
    renamed.text = renamed.user.to_stored();
    same!(
        run(&owner, Some(&renamed), Ending::None).await?,
        UserChanged::Done
    );
    same!(stored(EMAIL).await?, Some(renamed.text.clone()));
    same!(
        (left(store, &sessions).await?.len(), exists(&reset).await?),
        (6, 1)
    );
    same!(
        run(&renamed, Some(&owner), Ending::AllBut("ses_2")).await?,
        UserChanged::Done
    );
    same!(left(store, &sessions).await?, ["seen:ses_2", "ses_2"]);
    same!(exists(&reset).await?, 0);
    same!(changes(store, &keys).await?, after(2));
    let second = user("usr_2", "b@example.com", Role::Owner);
    same!(run(&other, Some(&second), Ending::None).await?, UserChanged::Done);
    same!(run(&owner, Some(&demoted), Ending::All).await?, UserChanged::Done);
    same!(left(store, &sessions).await?, Vec::<String>::new());
    same!(stored(EMAIL).await?, Some(demoted.text.clone()));
    same!(execute::<u64>(store, &["HLEN", &logins]).await?, 2);
    same!(revoked(1).await?, None);
    same!(run(&demoted, None, Ending::All).await?, UserChanged::Done);
    same!(stored(EMAIL).await?, None);
    same!(revoked(1).await?, Some(NOW_MS.to_string()));
    same!(
        (revoked(2).await?, revoked(3).await?),
        (None, Some("5".to_owned()))
    );
    same!(exists(&made(4)).await?, 0);
    same!(left(store, &logins).await?, ["usr_2"]);
    same!(run(&demoted, None, Ending::All).await?, UserChanged::Changed);
    same!(changes(store, &keys).await?, after(5));
    Ok(())
}

/// The names of the script's keys and arguments.
fn inputs(script: &str) -> Names {
    let found = all().into_iter().find(|known| known.name() == script);
    found.unwrap().inputs()
}

/// The checks of a script whose text is this.
async fn check(store: &Store, script: &'static str, text: &str) -> Checked {
    let clock = format!("local now_ms = {NOW_MS}\n");
    let change = match script {
        "session_end" | "user_change" => CHANGE,
        _ => "",
    };
    let parts = [&clock, change, text];
    let store = store.replacing(Script::new(script, WhenFull::Run, inputs(script), &parts));
    match script {
        "attempts_take" => takes(&store).await,
        "session_use" => uses(&store).await,
        "session_end" => ends(&store).await,
        "user_change" => user_changes(&store).await,
        "lookup_join" => joins(&store).await,
        _ => leaves(&store).await,
    }
}

#[tokio::test]
async fn every_changed_script_is_noticed() {
    let scripts = [
        ("attempts_take", TAKE),
        ("session_use", USE),
        ("session_end", END),
        ("user_change", CHANGE_USER),
        ("lookup_join", JOIN),
        ("lookup_leave", LEAVE),
    ];
    // With positions in the place of names, so that a change of each is tried, too.
    let resolved = scripts.map(|(script, text)| (script, inputs(script).resolve(text)));
    let texts = resolved.each_ref().map(|(script, text)| (*script, text.as_str()));
    all_are_noticed(&texts, 150, EQUIVALENT, check).await;
}
