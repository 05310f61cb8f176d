//! The scripts as texts that can be changed. A fragment is changed in one script that uses all of it.

use store::script::agent_freeze::AGENT_FREEZE;
use store::script::{Script, WhenFull, agent, deposit, escrow, number, spend, transfer, transit, wallet};

/// A file of Lua.
#[derive(Clone, Copy)]
pub struct Part {
    pub name: &'static str,
    pub text: &'static str,
}

/// A script, the files it is made of, and those that are changed in it.
pub struct Recipe {
    pub script: &'static str,
    pub parts: &'static [Part],
    pub changed: &'static [&'static str],
}

macro_rules! part {
    ($name:literal) => {
        Part {
            name: $name,
            text: include_str!(concat!("../../../shared/store/src/script/", $name, ".lua")),
        }
    };
}

macro_rules! recipes {
    ($($script:literal: [$($part:literal),+] changing [$($changed:literal),+];)+) => {
        pub const RECIPES: &[Recipe] = &[$(Recipe {
            script: $script,
            parts: &[$(part!($part)),+],
            changed: &[$($changed),+],
        }),+];
    };
}

recipes! {
    "transfer_own": ["clock", "change", "budget", "money", "once", "refusals", "low_balance", "transfer/checks", "transfer/own"]
        changing ["change", "budget", "money", "once", "refusals", "low_balance", "transfer/checks", "transfer/own"];
    "transfer_out": ["clock", "change", "budget", "money", "once", "refusals", "low_balance", "transfer/checks", "transfer/out"]
        changing ["transfer/out"];
    "deposit_make": ["clock", "change", "budget", "money", "once", "refusals", "deposit/make"] changing ["deposit/make"];
    "deposit_confirm": ["clock", "change", "budget", "money", "once", "refusals", "deposit/confirm"] changing ["deposit/confirm"];
    "transit_arrive": ["clock", "change", "money", "intent", "transit/arrive"] changing ["transit/arrive"];
    "escrow_create": ["clock", "change", "budget", "intent", "escrow/create"] changing ["escrow/create"];
    "escrow_fund": ["clock", "change", "budget", "money", "intent", "low_balance", "escrow/fund"] changing ["escrow/fund"];
    "escrow_resolve": ["clock", "change", "budget", "money", "intent", "escrow/resolve"] changing ["escrow/resolve"];
    "intent_blocked": ["clock", "change", "budget", "intent", "escrow/blocked"] changing ["escrow/blocked"];
    "intent_claim": ["escrow/claim"] changing ["escrow/claim"];
    "escrow_list": ["escrow/list"] changing ["escrow/list"];
    "number_draw": ["clock", "number"] changing ["number"];
    "wallet_open": ["clock", "change", "wallet/open"] changing ["wallet/open"];
    "agent_delete": ["clock", "change", "agent/delete"] changing ["agent/delete"];
    "agent_freeze": ["clock", "change", "agent_exists", "agent_freeze"] changing ["agent_exists"];
    "spend_deny": ["clock", "change", "intent", "spend/deny"] changing ["spend/deny"];
    "spend": ["clock", "change", "budget", "period", "prune", "run", "money", "intent", "agent_exists", "low_balance", "spend/spend"]
        changing ["prune", "run", "intent", "spend/spend"];
}

#[test]
fn what_is_changed_here_is_what_the_product_runs() {
    let theirs: [&Script; 17] = [
        &transfer::OWN,
        &transfer::OUT,
        &deposit::MAKE,
        &deposit::CONFIRM,
        &transit::ARRIVE,
        &escrow::CREATE,
        &escrow::FUND,
        &escrow::RESOLVE,
        &escrow::BLOCKED,
        &escrow::CLAIM,
        &escrow::LIST,
        &number::DRAW,
        &wallet::OPEN,
        &agent::DELETE,
        &AGENT_FREEZE,
        &spend::DENY,
        &spend::SPEND,
    ];
    assert_eq!(theirs.len(), RECIPES.len());
    for (script, recipe) in theirs.into_iter().zip(RECIPES) {
        let ours: String = recipe.parts.iter().map(|part| part.text).collect();
        let made = Script::new(recipe.script, WhenFull::Run, &[&ours]);
        let code = |script: &Script| {
            let source = script.source().split_once('\n');
            source.map(|(_shebang, code)| code.to_owned())
        };
        assert_eq!((script.name(), code(script)), (recipe.script, code(&made)));
    }
}
