//! Lint: each script reads and removes a bounded number of records. A command whose cost grows with the stored data
//! must be listed here with its bound.

use crate::sources::sources;
use std::collections::BTreeSet;

/// Commands, as scripts write them, that read or remove a whole range or key. `ZRANGEBYSCORE` is bounded by its
/// `LIMIT`.
const UNBOUNDED: [&str; 17] = [
    "'DEL'",
    "'HGETALL'",
    "'HKEYS'",
    "'HVALS'",
    "'LRANGE'",
    "'LREM'",
    "'LTRIM'",
    "'SINTER'",
    "'SMEMBERS'",
    "'SORT'",
    "'SUNION'",
    "'ZRANGE'",
    "'ZRANGEBYLEX'",
    "'ZREMRANGEBYLEX'",
    "'ZREMRANGEBYRANK'",
    "'ZREMRANGEBYSCORE'",
    "'ZREVRANGE'",
];
/// Commands that are bounded by their `LIMIT`.
const LIMITED: [&str; 2] = ["'ZRANGEBYSCORE'", "'ZREVRANGEBYSCORE'"];
/// A range of one member.
const ONE_MEMBER: &str = ", 0, 0, 'WITHSCORES')";

const AGENT: &str = "an agent's fields: counters of 40 days and two years, and four a provider, of which there are PROVIDERS_MAX";
const RECORD: &str = "a record of fields that the code names";
const TEXT: &str = "a text";
const USERS: &str = "USERS_MAX";
const SESSIONS: &str = "SESSIONS_MAX, two fields each";
const POLICIES: &str = "ACCOUNT_POLICIES_MAX";
const ARCHIVED: &str = "entries and lists of one segment, which the caller counts and bounds";

/// File, command, and its bound.
const BOUNDED: &[(&str, &str, &str)] = &[
    ("agent/delete.lua", "DEL", RECORD),
    ("agent/delete.lua", "HKEYS", AGENT),
    (
        "agent/delete.lua",
        "ZRANGE",
        "one more than the keys that the caller gives",
    ),
    ("script/agent_exists.lua", "HKEYS", AGENT),
    ("api_key/create.lua", "DEL", RECORD),
    ("audit/archive.lua", "LTRIM", ARCHIVED),
    ("intent/archive_intents.lua", "DEL", RECORD),
    (
        "intent/archive_intents.lua",
        "LREM",
        "PASSED_MAX places of lists in all, which the caller counts before: a place in a list only falls",
    ),
    (
        "credential_attempts/take.lua",
        "LRANGE",
        "the attempts in a span, of which there are few",
    ),
    (
        "credential_attempts/take.lua",
        "LTRIM",
        "the attempts in a span, of which there are few",
    ),
    ("escrow/blocked.lua", "DEL", RECORD),
    ("invitation/accept.lua", "HVALS", USERS),
    ("invitation/create.lua", "HGETALL", "INVITATIONS_MAX"),
    ("lookup/leave.lua", "DEL", TEXT),
    ("policy/delete.lua", "DEL", RECORD),
    ("policy/set.lua", "HGETALL", RECORD),
    ("policy/strictest.lua", "HVALS", POLICIES),
    ("prices/keep.lua", "HKEYS", "TABLES_MAX"),
    ("provider_key/store.lua", "HKEYS", AGENT),
    ("script/prune.lua", "HKEYS", AGENT),
    ("call/reap.lua", "DEL", TEXT),
    ("session/end.lua", "HGETALL", SESSIONS),
    ("session/open.lua", "DEL", TEXT),
    ("session/open.lua", "HGETALL", SESSIONS),
    ("call/settle.lua", "DEL", TEXT),
    ("transit/arrive.lua", "DEL", TEXT),
    ("user/change.lua", "DEL", TEXT),
    ("user/change.lua", "HGETALL", SESSIONS),
    ("user/change.lua", "HVALS", USERS),
    ("virtual_key/forget.lua", "DEL", RECORD),
    ("call/void.lua", "DEL", RECORD),
    ("webhook/create.lua", "HGETALL", RECORD),
    ("webhook/delete.lua", "DEL", RECORD),
    ("webhook/update.lua", "HGETALL", RECORD),
];

/// Returns the calls in a source, without comments, whose cost grows with the stored data.
fn unbounded(source: &str) -> BTreeSet<&'static str> {
    let lines = source.lines().map(|line| line.split("--").next().unwrap_or(""));
    let calls = lines.flat_map(|line| {
        let whole = UNBOUNDED
            .iter()
            .filter(move |command| line.contains(**command) && !line.contains(ONE_MEMBER));
        let limited = LIMITED
            .iter()
            .filter(move |command| line.contains(**command) && !line.contains("'LIMIT', 0, "));
        whole.chain(limited).map(|command| command.trim_matches('\''))
    });
    calls.collect()
}

#[test]
fn every_script_reads_and_removes_a_bounded_number() {
    let files = sources("lua");
    assert!(files.len() > 80, "only {} scripts", files.len());
    let mut found = BTreeSet::new();
    for (name, source) in &files {
        found.extend(
            unbounded(source)
                .into_iter()
                .map(|command| (name.as_str(), command)),
        );
    }
    let allowed: BTreeSet<(&str, &str)> = BOUNDED
        .iter()
        .map(|(file, command, _)| (*file, *command))
        .collect();
    let more: Vec<_> = found.difference(&allowed).collect();
    assert!(more.is_empty(), "nothing says what bounds these: {more:?}");
    let gone: Vec<_> = allowed.difference(&found).collect();
    assert!(gone.is_empty(), "listed, but in no script any more: {gone:?}");
}

#[test]
fn an_unbounded_form_is_found() {
    for (line, command) in [
        (
            "call('ZREMRANGEBYSCORE', KEYS[1], '-inf', 5)",
            "'ZREMRANGEBYSCORE'",
        ),
        ("call('ZRANGEBYSCORE', KEYS[1], '-inf', 5)", "'ZRANGEBYSCORE'"),
        ("call('ZRANGE', KEYS[1], 0, -1)", "'ZRANGE'"),
        ("call('SMEMBERS', KEYS[1])", "'SMEMBERS'"),
    ] {
        assert_eq!(
            unbounded(line),
            BTreeSet::from([command.trim_matches('\'')]),
            "{line}"
        );
    }
    for line in [
        "call('ZRANGEBYSCORE', KEYS[1], '-inf', 5, 'LIMIT', 0, MOST)",
        "call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')",
        "call('UNLINK', KEYS[1]) -- not 'DEL'",
    ] {
        assert_eq!(unbounded(line), BTreeSet::new(), "{line}");
    }
}
