//! The kinds of scripts: the start of their source, and the inputs that each gets besides its own keys and arguments.

/// The store's clock, and its largest permitted difference from the calling process's.
const CLOCK: &str = concat!(include_str!("clock.lua"), include_str!("clock_bound.lua"));
/// Start and end of a change; includes the clock.
const CHANGE: &str = concat!(
    include_str!("clock.lua"),
    include_str!("clock_bound.lua"),
    include_str!("change.lua")
);

/// The kind of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptKind {
    /// Reads no clock.
    Timeless,
    /// Reads the store's clock. Receives the time of the calling process, and how far the clock may be from it, as its
    /// last arguments.
    Timed,
    /// Timed, and changes an account. Receives the inputs of every change before its own keys and arguments. It is
    /// wrapped in `versioned.lua`: it refuses an account that lost writes, and replies with the account's version.
    Change,
}

impl ScriptKind {
    /// Returns the fragments before the script's own parts.
    pub(super) const fn beginning(self) -> &'static str {
        match self {
            Self::Timeless => "",
            Self::Timed => CLOCK,
            Self::Change => CHANGE,
        }
    }
}
