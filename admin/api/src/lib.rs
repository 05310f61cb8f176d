//! The operations of the management API on resources: they parse bodies and return records.
//!
//! Each resource is a folder, named as in the store, with its routes, bodies, answers and documentation. [`operations`]
//! and [`sections`] list them for the route table and the documents. [`ApiState`] holds the components that their
//! functions need.
//!
//! Uses the store and the readers of the archive, webhooks and verification. Code shared by all operations is in
//! `endpoint`; operations of users on themselves are in the crate `people`.

mod account;
mod agent;
mod api_key;
mod audit;
mod call_trail;
mod calls;
mod catch_up;
mod checks;
mod decision;
mod deposit;
mod display_names;
mod dry_run;
mod escrow;
mod idempotency;
mod installation;
mod intent;
mod large_list;
pub mod metrics;
mod overview;
mod policy;
pub mod prices;
mod provider_key;
mod run;
mod spend;
mod spreadsheet;
mod state;
mod threshold;
mod transaction;
mod transfer;
mod usage;
mod virtual_key;
mod wallet;
mod webhook;

pub use api_key::ApiKeyView;
pub use decision::{Decisions, Explained};
pub use deposit::{PLAIN as PLAIN_REFERENCE, other_state};
pub use large_list::LargeLists;
pub use spend::injection::Injections;
pub use state::{ApiState, EdgeFacts, Spends, Verification};
pub use wallet::find::{FoundWallet, WALLET_ATTEMPTS, find_wallet};

use endpoint::Operation;
use endpoint::doc::Section;

/// Returns all operations, in the order in which the document lists their paths.
pub fn operations() -> impl Iterator<Item = &'static Operation<ApiState>> {
    [
        agent::ROUTES,
        provider_key::ROUTES,
        virtual_key::ROUTES,
        usage::ROUTES,
        overview::ROUTES,
        display_names::ROUTES,
        threshold::ROUTES,
        account::ROUTES,
        installation::ROUTES,
        policy::ROUTES,
        wallet::ROUTES,
        transaction::OF_WALLET,
        transfer::BETWEEN_WALLETS,
        wallet::OF_ACCOUNT,
        transfer::ROUTES,
        deposit::ROUTES,
        transaction::ROUTES,
        escrow::ROUTES,
        audit::ROUTES,
        spend::ROUTES,
        intent::ROUTES,
        dry_run::ROUTES,
        decision::ROUTES,
        calls::ROUTES,
        run::ROUTES,
        webhook::ROUTES,
        api_key::ROUTES,
    ]
    .into_iter()
    .flatten()
}

/// Returns the documentation of all operations, in the order in which the document lists the resources.
pub fn sections() -> Vec<Section> {
    vec![
        overview::section(),
        display_names::section(),
        threshold::section(),
        agent::section(),
        usage::section(),
        policy::section(),
        provider_key::section(),
        virtual_key::section(),
        wallet::section(),
        deposit::section(),
        transfer::section(),
        transaction::section(),
        spend::section(),
        escrow::section(),
        intent::section(),
        calls::section(),
        decision::section(),
        dry_run::section(),
        run::section(),
        audit::section(),
        webhook::section(),
        account::section(),
        installation::section(),
        api_key::section(),
    ]
}
