//! The operations of the management API, one file for each resource: bodies in, records out.

pub mod agents;
mod listing;
mod once;
pub mod policies;
pub mod provider_keys;
pub mod virtual_keys;
mod wallet_name;

/// Attempts at a change whose plan limit is of another plan than the account has meanwhile.
const PLAN_ATTEMPTS: usize = 4;
