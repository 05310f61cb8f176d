//! The house rules for Lua, checked on the sources: amounts must never lose digits, keys must be declared.

use super::Script;
use super::all::all;
use crate::sources::sources;

/// Texts that only scripts of money contain: the fragments that move a balance and that write an intent, the mark of a
/// claim, and the end of a pending deposit.
const MONEY_WORDS: [&str; 4] = [
    "local function post(",
    "local function file_under(",
    "'claimed', 'fp'",
    "'pending', format('-%s', ",
];
/// Every script whose reply waits for the confirmation of `store.durability`: scripts that move money; that create a
/// record whose id or secret the caller receives; or whose record belongs to no account, so that no version would
/// reveal its loss.
const CONFIRMED: [&str; 27] = [
    "account_add_user",
    "account_create",
    "agent_create",
    "api_key_create",
    "blocked_change",
    "deposit_cancel",
    "deposit_confirm",
    "deposit_make",
    "escrow_create",
    "escrow_fund",
    "escrow_list",
    "escrow_resolve",
    "intent_blocked",
    "intent_claim",
    "invitation_accept",
    "lookup_join",
    "lookup_keep",
    "lookup_leave",
    "lookup_note",
    "replace_prices",
    "spend",
    "spend_deny",
    "transfer_out",
    "transfer_own",
    "transit_arrive",
    "virtual_key_create",
    "wallet_open",
];

/// Returns the source without comments.
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
        for banned in ["tostring", "cjson", "table.concat", "INCRBYFLOAT", "%.", "%s%"] {
            assert!(
                !code.contains(banned),
                "{}: `{banned}` could cut digits off an amount",
                script.name()
            );
        }
        let wrong = joins_a_number(&code).or_else(|| text_that_is_none(&code));
        assert_eq!(
            wrong,
            None,
            "{}: `..` writes 14 digits of a number",
            script.name()
        );
    }
}

/// Tables of texts.
const OF_TEXTS: [&str; 2] = ["ARGV", "KEYS"];

const fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn names_a_text(name: &str) -> bool {
    name.ends_with("_text") || name.ends_with("_field")
}

/// Returns the text before a closed bracket, without the parts in brackets.
fn opener(text: &str, open: char, close: char) -> Option<&str> {
    let mut depth = 0;
    let (at, _) = text.char_indices().rev().find(|&(_, c)| {
        depth += i32::from(c == close) - i32::from(c == open);
        depth == 0
    })?;
    Some(last_name(&text[..at]))
}

fn last_name(text: &str) -> &str {
    text.rsplit(|c| !in_name(c)).next().unwrap_or_default()
}

fn ends_in_a_text(text: &str) -> bool {
    let text = text.trim_end();
    match text.chars().last() {
        Some('\'') => true,
        Some(']') => opener(text, '[', ']').is_some_and(|name| OF_TEXTS.contains(&name)),
        Some(')') => matches!(
            opener(text, '(', ')'),
            Some("format" | "match" | "sub" | "denial")
        ),
        _ => names_a_text(last_name(text)),
    }
}

fn starts_with_a_text(text: &str) -> bool {
    let text = text.trim_start();
    let name = text.split(|c| !in_name(c)).next().unwrap_or_default();
    text.starts_with('\'')
        || names_a_text(name)
        || (name == "format" && text[name.len()..].starts_with('('))
        || (OF_TEXTS.contains(&name) && text[name.len()..].starts_with('['))
}

/// Returns a place where `..` joins a value that may be a number.
fn joins_a_number(code: &str) -> Option<String> {
    let around = |at: usize| code[at.saturating_sub(30)..(at + 30).min(code.len())].to_owned();
    let mut places = code.match_indices("..").map(|(at, _)| at);
    places
        .find(|&at| !ends_in_a_text(&code[..at]) || !starts_with_a_text(&code[at + 2..]))
        .map(around)
}

