//! Directed checks: the edges of every rule, one after the other. The mutation test runs them on changed scripts.

mod agents;
mod approvals;
mod arrivals;
mod budgets;
mod counters;
mod deposits;
mod escrows;
mod low_balance;
mod numbers;
mod payouts;
mod preconditions;
mod raced;
mod spends;
pub mod stage;
mod transfers;
mod verdicts;

use crate::world::{Checked, within_one_day};
use harness::Redis;
use stage::Stage;
use store::Store;

/// The directed checks of a script, by its name. The quickest to notice a change come first, since most of the time of
/// the mutation test is spent here.
pub async fn check(script: &str, store: &Store) -> Checked {
    within_one_day(store, async |period| {
        let stage = Stage { store, period };
        match script {
            "spend" => {
                spends::all(&stage).await?;
                counters::all(&stage).await?;
                preconditions::all(&stage).await?;
                approvals::all(&stage).await?;
                low_balance::spends(&stage).await?;
                Box::pin(budgets::spends(&stage)).await
            }
            "spend_deny" => approvals::all(&stage).await,
            "transfer_own" | "transfer_out" => {
                raced::no_account(&stage).await?;
                transfers::all(&stage).await?;
                Box::pin(budgets::transfers(&stage)).await?;
                low_balance::transfers(&stage).await
            }
            "transit_arrive" => {
                raced::full(&stage).await?;
                arrivals::all(&stage).await?;
                Box::pin(budgets::transfers(&stage)).await?;
                Box::pin(budgets::spends(&stage)).await
            }
            "deposit_make" | "deposit_confirm" | "deposit_cancel" => {
                raced::no_deposit(&stage).await?;
                Box::pin(deposits::all(&stage)).await?;
                Box::pin(budgets::deposits(&stage)).await
            }
            "number_draw" => {
                numbers::all(&stage).await?;
                escrows::all(&stage).await
            }
            "escrow_create" | "escrow_fund" | "escrow_list" => {
                raced::no_escrow(&stage).await?;
                escrows::all(&stage).await?;
                Box::pin(budgets::escrows(&stage)).await?;
                low_balance::escrows(&stage).await
            }
            "escrow_resolve" | "intent_blocked" => {
                raced::no_escrow(&stage).await?;
                escrows::all(&stage).await?;
                payouts::all(&stage).await?;
                Box::pin(budgets::verdicts(&stage)).await?;
                verdicts::all(&stage).await
            }
            "intent_claim" => {
                verdicts::all(&stage).await?;
                arrivals::all(&stage).await
            }
            _ => {
                raced::opened(&stage).await?;
                raced::deleted(&stage).await?;
                Box::pin(agents::all(&stage)).await
            }
        }
    })
    .await
}

#[tokio::test]
async fn every_edge_of_every_rule() {
    let redis = Redis::start();
    for script in [
        "number_draw",
        "spend",
        "transfer_own",
        "transit_arrive",
        "deposit_make",
        "escrow_fund",
        "escrow_resolve",
        "agent_delete",
    ] {
        check(script, &redis.store()).await.unwrap();
    }
}
