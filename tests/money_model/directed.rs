//! Directed checks: the edges of every rule, one after the other. The mutation test runs them on changed scripts.

mod agents;
mod approvals;
mod arrivals;
mod budgets;
mod counters;
mod deposits;
mod escrows;
pub mod fixture;
mod low_balance;
mod numbers;
mod payouts;
mod preconditions;
mod races;
mod spends;
mod transfers;
mod verdicts;

use crate::model_fixture::{Checked, within_one_day};
use fixture::DirectedFixture;
use harness::Redis;
use store::Store;

macro_rules! groups {
    ($($group:ident: $check:path,)+) => {
        /// The directed checks of one function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Group {
            $($group),+
        }

        impl Group {
            const ALL: &'static [Self] = &[$(Self::$group),+];

            pub async fn check(self, store: &Store) -> Checked {
                within_one_day(store, async |period| {
                    let setup = DirectedFixture { store, period };
                    match self {
                        $(Self::$group => Box::pin($check(&setup)).await),+
                    }
                })
                .await
            }
        }
    };
}

groups! {
    Agents: agents::all,
    AgentsDeleted: races::deleted,
    Approvals: approvals::all,
    Arrivals: arrivals::all,
    BudgetsOfDeposits: budgets::deposits,
    BudgetsOfEscrows: budgets::escrows,
    BudgetsOfSpends: budgets::spends,
    BudgetsOfTransfers: budgets::transfers,
    BudgetsOfVerdicts: budgets::verdicts,
    Counters: counters::all,
    Deposits: deposits::all,
    Escrows: escrows::all,
    FullAccount: races::full,
    LowBalanceByEscrows: low_balance::escrows,
    LowBalanceBySpends: low_balance::spends,
    LowBalanceByTransfers: low_balance::transfers,
    NoAccount: races::no_account,
    NoDeposit: races::no_deposit,
    NoEscrow: races::no_escrow,
    Numbers: numbers::all,
    Opened: races::opened,
    Payouts: payouts::all,
    Preconditions: preconditions::all,
    Spends: spends::all,
    Transfers: transfers::all,
    Verdicts: verdicts::all,
}

/// Returns the directed checks of a script, by its name, the quickest first.
pub fn of_script(script: &str) -> &'static [Group] {
    use Group::*;
    match script {
        "spend" => &[
            Spends,
            Counters,
            Preconditions,
            Approvals,
            LowBalanceBySpends,
            BudgetsOfSpends,
        ],
        "spend_deny" => &[Approvals],
        "transfer_own" | "transfer_out" => &[NoAccount, Transfers, BudgetsOfTransfers, LowBalanceByTransfers],
        "transit_arrive" => &[FullAccount, Arrivals, BudgetsOfTransfers, BudgetsOfSpends],
        "deposit_make" | "deposit_confirm" | "deposit_cancel" => &[NoDeposit, Deposits, BudgetsOfDeposits],
        "number_draw" => &[Numbers, Escrows],
        "escrow_create" | "escrow_fund" | "escrow_list" => {
            &[NoEscrow, Escrows, BudgetsOfEscrows, LowBalanceByEscrows]
        }
        "escrow_resolve" | "intent_blocked" => &[NoEscrow, Escrows, Payouts, BudgetsOfVerdicts, Verdicts],
        "intent_claim" => &[Verdicts, Arrivals],
        _ => &[Opened, AgentsDeleted, Agents],
    }
}

#[tokio::test]
async fn every_edge_of_every_rule() {
    let redis = Redis::start();
    for group in Group::ALL {
        let checked = group.check(&redis.store()).await;
        checked.unwrap_or_else(|wrong| panic!("{group:?}: {wrong}"));
    }
}
