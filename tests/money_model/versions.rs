//! The version of an account, which every script that changes an account returns: the next script, of any kind, detects
//! that an acknowledged change is lost, and changes nothing.

use crate::model_fixture::Checked;
use domain::mode::Mode;
use domain::role::Role;
use harness::Redis;
use harness::scripts::{execute, mutants};
use store::account::script::{ACCEPT, PlanSet, SET_PLAN, accept, set_plan};
use store::authority::{Authority, Lack, SessionOfUser};
use store::keys::AccountKeys;
use store::script::Script;
use store::script::all::all;
use store::script::change::{Scope, VERSION_STEP};
use store::user::script::{ChangeUser, SessionsToEnd, UserChanged};
use store::user::{StoredUser, User};
use store::versions::AccountVersion;
use store::{Store, StoreError};

const ACCOUNT: &str = "acct_00000000000000000000000001";
const OTHER: &str = "acct_00000000000000000000000002";
const WRAPPER: &str = include_str!("../../shared/store/src/script/versioned.lua");
/// At least as many keys, and arguments, as any script takes.
const MOST: usize = 40;

const fn view(generation: u64, version: u64) -> AccountVersion {
    AccountVersion { generation, version }
}

/// Lays out an account at version 7 of generation 3 and nothing else; no version of it is acknowledged.
async fn fresh(store: &Store) -> Result<String, String> {
    for account in [ACCOUNT, OTHER] {
        store.versions().forget(account);
    }
    execute::<()>(store, &["FLUSHALL"]).await?;
    let record = AccountKeys::new(ACCOUNT).record();
    let words = ["generation", "3", "version", "7", "plan", "free"];
    let _: u64 = execute(store, &[&["HSET", record.as_str()][..], &words].concat()).await?;
    Ok(record)
}

async fn there(store: &Store, record: &str) -> Result<AccountVersion, String> {
    let found: [Option<u64>; 2] = execute(store, &["HMGET", record, "generation", "version"]).await?;
    Ok(view(found[0].unwrap_or(0), found[1].unwrap_or(0)))
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: &str) -> Checked {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, not {expected:?}")),
    }
}

/// The outcome of a change of plan: `lost` when the account lost writes.
async fn planned(store: &Store, id: &str, plan: &str) -> Result<&'static str, String> {
    match set_plan(store, id, plan, "test").await {
        Ok(PlanSet::Done) => Ok("done"),
        Ok(PlanSet::AlreadySo) => Ok("same"),
        Ok(PlanSet::NoAccount) => Ok("none"),
        Err(StoreError::LostWrites { account }) if account == id => Ok("lost"),
        Err(error) => Err(format!("{error:?}")),
    }
}

/// The acknowledged version, the outcome of a change, and the account's version afterwards.
async fn floors(store: &Store) -> Checked {
    for (seen, outcome, after) in [
        (view(0, 0), "done", view(3, 7 + VERSION_STEP)),
        (view(3, 7), "done", view(3, 7 + VERSION_STEP)),
        (view(3, 6), "done", view(3, 7 + VERSION_STEP)),
        (view(2, 900), "done", view(3, 7 + VERSION_STEP)),
        (view(3, 8), "lost", view(3, 7)),
        (view(4, 1), "lost", view(3, 7)),
        (view(4, 7), "lost", view(3, 7)),
    ] {
        let record = fresh(store).await?;
        store.versions().record(ACCOUNT, seen);
        let what = format!("{seen:?}");
        same(planned(store, ACCOUNT, "team").await?, outcome, &what)?;
        same(there(store, &record).await?, after, &what)?;
        let known = if outcome == "lost" { seen } else { after };
        same(store.versions().newest(ACCOUNT), known, &what)?;
    }
    fresh(store).await?;
    same(planned(store, ACCOUNT, "free").await?, "same", "nothing to do")?;
    same(store.versions().newest(ACCOUNT), view(3, 7), "what only looked")?;
    same(planned(store, OTHER, "team").await?, "none", "no account")?;
    same(store.versions().newest(OTHER), view(0, 0), "no account")?;
    for seen in [view(0, 1), view(1, 0), view(1, 1)] {
        store.versions().record(OTHER, seen);
        same(
            planned(store, OTHER, "team").await?,
            "lost",
            "an account that is gone",
        )?;
    }
    // A change is lost, and an agent continues to call: as many calls as a change weighs make up for it, fewer do not.
    for (calls, outcome) in [(0, "lost"), (VERSION_STEP - 1, "lost"), (VERSION_STEP, "done")] {
        let record = fresh(store).await?;
        let what = format!("{calls} calls after a change was lost");
        same(planned(store, ACCOUNT, "team").await?, "done", &what)?;
        let version = (7 + calls).to_string();
        execute::<u64>(store, &["HSET", &record, "version", &version, "plan", "free"]).await?;
        same(planned(store, ACCOUNT, "team").await?, outcome, &what)?;
    }
    let record = fresh(store).await?;
    // The operator accepts the store's version, even if a higher one was acknowledged.
    store.versions().record(ACCOUNT, view(3, 900));
    same(
        planned(store, ACCOUNT, "team").await?,
        "lost",
        "before it is accepted",
    )?;
    let accepted = accept(store, ACCOUNT, "test").await;
    same(accepted.map_err(|error| format!("{error:?}"))?, true, "accepted")?;
    let now = there(store, &record).await?;
    same(
        now.generation > 3 && now.version == 7 + VERSION_STEP,
        true,
        "a new generation",
    )?;
    same(store.versions().newest(ACCOUNT), now, "what was accepted")?;
    same(
        planned(store, ACCOUNT, "team").await?,
        "done",
        "after it was accepted",
    )
}

