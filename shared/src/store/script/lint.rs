//! The house rules for Lua, checked on the sources: amounts must never lose digits, keys must be declared.

use super::Script;
use super::all::all;

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
