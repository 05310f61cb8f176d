//! One part of a message's content: text, or an image, audio or file, which counts as one part regardless of its bytes.

use super::Prompt;
use super::media::{MediaKind, PartMedia};
use crate::cache_lifetime;
use crate::error::Scan;
use crate::key::folded;
use crate::scan::{BodyValue, Scanner};

/// A parsed part.
#[derive(Debug, Default)]
pub(super) struct PromptPart {
    /// Unknown after more than one `type`.
    kind: Option<MediaKind>,
    /// Its text and its unknown members.
    text: Prompt,
    media: PartMedia,
}

impl PromptPart {
    /// Reads the object that starts here.
    pub(super) fn read(scanner: &mut Scanner<'_>) -> Scan<Self> {
        let mut part = Self::default();
        scanner.object(|scanner, key| match &*folded(key.decode()?) {
            "type" => part.read_kind(scanner),
            "text" | "refusal" => part.text.text(scanner),
            "image_url" => part.media.image.read(scanner),
            "input_audio" => part.media.audio.read(scanner),
            "file" => part.media.file.read(scanner),
            cache_lifetime::BREAKPOINT | cache_lifetime::CONTROL => part.text.cache_member(scanner, key),
            _ => {
                part.media.is_unknown_media |= scanner.peek() != Some(b'n');
                part.text.member(scanner, key)
            }
        })?;
        Ok(part)
    }

    /// Adds the part to the sum; `whole` is its size in the body.
    pub(super) fn add_to(&self, prompt: &mut Prompt, whole: usize) {
        let kind = self.kind.unwrap_or(MediaKind::Unknown);
        self.media.add_part(prompt, kind, &self.text, whole);
        prompt.repeated = prompt.repeated.or_else(|| self.repeated());
    }

    /// Returns the key of a payload that occurs twice: parsers disagree about which of the two counts.
    fn repeated(&self) -> Option<&'static str> {
        let media = [
            ("image_url", &self.media.image),
            ("input_audio", &self.media.audio),
            ("file", &self.media.file),
        ];
        let mut repeated = media.iter().filter(|(_, media)| media.members > 1);
        repeated.next().map(|(key, _)| *key)
    }

    /// Reads the value of `type`.
    fn read_kind(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        let kind = match scanner.value()? {
            BodyValue::Text(text) => match &*text.decode()? {
                "text" | "refusal" | "input_text" => MediaKind::Text,
                "image_url" => MediaKind::Image,
                "input_audio" => MediaKind::Audio,
                "file" => MediaKind::File,
                _ => MediaKind::Unknown,
            },
            _ => MediaKind::Unknown,
        };
        self.kind = Some(if self.kind.is_none() {
            kind
        } else {
            MediaKind::Unknown
        });
        Ok(())
    }
}