/// Returns a line that assigns a value that may be a number to a name in `_text` or `_field`.
fn text_that_is_none(code: &str) -> Option<String> {
    let statements = code
        .replace(",\n  ", ", ")
        .replace("\n  ..", " ..")
        .replace("\n    ..", " ..");
    let mut lines = statements.lines().map(str::trim);
    let wrong = lines.find(|line| {
        let Some((names, value)) = line.split_once(" = ") else {
            return false;
        };
        let set = names.trim_start_matches("local ").split(", ");
        let is_text = |value: &str| {
            let value = value.rsplit(" and ").next().unwrap_or_default();
            let reads = ["call('GET', ", "unpack(call('HMGET', "];
            ends_in_a_text(value) || reads.iter().any(|read| value.starts_with(read))
        };
        set.clone().any(names_a_text) && !value.split(" or ").all(is_text)
    })?;
    Some(wrong.to_owned())
}

#[test]
fn a_number_between_texts_is_found() {
    for right in [
        "local a_text = 'x' .. ARGV[1] .. format('%d', n + 1) .. b_text",
        "call('SET', KEYS[1], month_field .. ' ' .. ARGV[f[2]])",
        "local a_text, b_text = unpack(call('HMGET', KEYS[1], 'a', 'b'))",
        "local a_text = named and '1' or ARGV[2]",
        "local a_text, b_text = string.match(c, '(%d) (%d)')",
    ] {
        assert_eq!(
            (joins_a_number(right), text_that_is_none(right)),
            (None, None),
            "{right}"
        );
    }
    for wrong in [
        "local a = 'x' .. n",
        "local a = n .. 'x'",
        "local a = 'x' .. (n)",
        "local a = 'x' .. clock[1]",
        "local a = tonumber('1') .. 'x'",
        "local a = seq\n  .. ' '",
        "local a_text = n",
        "local a_text = tonumber(ARGV[1])",
        "local a_text = ARGV[1] + 1",
        "local a_text = ARGV[1] or 0",
        "local a_text = unpack(row)",
    ] {
        assert!(
            joins_a_number(wrong)
                .or_else(|| text_that_is_none(wrong))
                .is_some(),
            "{wrong}"
        );
    }
}

#[test]
fn keys_and_arguments_have_names() {
    let has_position = |text: &str| {
        let mut places = text.match_indices('[');
        places.any(|(at, _)| {
            let is_table = ["KEYS", "ARGV"].iter().any(|table| text[..at].ends_with(table));
            is_table && text[at + 1..].starts_with(|c: char| c.is_ascii_digit())
        })
    };
    for (name, source) in sources("lua") {
        assert!(!has_position(&source), "{name}: a position");
    }
    for script in all() {
        for name in ["KEYS.", "ARGV.", "@"] {
            let code = code(script);
            assert!(
                !code.contains(name),
                "{}: `{name}` is not declared",
                script.name()
            );
        }
    }
}

