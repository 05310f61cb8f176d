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

/// What the document says of every operation, in the order in which it lists the resources.
pub(crate) fn sections() -> Vec<crate::openapi::Section> {
    let mut sections = vec![
        overview::section(),
        agents::section(),
        usage::section(),
        policies::section(),
        provider_keys::section(),
        virtual_keys::section(),
        wallets::section(),
        deposits::section(),
        transfers::section(),
        transactions::section(),
        spend::section(),
        escrow::section(),
        intents::section(),
        decisions::section(),
        dry_run::section(),
        runs::section(),
        audit::section(),
        webhooks::section(),
        account::section(),
        api_keys::section(),
    ];
    sections.extend(people::sections());
    sections
}
