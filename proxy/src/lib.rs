//! The edge: the gate that every call passes on its way to the provider.
//!
//! Read [`call`] for the life of one call: each step of specification §4.4 is a file beneath it. [`edge`] speaks HTTP,
//! [`reply`] holds every answer that Tollgate itself gives, [`upstream`] the one request to the provider, [`gate`]
//! what all calls share, [`pending`] what the store could not take yet.

pub mod call;
pub mod edge;
pub mod gate;
pub mod metrics;
pub mod openapi;
pub mod ops;
pub mod pending;
pub mod reply;
pub mod server;
#[cfg(test)]
mod stand;
pub mod upstream;
pub mod watch;

pub use server::run;
