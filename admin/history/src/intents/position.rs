//! Positions in a list of intents: in the store after an intent, or in the archive after some intents of a segment.

use store::StoreError;
use store::intent::IntentPosition;

/// End of a page of intents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// In the store.
    Live(Live),
    /// In the archive.
    Archived(Archived),
}

/// After an intent in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) id: String,
    /// Position of that intent.
    pub(super) position: IntentPosition,
    /// Number of archived intents when the first page was read. Those are read when the store has no more.
    pub(super) archived: u64,
    /// Number of the last intent archived since then that has been read.
    pub(super) drained: u64,
    /// Number of intents already listed in the segment after that one.
    pub(super) skip: u64,
}

/// After some intents of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Archived {
    /// The number of the segment's first intent.
    pub(super) first: u64,
    /// Number of intents of the list in that segment that have been listed.
    pub(super) skip: u64,
}

impl Position {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Live(live) => {
                let IntentPosition { number, at_ms } = live.position;
                let (archived, drained, skip) = (live.archived, live.drained, live.skip);
                format!("live {number} {at_ms} {archived} {drained} {skip} {}", live.id)
            }
            Self::Archived(Archived { first, skip }) => format!("archive {first} {skip}"),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        Self::read(text).ok_or(StoreError::BadPosition)
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let kind = words.next()?;
        let mut number = || words.next()?.parse().ok();
        let position = match kind {
            "live" => {
                let position = IntentPosition {
                    number: number()?,
                    at_ms: number()?,
                };
                let (archived, drained, skip) = (number()?, number()?, number()?);
                let id = words.next()?.to_owned();
                Self::Live(Live {
                    id,
                    position,
                    archived,
                    drained,
                    skip,
                })
            }
            "archive" => Self::Archived(Archived {
                first: number()?,
                skip: number()?,
            }),
            _ => return None,
        };
        words.next().is_none().then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_back_and_nothing_else_is() {
        let live = Position::Live(Live {
            id: "int_1".to_owned(),
            position: IntentPosition { number: 7, at_ms: 9 },
            archived: 200,
            drained: 400,
            skip: 3,
        });
        let archived = Position::Archived(Archived { first: 201, skip: 5 });
        for position in [live, archived] {
            assert_eq!(Position::parse(&position.text()).unwrap(), position);
        }
        for bad in [
            "",
            "live",
            "live 1 2 3 4 5",
            "live 1 2 3 4 5 int_1 6",
            "live 1 2 3 4 -5 int_1",
            "archive 1",
            "archive 1 2 3",
            "archive one 2",
            "tape 1 2",
        ] {
            assert!(Position::parse(bad).is_err(), "{bad:?}");
        }
    }
}
