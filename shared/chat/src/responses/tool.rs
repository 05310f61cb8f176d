//! Tools: those that the caller runs are accepted, and count by the bytes of their definition.
//!
//! OpenAI bills the tools of this list by tokens alone: the model calls them, and the caller executes the call and
//! sends its result in the next request. That holds for `local_shell` and `apply_patch`, for `shell` in an environment
//! of type `local` (a container, also the one that an absent environment may mean, is billed by time), and for
//! `tool_search` that the client executes. A `namespace` groups such tools. Every other type is run, and billed, by the
//! provider.

use super::unseen::{DecidingKeys, HOSTED, Unseen, Word};
use crate::error::Scan;
use crate::prompt::Prompt;
use crate::scan::{Scanner, Value};

/// Reads a list of tools and adds its bytes to `prompt`. The place of what is found starts with the index.
pub(super) fn all(prompt: &mut Prompt, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    let (start, is_absent) = (scanner.at(), scanner.peek() == Some(b'n'));
    let found = list(scanner)?;
    if !is_absent {
        prompt.bytes += scanner.at() - start;
    }
    Ok(found)
}

/// Reads a list of tools.
fn list(scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    if scanner.peek() != Some(b'[') {
        // A lone object is an array of one to some parsers.
        return one(scanner);
    }
    let (mut first, mut index) = (None, 0);
    scanner.array(|scanner| {
        let found = one(scanner)?;
        if first.is_none() {
            first = found.map(|found| found.within(&format!("[{index}]")));
        }
        index += 1;
        Ok(())
    })?;
    Ok(first)
}

/// What decides about a tool.
#[derive(Default)]
struct Tool<'a> {
    kind: Word<'a>,
    execution: Word<'a>,
    environment: Option<Environment>,
    /// What is found in its own tools.
    nested: Option<Unseen>,
}

/// Where a shell runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Environment {
    Local,
    /// A container.
    Other,
}

/// Reads one tool.
fn one(scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    if scanner.peek() != Some(b'{') {
        let is_absent = matches!(scanner.value()?, Value::Null);
        return Ok((!is_absent).then(|| Unseen::at("", HOSTED)));
    }
    let mut tool = Tool::default();
    let mut deciding = DecidingKeys::new(&["type", "execution", "environment"]);
    scanner.object(|scanner, key| match &*deciding.read(key)? {
        "type" => tool.kind.read(scanner),
        "execution" => tool.execution.read(scanner),
        "environment" => {
            tool.environment = Some(match is_local(scanner)? {
                true => Environment::Local,
                false => Environment::Other,
            });
            Ok(())
        }
        "tools" => {
            let found = list(scanner)?.map(|found| found.within(".tools"));
            tool.nested = tool.nested.take().or(found);
            Ok(())
        }
        _ => scanner.skip(),
    })?;
    Ok(deciding.ambiguity().or_else(|| tool.judge()))
}

impl Tool<'_> {
    fn judge(self) -> Option<Unseen> {
        let fault = match self.kind.get() {
            Some("function" | "custom" | "local_shell" | "apply_patch") => return None,
            Some("namespace") => return self.nested,
            Some("shell") if self.environment == Some(Environment::Local) => return None,
            Some("shell") => ".environment",
            Some("tool_search") if self.execution.get() == Some("client") => return None,
            Some("tool_search") => ".execution",
            _ => ".type",
        };
        Some(Unseen::at(fault, HOSTED))
    }
}

/// Reads the environment of a shell, and says whether it is the caller's machine.
pub(super) fn is_local(scanner: &mut Scanner<'_>) -> Scan<bool> {
    let mut kind = Word::default();
    if scanner.peek() != Some(b'{') {
        scanner.skip()?;
        return Ok(false);
    }
    let mut deciding = DecidingKeys::new(&["type"]);
    scanner.object(|scanner, key| match &*deciding.read(key)? {
        "type" => kind.read(scanner),
        _ => scanner.skip(),
    })?;
    Ok(deciding.ambiguity().is_none() && kind.get() == Some("local"))
}
