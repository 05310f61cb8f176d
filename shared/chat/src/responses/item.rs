//! The items of `input`: messages, calls of tools that the caller runs and their outputs, and reasoning.
//!
//! An item of another type either belongs to a tool that the provider runs, or refers to something that the provider
//! keeps. The same holds for an item without a type that is not a complete message (the short form of an
//! `item_reference`), and for an update of the configuration that has an id but changes nothing. A `message` needs a
//! role and content.
//!
//! One kind of kept state is accepted: a reasoning item with an id but without its encrypted content. A content that is
//! too short to be encrypted reasoning counts as none: the provider might ignore it and go by the id. The provider
//! looks up its tokens, which were paid as output when they were generated, and are at most what the model can reason
//! in one answer. Clients with a reasoning model send such items back with the results of tools. An allowance is held
//! for each, in addition to the bytes of its visible contents.

use super::part;
use super::tool;
use super::unseen::{DecidingKeys, HOSTED, STORED_ITEM, UNKNOWN, Unseen, Word};
use crate::error::Scan;
use crate::prompt::{Prompt, ROLES};
use crate::scan::{BodyValue, Scanner};
use domain::measured::Endpoint;

/// Values of `status` and `phase`; they are not billed as text.
const STATES: &[&str] = &[
    "in_progress",
    "completed",
    "incomplete",
    "failed",
    "commentary",
    "final_answer",
];

/// Length of the shortest reasoning in its encrypted form, in bytes. OpenAI's is a Fernet token (`gAAAA…`): version,
/// time, initial value, one block and signature are 73 bytes, in base64.
const ENCRYPTED_BYTES_MIN: usize = 100;

/// Keys that decide whether an item is accepted.
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

/// The members that decide whether an item is accepted.
#[derive(Default)]
struct InputItem<'a> {
    kind: Word<'a>,
    has_role: bool,
    has_content: bool,
    has_id: bool,
    is_encrypted: bool,
    /// True if it changes the effort or the format of later answers.
    has_settings: bool,
    /// The first unsupported field in it, whatever its type.
    unseen: Option<Unseen>,
}

/// Reads the item at this position and adds it to `prompt`. The path of an unsupported field is relative to the item.
pub(super) fn read(prompt: &mut Prompt, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    let mut item = InputItem::default();
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
            "tools" => item.note(".tools", tool::all(Endpoint::Responses, prompt, scanner)?),
            "status" | "phase" => prompt.word(scanner, STATES),
            "call_id" | "name" | "namespace" | "arguments" | "input" => prompt.text(scanner),
            "action" | "operation" => prompt.json(scanner),
            _ => prompt.member(scanner, key),
        }
    })?;
    prompt.reasoning_items += usize::from(item.is_kept_reasoning());
    Ok(deciding.ambiguity().or_else(|| item.judge()))
}

impl<'a> InputItem<'a> {
    fn judge(self) -> Option<Unseen> {
        let fault = match self.kind.get() {
            Some("message") if self.is_message() => None,
            None if self.kind.is_absent() && self.is_message() => None,
            Some("message" | "item_reference") => Some(STORED_ITEM),
            None if self.kind.is_absent() => Some(STORED_ITEM),
            Some("configuration_update") if self.has_id && !self.has_settings => {
                return Some(Unseen::at(".id", STORED_ITEM));
            }
            Some(kind) if is_callers(kind) => None,
            _ => Some(UNKNOWN),
        };
        fault.map(|why| Unseen::at(".type", why)).or(self.unseen)
    }

    /// Returns whether it has all parts of a message; otherwise its id could refer to a stored one.
    const fn is_message(&self) -> bool {
        self.has_role && self.has_content
    }

    /// Returns whether it is reasoning that the provider looks up by its id.
    fn is_kept_reasoning(&self) -> bool {
        self.kind.get() == Some("reasoning") && self.has_id && !self.is_encrypted
    }

    /// Records the first unsupported field, in the member `name`.
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
            BodyValue::Null => {}
            BodyValue::Text(text) => {
                self.is_encrypted |= text.bytes >= ENCRYPTED_BYTES_MIN;
                prompt.bytes += text.bytes;
            }
            _ => prompt.bytes += scanner.at() - start,
        }
        Ok(())
    }

    /// Reads the environment in which a shell has run.
    fn read_environment(&mut self, prompt: &mut Prompt, scanner: &mut Scanner<'a>) -> Scan {
        let start = scanner.at();
        let is_absent = scanner.peek() == Some(b'n');
        let is_seen = tool::is_local(scanner)? || is_absent;
        prompt.bytes += scanner.at() - start;
        let found = (!is_seen).then(|| Unseen::at("", HOSTED));
        self.note(".environment", found)
    }
}

/// Returns whether items of this type are complete without anything that the provider keeps or runs.
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