#[test]
fn only_declared_keys_and_the_stores_clock() {
    for script in all() {
        let code = code(script);
        for banned in [
            "'tollgate",
            "os.",
            "math.random",
            "pcall",
            "SCAN",
            "'KEYS'",
            "= redis\n",
        ] {
            assert!(!code.contains(banned), "{}: `{banned}`", script.name());
        }
        // `call` and `format` stand for them, by the first line of every script.
        for name in ["redis.", "string.format"] {
            let used = code.replace("redis.acl_check_cmd(", "").matches(name).count();
            assert_eq!(used, 1, "{}: `{name}` beside its alias", script.name());
        }
        let calls = code.matches("call(").count();
        let on_keys = code.matches(", KEYS[").count();
        let clocks = code.matches("call('TIME')").count();
        assert_eq!(
            calls,
            on_keys + clocks,
            "{}: each call names a declared key",
            script.name()
        );
        assert_eq!(
            clocks,
            usize::from(script.bounds_clock()),
            "{}: what the clock says is compared with the caller's time",
            script.name()
        );
        // Each takes the last arguments away: those of the clock are behind the budgets.
        let (budgets, bound) = (code.find("local budgets ="), code.find("local ahead, bound ="));
        if let (Some(budgets), Some(bound)) = (budgets, bound) {
            assert!(bound < budgets, "{}: the clock comes first", script.name());
        }
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

#[test]
fn whatever_writes_a_balance_or_an_intent_or_gives_out_a_name_is_confirmed() {
    let mut found = Vec::new();
    for script in all() {
        let code = code(script);
        let moves_money = MONEY_WORDS.iter().any(|word| code.contains(word));
        assert!(!moves_money || script.is_confirmed(), "{}", script.name());
        if script.is_confirmed() {
            found.push(script.name());
        }
    }
    found.sort_unstable();
    assert_eq!(found, CONFIRMED);
}

/// Scripts that name a version and are not put into `versioned.lua`, each with the reason.
const UNVERSIONED: [(&str, &str); 7] = [
    (
        "account_create",
        "the account begins with it, and the twin remembers that",
    ),
    (
        "authorize",
        "it refuses and answers by itself, and the edge remembers",
    ),
    ("blocked_change", "the version of the list of blocked addresses"),
    (
        "extend",
        "it refuses and answers by itself, and the edge remembers",
    ),
    ("session_use", "it reads the version, and its caller compares it"),
    (
        "settle",
        "it reads the version where there is no hold, and refuses when that fell",
    ),
    (
        "void",
        "it reads the version where there is no hold, and refuses when that fell",
    ),
];

#[test]
fn no_change_of_an_account_escapes_its_version() {
    let mut found = Vec::new();
    for script in all() {
        let code = code(script);
        let writes = code.contains("recorded(") || code.contains("_audit_seq");
        if code.contains("'version'") && !script.is_versioned() {
            found.push(script.name());
        }
        if !script.is_versioned() {
            // The teller of coalesced violations reads the number of the last line.
            let known = ["account_create", "authorize", "webhook_dispatch_coalesced"];
            // The end of a hold has an audit line but raises no version: see docs/explanation/durability.md.
            let of_holds = ["settle", "void", "reap"];
            let excused = known.contains(&script.name()) || of_holds.contains(&script.name());
            assert!(
                !writes || excused,
                "{}: a change without a version",
                script.name()
            );
            continue;
        }
        let around: Vec<&str> = script
            .source()
            .match_indices("local function change()")
            .map(|(_, found)| found)
            .collect();
        assert_eq!(
            around.len(),
            1,
            "{}: versioned.lua is around it once",
            script.name()
        );
        let end = "return words\n";
        assert!(
            script.source().ends_with(end),
            "{}: its answer ends with the version",
            script.name()
        );
        for field in ["'generation'", "'version'"] {
            let writes = code
                .lines()
                .filter(|line| line.contains(field) && !line.contains("HMGET"));
            for line in writes {
                let kept = line.contains("account_view[1]") || line.contains("account_view[2]");
                assert!(kept, "{}: `{line}` is not in the answer", script.name());
            }
        }
    }
    found.sort_unstable();
    let excused: Vec<&str> = UNVERSIONED.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, excused, "whoever writes an account's version is versioned");
}

/// A wallet or an escrow whose number is in use is never overwritten, nor is a place.
#[test]
fn whatever_writes_a_place_refuses_one_that_is_there() {
    let mut makers = Vec::new();
    for script in all() {
        if !script.source().contains("the value of the place") {
            continue;
        }
        let code = code(script);
        let refuses = code.find("return {'taken'}").expect("a refusal");
        let place = code.find("call('SET', KEYS[").expect("a place");
        assert!(refuses < place, "{}: checks, then writes", script.name());
        makers.push(script.name());
    }
    assert_eq!(makers, ["agent_create", "wallet_open", "escrow_create"]);
}
