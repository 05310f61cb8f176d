//! Budgets of records (decision D71): how many records of each kind an account can make the store keep, whatever its
//! plan. The operator sets them in `[limits]`; the script that would exceed one refuses, and changes nothing.

/// A kind of record with a budget. Each holds for an account and mode by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Budget {
    /// Agents with a wallet row, deleted ones included: their closed wallets stay known.
    Agents,
    /// Policies.
    Policies,
    /// Agents with a provider key.
    ProviderKeys,
    /// API keys and virtual keys ever created: the look-up of a revoked one stays.
    Keys,
    /// Runs with a record.
    Runs,
    /// Payout intents that are not archived.
    Intents,
    /// Bytes of the requests that intents and escrows keep: metadata, conditions and other free text.
    TextBytes,
    /// Transactions that the account caused; what others send it does not count.
    Transactions,
    /// Escrows that the account pays.
    Escrows,
    /// Deposits, pending and confirmed.
    Deposits,
    /// Refused transfers and deposits that an idempotency key keeps.
    Refusals,
    /// Audit entries that are not archived.
    AuditEntries,
}

impl Budget {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Agents,
        Self::Policies,
        Self::ProviderKeys,
        Self::Keys,
        Self::Runs,
        Self::Intents,
        Self::TextBytes,
        Self::Transactions,
        Self::Escrows,
        Self::Deposits,
        Self::Refusals,
        Self::AuditEntries,
    ];

    /// The name in `[limits]`, in scripts, metrics and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Policies => "policies",
            Self::ProviderKeys => "provider_keys",
            Self::Keys => "keys",
            Self::Runs => "runs",
            Self::Intents => "intents",
            Self::TextBytes => "text_bytes",
            Self::Transactions => "transactions",
            Self::Escrows => "escrows",
            Self::Deposits => "deposits",
            Self::Refusals => "refusals",
            Self::AuditEntries => "audit_entries",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|budget| budget.as_str() == name)
    }

    /// Returns the message for a call in a new run beyond the budget of `most` runs.
    pub fn runs_used_up(most: u64) -> String {
        format!(
            "Your account has used up its budget of {most} runs: a new one can begin when one was not seen for 35 days, or when the operator of this installation raises the budget. Calls in runs that are known, and without a run, go on."
        )
    }

    /// The kind in a sentence.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Agents => "agents, deleted ones included",
            Self::Policies => "policies",
            Self::ProviderKeys => "agents with a provider key",
            Self::Keys => "API keys and virtual keys, revoked ones included",
            Self::Runs => "runs",
            Self::Intents => "payout intents that are not archived yet",
            Self::TextBytes => "bytes of metadata, conditions and other text of intents and escrows",
            Self::Transactions => "transactions",
            Self::Escrows => "escrows",
            Self::Deposits => "deposits",
            Self::Refusals => "refused transfers and deposits under an idempotency key",
            Self::AuditEntries => "audit entries that are not archived yet",
        }
    }
}

/// Limits of all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets([u64; Budget::ALL.len()]);

impl Budgets {
    /// These limits.
    pub fn new(most: impl Fn(Budget) -> u64) -> Self {
        Self(Budget::ALL.map(most))
    }

    /// The limit of a kind.
    pub const fn limit(&self, budget: Budget) -> u64 {
        self.0[budget as usize]
    }

    /// The same with another limit of one kind.
    #[must_use]
    pub const fn with(mut self, budget: Budget, most: u64) -> Self {
        self.0[budget as usize] = most;
        self
    }

    /// The text that scripts read: ` <name>=<limit>` for each kind.
    pub fn words(&self) -> String {
        let each = Budget::ALL
            .iter()
            .map(|budget| format!(" {}={}", budget.as_str(), self.limit(*budget)));
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_place_and_its_name() {
        let budgets = Budgets::new(|budget| budget as u64 + 10);
        for (at, budget) in Budget::ALL.into_iter().enumerate() {
            assert_eq!(budgets.limit(budget), at as u64 + 10);
            assert_eq!(Budget::parse(budget.as_str()), Some(budget));
            assert!(
                budgets
                    .words()
                    .contains(&format!(" {}={}", budget.as_str(), at + 10))
            );
        }
        assert_eq!(budgets.with(Budget::Runs, 3).limit(Budget::Runs), 3);
        assert_eq!(Budget::parse("none"), None);
    }
}
