//! Names of keys and arguments in the sources of scripts. A twin declares each list once, in a struct of [`inputs!`],
//! usually as a part of [`script!`](super::script): its fields are the script's inputs, in order, and its `NAMES` are
//! their names in the source.
//!
//! | in the source | executed by the server |
//! |---|---|
//! | `KEYS.run` | `KEYS[7]` |
//! | `ARGV.estimate` | `ARGV[11]` |
//! | `@KEYS.payer` | `7`, for a fragment that expects the position of several keys in a row |
//! | `unpack(ARGV, @ARGV.fields)` | `unpack(ARGV, 9)`, the remaining arguments |

/// The name of a key or an argument in the source of a script, and its number of positions; 0 for all remaining ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputName(pub &'static str, pub usize);

/// The names of a script's keys and arguments, in order.
#[derive(Debug, Clone, Copy, Default)]
pub struct InputNames {
    keys: [&'static [InputName]; 2],
    args: [&'static [InputName]; 3],
}

/// Inputs that every change of an account receives first, as `Scope::execute` sends them.
const CHANGE: [&[InputName]; 2] = [
    &[InputName("account", 1), InputName("audit_log", 1)],
    &[InputName("mode", 1), InputName("entry", 1)],
];

impl InputNames {
    /// Names of all keys and of all arguments.
    pub const fn new(keys: &'static [InputName], args: &'static [InputName]) -> Self {
        Self {
            keys: [&[], keys],
            args: [&[], args, &[]],
        }
    }

    /// Creates the names for a change of an account, after `KEYS.account`, `KEYS.audit_log`, `ARGV.mode` and
    /// `ARGV.entry`.
    pub const fn for_change(keys: &'static [InputName], args: &'static [InputName]) -> Self {
        let [first_keys, first_args] = CHANGE;
        Self {
            keys: [first_keys, keys],
            args: [first_args, args, &[]],
        }
    }

    /// Adds names for the parts of a row, if the remaining arguments are rows of the same length. `@ARGV.part` is the
    /// position of the part in the first row.
    #[must_use]
    pub(crate) const fn with_rows_of(self, parts: &'static [InputName]) -> Self {
        let [first_args, args, _] = self.args;
        Self {
            args: [first_args, args, parts],
            ..self
        }
    }

    /// Replaces the names in the source by positions. An undeclared name stays, and is not valid Lua.
    pub fn substitute(&self, source: &str) -> String {
        let keys = numbered(source, "KEYS", &self.keys.concat());
        numbered(&keys, "ARGV", &self.args.concat())
    }
}

fn numbered(source: &str, table: &str, names: &[InputName]) -> String {
    let mut numbered = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(table) {
        let (before, found) = rest.split_at(at);
        let behind = &found[table.len()..];
        let name = behind.strip_prefix('.').unwrap_or_default();
        let length = name
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(name.len());
        let index = names.iter().position(|known| known.0 == &name[..length]);
        let position = index.map(|index| 1 + names[..index].iter().map(|name| name.1).sum::<usize>());
        match (position, before.strip_suffix('@')) {
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

/// The keys or the arguments of a script.
pub(crate) trait Inputs {
    /// A single key or argument.
    type Value;

    /// Returns the values in the order of their names.
    fn values(self) -> Vec<Self::Value>;
}

/// No keys, or no arguments.
impl Inputs for () {
    type Value = String;

    fn values(self) -> Vec<String> {
        Vec::new()
    }
}

/// Declares the inputs of a script as a struct whose fields have the type after the colon. `field[4]` is an array of
/// four in a row; `field[..]` is a vector of the remaining ones, and must be the last.
macro_rules! inputs {
    ($(#[$doc:meta])* $vis:vis struct $inputs:ident $(<$life:lifetime>)?: $value:ty { $($name:ident),+ $(,)? }) => {
        $(#[$doc])*
        $vis struct $inputs $(<$life>)? { $(pub(crate) $name: $value,)+ }

        impl $(<$life>)? $inputs $(<$life>)? {
            /// The names in the script, in order.
            $vis const NAMES: &'static [$crate::script::names::InputName] =
                &[$($crate::script::names::InputName(stringify!($name), 1)),+];

            /// Returns the values, in the order of [`Self::NAMES`].
            pub(crate) fn into_values(self) -> [$value; [$(stringify!($name)),+].len()] {
                [$(self.$name),+]
            }
        }

        impl $(<$life>)? $crate::script::names::Inputs for $inputs $(<$life>)? {
            type Value = $value;

            fn values(self) -> Vec<$value> {
                Vec::from(self.into_values())
            }
        }
    };
    ($(#[$doc:meta])* $vis:vis struct $inputs:ident $(<$life:lifetime>)?: $value:ty {
        $($name:ident $([$($width:tt)+])?),+ $(,)?
    }) => {
        $(#[$doc])*
        $vis struct $inputs $(<$life>)? {
            $(pub(crate) $name: $crate::script::names::inputs!(@type $value $(, $($width)+)?),)+
        }

        impl $(<$life>)? $inputs $(<$life>)? {
            /// The names in the script, in order.
            $vis const NAMES: &'static [$crate::script::names::InputName] = &[$($crate::script::names::InputName(
                stringify!($name),
                $crate::script::names::inputs!(@width $($($width)+)?),
            )),+];

            /// Returns the values, in the order of [`Self::NAMES`].
            pub(crate) fn into_values(self) -> Vec<$value> {
                let mut values = Vec::with_capacity(Self::NAMES.len());
                $($crate::script::names::inputs!(@add values, self.$name $(, $($width)+)?);)+
                values
            }
        }

        impl $(<$life>)? $crate::script::names::Inputs for $inputs $(<$life>)? {
            type Value = $value;

            fn values(self) -> Vec<$value> {
                self.into_values()
            }
        }
    };
    (@type $value:ty) => { $value };
    (@type $value:ty, ..) => { Vec<$value> };
    (@type $value:ty, $width:expr) => { [$value; $width] };
    (@width) => { 1 };
    (@width ..) => { 0 };
    (@width $width:expr) => { $width };
    (@add $values:ident, $value:expr) => { $values.extend([$value]) };
    (@add $values:ident, $value:expr, $($width:tt)+) => { $values.extend($value) };
}
pub(crate) use inputs;

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[InputName] = &[
        InputName("account", 1),
        InputName("run", 1),
        InputName("run_index", 3),
        InputName("hold", 1),
    ];
    const NAMES: InputNames = InputNames::new(
        KEYS,
        &[InputName("run", 1), InputName("cost", 1), InputName("fields", 0)],
    );

    inputs! {
        /// Two values.
        struct Two<'a>: &'a str { first, second }
    }
    inputs! {
        /// Several in a row, and the rest.
        struct Many: String { first, row[3], behind, rest[..] }
    }

    #[test]
    fn names_become_positions() {
        for (source, expected) in [
            ("call('GET', KEYS.run)", "call('GET', KEYS[2])"),
            ("KEYS.run_index .. KEYS.run", "KEYS[3] .. KEYS[2]"),
            ("ARGV.run, ARGV.cost + 1", "ARGV[1], ARGV[2] + 1"),
            ("list(@KEYS.run_index, @ARGV.cost)", "list(3, 2)"),
            (
                "KEYS.hold, unpack(ARGV, @ARGV.fields)",
                "KEYS[6], unpack(ARGV, 3)",
            ),
            ("KEYS[4], #ARGV, KEYS", "KEYS[4], #ARGV, KEYS"),
            ("KEYS.cost .. ARGV.account", "KEYS.cost .. ARGV.account"),
            ("KEYS.runs @KEYS.runs", "KEYS.runs @KEYS.runs"),
            ("KEYS.", "KEYS."),
            ("", ""),
        ] {
            assert_eq!(NAMES.substitute(source), expected);
        }
    }

    #[test]
    fn a_change_has_four_names_before_its_own() {
        let names = InputNames::for_change(&[InputName("agent", 1)], &[InputName("id", 1)]);
        let source = "KEYS.account KEYS.audit_log KEYS.agent ARGV.mode ARGV.entry ARGV.id";
        let expected = "KEYS[1] KEYS[2] KEYS[3] ARGV[1] ARGV[2] ARGV[3]";
        assert_eq!(names.substitute(source), expected);
    }

    #[test]
    fn the_parts_of_a_row_have_names() {
        let rows = NAMES.with_rows_of(&[InputName("id", 1), InputName("state", 1)]);
        assert_eq!(
            rows.substitute("ARGV[@ARGV.state + 2 * n] ARGV.cost @ARGV.fields"),
            "ARGV[4 + 2 * n] ARGV[2] 3"
        );
    }

    #[test]
    fn values_come_in_the_order_of_their_names() {
        let two = Two {
            second: "b",
            first: "a",
        };
        assert_eq!(Two::NAMES, [InputName("first", 1), InputName("second", 1)]);
        assert_eq!(two.into_values(), ["a", "b"]);

        let text = |text: &str| text.to_owned();
        let many = Many {
            first: text("a"),
            row: ["b", "c", "d"].map(text),
            behind: text("e"),
            rest: vec![text("f"), text("g")],
        };
        let widths = [
            InputName("first", 1),
            InputName("row", 3),
            InputName("behind", 1),
            InputName("rest", 0),
        ];
        assert_eq!(Many::NAMES, widths);
        assert_eq!(many.into_values().concat(), "abcdefg");
    }
}
