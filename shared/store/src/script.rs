//! The scripts: one file of Lua and one typed twin for each business action.
//!
//! A script runs by the hash of its source, so a binary always runs the scripts it was built with, also while an older
//! and a newer binary share a store. House rules, checked by `lint` in the tests: `redis.call` on declared keys only;
//! no number becomes text except small ones through `string.format('%d')`, and `..` joins texts only; no clock but the
//! store's `TIME`.

pub mod all;
pub mod change;
pub mod names;

use names::Names;
use redis::Cmd;

/// Room for the number of keys in a command.
const COUNT_DIGITS: usize = 3;

/// Whether a script may run on a store that is out of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Refused before it starts.
    Refuse,
    /// Runs: it frees memory, moves money that was already charged, or protects.
    Run,
    /// Runs: it only reads, and the server refuses every write in it.
    ReadOnly,
}

/// A script, ready to be called.
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    money: bool,
    budgets: bool,
    versioned: bool,
    gives_names: bool,
    inputs: Names,
    source: String,
    sha1: String,
}

/// Stands in every script that changes an account: the function of `change.lua` that raises the account's version.
const CHANGES_AN_ACCOUNT: &str = "local function recorded(";
/// Begins what stands around them.
const AROUND_IT: &str = "local function change()";
/// Stands around them.
const VERSIONED: &str = include_str!("script/versioned.lua");

impl Script {
    /// A script made of shared fragments and its own file, in this order. One that changes an account is put into
    /// `versioned.lua`: it then refuses an account that lost writes, and answers with the account's version.
    #[must_use]
    pub fn new(name: &'static str, when_full: WhenFull, parts: &[&str]) -> Self {
        Self::with_inputs(name, when_full, Names::default(), parts)
    }

    /// The same for parts that call keys and arguments by name.
    #[must_use]
    pub fn with_inputs(name: &'static str, when_full: WhenFull, inputs: Names, parts: &[&str]) -> Self {
        let shebang = match when_full {
            WhenFull::Refuse => "#!lua\n",
            WhenFull::Run => "#!lua flags=allow-oom\n",
            WhenFull::ReadOnly => "#!lua flags=no-writes\n",
        };
        let own = inputs.resolve(&parts.concat());
        let versioned = own.contains(CHANGES_AN_ACCOUNT);
        // Tests change the text around a script, too.
        let own = if versioned && !own.contains(AROUND_IT) {
            with_fragments(VERSIONED, &[("change", &own)])
        } else {
            own
        };
        let source = [shebang, &own].concat();
        let sha1 = redis::Script::new(&source).get_hash().to_owned();
        Self {
            name,
            money: false,
            budgets: false,
            versioned,
            gives_names: false,
            inputs,
            source,
            sha1,
        }
    }

    /// The same for a script that moves money, or decides about it: it is answered for when it is as safe as
    /// `store.durability` says.
    #[must_use]
    pub fn of_money(mut self) -> Self {
        self.money = true;
        self
    }

    /// Whether it moves money, or decides about it.
    #[must_use]
    pub const fn is_of_money(&self) -> bool {
        self.money
    }

    /// The same for a script that makes records with a budget (decision D71): it takes the budgets as its last
    /// argument.
    #[must_use]
    pub fn with_budgets(mut self) -> Self {
        self.budgets = true;
        self
    }

    /// Whether it takes budgets.
    #[must_use]
    pub const fn has_budgets(&self) -> bool {
        self.budgets
    }

    /// Whether it changes the account whose record is its first key. [`Store::script`](crate::Store::script) then sends
    /// what was seen of the account, and remembers what the script answers.
    #[must_use]
    pub const fn is_versioned(&self) -> bool {
        self.versioned
    }

    /// The same for a script that makes what callers are told a name or a secret of (a wallet, a key, a look-up), or
    /// changes what has no account (blocked addresses): it too is answered for when it is as safe as `store.durability`
    /// says. Else a lost server could take back what others name by then.
    #[must_use]
    pub fn of_names(mut self) -> Self {
        self.gives_names = true;
        self
    }

    /// Whether its answer waits until what it did is as safe as `store.durability` says.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.money || self.gives_names
    }

    /// What its source calls keys and arguments, where it calls them by name.
    #[must_use]
    pub const fn inputs(&self) -> Names {
        self.inputs
    }

    /// The script's name, for logs and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What the server runs.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
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

/// `source` with each line `--@ <name>` replaced by the fragment of that name. What a fragment defines is then known,
/// and costs, in that branch only.
#[must_use]
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