#[tokio::test]
async fn an_account_that_lost_an_acknowledged_version_is_refused() {
    let redis = Redis::start();
    floors(&redis.store()).await.unwrap();
}

/// The answer of a change under each authority, and whether the change was made.
async fn authorities(store: &Store) -> Checked {
    const EMAIL: &str = "a@example.com";
    let keys = AccountKeys::new(ACCOUNT);
    let (key, sessions, users) = (keys.api_key("key_1"), keys.sessions("usr_1"), keys.users());
    let of_key = || Authority::from_key(ACCOUNT, "key_1");
    let session = SessionOfUser {
        session: "ses_1",
        user: "usr_1",
        email: EMAIL,
    };
    let of_session = |least| Authority::from_session(ACCOUNT, &session, least);
    let judged = async |authority: Authority, lack: Option<Lack>, what: &str| -> Checked {
        let before = there(store, &keys.record()).await?;
        let answer = authority.scope(set_plan(store, ACCOUNT, what, "test")).await;
        match (answer, lack) {
            (Ok(PlanSet::Done), None) => {}
            (Err(error @ StoreError::NotPermitted(found)), Some(lack)) if found == lack => {
                same(error.may_have_run(), false, what)?;
                same(there(store, &keys.record()).await?, before, what)?;
                let plan: String = execute(store, &["HGET", &keys.record(), "plan"]).await?;
                same(plan == what, false, what)?;
            }
            (answer, _) => return Err(format!("{what}: {answer:?}, not {lack:?}")),
        }
        Ok(())
    };
    fresh(store).await?;
    judged(of_key(), Some(Lack::Key), "no key").await?;
    execute::<u64>(store, &["HSET", &key, "id", "key_1"]).await?;
    judged(of_key(), None, "a key").await?;
    execute::<u64>(store, &["HSET", &key, "revoked_at", "5"]).await?;
    judged(of_key(), Some(Lack::Key), "a revoked key").await?;

    judged(of_session(Role::Viewer), Some(Lack::Session), "no session").await?;
    let user = |id: &str, role| {
        let user = User {
            id: id.to_owned(),
            email: EMAIL.to_owned(),
            role,
            password: "hash".to_owned(),
            created_at_ms: 5,
            totp: None,
            totp_pending: None,
            totp_begun_at_ms: None,
        };
        user.to_stored()
    };
    let put = async |id: &str, role| execute::<u64>(store, &["HSET", &users, EMAIL, &user(id, role)]).await;
    put("usr_1", Role::Owner).await?;
    judged(
        of_session(Role::Viewer),
        Some(Lack::Session),
        "a session that ended",
    )
    .await?;
    execute::<u64>(store, &["HSET", &sessions, "ses_1", "5 9 0a - a@example.com x"]).await?;
    for has in Role::ALL {
        put("usr_1", has).await?;
        for least in Role::ALL {
            let lack = (has < least).then_some(Lack::Role);
            judged(of_session(least), lack, &format!("{has} where {least} is needed")).await?;
        }
    }
    for other in ["usr_2", "usr_12", "usr_"] {
        put(other, Role::Owner).await?;
        judged(of_session(Role::Viewer), Some(Lack::Session), other).await?;
    }
    execute::<u64>(store, &["HDEL", &users, EMAIL]).await?;
    judged(
        of_session(Role::Viewer),
        Some(Lack::Session),
        "a user who was removed",
    )
    .await?;

    // An authority of another account is not checked, and lost writes come first.
    let elsewhere = Authority::from_key(OTHER, "key_1").scope(planned(store, ACCOUNT, "gold"));
    same(elsewhere.await?, "done", "of another account")?;
    store.versions().record(ACCOUNT, view(900, 1));
    let lost = of_key().scope(planned(store, ACCOUNT, "silver"));
    same(lost.await?, "lost", "lost writes")?;
    // The wrapper removes the authority's keys, which follow the script's own, before the script runs.
    fresh(store).await?;
    put("usr_1", Role::Owner).await?;
    let mut sessions = redis::cmd("HSET");
    sessions
        .arg(keys.sessions("usr_1"))
        .arg("ses_1")
        .arg("5 9 0a - a x");
    sessions.arg("created_by").arg("usr_9");
    let _: Result<u64, _> = store.command(&sessions).await;
    let old = StoredUser::parse(user("usr_9", Role::Viewer)).map_err(|error| format!("{error:?}"))?;
    execute::<u64>(store, &["HSET", &users, "b@example.com", &old.text]).await?;
    let old = StoredUser {
        user: User {
            email: "b@example.com".to_owned(),
            ..old.user
        },
        ..old
    };
    let removal = ChangeUser {
        old: &old,
        new: None,
        ending: SessionsToEnd::None,
        api_keys: &[],
        kind: "user.removed",
        data: serde_json::json!({}),
    };
    let scope = Scope {
        account: ACCOUNT,
        mode: Mode::Live,
        actor: "usr_1",
    };
    let removed = of_session(Role::Owner)
        .scope(removal.execute(store, &scope))
        .await;
    same(
        removed.map_err(|error| format!("{error:?}"))?,
        UserChanged::Done { last_key: 0 },
        "a removal",
    )?;
    let revoked: Option<String> = execute(store, &["HGET", &keys.sessions("usr_1"), "revoked_at"]).await?;
    same(revoked, None, "a key of the authority")
}

