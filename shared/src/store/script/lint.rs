//! The house rules for Lua, checked on the sources: amounts must never lose digits, keys must be declared.

use super::{
    Script, account, agent, agent_freeze::AGENT_FREEZE, api_key, archive, archive_intents::ARCHIVE_INTENTS,
    authorize::AUTHORIZE, deposit, escrow, policy, provider_key, reap::REAP, replace_prices::REPLACE_PRICES,
    reseal::RESEAL, reseal_checkpoint_key::RESEAL_CHECKPOINT_KEY, run_end::RUN_END, seal::SEAL,
    settle::SETTLE, spend, standing::STANDING, transfer, transit, virtual_key, void::VOID, wallet, webhook,
};

/// Every script, one line for each file.
fn all() -> Vec<&'static Script> {
    vec![
        &*AUTHORIZE,
        &*SETTLE,
        &*VOID,
        &*REAP,
        &*account::CREATE,
        &*account::SET_PLAN,
        &*account::ACCEPT,
        &*account::ADD_USER,
        &*api_key::CREATE,
        &*api_key::REVOKE,
        &*AGENT_FREEZE,
        &*agent::CREATE,
        &*agent::UPDATE,
        &*agent::DELETE,
        &*policy::SET,
        &*policy::DELETE,
        &*wallet::OPEN,
        &*deposit::MAKE,
        &*deposit::CONFIRM,
        &*transfer::OWN,
        &*transfer::OUT,
        &*transit::ARRIVE,
        &*provider_key::STORE,
        &*virtual_key::CREATE,
        &*virtual_key::REVOKE,
        &*spend::SPEND,
        &*spend::DENY,
        &*STANDING,
        &*RESEAL,
        &*RESEAL_CHECKPOINT_KEY,
        &*RUN_END,
        &*SEAL,
        &*archive::ARCHIVE,
        &*archive::FORGET,
        &*ARCHIVE_INTENTS,
        &*REPLACE_PRICES,
        &*escrow::CREATE,
        &*escrow::FUND,
        &*escrow::RESOLVE,
        &*escrow::BLOCKED,
        &*escrow::CLAIM,
        &*webhook::CREATE,
        &*webhook::UPDATE,
        &*webhook::DELETE,
        &*webhook::TEST,
        &*webhook::RESEAL,
        &*webhook::dispatch::DISPATCH,
        &*webhook::deliver::TAKE,
        &*webhook::deliver::FINISH,
        &*webhook::deliver::RELEASE,
    ]
}

/// The source without comments.
fn code(script: &Script) -> String {
    let lines = script.source().lines();
    lines
        .map(|line| line.split("--").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn no_number_becomes_text_by_accident() {
    for script in all() {
        let code = code(script);
        for banned in ["tostring", "cjson", "..", "INCRBYFLOAT", "%.", "%s%"] {
            assert!(
                !code.contains(banned),
                "{}: `{banned}` could cut digits off an amount",
                script.name()
            );
        }
    }
}

#[test]
fn only_declared_keys_and_the_stores_clock() {
    for script in all() {
        let code = code(script);
        for banned in ["'tollgate", "os.", "math.random", "redis.pcall", "SCAN", "'KEYS'"] {
            assert!(!code.contains(banned), "{}: `{banned}`", script.name());
        }
        let calls = code.matches("redis.call(").count();
        let on_keys = code.matches(", KEYS[").count();
        let clocks = code.matches("redis.call('TIME')").count();
        assert_eq!(
            calls,
            on_keys + clocks,
            "{}: each call names a declared key",
            script.name()
        );
    }
}

#[test]
fn each_script_has_its_head() {
    for script in all() {
        for word in ["-- Purpose:", "-- KEYS:", "-- ARGV:", "-- Returns:", "-- Cost:"] {
            assert!(script.source().contains(word), "{}: no `{word}`", script.name());
        }
    }
}
