//! Scripts: one Lua file and one typed twin for each business action.
//!
//! A script is executed by the hash of its source, so a binary always executes the scripts it was built with, also
//! while an older and a newer binary share a store. Rules, checked by `lint`: `call` on declared keys only; numbers
//! become text only through `format('%d')`, and `..` joins texts only; no clock but the store's `TIME`,
//! which is compared with the caller's before anything is done by it.

pub mod all;
pub mod change;
mod declare;
pub mod kind;
pub mod names;
pub mod plan_limit;
pub(crate) mod replaced;
pub(crate) mod reply;

pub(crate) use declare::script;
pub use kind::ScriptKind;
use names::{InputName, InputNames};
use redis::Cmd;
use std::collections::BTreeSet;

/// Room for the number of keys in a command.
const COUNT_DIGITS: usize = 3;

/// Treatment of a script on a store that is out of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Refused before it starts.
    Refuse,
    /// Runs: frees memory, moves money that was already charged, or protects.
    Run,
    /// Runs: only reads; the server refuses writes in it.
    ReadOnly,
}

/// A script, ready to be called.
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    kind: ScriptKind,
    confirmed: bool,
    budgets: bool,
    inputs: InputNames,
    source: String,
    sha1: String,
}

/// Start of every script.
const PRELUDE: &str = include_str!("script/prelude.lua");
/// Wrapper of scripts that change an account.
const VERSIONED: &str = include_str!("script/versioned.lua");

impl Script {
    /// Builds a script from the parts of its source, which refer to keys and arguments by the names in `inputs`. A
    /// change is wrapped in `versioned.lua`.
    pub fn new(
        name: &'static str,
        kind: ScriptKind,
        when_full: WhenFull,
        inputs: InputNames,
        parts: &[&str],
    ) -> Self {
        let shebang = match when_full {
            WhenFull::Refuse => "#!lua\n",
            WhenFull::Run => "#!lua flags=allow-oom\n",
            WhenFull::ReadOnly => "#!lua flags=no-writes\n",
        };
        let own = parts.concat();
        let own = match kind {
            ScriptKind::Timeless | ScriptKind::Timed => own,
            ScriptKind::Change => with_fragments(VERSIONED, &[("change", &own)]),
        };
        let source = [shebang, PRELUDE, &inputs.substitute(&own)].concat();
        Self {
            name,
            kind,
            confirmed: false,
            budgets: false,
            inputs,
            sha1: sha1(&source),
            source,
        }
    }

    /// Builds a script that is declared by [`script!`].
    pub(crate) fn declared(
        name: &'static str,
        kind: ScriptKind,
        when_full: WhenFull,
        (keys, args): (&'static [InputName], &'static [InputName]),
        parts: &[&str],
    ) -> Self {
        let inputs = match kind {
            ScriptKind::Timeless | ScriptKind::Timed => InputNames::new(keys, args),
            ScriptKind::Change => InputNames::for_change(keys, args),
        };
        let parts = [&[kind.beginning()], parts].concat();
        Self::new(name, kind, when_full, inputs, &parts)
    }

    /// Returns the script with another source.
    #[must_use]
    pub fn with_source(&self, source: &str) -> Self {
        let source = self.inputs.substitute(source);
        Self {
            sha1: sha1(&source),
            source,
            ..*self
        }
    }

    /// Marks a script whose reply waits for the durability that `store.durability` requires, so that a lost server
    /// cannot revoke a fact that others rely on: it moves money or decides about it, creates a name or secret that is
    /// returned to callers (wallet, key, look-up), or changes data without an account (blocked addresses, imported
    /// prices).
    #[must_use]
    pub(crate) fn confirmed(mut self) -> Self {
        self.confirmed = true;
        self
    }

    /// Returns whether its reply waits for `store.durability`.
    pub(crate) const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Marks a script that creates records with a budget (decision D71): the budgets are its last argument.
    #[must_use]
    pub fn with_budgets(mut self) -> Self {
        self.budgets = true;
        self
    }

    /// Returns whether it expects budgets.
    pub const fn has_budgets(&self) -> bool {
        self.budgets
    }

    /// Returns the script's kind.
    pub const fn kind(&self) -> ScriptKind {
        self.kind
    }

    /// Returns whether it changes the account whose record is its first key. [`Store::script`](crate::Store::script)
    /// then sends the known version and records the replied one.
    pub const fn is_versioned(&self) -> bool {
        matches!(self.kind, ScriptKind::Change)
    }

    /// Returns whether it takes the time of the process that calls, and how far the store's clock may be from it.
    /// [`Store::script`](crate::Store::script) sends both.
    pub const fn bounds_clock(&self) -> bool {
        !matches!(self.kind, ScriptKind::Timeless)
    }

    /// Returns the names by which the source calls keys and arguments.
    pub const fn inputs(&self) -> InputNames {
        self.inputs
    }

    /// Returns the script's name, for logs and metrics.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the names of the commands that it calls, in small letters.
    pub fn commands(&self) -> BTreeSet<String> {
        let calls = self.source.split("call('").skip(1);
        let names = calls.filter_map(|rest| rest.split('\'').next());
        names.map(str::to_lowercase).collect()
    }

    pub(crate) fn by_hash(&self, keys: &[&str], args: &[impl AsRef<[u8]>]) -> Cmd {
        Self::call("EVALSHA", &self.sha1, keys, args)
    }

    pub(crate) fn by_source(&self, keys: &[&str], args: &[impl AsRef<[u8]>]) -> Cmd {
        Self::call("EVAL", &self.source, keys, args)
    }

    fn call(verb: &str, what: &str, keys: &[&str], args: &[impl AsRef<[u8]>]) -> Cmd {
        let counted = verb.len() + what.len() + COUNT_DIGITS;
        let args = args.iter().map(AsRef::as_ref);
        let bytes =
            keys.iter().map(|key| key.len()).sum::<usize>() + args.clone().map(<[u8]>::len).sum::<usize>();
        let mut cmd = Cmd::with_capacity(3 + keys.len() + args.len(), counted + bytes);
        cmd.arg(verb);
        cmd.arg(what).arg(keys.len());
        for key in keys {
            cmd.arg(*key);
        }
        for arg in args {
            cmd.arg(arg);
        }
        cmd
    }
}

fn sha1(source: &str) -> String {
    redis::Script::new(source).get_hash().to_owned()
}

/// Replaces each line `--@ <name>` of `source` by the fragment with that name, which is then compiled only in that
/// branch.
pub fn with_fragments(source: &str, fragments: &[(&str, &str)]) -> String {
    fragments
        .iter()
        .fold(source.to_owned(), |source, (name, fragment)| {
            source.replace(&format!("--@ {name}\n"), fragment)
        })
}

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod lint;
