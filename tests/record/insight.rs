//! The overview, the account, usage and statistics, compared with what was done; and
//! what else the dashboard is built on.

mod account;
mod attention;
mod editors;
mod overview;
mod search;
mod statistics;
mod thresholds;
mod usage;
mod verify;
