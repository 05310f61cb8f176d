//! Where a trail is not what was recorded.

/// What is wrong first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The entry that is not what was recorded; none when only the whole is known to be another one.
    pub seq: Option<u64>,
    /// What is wrong with it, as a sentence.
    pub problem: String,
}

impl Broken {
    /// At this entry.
    pub(crate) fn at(seq: u64, problem: impl Into<String>) -> Self {
        Self {
            seq: Some(seq),
            problem: problem.into(),
        }
    }
}
