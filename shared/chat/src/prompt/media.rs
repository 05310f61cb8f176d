//! Counts of the images, audio and files of a part of a message's content.

use super::Prompt;
use crate::error::Scan;
use crate::key::folded;
use crate::scan::Scanner;

/// Members of a media object that contain its payload or describe its encoding.
const PAYLOADS: &[&str] = &["url", "data", "file_data", "file_id", "detail", "format"];

/// Type of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaKind {
    Text,
    Image,
    Audio,
    File,
    /// None of these: all its bytes count, and an image if a member could be one.
    Unknown,
}

#[derive(Debug, Default)]
pub(crate) struct PartMedia {
    pub image: Media,
    pub audio: Media,
    pub file: Media,
    /// True if a part of unknown type has a member that could be an image: api.openai.com has billed `{"image": …}` as
    /// one, and providers have further types of media.
    pub is_unknown_media: bool,
}

impl PartMedia {
    /// Adds a part of this `kind` to the sum; `text` are its other members, `whole` is its size in the body. Media
    /// count as parts whatever the kind, but only the payload that matches it is free.
    pub(crate) fn add_part(&self, prompt: &mut Prompt, kind: MediaKind, text: &Prompt, whole: usize) {
        let media = [
            (MediaKind::Image, &self.image),
            (MediaKind::Audio, &self.audio),
            (MediaKind::File, &self.file),
        ];
        let media_bytes = media.map(|(own, media)| if own == kind { media.beside } else { media.whole });
        prompt.bytes += match kind {
            MediaKind::Unknown => whole,
            _ => text.bytes + media_bytes.iter().sum::<usize>(),
        };
        let is_image = kind == MediaKind::Unknown && self.is_unknown_media;
        let [images, audios, files] = media.map(|(own, media)| {
            let counts = own == kind || own == MediaKind::Image && is_image;
            media.count.max(usize::from(counts))
        });
        prompt.images += images;
        prompt.audios += audios;
        prompt.files += files;
        prompt.long_cache |= text.long_cache;
    }
}

/// The members with one name (such as `image_url`, `input_audio` or `file`) in a part.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Media {
    /// Their number, `null` included.
    pub members: usize,
    /// Number of those with a value.
    pub count: usize,
    /// Their bytes in the body.
    pub whole: usize,
    /// The part of these bytes that counts next to the payload, such as a file name.
    pub beside: usize,
}

impl Media {
    /// Reads the value of a media member: an object with the payload, or the payload itself.
    pub(crate) fn read(&mut self, scanner: &mut Scanner<'_>) -> Scan {
        self.members += 1;
        let start = scanner.at();
        let mut beside = Prompt::default();
        match scanner.peek() {
            Some(b'"') => scanner.skip()?,
            Some(b'{') => scanner.object(|scanner, key| match &*folded(key.decode()?) {
                name if PAYLOADS.contains(&name) => free_string(&mut beside, scanner),
                "filename" => beside.text(scanner),
                _ => beside.member(scanner, key),
            })?,
            Some(b'n') => return scanner.skip(),
            _ => beside.json(scanner)?,
        }
        self.count += 1;
        self.whole += scanner.at() - start;
        self.beside += beside.bytes;
        Ok(())
    }
}

/// Parses a value that is free if it is a string, like a payload.
fn free_string(prompt: &mut Prompt, scanner: &mut Scanner<'_>) -> Scan {
    if scanner.peek() == Some(b'"') {
        scanner.skip()
    } else {
        prompt.json(scanner)
    }
}
