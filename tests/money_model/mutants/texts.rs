//! The scripts as texts that can be changed. A fragment is changed in one script that uses all of it.

use store::agent;
use store::agent::freeze::AGENT_FREEZE;
use store::deposit;
use store::escrow;
use store::number;
use store::script::{Script, WhenFull};
use store::spend;
use store::transfer;
use store::transit;
use store::wallet;

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
            text: include_str!(concat!("../../../shared/store/src/", $name, ".lua")),
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
    "transfer_own": ["script/clock", "script/change", "script/budget", "script/money", "script/once", "script/refusals", "script/low_balance", "transfer/checks", "transfer/own"]
        changing ["script/change", "script/budget", "script/money", "script/once", "script/refusals", "script/low_balance", "transfer/checks", "transfer/own"];
    "transfer_out": ["script/clock", "script/change", "script/budget", "script/money", "script/once", "script/refusals", "script/low_balance", "transfer/checks", "transfer/out"]
        changing ["transfer/out"];
    "deposit_make": ["script/clock", "script/change", "script/budget", "script/money", "script/once", "script/refusals", "deposit/make"] changing ["deposit/make"];
    "deposit_confirm": ["script/clock", "script/change", "script/budget", "script/money", "script/once", "script/refusals", "deposit/confirm"] changing ["deposit/confirm"];
    "transit_arrive": ["script/clock", "script/change", "script/money", "script/intent", "transit/arrive"] changing ["transit/arrive"];
    "escrow_create": ["script/clock", "script/change", "script/budget", "script/intent", "escrow/create"] changing ["escrow/create"];
    "escrow_fund": ["script/clock", "script/change", "script/budget", "script/money", "script/intent", "script/low_balance", "escrow/fund"] changing ["escrow/fund"];
    "escrow_resolve": ["script/clock", "script/change", "script/budget", "script/money", "script/intent", "escrow/resolve"] changing ["escrow/resolve"];
    "intent_blocked": ["script/clock", "script/change", "script/budget", "script/intent", "escrow/blocked"] changing ["escrow/blocked"];
    "intent_claim": ["escrow/claim"] changing ["escrow/claim"];
    "escrow_list": ["escrow/list"] changing ["escrow/list"];
    "number_draw": ["script/clock", "number/number"] changing ["number/number"];
    "wallet_open": ["script/clock", "script/change", "wallet/open"] changing ["wallet/open"];
    "agent_delete": ["script/clock", "script/change", "agent/delete"] changing ["agent/delete"];
    "agent_freeze": ["script/clock", "script/change", "script/agent_exists", "agent/freeze"] changing ["script/agent_exists"];
    "spend_deny": ["script/clock", "script/change", "script/intent", "spend/deny"] changing ["spend/deny"];
    "spend": ["script/clock", "script/change", "script/budget", "script/period", "script/prune", "script/run", "script/money", "script/intent", "script/agent_exists", "script/low_balance", "spend/spend"]
        changing ["script/prune", "script/run", "script/intent", "spend/spend"];
}

#[test]
fn what_is_changed_here_is_what_the_product_runs() {
    let theirs: [&Script; 17] = [
        &transfer::OWN,
        &transfer::OUT,
        &deposit::script::MAKE,
        &deposit::script::CONFIRM,
        &transit::script::ARRIVE,
        &escrow::script::CREATE,
        &escrow::script::FUND,
        &escrow::script::RESOLVE,
        &escrow::script::BLOCKED,
        &escrow::script::CLAIM,
        &escrow::script::LIST,
        &number::DRAW,
        &wallet::script::OPEN,
        &agent::script::DELETE,
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
