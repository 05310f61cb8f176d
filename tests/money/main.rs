//! Money through the real management API: wallets, deposits, transfers, spends, escrow, intents, idempotency.
#![cfg(test)]

#[path = "../management/world.rs"]
mod world;

mod deposits;
mod escrow;
mod escrow_parties;
mod intents;
mod spend;
mod transactions;
mod transfers;
mod wallets;
