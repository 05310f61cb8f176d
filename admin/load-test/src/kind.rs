//! Kinds of calls, and their expected results.

/// Reason of a stream that ended because a cap did not allow its hold to grow.
const HOLD_EXHAUSTED: &str = "hold_exhausted";

/// Reason of a stream whose caller left in the middle, as the plan says.
pub(super) const CALLER_LEFT: &str = "caller left";

domain::words! {
    /// Intended outcome of a call.
    #[derive(PartialOrd, Ord)]
    pub enum RequestKind {
        /// A call to be approved and forwarded.
        Approved = "approved",
        /// A call of a frozen agent.
        Frozen = "frozen",
        /// A call with a key that was revoked.
        Revoked = "revoked",
        /// A call that does not fit under a limit.
        OverCap = "over-cap",
        /// A body that is no JSON.
        Malformed = "malformed",
    }
}

impl RequestKind {
    /// Expected status and reason of its calls.
    const fn expected(self) -> (u16, &'static str) {
        match self {
            Self::Approved => (200, ""),
            Self::Frozen => (403, "frozen"),
            Self::Revoked => (401, "invalid_api_key"),
            Self::OverCap => (402, "daily_limit"),
            Self::Malformed => (400, "invalid_json"),
        }
    }

    /// Classifies an answer to it.
    pub fn judge(self, status: u16, reason: &str) -> AnswerClass {
        let limits = [402, 429];
        match self {
            _ if self.expected() == (status, reason) => AnswerClass::AsMeant,
            Self::Approved if (status, reason) == (200, CALLER_LEFT) => AnswerClass::AsMeant,
            // Limits of keys and plans, which work as intended.
            Self::Approved if limits.contains(&status) && !reason.is_empty() => AnswerClass::Limited,
            // A cap in the middle of a stream.
            Self::Approved if reason == HOLD_EXHAUSTED => AnswerClass::Limited,
            // A key's rate takes precedence over everything else about a call.
            _ if status == 429 && reason == "rate_limited" => AnswerClass::Limited,
            _ => AnswerClass::Wrong,
        }
    }
}

/// Classification of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerClass {
    /// The call ended as expected for its kind.
    AsMeant,
    /// A limit denied it.
    Limited,
    /// It counts as an error.
    Wrong,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in RequestKind::ALL {
            assert_eq!(RequestKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(RequestKind::parse("Frozen"), None);
    }

    #[test]
    fn only_the_right_reason_is_as_meant() {
        assert_eq!(RequestKind::Approved.judge(200, ""), AnswerClass::AsMeant);
        assert_eq!(
            RequestKind::Approved.judge(402, "daily_limit"),
            AnswerClass::Limited
        );
        assert_eq!(
            RequestKind::Approved.judge(429, "rate_limited"),
            AnswerClass::Limited
        );
        assert_eq!(
            RequestKind::Approved.judge(200, "hold_exhausted"),
            AnswerClass::Limited
        );
        assert_eq!(
            RequestKind::Approved.judge(200, "stream not whole"),
            AnswerClass::Wrong
        );
        assert_eq!(
            RequestKind::Approved.judge(200, CALLER_LEFT),
            AnswerClass::AsMeant
        );
        assert_eq!(
            RequestKind::Approved.judge(429, ""),
            AnswerClass::Wrong,
            "the provider's own limit"
        );
        assert_eq!(
            RequestKind::Approved.judge(503, "service_unavailable"),
            AnswerClass::Wrong
        );
        assert_eq!(RequestKind::Frozen.judge(403, "frozen"), AnswerClass::AsMeant);
        assert_eq!(RequestKind::Frozen.judge(403, "cap_disabled"), AnswerClass::Wrong);
        assert_eq!(
            RequestKind::Frozen.judge(200, ""),
            AnswerClass::Wrong,
            "let through what it should not"
        );
        assert_eq!(
            RequestKind::Revoked.judge(429, "rate_limited"),
            AnswerClass::Limited
        );
    }
}
