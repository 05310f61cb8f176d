//! Budgets of records (decision D71): how many records of each kind the store keeps for an account, whatever its plan.
//! The operator sets them in `[limits]`. A script that would exceed a budget refuses and changes nothing.

crate::words! {
    /// A kind of record with a budget. Each budget applies to one account and mode. `[limits]`, scripts, metrics and
    /// answers use the same word for it.
    pub enum Budget {
        /// Agents with a wallet row, including deleted ones, since their closed wallets stay.
        Agents = "agents",
        /// Policies.
        Policies = "policies",
        /// Agents with a provider key.
        ProviderKeys = "provider_keys",
        /// API keys and virtual keys ever created, since the look-up of a revoked key stays.
        Keys = "keys",
        /// Runs with a record.
        Runs = "runs",
        /// Payout intents that are not archived.
        Intents = "intents",
        /// Bytes of the requests that intents and escrows store: metadata, conditions and other free text.
        TextBytes = "text_bytes",
        /// Transactions that the account caused. Incoming transfers from others do not count.
        Transactions = "transactions",
        /// Escrows that the account pays.
        Escrows = "escrows",
        /// Deposits, pending and confirmed.
        Deposits = "deposits",
        /// Refused transfers and deposits that are stored under an idempotency key.
        Refusals = "refusals",
        /// Audit entries that are not archived.
        AuditEntries = "audit_entries",
        /// Bytes of audit entries that are not archived, of each those beyond its first KiB.
        AuditText = "audit_text",
    }
}

impl Budget {
    /// Returns the message for a call in a new run beyond the budget of `most` runs.
    pub fn runs_used_up(most: u64) -> String {
        format!(
            "Your account has used up its budget of {most} runs: a new one can begin when one was not seen for 35 days, or when the operator of this installation raises the budget. Calls in runs that are known, and without a run, go on."
        )
    }

    /// Returns the noun for messages.
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
            Self::AuditText => "bytes of long audit entries that are not archived yet",
        }
    }
}

/// Limits of all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets([u64; Budget::ALL.len()]);

impl Budgets {
    /// Creates the limits, one for each kind.
    pub fn new(most: impl Fn(Budget) -> u64) -> Self {
        Self(Budget::ALL.map(most))
    }

    /// Returns the limit of a kind.
    pub const fn limit(&self, budget: Budget) -> u64 {
        self.0[budget as usize]
    }

    /// Replaces the limit of one kind.
    #[must_use]
    pub const fn with(mut self, budget: Budget, most: u64) -> Self {
        self.0[budget as usize] = most;
        self
    }

    /// Returns the text that scripts read: ` <name>=<limit>` for each kind.
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
