//! One part of a message's content: text, or an image, audio or file, which counts as one part regardless of its bytes.

use super::Prompt;
use super::media::Media;
use crate::cache_lifetime;
use crate::error::Scan;
use crate::key::folded;
use crate::scan::{Scanner, Value};

/// Type of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Image,
    Audio,
    File,
    /// Unknown, or more than one `type`: all its bytes count.
    Unknown,
}

/// A parsed part.
#[derive(Debug, Default)]
pub(super) struct Part {
    kind: Option<Kind>,
    /// Its text and its unknown members.
    text: Prompt,
    image: Media,
    audio: Media,
    file: Media,
}

impl Part {
    /// Reads the object that starts here.
    pub(super) fn read(scanner: &mut Scanner<'_>) -> Scan<Self> {
        let mut part = Self::default();
        scanner.object(|scanner, key| match &*folded(key.decode()?) {
            "type" => part.read_kind(scanner),
            "text" | "refusal" => part.text.text(scanner),
            "image_url" => part.image.read(scanner),
            "input_audio" => part.audio.read(scanner),
            "file" => part.file.read(scanner),
            cache_lifetime::BREAKPOINT => part.text.cache_member(scanner, key),
            _ => part.text.member(scanner, key),
        })?;
        Ok(part)
    }

    /// Adds the part to the sum; `whole` is its size in the body. Media count as parts whatever the value of `type`,
    /// but only the payload that matches `type` is free.
    pub(super) fn add_to(&self, prompt: &mut Prompt, whole: usize) {
        let kind = self.kind.unwrap_or(Kind::Unknown);
        let media = [
            (Kind::Image, &self.image),
            (Kind::Audio, &self.audio),
            (Kind::File, &self.file),
        ];
        let media_bytes = media.map(|(own, media)| if own == kind { media.beside } else { media.whole });
        prompt.bytes += match kind {
            Kind::Unknown => whole,
            _ => self.text.bytes + media_bytes.iter().sum::<usize>(),
        };
        let [images, audios, files] = media.map(|(own, media)| media.count.max(usize::from(own == kind)));
        prompt.images += images;
        prompt.audios += audios;
        prompt.files += files;
        prompt.long_cache |= self.text.long_cache;
        prompt.repeated = prompt.repeated.or_else(|| self.repeated());
    }

    /// Returns the key of a payload that occurs twice: parsers disagree about which of the two counts.
    fn repeated(&self) -> Option<&'static str> {
        let media = [
            ("image_url", &self.image),
            ("input_audio", &self.audio),
            ("file", &self.file),
        ];
        let mut repeated = media.iter().filter(|(_, media)| media.members > 1);
        repeated.next().map(|(key, _)| *key)
    }

    /// Reads the value of `type`.
    fn read_kind(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        let kind = match scanner.value()? {
            Value::Text(text) => match &*text.decode()? {
                "text" | "refusal" | "input_text" => Kind::Text,
                "image_url" => Kind::Image,
                "input_audio" => Kind::Audio,
                "file" => Kind::File,
                _ => Kind::Unknown,
            },
            _ => Kind::Unknown,
        };
        self.kind = Some(if self.kind.is_none() { kind } else { Kind::Unknown });
        Ok(())
    }
}
