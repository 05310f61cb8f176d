//! Names of keys and arguments in the sources of scripts. A twin declares each list once, in a struct made by
//! [`inputs!`]: its fields are what the script receives, in their order, and its `NAMES` are what the script's source
//! calls them.
//!
//! | in the source | what the server runs |
//! |---|---|
//! | `KEYS.run` | `KEYS[7]` |
//! | `ARGV.estimate` | `ARGV[11]` |
//! | `@KEYS.run` | `7`, for a fragment that takes positions |

/// What a script calls its keys and arguments, in their order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names {
    /// Names of the keys.
    pub keys: &'static [&'static str],
    /// Names of the arguments.
    pub args: &'static [&'static str],
}

impl Names {
    /// The source with positions in the place of names. A name that is not declared stays, and is no Lua that runs.
    #[must_use]
    pub fn resolve(&self, source: &str) -> String {
        let keys = numbered(source, "KEYS", self.keys);
        numbered(&keys, "ARGV", self.args)
    }
}

fn numbered(source: &str, table: &str, names: &[&str]) -> String {
    let mut numbered = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(table) {
        let (before, found) = rest.split_at(at);
        let behind = &found[table.len()..];
        let name = behind.strip_prefix('.').unwrap_or_default();
        let length = name
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(name.len());
        let position = names.iter().position(|known| *known == &name[..length]);
        match (position.map(|position| position + 1), before.strip_suffix('@')) {
            (None, _) => {
                numbered.push_str(before);
                numbered.push_str(table);
                rest = behind;
                continue;
            }
            (Some(position), Some(before)) => numbered.push_str(&format!("{before}{position}")),
            (Some(position), None) => numbered.push_str(&format!("{before}{table}[{position}]")),
        }
        rest = &name[length..];
    }
    numbered.push_str(rest);
    numbered
}

/// Declares what a script receives, as a struct with a lifetime `'a` whose fields have the type behind the colon.
macro_rules! inputs {
    ($(#[$doc:meta])+ $vis:vis struct $inputs:ident: $value:ty { $($name:ident),+ $(,)? }) => {
        $(#[$doc])+
        $vis struct $inputs<'a> { $(pub(crate) $name: $value,)+ }

        impl<'a> $inputs<'a> {
            /// What the script calls them, in their order.
            $vis const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The values, in the order of [`Self::NAMES`].
            pub(crate) fn into_values(self) -> [$value; <$inputs<'static>>::NAMES.len()] {
                [$(self.$name),+]
            }
        }
    };
}
pub(crate) use inputs;

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names = Names {
        keys: &["account", "run", "run_index"],
        args: &["run", "cost"],
    };

    inputs! {
        /// Two values.
        struct Two: &'a str { first, second }
    }

    #[test]
    fn names_become_positions() {
        for (source, expected) in [
            ("call('GET', KEYS.run)", "call('GET', KEYS[2])"),
            ("KEYS.run_index .. KEYS.run", "KEYS[3] .. KEYS[2]"),
            ("ARGV.run, ARGV.cost + 1", "ARGV[1], ARGV[2] + 1"),
            ("list(@KEYS.run_index, @ARGV.cost)", "list(3, 2)"),
            ("KEYS[4], #ARGV, KEYS", "KEYS[4], #ARGV, KEYS"),
            ("KEYS.cost .. ARGV.account", "KEYS.cost .. ARGV.account"),
            ("KEYS.runs @KEYS.runs", "KEYS.runs @KEYS.runs"),
            ("KEYS.", "KEYS."),
            ("", ""),
        ] {
            assert_eq!(NAMES.resolve(source), expected);
        }
    }

    #[test]
    fn values_come_in_the_order_of_their_names() {
        let two = Two {
            second: "b",
            first: "a",
        };
        assert_eq!(Two::NAMES, ["first", "second"]);
        assert_eq!(two.into_values(), ["a", "b"]);
    }
}
