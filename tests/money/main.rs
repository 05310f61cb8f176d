//! Money through the real management API: wallets, deposits, transfers, spends, escrow, intents, idempotency.
#![cfg(test)]

#[path = "../management/fixture.rs"]
mod fixture;

mod account_fixture;
mod announced_deposits;
mod approvals;
mod deposit_list;
mod deposits;
mod escrow;
mod escrow_parties;
mod events;
mod intent_links;
mod intents;
mod large_records;
mod refusals;
mod spend;
mod spend_limits;
mod spender;
mod transactions;
mod transfers;
mod transit;
mod wallets;
