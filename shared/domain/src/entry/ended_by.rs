//! The actor that ended a call's hold instead of the edge that opened it: a word of the call's line in the audit trail.
//! The line of an edge has none, and its entry names the virtual key.

/// Actor, other than the edge, that ended a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndedBy {
    /// The worker that keeps holds past their deadlines.
    Worker,
    /// The operator, by the command line.
    Operator {
        /// Why, if the operator said so: one line of visible text.
        reason: Option<String>,
    },
}

const WORKER: &str = "worker";
/// The operator, by the command line: the actor of an entry.
pub const OPERATOR: &str = "operator";
/// Parts the operator from the reason.
const REASON: char = ':';

impl EndedBy {
    /// The word of the line: `worker`, `operator`, or `operator:<reason>` with `%20` for a space and `%25` for `%`.
    pub fn to_word(&self) -> String {
        match self {
            Self::Worker => WORKER.to_owned(),
            Self::Operator { reason: None } => OPERATOR.to_owned(),
            Self::Operator { reason: Some(reason) } => {
                let word = reason.replace('%', "%25").replace(' ', "%20");
                format!("{OPERATOR}{REASON}{word}")
            }
        }
    }

    /// Parses a word of [`to_word`](Self::to_word); `None` if malformed.
    pub fn parse(word: &str) -> Option<Self> {
        match (word, word.split_once(REASON)) {
            (WORKER, _) => Some(Self::Worker),
            (OPERATOR, _) => Some(Self::Operator { reason: None }),
            (_, Some((OPERATOR, reason))) if !reason.is_empty() => {
                let reason = reason.replace("%20", " ").replace("%25", "%");
                Some(Self::Operator { reason: Some(reason) })
            }
            _ => None,
        }
    }

    /// The actor of the entry.
    pub const fn actor(&self) -> &'static str {
        match self {
            Self::Worker => WORKER,
            Self::Operator { .. } => OPERATOR,
        }
    }

    /// Why, if the operator said so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Operator { reason } => reason.as_deref(),
            Self::Worker => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_back_and_has_no_space() {
        let reasons = ["invoice 17 of 1 Nov", "100 %", "%20", " a:b ", "é\u{a0}b"];
        let operators = reasons.map(|reason| EndedBy::Operator {
            reason: Some(reason.to_owned()),
        });
        for by in operators
            .into_iter()
            .chain([EndedBy::Worker, EndedBy::Operator { reason: None }])
        {
            let word = by.to_word();
            assert!(!word.contains(' '), "{word}");
            assert_eq!(EndedBy::parse(&word), Some(by), "{word}");
        }
        for bad in ["", "edge", "operator:", "worker:x", "Operator", ":operator"] {
            assert_eq!(EndedBy::parse(bad), None, "{bad}");
        }
    }
}
