//! The edge: every call of an agent passes it on its way to the provider.
//!
//! Read [`call`] for the life of one call: each step of specification §4.4 is a file in that folder. [`edge`]
//! implements HTTP, [`reply`] builds the answers, [`upstream`] sends the one request to the provider. The other files
//! are shared components; `server/components.rs` creates each of them once.

mod account_usage;
mod account_views;
mod admission;
mod boxed;
mod buffer_budget;
mod call;
mod edge;
#[cfg(test)]
mod fixture;
mod gauges;
mod http2_requests;
mod key_owners;
mod large_bodies;
mod metrics;
#[cfg(test)]
mod openapi;
mod ops;
mod protected_request;
mod provider_keys;
mod readiness;
mod refused_accounts;
mod reply;
mod retry_queue;
mod routes;
mod server;
mod store_health;
mod tables;
mod unsent_answers;
mod upstream;

pub use server::run;
