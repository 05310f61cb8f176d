//! The checks of `POST /spend` as a pure function: those of Cap, with the policy's limit of one transaction before them
//! and the wallet and the approval behind them (decision D23). The texts of the spend are looked at elsewhere, before all.

use super::cap::{self, CapPlan, CapPolicy, SpendPolicy, Standing};
use super::check::{Check, CheckName};
use super::money::Nanos;

/// The wallet that a spend is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalletStanding {
    /// What it holds.
    pub balance: Nanos,
    /// What it may spend in a UTC day.
    pub spend_limit: Option<Nanos>,
    /// What it has spent today.
    pub day_spent: Nanos,
}

/// Everything that a spend is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpendStanding {
    /// The policy in effect.
    pub policy: Option<CapPolicy>,
    /// Its limits that bind spends only.
    pub limits: SpendPolicy,
    /// The plan; no limit where none counts.
    pub plan: CapPlan,
    /// Where agent, run and account stand.
    pub cap: Standing,
    /// How much of what the agent spent is in calls under way.
    pub held: Nanos,
    /// The agent's wallet, if it has one.
    pub wallet: Option<WalletStanding>,
}

/// Every check of a spend of `amount`, in order of precedence. The last one, [`CheckName::ApprovalRequired`], is no
/// refusal: a spend that passes all others waits for approval.
#[must_use]
pub fn checks(standing: &SpendStanding, amount: Nanos) -> Vec<Check> {
    let within = |name, limit: Option<Nanos>, spent: Nanos| {
        Check::within(name, limit.map(Nanos::get), spent.get(), amount.get())
    };
    let policy = standing.policy.as_ref();
    let cap = cap::checks(policy, &standing.plan, &standing.cap, standing.held, amount);
    let (first, rest) = cap.split_at(2);
    let mut all = first.to_vec();
    let one = standing.limits.per_transaction;
    all.push(within(CheckName::PerTransactionLimit, one, Nanos::ZERO));
    all.extend_from_slice(rest);
    if let Some(wallet) = standing.wallet {
        all.push(within(
            CheckName::SpendLimit,
            wallet.spend_limit,
            wallet.day_spent,
        ));
        let balance = Some(wallet.balance);
        all.push(within(CheckName::InsufficientBalance, balance, Nanos::ZERO));
    }
    let threshold = standing.limits.approval_threshold;
    all.push(within(CheckName::ApprovalRequired, threshold, Nanos::ZERO));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_come_in_order_of_precedence() {
        let standing = SpendStanding {
            wallet: Some(WalletStanding::default()),
            ..SpendStanding::default()
        };
        let names: Vec<CheckName> = checks(&standing, Nanos::from_stored(1))
            .iter()
            .map(|check| check.name)
            .collect();
        assert!(names.is_sorted());
        let others = [
            CheckName::PlanKeyLimit,
            CheckName::RateLimited,
            CheckName::NoProviderKey,
            CheckName::InjectionDetected,
        ];
        let expected = CheckName::ALL.iter().filter(|name| !others.contains(name));
        assert!(expected.eq(&names), "{names:?}");
    }

    #[test]
    fn an_agent_without_a_wallet_is_tracked_only() {
        let names = checks(&SpendStanding::default(), Nanos::from_stored(1));
        let of_wallet = [CheckName::SpendLimit, CheckName::InsufficientBalance];
        assert!(names.iter().all(|check| !of_wallet.contains(&check.name)));
    }
}
