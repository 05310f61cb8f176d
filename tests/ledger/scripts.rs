//! The ledger's scripts as texts that can be changed.

use domain::budget::Budget;
use store::Store;
use store::call::authorize::AUTHORIZE;
use store::call::denial_windows::script::DENIAL_WINDOW;
use store::call::extend::EXTEND;
use store::call::reap::REAP;
use store::call::settle::SETTLE;
use store::call::void::VOID;
use store::script::names::InputNames;
use store::script::{Script, ScriptKind, WhenFull, with_fragments};

pub const CLOCK_LUA: &str = include_str!("../../shared/store/src/script/clock.lua");
/// Keeps scripts from using a clock that is far from this process's. The checks of `servers/clock_bound.rs` notice
/// changes of it.
pub const CLOCK_BOUND_LUA: &str = include_str!("../../shared/store/src/script/clock_bound.lua");
pub const PERIOD_LUA: &str = include_str!("../../shared/store/src/script/period.lua");
pub const PRUNE_LUA: &str = include_str!("../../shared/store/src/script/prune.lua");
pub const CAP_LUA: &str = include_str!("../../shared/store/src/script/cap.lua");
pub const AUTHORIZE_LUA: &str = include_str!("../../shared/store/src/call/authorize.lua");
pub const EXTEND_LUA: &str = include_str!("../../shared/store/src/call/extend.lua");
pub const SETTLE_LUA: &str = include_str!("../../shared/store/src/call/settle.lua");
pub const LOST_WRITES_LUA: &str = include_str!("../../shared/store/src/call/lost_writes.lua");
pub const VOID_LUA: &str = include_str!("../../shared/store/src/call/void.lua");
pub const REAP_LUA: &str = include_str!("../../shared/store/src/call/reap.lua");
pub const DENIAL_WINDOW_LUA: &str = include_str!("../../shared/store/src/call/denial_window.lua");
/// The begin and end of each change of an account. The money tests notice changes of this fragment.
const CHANGE: &str = include_str!("../../shared/store/src/script/change.lua");
pub const DENIAL_LINE_LUA: &str = include_str!("../../shared/store/src/call/denial_line.lua");
pub const LIVE_RUNS_LUA: &str = include_str!("../../shared/store/src/script/live_runs.lua");
pub const RUN_LUA: &str = include_str!("../../shared/store/src/script/run.lua");
pub const END_HOLD_LUA: &str = include_str!("../../shared/store/src/call/end_hold.lua");
/// The clock of `extend`, `settle`, `void` and `reap`. It is changed in `authorize`, where the tests can set the time.
const CLOCK: &str = concat!(
    include_str!("../../shared/store/src/script/clock.lua"),
    include_str!("../../shared/store/src/script/clock_bound.lua"),
);

