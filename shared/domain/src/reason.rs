//! The table of all reasons: why a call is denied, why an intent is blocked, and which check decides. The rows are in
//! order of precedence (specification §4.4 and "Errors", decisions D23 and D29).
//!
//! A new reason needs a row here and the rule itself; CONTRIBUTING.md lists the steps. Answers, headers, metric labels,
//! OpenAPI and the dashboard's texts are generated from this table. Words and sentences of blocked intents are hashed
//! with their timelines, so a used one never changes.

use crate::period::{DAY_MS, Period};

/// The stage at which a denial is decided. It determines the prefix of the decision id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenialStage {
    /// Before Cap ran: the id starts `deny_`.
    BeforeCap,
    /// Cap itself. The id is that of the Cap decision and starts with `allow_`.
    Cap,
    /// The plan's limits after Cap. Same id as for Cap; the body names the plan.
    Plan,
}

/// Unit of a check's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nano-USD.
    Usd,
    /// Keys, requests or agents.
    Count,
    /// No unit: the check has no numbers.
    State,
}

/// When the counter of a check restarts at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// Never by itself.
    Never,
    /// With the key's minute, whose end only the store knows.
    Minute,
    /// At 00:00 UTC.
    Day,
    /// On the 1st at 00:00 UTC.
    Month,
}

impl Reset {
    /// Returns when a counter restarts that counts at `at_ms`; `None` if the calendar does not determine it.
    pub fn after(self, at_ms: u64) -> Option<u64> {
        let day = at_ms / DAY_MS;
        match self {
            Self::Never | Self::Minute => None,
            Self::Day => Some((day + 1) * DAY_MS),
            Self::Month => {
                let month = Period::at(at_ms).month;
                (day + 1..=day + 31)
                    .map(|day| day * DAY_MS)
                    .find(|at| Period::at(*at).month != month)
            }
        }
    }
}

/// Generates [`Denial`], [`CheckName`] and [`Reason`] from the rows.
///
/// A row has a name, its word, a description of the check, and the dashboard's title for a denial. It may also have:
///
/// * `call`: it denies a proxied call, with this status, at this [`DenialStage`], with this message
/// * `check`: its [`Unit`], when its counter restarts ([`Reset`]), the message if it does not pass, and the dashboard's
///   title for the check. In the message, `{limit}`, `{spent}`, `{held}` and `{asked}` stand for amounts, and `{end}`
///   for the restart of the counter
/// * `block`: it blocks an intent, with this sentence; `violation` if Cap, a policy or the plan decides (decision D45),
///   `state` if the ledger or a person does
macro_rules! reasons {
    ($($name:ident $word:literal, $doc:literal, $title:literal {
        $(call: $status:literal $stage:ident $message:literal;)?
        $(check: $unit:ident $reset:ident $failed:literal, $check_title:literal;)?
        $(block: $cause:ident $sentence:literal;)?
    })+) => {
        /// Why a proxied call is denied. The order is the order of precedence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Denial { $($(#[doc = $doc] #[doc = concat!("\n\n", $message)] $name,)?)+ }

        impl Denial {
            /// Every denial, in order of precedence.
            pub const ALL: &[Self] = &[$($(row!(Self::$name, $status),)?)+];

            /// Returns the value of `reason`, `error.code`, `X-Service-Reason` and the metrics' label.
            pub const fn reason(self) -> &'static str { match self { $($(Self::$name => row!($word, $status),)?)+ } }

            /// Returns the HTTP status.
            pub const fn status(self) -> u16 { match self { $($(Self::$name => $status,)?)+ } }

            /// Returns the stage at which it is decided.
            pub const fn stage(self) -> DenialStage { match self { $($(Self::$name => DenialStage::$stage,)?)+ } }

            /// Returns the sentence for people.
            pub const fn message(self) -> &'static str { match self { $($(Self::$name => $message,)?)+ } }
        }

        /// A check of a call or a spend. The order is the order of precedence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CheckName { $($(#[doc = $doc] #[doc = concat!("\n\nNot passed: ", $failed)] $name,)?)+ }

        impl CheckName {
            /// Every check, in order of precedence.
            pub const ALL: &[Self] = &[$($(row!(Self::$name, $failed),)?)+];

            /// Returns its word, which is also the reason of its denial.
            pub const fn as_str(self) -> &'static str { match self { $($(Self::$name => row!($word, $failed),)?)+ } }

            /// Returns the unit of its numbers.
            pub const fn unit(self) -> Unit { match self { $($(Self::$name => Unit::$unit,)?)+ } }

            /// Returns when its counter restarts.
            pub const fn reset(self) -> Reset { match self { $($(Self::$name => Reset::$reset,)?)+ } }

            /// Returns the message for a check that did not pass, with placeholders for its numbers.
            pub(crate) const fn failed(self) -> &'static str { match self { $($(Self::$name => $failed,)?)+ } }
        }

        /// Why an intent is blocked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[doc = $doc] #[doc = concat!("\n\n", $sentence)] $name,)?)+ }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$($(row!(Self::$name, $sentence),)?)+];

            /// Returns the word used in records, hashes and answers.
            pub const fn as_str(self) -> &'static str { match self { $($(Self::$name => row!($word, $sentence),)?)+ } }

            /// Returns the sentence for people, in `blocked_reason` and in the timeline.
            pub const fn sentence(self) -> &'static str { match self { $($(Self::$name => $sentence,)?)+ } }

            /// Returns whether Cap, a policy or the plan decides (decision D45), as opposed to the ledger's state or a
            /// person.
            pub(crate) const fn is_violation(self) -> bool { match self { $($(Self::$name => cause!($cause),)?)+ } }
        }

        /// The dashboard's titles: the word of a reason, the title of its denial and, if it has a check, the title of
        /// the check.
        pub const TITLES: &[(&str, &str, Option<&str>)] =
            &[$(($word, $title, check_title!($($check_title)?)),)+];
    };
}

