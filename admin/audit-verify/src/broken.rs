//! Faults of a trail.

/// The first fault of a trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The first entry that differs from the recorded one; `None` if only the whole is known to differ.
    pub seq: Option<u64>,
    /// The fault, as a sentence.
    pub problem: String,
}

impl Broken {
    /// Creates the finding for this entry.
    pub(crate) fn at(seq: u64, problem: impl Into<String>) -> Self {
        Self {
            seq: Some(seq),
            problem: problem.into(),
        }
    }
}
