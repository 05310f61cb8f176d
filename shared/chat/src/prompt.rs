//! Size of the prompt (decision D31): everything counts unless it is known to be free of charge.
//!
//! A string that OpenAI bills as text counts its UTF-8 bytes after unescaping. Known values of `role` and `type` are
//! free. Media payloads are free, but their part counts. Everything else counts its bytes in the body, including keys
//! of unknown members, so text cannot be hidden in a field that this file does not know. Ids of tool calls count as
//! text, since the model may see them.
//!
//! All of several equal keys count, and keys count like those that they fold to (`key::folded`), so the sum covers any
//! key that another parser reads. So an unusual body can only become dearer. A payload that occurs twice in its part is
//! refused.

pub(super) mod media;
mod part;

use super::cache_lifetime;
use super::error::Scan;
use super::key::folded;
use super::scan::{BodyValue, Scanner};
use super::text::Text;
use domain::price::CallShape;
use part::PromptPart;

/// Values of `role`; they are not billed as text.
pub(super) const ROLES: &[&str] = &["user", "assistant", "system", "developer", "tool", "function"];
/// Values of `tool_choice` and the older `function_call`.
const CHOICES: &[&str] = &["auto", "none", "required"];
/// Values of the `type` of a tool call.
const CALL_TYPES: &[&str] = &["function", "custom"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Prompt {
    /// Bytes billed as text.
    pub bytes: usize,
    /// Messages and tool calls: the provider frames each (decision D68).
    pub framed: usize,
    /// Elements of `content`, empty ones included (decision D68).
    pub parts: usize,
    /// Image parts.
    pub images: usize,
    /// Audio parts.
    pub audios: usize,
    /// File parts.
    pub files: usize,
    /// Reasoning items whose tokens the provider keeps.
    pub reasoning_items: usize,
    /// True if the request sets a longer lifetime in the provider's cache than its default.
    pub long_cache: bool,
    /// The first key of a payload that occurs twice in its part.
    pub repeated: Option<&'static str>,
}

impl Prompt {
    /// Returns the counts of a call with this prompt and without an answer.
    pub(super) const fn shape(&self) -> CallShape<'static> {
        CallShape {
            prompt_bytes: self.bytes as u64,
            framed: self.framed as u64,
            content_parts: self.parts as u64,
            image_parts: self.images as u64,
            audio_parts: self.audios as u64,
            file_parts: self.files as u64,
            reasoning_items: self.reasoning_items as u64,
            long_cache: self.long_cache,
            ..CallShape::EMPTY
        }
    }

    /// Reads an element of `messages` that is an object.
    pub(super) fn message(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        self.framed += 1;
        scanner.object(|scanner, key| match &*folded(key.decode()?) {
            "role" => self.word(scanner, ROLES),
            "content" => self.content(scanner),
            "name" | "refusal" | "tool_call_id" => self.text(scanner),
            "tool_calls" => self.each(scanner, Self::call),
            "function_call" => self.function(scanner),
            "audio" => self.earlier_audio(scanner),
            "annotations" => self.json(scanner),
            cache_lifetime::CONTROL => self.cache_member(scanner, key),
            _ => self.member(scanner, key),
        })
    }

    /// Reads the value of `tool_choice` or of the older top-level `function_call`.
    pub(super) fn choice(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        self.word(scanner, CHOICES)
    }

    pub(super) fn prediction(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        self.fields(scanner, |prompt, scanner, key, name| match name {
            "type" => prompt.word(scanner, &["content"]),
            "content" => prompt.content(scanner),
            _ => prompt.member(scanner, key),
        })
    }

    /// Reads a value that counts as text when it is a string.
    pub(super) fn text(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        let start = scanner.at();
        match scanner.value()? {
            BodyValue::Null => {}
            BodyValue::Text(text) => self.bytes += text.bytes,
            _ => self.bytes += scanner.at() - start,
        }
        Ok(())
    }

    /// Parses a value whose raw bytes count unless it is `null`.
    pub(super) fn json(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        self.word(scanner, &[])
    }

    /// Parses the value of `key`; the raw bytes of both count.
    pub(super) fn member(&mut self, scanner: &mut Scanner<'_>, key: Text<'_>) -> Scan {
        let start = scanner.at();
        scanner.skip()?;
        self.bytes += compact_key_bytes(key) + scanner.at() - start;
        Ok(())
    }

    /// Reads the value of `key`, which may request a cache lifetime; the raw bytes of both count.
    pub(super) fn cache_member(&mut self, scanner: &mut Scanner<'_>, key: Text<'_>) -> Scan {
        let start = scanner.at();
        self.long_cache |= cache_lifetime::is_long(scanner, &folded(key.decode()?))?;
        self.bytes += compact_key_bytes(key) + scanner.at() - start;
        Ok(())
    }

    /// Reads a value that is free if it is one of `free`, or `null`.
    pub(super) fn word(&mut self, scanner: &mut Scanner<'_>, free: &[&str]) -> Scan {
        let start = scanner.at();
        match scanner.value()? {
            BodyValue::Null => {}
            BodyValue::Text(text) if free.contains(&text.raw) => {}
            _ => self.bytes += scanner.at() - start,
        }
        Ok(())
    }

    /// Reads the content of a message: a string, or an array of parts.
    fn content(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        if scanner.peek() == Some(b'[') {
            return scanner.array(|scanner| {
                self.parts += 1;
                self.part(scanner)
            });
        }
        self.parts += usize::from(scanner.peek() == Some(b'{'));
        self.part(scanner)
    }

    /// Reads one element of a content array, or a content that is not an array.
    fn part(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        if scanner.peek() != Some(b'{') {
            return self.text(scanner);
        }
        let start = scanner.at();
        let part = PromptPart::read(scanner)?;
        part.add_to(self, scanner.at() - start);
        Ok(())
    }

    /// Reads a tool call.
    fn call(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        self.framed += 1;
        self.fields(scanner, |prompt, scanner, key, name| match name {
            "id" => prompt.text(scanner),
            "type" => prompt.word(scanner, CALL_TYPES),
            "function" | "custom" => prompt.function(scanner),
            _ => prompt.member(scanner, key),
        })
    }

    /// Reads the function of a tool call: `arguments` in a function, `input` in a custom tool.
    fn function(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        self.fields(scanner, |prompt, scanner, key, name| match name {
            "name" | "arguments" | "input" => prompt.text(scanner),
            _ => prompt.member(scanner, key),
        })
    }

    /// Reads the `audio` of an assistant's message: it puts an earlier audio answer back into the prompt.
    fn earlier_audio(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        let before = self.bytes;
        self.json(scanner)?;
        self.audios += usize::from(self.bytes > before);
        Ok(())
    }

    /// Parses an array whose objects are parsed by `object`. Some parsers read a lone object as an array of one;
    /// strings, alone or as elements, count as text.
    fn each(
        &mut self,
        scanner: &mut Scanner<'_>,
        object: impl Fn(&mut Self, &mut Scanner<'_>) -> Scan,
    ) -> Scan {
        let mut element = |scanner: &mut Scanner<'_>| match scanner.peek() {
            Some(b'{') => object(self, scanner),
            _ => self.text(scanner),
        };
        if scanner.peek() == Some(b'[') {
            scanner.array(element)
        } else {
            element(scanner)
        }
    }

    /// Parses an object whose members are parsed by `member`, which receives their key raw and folded. Any other value
    /// counts.
    pub(super) fn fields(
        &mut self,
        scanner: &mut Scanner<'_>,
        member: impl Fn(&mut Self, &mut Scanner<'_>, Text<'_>, &str) -> Scan,
    ) -> Scan {
        if scanner.peek() != Some(b'{') {
            return self.text(scanner);
        }
        scanner.object(|scanner, key| member(self, scanner, key, &folded(key.decode()?)))
    }
}
/// Returns the bytes of a key with its quotes and colon. White space behind them does not count: a dry run writes the
/// members anew.
const fn compact_key_bytes(key: Text<'_>) -> usize {
    key.raw.len() + r#""":"#.len()
}
