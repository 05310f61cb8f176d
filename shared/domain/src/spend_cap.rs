//! The checks of `POST /spend` as a pure function: those of Cap, preceded by the policy's limit per transaction and
//! followed by wallet and approval (decision D23). The texts of the spend are checked elsewhere, before all of these.

use super::cap::{self, CapPlan, CapPolicy, CapSnapshot, SpendPolicy};
use super::check::{Check, CheckName};
use super::money::Nanos;

/// The wallet of a spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalletSnapshot {
    /// Spendable money; pending deposits and funded escrows are not in it.
    pub balance: Nanos,
    /// Maximum spend of the wallet in a UTC day.
    pub spend_limit: Option<Nanos>,
    /// Spent today.
    pub day_spent: Nanos,
}

/// State that a spend is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpendSnapshot {
    /// The policy in effect.
    pub policy: Option<CapPolicy>,
    /// Limits of the policy that apply to spends only.
    pub limits: SpendPolicy,
    /// Limits of the plan; unlimited where no plan applies.
    pub plan: CapPlan,
    /// Counters of agent, run and account.
    pub cap: CapSnapshot,
    /// The part of the agent's spending that belongs to calls in flight.
    pub held: Nanos,
    /// The agent's wallet, if it has one.
    pub wallet: Option<WalletSnapshot>,
}

/// Returns every check of a spend of `amount`, in order of precedence. The last, [`CheckName::ApprovalRequired`], is no
/// refusal: a spend that passes all others waits for approval.
pub fn checks(snapshot: &SpendSnapshot, amount: Nanos) -> Vec<Check> {
    let within = |name, limit: Option<Nanos>, spent: Nanos| {
        Check::within(name, limit.map(Nanos::get), spent.get(), amount.get())
    };
    let policy = snapshot.policy.as_ref();
    let cap = cap::checks(policy, &snapshot.plan, &snapshot.cap, snapshot.held, amount);
    let (first, rest) = cap.split_at(2);
    let mut all = first.to_vec();
    let one = snapshot.limits.per_transaction;
    all.push(within(CheckName::PerTransactionLimit, one, Nanos::ZERO));
    all.extend_from_slice(rest);
    if let Some(wallet) = snapshot.wallet {
        all.push(within(
            CheckName::SpendLimit,
            wallet.spend_limit,
            wallet.day_spent,
        ));
        let balance = Some(wallet.balance);
        all.push(within(CheckName::InsufficientBalance, balance, Nanos::ZERO));
    }
    let threshold = snapshot.limits.approval_threshold;
    all.push(within(CheckName::ApprovalRequired, threshold, Nanos::ZERO));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_come_in_order_of_precedence() {
        let snapshot = SpendSnapshot {
            wallet: Some(WalletSnapshot::default()),
            ..SpendSnapshot::default()
        };
        let names: Vec<CheckName> = checks(&snapshot, Nanos::from_stored(1))
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
        let names = checks(&SpendSnapshot::default(), Nanos::from_stored(1));
        let of_wallet = [CheckName::SpendLimit, CheckName::InsufficientBalance];
        assert!(names.iter().all(|check| !of_wallet.contains(&check.name)));
    }
}
