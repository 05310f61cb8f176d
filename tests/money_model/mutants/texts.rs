//! The scripts as texts that can be changed. A fragment is changed in one script that uses all of it.

use crate::directed::{self, Group};
use harness::scripts::QuickestFirst;
use std::sync::{Arc, LazyLock};
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

/// A script of the product, the files it is made of, and those that are changed in it.
pub struct Recipe {
    product: &'static LazyLock<Script>,
    pub parts: &'static [Part],
    pub changed: &'static [&'static str],
}

impl Recipe {
    pub fn script(&self) -> &'static str {
        self.product.name()
    }

    /// The directed checks of the script.
    pub fn groups(&self) -> Arc<QuickestFirst<Group>> {
        Arc::new(QuickestFirst::new(directed::of_script(self.script())))
    }

    /// The script with its text replaced.
    pub fn made_of(&self, text: &str) -> Script {
        let product = self.product;
        Script::new(
            product.name(),
            product.kind(),
            WhenFull::Run,
            product.inputs(),
            &[text],
        )
    }

    /// The texts of the parts, with positions in place of names, so that each position is mutated too.
    pub fn texts(&self) -> Vec<String> {
        let inputs = self.product.inputs();
        self.parts
            .iter()
            .map(|part| inputs.substitute(part.text))
            .collect()
    }
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
    ($($product:path: [$($part:literal),+] changing [$($changed:literal),+];)+) => {
        pub static RECIPES: &[Recipe] = &[$(Recipe {
            product: &$product,
            parts: &[$(part!($part)),+],
            changed: &[$($changed),+],
        }),+];
    };
}

recipes! {
    transfer::OWN: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/caused", "script/kept_text", "script/money", "script/idempotency", "script/refusals", "script/low_balance", "transfer/checks", "transfer/own"]
        changing ["script/change", "script/budget", "script/caused", "script/kept_text", "script/money", "script/idempotency", "script/refusals", "script/low_balance", "transfer/checks", "transfer/own"];
    transfer::OUT: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/caused", "script/kept_text", "script/money", "script/idempotency", "script/refusals", "script/low_balance", "transfer/checks", "transfer/out"]
        changing ["transfer/out"];
    deposit::script::MAKE: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/caused", "script/kept_text", "script/money", "script/idempotency", "script/refusals", "deposit/make"] changing ["deposit/make"];
    deposit::script::CONFIRM: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/kept_text", "script/money", "script/idempotency", "script/refusals", "deposit/confirm"] changing ["deposit/confirm"];
    deposit::script::CANCEL: ["script/clock", "script/clock_bound", "script/change", "deposit/cancel"] changing ["deposit/cancel"];
    transit::script::ARRIVE: ["script/clock", "script/clock_bound", "script/change", "script/kept_text", "script/money", "script/intent", "transit/arrive"] changing ["transit/arrive"];
    escrow::script::CREATE: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/intent", "script/intent_budget", "escrow/create"] changing ["escrow/create"];
    escrow::script::FUND: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/caused", "script/kept_text", "script/money", "script/intent", "script/intent_budget", "script/low_balance", "escrow/fund"] changing ["escrow/fund"];
    escrow::script::RESOLVE: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/kept_text", "script/money", "script/intent", "script/intent_budget", "escrow/resolve"] changing ["escrow/resolve"];
    escrow::script::BLOCKED: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/intent", "script/intent_budget", "escrow/blocked"] changing ["escrow/blocked"];
    escrow::script::CLAIM: ["escrow/claim"] changing ["escrow/claim"];
    escrow::script::LIST: ["escrow/list"] changing ["escrow/list"];
    number::DRAW: ["script/clock", "script/clock_bound", "number/number"] changing ["number/number"];
    wallet::script::OPEN: ["script/clock", "script/clock_bound", "script/change", "wallet/open"] changing ["wallet/open"];
    agent::script::DELETE: ["script/clock", "script/clock_bound", "script/change", "script/kept_text", "agent/delete"] changing ["agent/delete"];
    AGENT_FREEZE: ["script/clock", "script/clock_bound", "script/change", "script/agent_exists", "agent/freeze"] changing ["script/agent_exists"];
    spend::DENY: ["script/clock", "script/clock_bound", "script/change", "script/intent", "spend/deny"] changing ["spend/deny"];
    spend::SPEND: ["script/clock", "script/clock_bound", "script/change", "script/budget", "script/period", "script/prune", "script/cap", "script/live_runs", "script/run", "script/kept_text", "script/money", "script/intent", "script/intent_budget", "script/agent_exists", "script/low_balance", "spend/spend"]
        changing ["script/prune", "script/cap", "script/run", "script/intent", "script/intent_budget", "spend/spend"];
}

#[test]
fn the_mutated_texts_are_those_of_the_product() {
    for recipe in RECIPES {
        let made = recipe.made_of(&recipe.texts().concat());
        let code = |script: &Script| {
            let source = script.source().split_once('\n');
            source.map(|(_shebang, code)| code.to_owned())
        };
        assert_eq!(code(recipe.product), code(&made), "{}", recipe.script());
    }
}