/// Expands to its first argument. The second argument is a value of an optional section, which selects the rows that
/// have it.
macro_rules! row {
    ($it:expr, $of:literal) => {
        $it
    };
}

macro_rules! cause {
    (violation) => {
        true
    };
    (state) => {
        false
    };
}

macro_rules! check_title {
    () => {
        None
    };
    ($title:literal) => {
        Some($title)
    };
}

reasons! {
    ServiceUnavailable "service_unavailable",
        "Store, plan and stored key can be read.", "Store not reachable" {
        call: 503 BeforeCap "Tollgate could not decide on this call, so it was not forwarded. Try again shortly.";
    }
    PlanKeyLimit "plan_key_limit",
        "Place of the virtual key among the account's active ones, against the plan; the oldest keys win.",
        "Plan: active keys" {
        call: 402 BeforeCap
            "This virtual key is beyond the number of active keys that the plan allows; the oldest keys keep working.";
        check: Count Never
            "The plan allows {limit} active virtual keys; the oldest keys win, and this one is newer.",
            "Plan: active keys";
    }
    RateLimited "rate_limited",
        "Requests of the virtual key in its minute, against the plan.", "Too many requests" {
        call: 429 BeforeCap "This virtual key has used up its requests for this minute. Wait 60 seconds.";
        check: Count Minute
            "The key has used up the {limit} requests a minute that the plan allows.{end}",
            "Requests of the key’s minute";
    }
    NoProviderKey "no_provider_key",
        "A provider key is stored for the agent.", "No provider key" {
        call: 403 BeforeCap "No provider key is stored for this agent.";
        check: State Never "No provider key is stored for the agent.", "Provider key stored";
    }
    InjectionDetected "injection_detected",
        "No text of the spend tries to instruct an agent.", "Prompt injection" {
        check: State Never
            "The text of the spend reads like an attempt to instruct an AI agent.",
            "Text without instructions";
        block: state "The text of the spend reads like an attempt to instruct an AI agent.";
    }
    Frozen "frozen",
        "The agent is not frozen.", "Agent frozen" {
        call: 403 Cap "This agent is frozen.";
        check: State Never "The agent is frozen.", "Not frozen";
        block: violation "The agent is frozen: nothing leaves its wallet.";
    }
    CapDisabled "cap_disabled",
        "A policy with Cap enabled holds for the agent.", "No cap in force" {
        call: 403 Cap
            "No policy with Cap enabled holds for this agent: set one, or set capEnabled to true in its policy.";
        check: State Never
            "No policy with Cap enabled holds for the agent: set one, or set capEnabled to true in its policy.",
            "Cap enabled";
        block: violation
            "No policy with Cap enabled holds for this agent: set one, or set capEnabled to true in its policy.";
    }
    PerTransactionLimit "per_transaction_limit",
        "The policy's limit of one spend.", "Per-transaction cap" {
        check: Usd Never "The policy allows {limit} in one transaction, {asked}.", "Per-transaction cap";
        block: violation "The amount is above what the policy allows in one transaction.";
    }
    PerRunLimit "per_run_limit",
        "The policy's limit of a run.", "Per-run cap" {
        call: 402 Cap "This call would push the run over its per-run cap.";
        check: Usd Never
            "The per-run cap of {limit} would be passed: {spent} spent in this run{held}, {asked}.",
            "Per-run cap";
        block: violation "The amount would push the run over its per-run cap.";
    }
    DailyLimit "daily_limit",
        "The policy's limit of the UTC day.", "Daily cap" {
        call: 402 Cap "This call would push the agent over its daily cap. The day ends at 00:00 UTC.";
        check: Usd Day
            "The daily cap of {limit} would be passed: {spent} spent today{held}, {asked}.{end}",
            "Daily cap";
        block: violation "The amount would push the agent over its daily cap.";
    }
    MonthlyLimit "monthly_limit",
        "The policy's limit of the UTC month.", "Monthly cap" {
        call: 402 Cap "This call would push the agent over its monthly cap. The month ends on the 1st at 00:00 UTC.";
        check: Usd Month
            "The monthly cap of {limit} would be passed: {spent} spent this month{held}, {asked}.{end}",
            "Monthly cap";
        block: violation "The amount would push the agent over its monthly cap.";
    }
    PlanAgentLimit "plan_agent_limit",
        "Agents that may spend this month, against the plan.", "Plan: agents" {
        call: 402 Plan "All agents that the plan allows this month are in use.";
        check: Count Month
            "All {limit} agents that the plan allows this month are in use, and this agent is none of them.{end}",
            "Plan: agents";
        block: violation "All agents that the plan allows this month are in use.";
    }
    PlanLimit "plan_limit",
        "USD that the plan tracks in a month.", "Plan: tracked spend" {
        call: 402 Plan "This call would push the account over the USD that the plan tracks in a month.";
        check: Usd Month
            "The plan's tracked USD of {limit} would be passed: {spent} tracked for the account this month{held}, {asked}.{end}",
            "Plan: tracked spend";
        block: violation "The amount would push the account over the USD that the plan tracks in a month.";
    }
    SpendLimit "spend_limit",
        "What the wallet may spend in a UTC day.", "Wallet’s daily limit" {
        check: Usd Day
            "The wallet's spend limit of {limit} would be passed: {spent} spent from it today{held}, {asked}.{end}",
            "Wallet’s daily limit";
        block: violation "The amount would push the wallet over its spend limit of the day.";
    }
    InsufficientBalance "insufficient_balance",
        "What the wallet holds; it is the limit.", "Wallet balance" {
        check: Usd Never "The wallet holds {limit}, {asked}.", "Wallet balance";
        block: state "The wallet's balance does not cover the amount.";
    }
    ApprovalRequired "approval_required",
        "The amount above which a person has to approve.", "Needs approval" {
        check: Usd Never "A spend above {limit} has to be approved first, {asked}.", "Approval threshold";
    }
    ApprovalDenied "approval_denied",
        "A person denied the spend.", "Approval denied" {
        block: state "The approval was denied.";
    }
    EscrowReleased "escrow_released",
        "A release or dispute of an escrow that was released.", "Escrow released" {
        block: state "The escrow was already released.";
    }
    EscrowDisputed "escrow_disputed",
        "A release or dispute of an escrow that is disputed.", "Escrow disputed" {
        block: state "The escrow is already disputed.";
    }
    EscrowRefunded "escrow_refunded",
        "A release or dispute of an escrow whose money went back.", "Escrow refunded" {
        block: state "The escrow was already refunded.";
    }
    EscrowNotFunded "escrow_not_funded",
        "A release or dispute before the escrow was funded.", "Escrow not funded" {
        block: state "The escrow is not funded.";
    }
    EscrowNotPending "escrow_not_pending",
        "Funding an escrow twice.", "Escrow not pending" {
        block: state "The escrow is not pending.";
    }
    WalletClosed "wallet_closed",
        "The payer's or the payee's wallet is closed.", "Wallet closed" {
        block: state "One of the wallets is closed.";
    }
}

