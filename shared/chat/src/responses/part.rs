//! The parts of an item's content: text, and images, audio and files that are in the request itself.

use super::unseen::{DecidingKeys, STORED_DATA, UNKNOWN, Unseen, Word};
use crate::cache_lifetime;
use crate::error::Scan;
use crate::key::letters;
use crate::prompt::Prompt;
use crate::prompt::media::{MediaKind, PartMedia};
use crate::scan::Scanner;

/// Members that refer to a file outside the request.
const REFERENCES: &[&str] = &["file_id", "file_url"];
/// Values of `detail`; they are not billed as text.
const DETAILS: &[&str] = &["auto", "low", "high", "original"];

/// Keys that decide whether a part is accepted: its type, and the payload that is not billed as text.
const DECIDING: &[&str] = &["type", "image_url", "input_audio", "file_data"];

/// A parsed part.
struct InputPart<'a> {
    deciding: DecidingKeys,
    kind: Word<'a>,
    /// Its text and its other members.
    text: Prompt,
    media: PartMedia,
    /// The member that refers to a file.
    reference: Option<&'static str>,
}

/// Reads the content of an item: a string, or an array of parts.
pub(super) fn contents(prompt: &mut Prompt, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    if scanner.peek() != Some(b'[') {
        prompt.parts += usize::from(scanner.peek() == Some(b'{'));
        return parse_part(prompt, scanner);
    }
    let (mut first, mut index) = (None, 0);
    scanner.array(|scanner| {
        prompt.parts += 1;
        let found = parse_part(prompt, scanner)?;
        if first.is_none() {
            first = found.map(|found| found.within(&format!("[{index}]")));
        }
        index += 1;
        Ok(())
    })?;
    Ok(first)
}

/// Reads one part, or a content that is not an array.
fn parse_part(prompt: &mut Prompt, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    if scanner.peek() != Some(b'{') {
        prompt.text(scanner)?;
        return Ok(None);
    }
    let start = scanner.at();
    let part = InputPart::read(scanner)?;
    let whole = scanner.at() - start;
    part.media.add_part(prompt, part.kind(), &part.text, whole);
    Ok(part.judge())
}

impl<'a> InputPart<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Scan<Self> {
        let mut part = Self {
            deciding: DecidingKeys::new(DECIDING),
            kind: Word::default(),
            text: Prompt::default(),
            media: PartMedia::default(),
            reference: None,
        };
        scanner.object(|scanner, key| {
            let name = part.deciding.read(key)?;
            match &*name {
                "type" => part.kind.read(scanner),
                "text" | "refusal" | "filename" => part.text.text(scanner),
                "image_url" => part.media.image.read(scanner),
                "input_audio" => part.media.audio.read(scanner),
                "file_data" => part.media.file.read(scanner),
                "detail" => part.text.word(scanner, DETAILS),
                "annotations" | "logprobs" => part.text.json(scanner),
                cache_lifetime::BREAKPOINT | cache_lifetime::CONTROL => part.text.cache_member(scanner, key),
                name => {
                    if scanner.peek() != Some(b'n') {
                        part.reference = part.reference.or_else(|| reference(name));
                    }
                    part.text.member(scanner, key)
                }
            }
        })?;
        Ok(part)
    }

    fn kind(&self) -> MediaKind {
        match self.kind.get() {
            Some("input_text" | "output_text" | "text" | "refusal" | "summary_text" | "reasoning_text") => {
                MediaKind::Text
            }
            Some("input_image") => MediaKind::Image,
            Some("input_audio") => MediaKind::Audio,
            Some("input_file") => MediaKind::File,
            _ => MediaKind::Unknown,
        }
    }

    fn judge(&self) -> Option<Unseen> {
        if let Some(ambiguity) = self.deciding.ambiguity() {
            return Some(ambiguity);
        }
        // The outputs of a shell have no type.
        if self.kind() == MediaKind::Unknown && !self.kind.is_absent() {
            return Some(Unseen::at(".type", UNKNOWN));
        }
        self.reference
            .map(|member| Unseen::at(format!(".{member}"), STORED_DATA))
    }
}

/// Returns the reference that a lenient parser could take `name` for.
fn reference(name: &str) -> Option<&'static str> {
    let mut references = REFERENCES.iter().copied();
    references.find(|known| letters(known).eq(letters(name)))
}
