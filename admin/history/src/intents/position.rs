//! Positions in a list of intents: in the store after an intent, or in the archive after some intents of a segment.

use store::StoreError;

/// End of a page of intents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntentsPosition {
    /// In the store.
    Live(LivePosition),
    /// In the archive.
    Archived(ArchivedPosition),
}

/// After an intent in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LivePosition {
    /// Position of that intent in the list.
    pub(super) position: u64,
    /// Number of archived intents when the first page was read. Those are read when the store has no more.
    pub(super) archived: u64,
    /// Number of the last intent archived since then that has been read.
    pub(super) drained: u64,
    /// Number of intents already listed in the segment after that one.
    pub(super) skip: u64,
}

/// After some intents of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ArchivedPosition {
    /// The number of the segment's first intent.
    pub(super) first: u64,
    /// Number of intents of the list in that segment that have been listed.
    pub(super) skip: u64,
}

impl IntentsPosition {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Live(live) => {
                let LivePosition {
                    position,
                    archived,
                    drained,
                    skip,
                } = live;
                format!("live {position} {archived} {drained} {skip}")
            }
            Self::Archived(ArchivedPosition { first, skip }) => format!("archive {first} {skip}"),
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
            "live" => Self::Live(LivePosition {
                position: number()?,
                archived: number()?,
                drained: number()?,
                skip: number()?,
            }),
            "archive" => Self::Archived(ArchivedPosition {
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
        let live = IntentsPosition::Live(LivePosition {
            position: 7,
            archived: 200,
            drained: 400,
            skip: 3,
        });
        let archived = IntentsPosition::Archived(ArchivedPosition { first: 201, skip: 5 });
        for position in [live, archived] {
            assert_eq!(IntentsPosition::parse(&position.text()).unwrap(), position);
        }
        for bad in [
            "",
            "live",
            "live 1 2 3",
            "live 1 2 3 4 5",
            "live 1 2 3 -4",
            "archive 1",
            "archive 1 2 3",
            "archive one 2",
            "tape 1 2",
        ] {
            assert!(IntentsPosition::parse(bad).is_err(), "{bad:?}");
        }
    }
}