/// Sets the hold's deadline to the very moment of the reaping, which only the script's own clock knows.
const DUE_NOW: &str = "
local at = call('TIME')
call('ZADD', KEYS[5], at[1] * 1000 + math.floor(at[2] / 1000), ARGV[1])
";
/// Text around the fragment. ARGV has pairs of the clock's seconds and microseconds; the reply has the moment and day
/// of the first pair, and the month of every pair.
const SHOW_PERIODS: [&str; 2] = [
    "local out = {}\nfor at = 1, #ARGV, 2 do\n",
    "if at == 1 then out = {format('%d', now_ms), format('%d', today)} end
out[#out + 1] = format('%d', month)
end
return out
",
];

/// The scripts' call of the clock. Tests replace it by text in the script, or by arguments.
const TIME: &str = "call('TIME')";

/// The clock's reply at `at_ms`.
fn clock_at(at_ms: u64) -> String {
    format!("{{'{}', '{}'}}", at_ms / 1000, at_ms % 1000 * 1000 + 999)
}

/// One set of scripts, the real ones or with one of them changed, and the store that executes them.
pub struct Scripts {
    /// Executes the set.
    pub store: Store,
    /// Reaps at the very moment of the deadline.
    pub at_deadline: Store,
    /// The period fragment as a script; ARGV has pairs of the clock's seconds and microseconds.
    pub period: Script,
    texts: Texts,
}

impl Scripts {
    /// The same scripts with a budget of `most` runs.
    pub fn with_runs(&self, most: u64) -> Self {
        let budgets = self.store.budgets().with(Budget::Runs, most);
        self.texts.build(&self.store.clone().with_budgets(budgets))
    }

    /// A store whose `authorize` runs at `at_ms`.
    pub fn authorizing_at(&self, at_ms: u64) -> Store {
        let clock = self.texts.clock.replace(TIME, &clock_at(at_ms));
        self.store.replacing(self.texts.authorize_with(&[&clock]))
    }

    /// A store whose `denial_window` runs at `at_ms`.
    pub fn recording_at(&self, at_ms: u64) -> Store {
        let clock = CLOCK_LUA.replace(TIME, &clock_at(at_ms));
        self.store.replacing(self.texts.denial_window_with(&clock))
    }
}

/// The texts behind [`Scripts`].
#[derive(Clone)]
pub struct Texts {
    pub clock: String,
    pub period: String,
    pub prune: String,
    pub cap: String,
    pub denial_line: String,
    pub live_runs: String,
    pub run: String,
    pub end_hold: String,
    pub lost_writes: String,
    pub authorize: String,
    pub extend: String,
    pub settle: String,
    pub void: String,
    pub reap: String,
    pub denial_window: String,
}

impl Texts {
    pub fn real() -> Self {
        Self {
            clock: CLOCK_LUA.to_owned(),
            period: PERIOD_LUA.to_owned(),
            prune: PRUNE_LUA.to_owned(),
            cap: CAP_LUA.to_owned(),
            denial_line: AUTHORIZE.inputs().substitute(DENIAL_LINE_LUA),
            live_runs: LIVE_RUNS_LUA.to_owned(),
            run: RUN_LUA.to_owned(),
            // With positions in place of names, so that each position is mutated too.
            end_hold: SETTLE.inputs().substitute(END_HOLD_LUA),
            lost_writes: SETTLE.inputs().substitute(LOST_WRITES_LUA),
            authorize: AUTHORIZE.inputs().substitute(AUTHORIZE_LUA),
            extend: EXTEND.inputs().substitute(EXTEND_LUA),
            settle: SETTLE.inputs().substitute(SETTLE_LUA),
            void: VOID.inputs().substitute(VOID_LUA),
            reap: REAP.inputs().substitute(REAP_LUA),
            denial_window: DENIAL_WINDOW.inputs().substitute(DENIAL_WINDOW_LUA),
        }
    }

    /// `clock` is the begin of the script.
    fn authorize_with(&self, clock: &[&str]) -> Script {
        let fragments = [
            ("denial_line.lua", self.denial_line.as_str()),
            ("live_runs.lua", &self.live_runs),
            ("run.lua", &self.run),
            ("prune.lua", &self.prune),
        ];
        let own = with_fragments(&self.authorize, &fragments);
        let parts = [clock, &[&self.period, &self.cap, &own]].concat();
        Script::new(
            "authorize",
            ScriptKind::Timed,
            WhenFull::Refuse,
            InputNames::default(),
            &parts,
        )
    }

    fn denial_window_with(&self, clock: &str) -> Script {
        let parts = [clock, CHANGE, &self.denial_window];
        Script::new(
            "denial_window",
            ScriptKind::Change,
            WhenFull::Run,
            DENIAL_WINDOW.inputs(),
            &parts,
        )
    }

    /// A script that ends a hold. `begin` stands before its own text.
    fn end(&self, name: &'static str, own: &str, begin: &[&str]) -> Script {
        let fragments = [
            ("lost_writes.lua", self.lost_writes.as_str()),
            ("end_hold.lua", &self.end_hold),
        ];
        let own = with_fragments(own, &fragments);
        let parts = [begin, &[&own]].concat();
        Script::new(
            name,
            ScriptKind::Timed,
            WhenFull::Run,
            InputNames::default(),
            &parts,
        )
    }

    /// The changed scripts, in place of those of the product.
    fn scripts(&self) -> [Script; 6] {
        let end = |name, own: &str| self.end(name, own, &[CLOCK]);
        let extend = [CLOCK, &self.cap, &self.extend];
        [
            self.authorize_with(&[&self.clock, CLOCK_BOUND_LUA]),
            Script::new(
                "extend",
                ScriptKind::Timed,
                WhenFull::Refuse,
                InputNames::default(),
                &extend,
            ),
            end("settle", &self.settle),
            end("void", &self.void),
            end("reap", &self.reap),
            self.denial_window_with(CLOCK),
        ]
    }

    /// The set, to be executed by `store`.
    pub fn build(&self, store: &Store) -> Scripts {
        let scripts = self.scripts().into_iter();
        let store = scripts.fold(store.clone(), |store, script| store.replacing(script));
        let reap = self.end("reap", &self.reap, &[DUE_NOW, CLOCK]);
        let clock = self.clock.replace(TIME, "{ARGV[at], ARGV[at + 1]}");
        let period = [SHOW_PERIODS[0], &clock, &self.period, SHOW_PERIODS[1]];
        Scripts {
            at_deadline: store.replacing(reap),
            store,
            period: Script::new(
                "period",
                ScriptKind::Timeless,
                WhenFull::Run,
                InputNames::default(),
                &period,
            ),
            texts: self.clone(),
        }
    }
}

#[test]
fn the_tested_scripts_are_those_of_the_product() {
    let theirs = [&AUTHORIZE, &EXTEND, &SETTLE, &VOID, &REAP, &DENIAL_WINDOW];
    for (ours, theirs) in Texts::real().scripts().iter().zip(theirs) {
        assert_eq!(ours.source(), theirs.source(), "{}", theirs.name());
    }
}
