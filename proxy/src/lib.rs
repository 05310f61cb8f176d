//! The edge: the gate that every call passes on its way to the provider.
//!
//! Read [`call`] for the life of one call: each step of specification §4.4 is a file beneath it. [`edge`] speaks HTTP,
//! [`reply`] holds every answer that Tollgate itself gives, [`upstream`] the one request to the provider, [`gate`]
//! what all calls share, [`pending`] what the store could not take yet.

pub mod allocator;
pub mod buffer_budget;
pub mod call;
pub mod edge;
#[cfg(test)]
mod fixture;
pub mod gate;
pub mod gauges;
pub mod key_owners;
pub mod metrics;
pub mod openapi;
pub mod ops;
pub mod pending;
pub mod refused_accounts;
pub mod reply;
pub mod server;
pub mod store_health;
pub mod tables;
pub mod upstream;

pub use server::run;
