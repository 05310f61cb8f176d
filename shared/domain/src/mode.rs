//! The two modes of an account. Records of one never mix with those of the other (decision D2).

use std::fmt;

/// Live or test. The proxy is live only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Real money and real calls.
    Live,
    /// For trying things out; counts against no plan limit (D53).
    Test,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Live, Self::Test];

    /// The word used in keys, options and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }

    /// The mode of a word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "live" => Some(Self::Live),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
