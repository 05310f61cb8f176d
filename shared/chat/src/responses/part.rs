//! The parts of an item's content: text, and images, audio and files that are in the request itself.

use super::unseen::{DecidingKeys, STORED, UNKNOWN, Unseen, Word};
use crate::cache_lifetime;
use crate::error::Scan;
use crate::key::letters;
use crate::prompt::Prompt;
use crate::prompt::media::Media;
use crate::scan::Scanner;

/// Members that refer to a file outside the request.
const REFERENCES: &[&str] = &["file_id", "file_url"];
/// Values of `detail`; they are not billed as text.
const DETAILS: &[&str] = &["auto", "low", "high", "original"];

/// Keys that decide whether a part is accepted: its type, and the payload that is not billed as text.
const DECIDING: &[&str] = &["type", "image_url", "input_audio", "file_data"];

/// A parsed part.
struct Part<'a> {
    deciding: DecidingKeys,
    kind: Word<'a>,
    /// Its text and its other members.
    text: Prompt,
    image: Media,
    audio: Media,
    file: Media,
    /// The member that refers to a file.
    reference: Option<&'static str>,
}

/// Type of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Image,
    Audio,
    File,
    /// Without a type, as in the outputs of a shell: all its bytes count.
    Untyped,
    Unknown,
}

/// Reads the content of an item: a string, or an array of parts.
pub(super) fn contents(prompt: &mut Prompt, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    if scanner.peek() != Some(b'[') {
        prompt.parts += usize::from(scanner.peek() == Some(b'{'));
        return one(prompt, scanner);
    }
    let (mut first, mut index) = (None, 0);
    scanner.array(|scanner| {
        prompt.parts += 1;
        let found = one(prompt, scanner)?;
        if first.is_none() {
            first = found.map(|found| found.within(&format!("[{index}]")));
        }
        index += 1;
        Ok(())
    })?;
    Ok(first)
}

/// Reads one part, or a content that is not an array.
fn one(prompt: &mut Prompt, scanner: &mut Scanner<'_>) -> Scan<Option<Unseen>> {
    if scanner.peek() != Some(b'{') {
        prompt.text(scanner)?;
        return Ok(None);
    }
    let start = scanner.at();
    let part = Part::read(scanner)?;
    part.add_to(prompt, scanner.at() - start);
    Ok(part.judge())
}

impl<'a> Part<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Scan<Self> {
        let mut part = Self {
            deciding: DecidingKeys::new(DECIDING),
            kind: Word::default(),
            text: Prompt::default(),
            image: Media::default(),
            audio: Media::default(),
            file: Media::default(),
            reference: None,
        };
        scanner.object(|scanner, key| {
            let name = part.deciding.read(key)?;
            match &*name {
                "type" => part.kind.read(scanner),
                "text" | "refusal" | "filename" => part.text.text(scanner),
                "image_url" => part.image.read(scanner),
                "input_audio" => part.audio.read(scanner),
                "file_data" => part.file.read(scanner),
                "detail" => part.text.word(scanner, DETAILS),
                "annotations" | "logprobs" => part.text.json(scanner),
                cache_lifetime::BREAKPOINT => part.text.cache_member(scanner, key),
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

    fn kind(&self) -> Kind {
        match self.kind.get() {
            Some("input_text" | "output_text" | "text" | "refusal" | "summary_text" | "reasoning_text") => {
                Kind::Text
            }
            Some("input_image") => Kind::Image,
            Some("input_audio") => Kind::Audio,
            Some("input_file") => Kind::File,
            None if self.kind.is_absent() => Kind::Untyped,
            _ => Kind::Unknown,
        }
    }

    fn judge(&self) -> Option<Unseen> {
        if let Some(ambiguity) = self.deciding.ambiguity() {
            return Some(ambiguity);
        }
        if self.kind() == Kind::Unknown {
            return Some(Unseen::at(".type", UNKNOWN));
        }
        self.reference
            .map(|member| Unseen::at(format!(".{member}"), STORED))
    }

    /// Adds the part to the sum; `whole` is its size in the body. Media count as parts whatever the value of `type`,
    /// but only the payload that matches `type` is free.
    fn add_to(&self, prompt: &mut Prompt, whole: usize) {
        let kind = self.kind();
        let media = [
            (Kind::Image, &self.image),
            (Kind::Audio, &self.audio),
            (Kind::File, &self.file),
        ];
        let media_bytes = media.map(|(own, media)| if own == kind { media.beside } else { media.whole });
        prompt.bytes += match kind {
            Kind::Untyped | Kind::Unknown => whole,
            _ => self.text.bytes + media_bytes.iter().sum::<usize>(),
        };
        let [images, audios, files] = media.map(|(own, media)| media.count.max(usize::from(own == kind)));
        prompt.long_cache |= self.text.long_cache;
        prompt.images += images;
        prompt.audios += audios;
        prompt.files += files;
    }
}

/// Returns the reference that a lenient parser could take `name` for.
fn reference(name: &str) -> Option<&'static str> {
    let mut references = REFERENCES.iter().copied();
    references.find(|known| letters(known).eq(letters(name)))
}
