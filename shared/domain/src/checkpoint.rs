//! Checkpoints of audit chains: how many entries there are and the hash of the last one, in the text form of C2SP's
//! tlog-checkpoint, so that a signature over it (see `crypto::checkpoint_key`) is a C2SP signed note.

use super::mode::Mode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Longest note that is read.
pub const NOTE_BYTES_MAX: usize = 16 << 10;
/// Most signatures that a note can have.
const SIGNATURES_MAX: usize = 16;
/// What the line of a signature begins with.
const SIGNATURE: &str = "\u{2014} ";

/// The state of a chain at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which chain.
    pub origin: String,
    /// How many entries it had.
    pub size: u64,
    /// The hash of the last one; that of nothing ([`hash_of_none`]) for an empty chain.
    pub hash: [u8; 32],
}

/// A note taken apart; who signed is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'a> {
    /// What it says.
    pub checkpoint: Checkpoint,
    /// What is signed, to the byte.
    pub text: &'a str,
    /// Name of the key, key id (four bytes) and signature.
    pub signatures: Vec<(&'a str, Vec<u8>)>,
}

/// The name of a chain, in notes and as the name of the key that signs them.
pub fn origin(account: &str, mode: Mode) -> String {
    format!("tollgate/{account}/{mode}")
}

/// Stands for the hash of an empty chain.
pub fn hash_of_none() -> [u8; 32] {
    Sha256::digest([]).into()
}

impl Checkpoint {
    /// Origin, size and hash, a line each: what is signed.
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.hash))
    }

    /// Reads what is signed; extension lines behind the hash are allowed and mean nothing here.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (origin, size, hash) = (lines.next()?, lines.next()?, lines.next()?);
        let number: u64 = size.parse().ok()?;
        let hash: [u8; 32] = STANDARD.decode(hash).ok()?.try_into().ok()?;
        let plain = !origin.is_empty() && number.to_string() == size && lines.all(|line| !line.is_empty());
        plain.then(|| Self {
            origin: origin.to_owned(),
            size: number,
            hash,
        })
    }
}

impl<'a> Note<'a> {
    /// Puts a signed note together.
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
    fn what_is_no_note_is_refused() {
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
