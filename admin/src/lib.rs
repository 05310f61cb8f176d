//! Everything that administers Tollgate.
//!
//! * [`cli`][]: the command line of `tollgate-admin`, the operator's commands included
//! * [`serve`]: the management API as a process; [`routes`], [`caller`], [`api`] and [`problem`] are the life of one
//!   request, [`limits`] how many of them a key may make, [`workers`] what runs beside them,
//!   [`metrics`] what is measured, [`ops`] who may ask for it
//! * [`ledger`][]: the check of everything that must hold
//! * [`trail`][] and [`intents`][]: the audit trail and the intents as readers see them; [`archive`][]: what left the store
//! * [`mod@export`] writes the trail down, [`checkpoint`][] signs its end, [`verify`][] proves what was written down
//! * [`openapi`]: the OpenAPI document, of the route table and what stands beside the handlers
//! * [`dashboard`][]: the pages for people, compiled in
//! * [`reference`][]: the same as pages for people
//! * [`sandbox`][]: an upstream that needs no provider account
//! * [`webhook`][]: what leaves for the receivers of webhooks

pub mod api;
pub mod caller;
pub mod cli;
pub mod dashboard;
pub mod injection;
pub mod limits;
pub mod metrics;
pub mod openapi;
pub mod ops;
pub mod problem;
pub mod reference;
pub mod routes;
pub mod serve;
