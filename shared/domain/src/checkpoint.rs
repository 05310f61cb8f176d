//! Checkpoints of audit chains: the number of entries and the hash of the last one, in the text form of C2SP's
//! tlog-checkpoint, so that a signature over it (see `crypto::checkpoint_key`) is a C2SP signed note.

use super::mode::Mode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Longest note that is parsed, in bytes.
pub const NOTE_BYTES_MAX: usize = 16 << 10;
const SIGNATURES_MAX: usize = 16;
/// Prefix of the line of the [later end](Checkpoint::later).
const LATER: &str = "later ";
/// Prefix of the line of a signature.
const SIGNATURE: &str = "\u{2014} ";

/// The state of a chain at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the chain.
    pub origin: String,
    /// The number of its entries.
    pub size: u64,
    /// The hash of the last entry; [`hash_of_none`] for an empty chain.
    pub hash: [u8; 32],
    /// The end that the chain had when this was signed, if it had grown on by then: so nobody is given an earlier state
    /// that looks like the present one.
    pub later: Option<CheckpointEnd>,
}

/// A number of entries, and the hash of the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointEnd {
    /// Number of entries.
    pub size: u64,
    /// The hash of the last one.
    pub hash: [u8; 32],
}

/// A parsed note. Its signatures are not verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'a> {
    /// The checkpoint in its text.
    pub checkpoint: Checkpoint,
    /// The exact bytes that are signed.
    pub text: &'a str,
    /// For each signature: the name of the key, and the key id (four bytes) followed by the signature.
    pub signatures: Vec<(&'a str, Vec<u8>)>,
}

/// Returns the name of a chain, which is also the name of the key that signs its notes.
pub fn origin(account: &str, mode: Mode) -> String {
    format!("tollgate/{account}/{mode}")
}

/// Returns the hash of an empty chain.
pub fn hash_of_none() -> [u8; 32] {
    Sha256::digest([]).into()
}

impl Checkpoint {
    /// Origin, size and hash, a line each, and a line with the later end if there is one. This text is signed.
    pub fn text(&self) -> String {
        let later = self.later.map(|CheckpointEnd { size, hash }| {
            let hash = STANDARD.encode(hash);
            format!("{LATER}{size} {hash}\n")
        });
        let (size, hash) = (self.size, STANDARD.encode(self.hash));
        format!("{}\n{size}\n{hash}\n{}", self.origin, later.unwrap_or_default())
    }

    /// Returns the largest size with its hash in this checkpoint.
    pub fn end(&self) -> CheckpointEnd {
        self.later.unwrap_or(CheckpointEnd {
            size: self.size,
            hash: self.hash,
        })
    }

    /// Parses the signed text. Of the extension lines after the hash only that of the later end is read.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (origin, size, hash) = (lines.next()?, lines.next()?, lines.next()?);
        let own = end(size, hash)?;
        let mut later = None;
        for line in lines {
            if let Some((size, hash)) = line.strip_prefix(LATER).and_then(|line| line.split_once(' ')) {
                later = Some(end(size, hash).filter(|later| later.size > own.size)?);
            } else if line.is_empty() {
                return None;
            }
        }
        (!origin.is_empty()).then(|| Self {
            origin: origin.to_owned(),
            size: own.size,
            hash: own.hash,
            later,
        })
    }
}

/// A number without leading zeros, and a hash in base 64.
fn end(size: &str, hash: &str) -> Option<CheckpointEnd> {
    let number: u64 = size.parse().ok()?;
    let hash: [u8; 32] = STANDARD.decode(hash).ok()?.try_into().ok()?;
    (number.to_string() == size).then_some(CheckpointEnd { size: number, hash })
}

impl<'a> Note<'a> {
    /// Builds a signed note.
    pub fn compose(text: &str, key_name: &str, signature: &[u8]) -> String {
        format!("{text}\n{SIGNATURE}{key_name} {}\n", STANDARD.encode(signature))
    }

    /// Parses a note; `None` if it is malformed.
    pub fn parse(note: &'a str) -> Option<Self> {
        if note.len() > NOTE_BYTES_MAX {
            return None;
        }
        let end = note.rfind("\n\n")? + 1;
        let (text, rest) = (note.get(..end)?, note.get(end + 1..)?);
        let mut signatures = Vec::new();
        for line in rest.strip_suffix('\n')?.split('\n') {
            let (name, signature) = line.strip_prefix(SIGNATURE)?.split_once(' ')?;
            if name.is_empty() || signatures.len() == SIGNATURES_MAX {
                return None;
            }
            signatures.push((name, STANDARD.decode(signature).ok()?));
        }
        Some(Self {
            checkpoint: Checkpoint::parse(text)?,
            text,
            signatures,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            origin: origin("acct_1", Mode::Live),
            size: 50,
            hash: [7; 32],
            later: None,
        }
    }

    #[test]
    fn the_text_is_the_documented_one() {
        let text = "tollgate/acct_1/live\n50\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n";
        assert_eq!(checkpoint().text(), text);
        let note = Note::compose(text, "tollgate/acct_1/live", &[1, 2, 3]);
        assert_eq!(note, format!("{text}\n\u{2014} tollgate/acct_1/live AQID\n"));
        let read = Note::parse(&note).unwrap();
        assert_eq!((&read.checkpoint, read.text), (&checkpoint(), text));
        assert_eq!(read.signatures, [("tollgate/acct_1/live", vec![1, 2, 3])]);
    }

    #[test]
    fn a_checkpoint_of_an_earlier_state_names_the_end_at_its_signing() {
        let later = CheckpointEnd {
            size: 55,
            hash: [9; 32],
        };
        let earlier = Checkpoint {
            later: Some(later),
            ..checkpoint()
        };
        let text = earlier.text();
        assert_eq!(
            text,
            format!(
                "{}later 55 CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=\n",
                checkpoint().text()
            )
        );
        let note = Note::compose(&text, "k", &[0; 68]);
        let read = Note::parse(&note).unwrap().checkpoint;
        assert_eq!(read, earlier);
        assert_eq!((read.end(), checkpoint().end().size), (later, 50));
        for bad in ["later 50 ", "later 055 ", "later x "] {
            assert_eq!(Note::parse(&note.replacen("later 55 ", bad, 1)), None, "{bad}");
        }
    }

    #[test]
    fn an_invalid_note_is_refused() {
        let good = Note::compose(&checkpoint().text(), "k", &[0; 68]);
        assert!(Note::parse(&good).is_some());
        let extended = good.replacen("\n\n", "\nmore\n\n", 1);
        assert_eq!(
            Note::parse(&extended).map(|note| note.checkpoint),
            Some(checkpoint())
        );
        for bad in [
            String::new(),
            good.trim_end().to_owned(),
            good.replacen("\n\n", "\n", 1),
            good.replacen("50", "050", 1),
            good.replacen("50", "-1", 1),
            good.replacen("50", "99999999999999999999", 1),
            good.replacen("BwcH", "Bwc", 1),
            good.replacen('\u{2014}', "-", 1),
            good.replacen(" k ", "  ", 1),
            format!("{good}more\n"),
            good.replacen("tollgate/acct_1/live", "", 1),
            format!("{good}{}", "\u{2014} k AQID\n".repeat(SIGNATURES_MAX)),
            format!("{}{good}", "x".repeat(NOTE_BYTES_MAX)),
        ] {
            assert_eq!(Note::parse(&bad), None, "{bad}");
        }
    }
}
