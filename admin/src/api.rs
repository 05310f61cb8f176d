//! The operations of the management API, one file for each resource: bodies in, records out.

pub mod account;
pub mod agents;
pub mod api_keys;
pub mod audit;
mod checks;
pub mod decisions;
pub mod deposits;
pub mod dry_run;
pub mod escrow;
pub mod intents;
mod listing;
mod once;
pub mod overview;
pub mod people;
pub mod policies;
pub mod provider_keys;
pub mod runs;
mod seen;
pub mod spend;
pub mod transactions;
pub mod transfers;
mod upgrade;
pub mod usage;
pub mod virtual_keys;
pub(crate) mod wallet_name;
pub mod wallets;
pub mod webhooks;

/// Attempts at a change whose plan limit is of another plan than the account has meanwhile.
const PLAN_ATTEMPTS: usize = 4;