impl Denial {
    /// Returns the denial for a reason word returned by the store's scripts.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|denial| denial.reason() == reason)
    }
}

impl CheckName {
    /// Returns the check for a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|check| check.as_str() == word)
    }
}

impl Reason {
    /// Returns the reason for a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_word_stands_in_one_row() {
        let words: BTreeSet<&str> = TITLES.iter().map(|(word, ..)| *word).collect();
        assert_eq!(words.len(), TITLES.len());
        for denial in Denial::ALL {
            assert_eq!(Denial::from_reason(denial.reason()), Some(*denial));
        }
        for check in CheckName::ALL {
            assert_eq!(CheckName::parse(check.as_str()), Some(*check));
        }
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
        }
    }

    #[test]
    fn a_policy_without_cap_and_no_policy_get_the_same_advice() {
        let advice = "set one, or set capEnabled to true in its policy.";
        assert!(Denial::CapDisabled.message().ends_with(advice));
        assert!(CheckName::CapDisabled.failed().ends_with(advice));
    }

    #[test]
    fn every_denial_but_one_is_a_check_in_the_same_order() {
        let mut unchecked = Denial::ALL.to_vec();
        unchecked.retain(|denial| CheckName::parse(denial.reason()).is_none());
        assert_eq!(unchecked, [Denial::ServiceUnavailable]);
        let checks = CheckName::ALL.iter().map(|check| check.as_str());
        let denials: Vec<&str> = checks
            .filter(|word| Denial::from_reason(word).is_some())
            .collect();
        let expected: Vec<&str> = Denial::ALL[1..].iter().map(|denial| denial.reason()).collect();
        assert_eq!(denials, expected);
    }
}
