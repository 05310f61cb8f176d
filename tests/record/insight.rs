//! The overview, the account, usage and statistics, compared with the requests before; and the other operations of the
//! dashboard.

mod account;
mod attention;
mod editors;
mod overview;
mod search;
mod statistics;
mod thresholds;
mod usage;
mod verify;
