//! Tools, also of chat completions. Those that the caller runs are accepted, and count the bytes of their definitions.
//!
//! OpenAI bills these tools of a response only by tokens: the model calls them, and the caller executes the call and
//! sends its result in the next request. That holds for functions and custom tools, for `local_shell` and
//! `apply_patch`, for `shell` in an environment of type `local`, and for a `tool_search` that the client executes. A
//! `shell` in a container, which an absent environment may also mean, is billed by time. A `namespace` groups such
//! tools. The provider runs and bills every other type.
//!
//! Chat completions have functions and custom tools. What else other providers take there (`web_search`,
//! `browser_search`, `code_interpreter`, `builtin_function`, a `googleSearch` without a type) they run and bill
//! themselves.

use super::unseen::{DecidingKeys, HOSTED, HOSTED_SEARCH, HOSTED_SHELL, UNKNOWN, Unseen, Word};
use crate::error::Scan;
use crate::prompt::Prompt;
use crate::scan::{BodyValue, Scanner};
use domain::measured::Endpoint;

/// Reads a list of tools and adds its bytes to `prompt`. The types that there are depend on the endpoint. The path of
/// an unsupported field starts with the index.
pub(crate) fn all(
    endpoint: Endpoint,
    prompt: &mut Prompt,
    scanner: &mut Scanner<'_>,
) -> Scan<Option<Unseen>> {
    let (start, is_absent) = (scanner.at(), scanner.peek() == Some(b'n'));
    let found = list(endpoint, scanner)?;
    if !is_absent {
        prompt.bytes += scanner.at() - start;
    }
    Ok(found)
}

fn list(endpoint: Endpoint, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    if scanner.peek() != Some(b'[') {
        // Some parsers read a lone object as an array of one.
        return parse_tool(endpoint, scanner);
    }
    let (mut first, mut index) = (None, 0);
    scanner.array(|scanner| {
        let found = parse_tool(endpoint, scanner)?;
        if first.is_none() {
            first = found.map(|found| found.within(&format!("[{index}]")));
        }
        index += 1;
        Ok(())
    })?;
    Ok(first)
}

/// The members that decide whether a tool is accepted.
#[derive(Default)]
struct Tool<'a> {
    kind: Word<'a>,
    execution: Word<'a>,
    environment: Option<Environment>,
    /// The unsupported field in its nested tools.
    nested: Option<Unseen>,
}

/// The environment in which a shell runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Environment {
    Local,
    /// Any other, such as a container of the provider.
    Other,
}

fn parse_tool(endpoint: Endpoint, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    if scanner.peek() != Some(b'{') {
        let is_absent = matches!(scanner.value()?, BodyValue::Null);
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
            let found = list(endpoint, scanner)?.map(|found| found.within(".tools"));
            tool.nested = tool.nested.take().or(found);
            Ok(())
        }
        _ => scanner.skip(),
    })?;
    Ok(deciding.ambiguity().or_else(|| tool.judge(endpoint)))
}

impl Tool<'_> {
    fn judge(self, endpoint: Endpoint) -> Option<Unseen> {
        let (fault, why) = match self.kind.get() {
            Some("function" | "custom") => return None,
            _ if endpoint == Endpoint::Chat => (".type", HOSTED),
            Some("local_shell" | "apply_patch") => return None,
            Some("namespace") => return self.nested,
            Some("shell") if self.environment == Some(Environment::Local) => return None,
            Some("shell") => (".environment", HOSTED_SHELL),
            Some("tool_search") if self.execution.get() == Some("client") => return None,
            Some("tool_search") => (".execution", HOSTED_SEARCH),
            // The caller runs a computer, but its screenshots are items of an unknown cost.
            Some("computer" | "computer_use_preview") => (".type", UNKNOWN),
            _ => (".type", HOSTED),
        };
        Some(Unseen::at(fault, why))
    }
}

/// Reads the environment of a shell. Returns whether it is the caller's machine.
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
