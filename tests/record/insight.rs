//! What an owner is told at a glance, against what really happened: the overview, the account, usage, statistics; and
//! what else the dashboard is built on.

mod account;
mod attention;
mod editors;
mod kept;
mod overview;
mod search;
mod statistics;
mod thresholds;
mod usage;
mod verify;
