//! Place of malformed data: the command or script that met it, with the key as far as the error names it.

use crate::script::Script;
use redis::{Cmd, Pipeline, RedisError};
use std::fmt;

/// Start of the number of a line in the server's message about a script's failed command.
const LINE: &str = "on @user_script:";
/// Start of a key in a line of a script's source.
const KEY: &str = "KEYS[";

/// A command or script, and its key, as an error names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedPlace(String);

impl fmt::Display for MalformedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl MalformedPlace {
    /// Returns the place of a command that reads or changes its first argument.
    pub(crate) fn of_command(command: &Cmd) -> Self {
        let mut words = command.args_iter().map(|word| match word {
            redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        });
        let name = words.next().unwrap_or_default();
        Self(match words.next() {
            Some(key) => format!("`{name}` of `{key}`"),
            None => format!("`{name}`"),
        })
    }

    /// Returns the place of the first command that the server refused, or, if the reply is at fault, of the first
    /// command of all.
    pub(crate) fn of_pipeline(pipeline: &Pipeline, error: &RedisError) -> Option<Self> {
        let refused = error.clone().into_server_errors();
        let at = refused.and_then(|refused| refused.first().map(|(at, _)| *at));
        let mut commands = pipeline.cmd_iter();
        let command = commands.nth(at.unwrap_or_default())?;
        let place = Self::of_command(command);
        Some(match at {
            Some(_) => place,
            None => Self(format!("{place}, or what is read with it")),
        })
    }

    /// Returns the place of a script: with the keys of the line that failed, which is one key as a rule.
    pub(crate) fn of_script(script: &Script, keys: &[&str], error: &RedisError) -> Self {
        let name = script.name();
        let named = keys_of_line(script.source(), &error.to_string());
        let named = named.into_iter().filter_map(|at| keys.get(at));
        let named: Vec<String> = named.map(|key| format!("`{key}`")).collect();
        Self(match named.is_empty() {
            true => format!("script `{name}`; `tollgate-admin ledger check` names the key"),
            false => format!("script `{name}`, key {}", named.join(" or ")),
        })
    }
}

/// Returns the positions, from 0, of the keys in the line of the source that the server's message names.
fn keys_of_line(source: &str, message: &str) -> Vec<usize> {
    let number = |text: &str| {
        let end = text.find(|character: char| !character.is_ascii_digit());
        text[..end.unwrap_or(text.len())]
            .parse::<usize>()
            .ok()?
            .checked_sub(1)
    };
    let line = message
        .split_once(LINE)
        .and_then(|(_, rest)| source.lines().nth(number(rest)?));
    let keys = line.into_iter().flat_map(|line| line.split(KEY).skip(1));
    keys.filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_failed_line_are_found() {
        let source =
            "#!lua\nlocal a = call('GET', KEYS[2])\ncall('LRANGE', KEYS[11], 0, call('LLEN', KEYS[1]))\n\n";
        let of = |line: &str| {
            keys_of_line(
                source,
                &format!("WRONGTYPE script: 66e8, on @user_script:{line}."),
            )
        };
        assert_eq!(of("2"), [1]);
        assert_eq!(of("3"), [10, 0]);
        for line in ["1", "0", "9", "x"] {
            assert_eq!(of(line), Vec::<usize>::new(), "{line}");
        }
        assert_eq!(keys_of_line(source, "WRONGTYPE"), Vec::<usize>::new());
    }
}
