//! Outputs for operators: metrics, log lines, traces, dashboards and alerts, of real processes after real calls.
//!
//! * [`fixture`], [`scrape`]: the fixture, and the metrics as a scraper reads them
//! * [`document`]: docs/reference/observability.md lists every metric, as `/metrics` describes it
//! * [`gauges`]: gauges of what is open, waiting or broken
//! * [`lines`]: one log line per decision, without secrets
//! * [`lines_of_requests`]: the line of an answer is found by its id, and says who an unknown caller was
//! * [`traces`], [`protobuf`]: spans at a collector
//! * [`runbook`]: log messages that the runbook names exist
//! * [`queries`], [`dashboards`], [`rules`]: dashboards and alerts name existing metrics; each alert fires, and only
//!   when it should
#![cfg(test)]

mod dashboards;
mod document;
mod fixture;
mod gauges;
mod lines;
mod lines_of_requests;
mod protobuf;
mod queries;
mod rules;
mod runbook;
mod scrape;
mod traces;