#[tokio::test]
async fn a_change_is_judged_by_the_authority_that_its_caller_has_left() {
    let redis = Redis::start();
    authorities(&redis.store()).await.unwrap();
}

#[tokio::test]
async fn each_small_change_of_that_is_noticed() {
    let redis = Redis::start();
    let store = redis.store();
    let set_plan = include_str!("../../shared/store/src/account/set_plan.lua");
    let mut unnoticed = Vec::new();
    // With positions in place of names, so that each position is mutated too.
    let changes = mutants(&SET_PLAN.inputs().substitute(WRAPPER));
    assert!(changes.len() > 20, "only {} changes", changes.len());
    for mutant in changes {
        let with = |script: &Script, own: &str| {
            let change = concat!(
                include_str!("../../shared/store/src/script/clock.lua"),
                include_str!("../../shared/store/src/script/clock_bound.lua"),
                include_str!("../../shared/store/src/script/change.lua")
            );
            let text = mutant.text.replace("--@ change\n", &[change, own].concat());
            script.with_source(&format!("#!lua flags=allow-oom\n{text}"))
        };
        let accept = include_str!("../../shared/store/src/account/accept.lua");
        let changed = store
            .replacing(with(&SET_PLAN, set_plan))
            .replacing(with(&ACCEPT, accept));
        let passes = floors(&changed).await.is_ok() && authorities(&changed).await.is_ok();
        if passes && !EQUIVALENT.contains(&mutant.name.as_str()) {
            unnoticed.push(mutant.name);
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
}

/// Equivalent changes of the wrapper: Lua begins to search at the first character for both.
const EQUIVALENT: [&str; 2] = [
    "if not open or not user or string.find(user, start, 1, true) ~= 1 then return 'no_session' end | 53: 1 -> 0",
    "return not string.find(roles, string.match(user, '\"role\":\"(%l+)\"'), 1, true) and 'no_role' | 69: 1 -> 0",
];

#[tokio::test]
async fn every_script_that_changes_an_account_refuses_one_that_lost_writes() {
    let redis = Redis::start();
    let store = redis.store();
    let mut count = 0;
    for script in all().into_iter().filter(|script| script.is_versioned()) {
        let record = fresh(&store).await.unwrap();
        store.versions().record(ACCOUNT, view(3, 8));
        let others: Vec<String> = (2..MOST)
            .map(|at| format!("{}/x{at}", record.split('/').next().unwrap()))
            .collect();
        let keys: Vec<&str> = std::iter::once(&record)
            .chain(&others)
            .map(String::as_str)
            .collect();
        let answer: Result<Vec<String>, _> = store.script(script, &keys, &["1"; MOST]).await;
        let lost = matches!(&answer, Err(StoreError::LostWrites { account }) if account == ACCOUNT);
        assert!(lost, "{}: {answer:?}", script.name());
        assert!(!answer.unwrap_err().may_have_run(), "{}", script.name());
        assert_eq!(redis.command::<u64>(&["DBSIZE"]), 1, "{} wrote", script.name());
        assert_eq!(
            there(&store, &record).await.unwrap(),
            view(3, 7),
            "{}",
            script.name()
        );
        count += 1;
    }
    assert!(count > 35, "only {count} scripts");
}
