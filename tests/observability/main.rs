//! What operators see: metrics, log lines, traces, dashboards and alerts, of real processes after real calls.
//!
//! * [`stage`], [`scrape`]: what the tests stand on, and the metrics as a scraper reads them
//! * [`document`]: docs/reference/observability.md lists every metric, as `/metrics` describes it
//! * [`gauges`]: what is open, waits or is broken is told
//! * [`lines`]: one log line for each decision, and nothing secret in any
//! * [`traces`], [`protobuf`]: spans at a collector
//! * [`runbook`]: what the runbook searches the log for is what a program says
//! * [`queries`], [`dashboards`], [`rules`]: dashboards and alerts name what there is; each alert fires and stays quiet
#![cfg(test)]

mod dashboards;
mod document;
mod gauges;
mod lines;
mod protobuf;
mod queries;
mod rules;
mod runbook;
mod scrape;
mod stage;
mod traces;
