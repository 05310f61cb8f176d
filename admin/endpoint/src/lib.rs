//! The parts of an operation of the management API, and the life of one request.
//!
//! A resource declares its [`operations!`]: rows of the route table ([`Route`]) with their handler functions. A handler
//! receives a [`Call`] (parameters, body, caller) and returns a [`Reply`] or a [`Problem`]; its documentation ([`doc`])
//! is next to it. [`dispatch`] is the life of a request: blocked addresses, [`caller`], [`limits`], permission, mode,
//! body, handler, log line; [`Admission`] is the state for this. [`Paths`] builds a service from operations.
//!
//! This crate contains no resource and no route: those are registered by the crates above it. It uses the store, its
//! health check, and HTTP.

pub mod admission;
mod agent_id;
mod body;
mod call;
pub mod caller;
mod dispatch;
pub mod doc;
mod idempotency_key;
mod large_reads;
mod limits;
mod listing;
mod memory;
pub mod metrics;
pub mod operation;
mod paging;
pub mod problem;
mod query;
mod receive;
mod reply;
mod request_id;
mod route;
mod router;
mod run_id;
mod time_range;
mod wallet_name;
mod whole_number;

pub use admission::Admission;
pub use agent_id::{require_agent_id, require_new_agent_id};
pub use body::{CURRENCIES, FieldValue, Fields, OBJECT_MAX as FIELD_OBJECT_MAX, TextForm, missing};
pub use call::Call;
pub use dispatch::{Peer, ResponseContext, stranger_line_due};
pub use idempotency_key::IdempotencyKey;
pub use large_reads::{LargeRead, LargeReads};
pub use listing::Listing;
pub use memory::{ANSWER_MAX, ANSWERS_MAX, BODY_MAX, SharedMemory};
pub use operation::Operation;
pub use paging::{CURSOR_MAX, OFFSET_MAX, PAGE_DEFAULT, PAGE_MAX, PAGING, Paging, has_offset};
pub use problem::{Code, Problem, over_budget_message};
pub use query::QueryParams;
pub use receive::PUBLIC_BODY_MAX;
pub use reply::{Answer, Reply, Success};
pub use request_id::generated as new_request_id;
pub use route::{Access, Base, Flag, Modes, PREFIXES, Route, RouteRate};
pub use router::Paths;
pub use run_id::require_run_id;
pub use time_range::{TimeRange, require_order};
pub use wallet_name::WalletName;
pub use whole_number::whole_number;
