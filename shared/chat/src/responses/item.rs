//! The items of `input`: messages, calls of tools that the caller runs with their outputs, and reasoning.
//!
//! An item of another type either belongs to a tool that the provider runs or names something that it keeps. So do an
//! item without a type that is no whole message (an `item_reference` by its short form), and an update of the
//! configuration that has an id but changes nothing. A `message` has a role and content, or it is none.
//!
//! One thing that the provider keeps is accepted: a reasoning item that has an id but not its encrypted content. The
//! provider looks up its tokens, which were paid as output when they were made, and are at most what one answer of the
//! model can reason. Clients with a reasoning model send such items back with the results of tools. Each is held for
//! an allowance, beside the bytes of what it shows.

use super::part;
use super::tool;
use super::unseen::{DecidingKeys, HOSTED, STORED, UNKNOWN, Unseen, Word};
use crate::error::Scan;
use crate::prompt::{Prompt, ROLES};
use crate::scan::{Scanner, Value};

/// Values of `status` and `phase`; they are not billed as text.
const STATES: &[&str] = &[
    "in_progress",
    "completed",
    "incomplete",
    "failed",
    "commentary",
    "final_answer",
];

/// Keys that decide about an item.
const DECIDING: &[&str] = &[
    "type",
    "id",
    "role",
    "content",
    "encrypted_content",
    "environment",
    "reasoning",
    "text",
];

/// What decides about an item.
#[derive(Default)]
struct Item<'a> {
    kind: Word<'a>,
    has_role: bool,
    has_content: bool,
    has_id: bool,
    is_encrypted: bool,
    /// Changes the effort or the format of later answers.
    has_settings: bool,
    /// The first thing in it that cannot be seen, whatever its type.
    unseen: Option<Unseen>,
}

/// Reads the item at this position and adds it to `prompt`. The place of what is found starts behind the item.
pub(super) fn read(prompt: &mut Prompt, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    let mut item = Item::default();
    let mut deciding = DecidingKeys::new(DECIDING);
    prompt.framed += 1;
    scanner.object(|scanner, key| {
        let name = deciding.read(key)?;
        match &*name {
            "type" => item.kind.read(scanner),
            "role" => {
                item.has_role |= scanner.peek() != Some(b'n');
                prompt.word(scanner, ROLES)
            }
            "content" => {
                item.has_content |= scanner.peek() != Some(b'n');
                item.note(".content", part::contents(prompt, scanner)?)
            }
            "output" | "summary" => item.note(&format!(".{name}"), part::contents(prompt, scanner)?),
            "id" => {
                item.has_id |= scanner.peek() != Some(b'n');
                prompt.text(scanner)
            }
            "reasoning" | "text" => {
                item.has_settings |= scanner.peek() != Some(b'n');
                prompt.member(scanner, key)
            }
            "encrypted_content" => item.read_encrypted(prompt, scanner),
            "environment" => item.read_environment(prompt, scanner),
            "tools" => item.note(".tools", tool::all(prompt, scanner)?),
            "status" | "phase" => prompt.word(scanner, STATES),
            "call_id" | "name" | "namespace" | "arguments" | "input" => prompt.text(scanner),
            "action" | "operation" => prompt.json(scanner),
            _ => prompt.member(scanner, key),
        }
    })?;
    prompt.reasoning_items += usize::from(item.is_kept_reasoning());
    Ok(deciding.ambiguity().or_else(|| item.judge()))
}

impl<'a> Item<'a> {
    fn judge(self) -> Option<Unseen> {
        let fault = match self.kind.get() {
            Some("message") if self.is_message() => None,
            None if self.kind.is_absent() && self.is_message() => None,
            Some("message" | "item_reference") => Some(STORED),
            None if self.kind.is_absent() => Some(STORED),
            Some("configuration_update") if self.has_id && !self.has_settings => {
                return Some(Unseen::at(".id", STORED));
            }
            Some(kind) if is_callers(kind) => None,
            _ => Some(UNKNOWN),
        };
        fault.map(|why| Unseen::at(".type", why)).or(self.unseen)
    }

    /// Whether it has what makes a message: without, its id could stand for a stored one.
    const fn is_message(&self) -> bool {
        self.has_role && self.has_content
    }

    /// Whether it is reasoning that the provider looks up by its id.
    fn is_kept_reasoning(&self) -> bool {
        self.kind.get() == Some("reasoning") && self.has_id && !self.is_encrypted
    }

    /// Keeps the first finding of the member `name`.
    fn note(&mut self, name: &str, found: Option<Unseen>) -> Scan {
        if self.unseen.is_none() {
            self.unseen = found.map(|found| found.within(name));
        }
        Ok(())
    }

    /// Reads reasoning in its encrypted form, which is longer than its text.
    fn read_encrypted(&mut self, prompt: &mut Prompt, scanner: &mut Scanner<'a>) -> Scan {
        let start = scanner.at();
        match scanner.value()? {
            Value::Null => {}
            Value::Text(text) => {
                self.is_encrypted |= text.bytes > 0;
                prompt.bytes += text.bytes;
            }
            _ => prompt.bytes += scanner.at() - start,
        }
        Ok(())
    }

    /// Reads where a shell has run.
    fn read_environment(&mut self, prompt: &mut Prompt, scanner: &mut Scanner<'a>) -> Scan {
        let start = scanner.at();
        let is_absent = scanner.peek() == Some(b'n');
        let is_seen = tool::is_local(scanner)? || is_absent;
        prompt.bytes += scanner.at() - start;
        let found = (!is_seen).then(|| Unseen::at("", HOSTED));
        self.note(".environment", found)
    }
}

/// Whether items of this type are whole by themselves, without anything that the provider keeps or runs.
fn is_callers(kind: &str) -> bool {
    matches!(
        kind,
        "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "custom_tool_call_output"
            | "local_shell_call"
            | "local_shell_call_output"
            | "shell_call"
            | "shell_call_output"
            | "apply_patch_call"
            | "apply_patch_call_output"
            | "tool_search_call"
            | "tool_search_output"
            | "additional_tools"
            | "configuration_update"
            | "reasoning"
    )
}
