//! The scripts of sessions and users: the effect of each on the store. The checks detect every mutant of a script.

mod attempts;
mod lookups;
mod sessions;
mod users;

use domain::mode::Mode;
use harness::scripts::{Checked, all_are_noticed, execute, inputs};
use harness::{Role, Store, words};
use std::collections::BTreeMap;
use store::keys::{AccountKeys, session_lookup};
use store::script::change::{Scope, VERSION_STEP};
use store::script::{Script, ScriptKind, WhenFull};
use store::user::{StoredUser, User};

const TAKE: &str = include_str!("../../shared/store/src/credential_attempts/take.lua");
const USE: &str = include_str!("../../shared/store/src/session/use.lua");
const END: &str = include_str!("../../shared/store/src/session/end.lua");
const CHANGE_USER: &str = include_str!("../../shared/store/src/user/change.lua");
const JOIN: &str = include_str!("../../shared/store/src/lookup/join.lua");
const LEAVE: &str = include_str!("../../shared/store/src/lookup/leave.lua");
/// The fragment that each change of an account begins and ends with.
const CHANGE: &str = include_str!("../../shared/store/src/script/change.lua");
/// The time of these tests.
const NOW_MS: u64 = 1_800_000_012_345;
const EMAIL: &str = "a@example.com";
const SCOPE: Scope<'static> = Scope {
    account: "acct_1",
    mode: Mode::Live,
    actor: "test",
};

/// Equivalent mutants: the changed script has the same effect.
const EQUIVALENT: &[(&str, &str)] = &[
    (
        "local ahead = left > span | 20: > -> >=",
        "only in the millisecond in which an attempt is taken is the whole span left, and no test can hit that one",
    ),
    (
        "if #taken >= most and not ahead then return {'locked', format('%d', math.max(left, 1))} end | 84: 1 -> 0",
        "only in the last millisecond of a lock is there none left, and no test can wait for that one",
    ),
    (
        "if old > 0 then call('LTRIM', KEYS[1], old, -1) end | 4: old > 0 -> true",
        TRIM_NOTHING,
    ),
    (
        "if old > 0 then call('LTRIM', KEYS[1], old, -1) end | 8: > -> >=",
        TRIM_NOTHING,
    ),
    (
        "if string.find(record, '\"role\":\"owner\"', 1, true) and record ~= ARGV[4] then owners = owners + 1 end | 42: 1 -> 0",
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
        "only none is refused, and the number is not disclosed",
    ),
];
const FROM_THE_FIRST: &str = "Lua begins at the first character for both";
const TRIM_NOTHING: &str = "to trim nothing changes nothing";

fn describe(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

async fn fresh(store: &Store) -> Result<AccountKeys, String> {
    let account = "acct_1";
    let keys = AccountKeys::new(account);
    store.versions().forget(account);
    execute::<()>(store, &["FLUSHALL"]).await?;
    let fields = words("generation 3 version 7 name Acme plan free created_at 5");
    let record = keys.record();
    execute::<i64>(store, &[&["HSET", record.as_str()][..], &fields].concat()).await?;
    Ok(keys)
}

/// Version and number of log lines of a fresh account after so many changes.
const fn after(changes: u64) -> (u64, u64) {
    (7 + changes * VERSION_STEP, changes)
}

/// Version of the account and number of its log lines.
async fn changes(store: &Store, keys: &AccountKeys) -> Result<(u64, u64), String> {
    let version: u64 = execute(store, &["HGET", &keys.record(), "version"]).await?;
    Ok((version, execute(store, &["LLEN", &keys.live().audit()]).await?))
}

fn user(id: &str, email: &str, role: Role) -> StoredUser {
    let user = User {
        id: id.to_owned(),
        email: email.to_owned(),
        role,
        password: "hash".to_owned(),
        created_at_ms: 5,
        totp: None,
        totp_pending: None,
        totp_begun_at_ms: None,
    };
    StoredUser {
        text: user.to_stored(),
        user,
    }
}

/// Creates three sessions of a user.
async fn three(store: &Store, key: &str) -> Checked {
    for (id, hash) in ["ses_1", "ses_2", "ses_3"].iter().zip(HASHES) {
        let (seen, text) = (format!("seen:{id}"), format!("5 9 {hash} - a@example.com x"));
        execute::<i64>(store, &["HSET", key, id, &text, &seen, "5"]).await?;
        execute::<()>(store, &["SET", &session_lookup(hash), "acct_1 usr_1 ses"]).await?;
    }
    Ok(())
}

/// Hashes of the tokens of these sessions.
const HASHES: [&str; 3] = ["0a1", "0a2", "0a3"];

/// Returns those of [`HASHES`] that have a look-up.
async fn look_ups(store: &Store) -> Result<Vec<&'static str>, String> {
    let mut found = Vec::new();
    for hash in HASHES {
        if execute::<u64>(store, &["EXISTS", &session_lookup(hash)]).await? == 1 {
            found.push(hash);
        }
    }
    Ok(found)
}

async fn left(store: &Store, key: &str) -> Result<Vec<String>, String> {
    let fields: BTreeMap<String, String> = execute(store, &["HGETALL", key]).await?;
    Ok(fields.into_keys().collect())
}

async fn check(store: &Store, script: &'static str, text: &str) -> Checked {
    let clock = format!("local now_ms = {NOW_MS}\n");
    let (kind, change) = match script {
        "session_end" | "user_change" => (ScriptKind::Change, CHANGE),
        _ => (ScriptKind::Timeless, ""),
    };
    let parts = [&clock, change, text];
    let store = store.replacing(Script::new(script, kind, WhenFull::Run, inputs(script), &parts));
    match script {
        "attempts_take" => attempts::take(&store).await,
        "session_use" => sessions::in_use(&store).await,
        "session_end" => sessions::end(&store).await,
        "user_change" => users::change(&store).await,
        "lookup_join" => lookups::join(&store).await,
        _ => lookups::leave(&store).await,
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
    all_are_noticed(&scripts, 150, EQUIVALENT, check).await;
}
