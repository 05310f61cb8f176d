//! `tollgate-admin audit recompute`: recomputes the charges of an account's calls from their records and the price
//! tables of their versions (decision D48).

use super::super::context::CommandContext;
use super::super::price_tables::PriceTables;
use super::super::table::table;
use super::super::value;
use super::TrailArgs;
use crate::document::{JsonObject, document};
use crate::failure::CommandFailure;
use crate::report::Report;
use archive::Archive;
use clap::Args;
use domain::call_record::{CallRecord, KINDS};
use domain::money::{Nanos, NanosSum};
use domain::period::DAY_MS;
use domain::recompute::{Recomputed, Unknown};
use history::trail::Trail;
use history::trail::calls::{CallSelection, CallsPosition, STEP_MAX};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Maximum number of different charges that are named.
const NAMED_MAX: usize = 100;

/// `audit recompute`
#[derive(Debug, Args)]
pub(in super::super) struct RecomputeArgs {
    #[command(flatten)]
    trail_args: TrailArgs,
    /// Only calls recorded on this UTC day or later, such as 2026-11-28
    #[arg(long, value_name = "DAY", value_parser = value::day)]
    from: Option<u64>,
    /// Only calls recorded before this UTC day
    #[arg(long, value_name = "DAY", value_parser = value::day)]
    to: Option<u64>,
}

/// Results of the calls that were read.
#[derive(Debug, Default)]
struct RecomputeCounts {
    calls: u64,
    charged: NanosSum,
    same: u64,
    estimates: u64,
    different: u64,
    /// The first of them, with the computed charge.
    named: Vec<(CallRecord, Nanos)>,
    /// By [`Unknown`].
    unknown: [u64; Unknown::ALL.len()],
    /// Versions of the tables that were not kept.
    missing: BTreeSet<String>,
}

impl RecomputeArgs {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        context.account(&self.trail_args.account).await?;
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(CommandFailure::usage("--from must be before --to"));
        }
        let archive = Archive::from_settings(&context.settings.audit)?;
        let trail = Trail::new(&context.store, &archive, self.trail_args.realm());
        trail.seal().await?;
        let mut tables = PriceTables::new(&context.store, &archive);
        // Denied calls cost nothing.
        let [approved, _, voided, _] = KINDS;
        let selection = CallSelection {
            kinds: &[approved, voided],
            agent: None,
            from_ms: self.from.map(|day| day * DAY_MS),
            to_ms: self.to.map(|day| day * DAY_MS),
            late: None,
        };
        let mut tally = RecomputeCounts::default();
        let mut place = Some(CallsPosition::START);
        while let Some(from) = place {
            let step = trail.calls(&selection, from, STEP_MAX).await?;
            for call in step.calls {
                let version = call.price_version.as_deref().unwrap_or_default();
                let table = tables.get(version).await?;
                let result = call.recompute(table.as_deref());
                tally.add(call, result);
            }
            place = step.next;
        }
        Ok(tally.into_report())
    }
}

impl RecomputeCounts {
    fn add(&mut self, call: CallRecord, result: Recomputed) {
        self.calls += 1;
        self.charged += call.cost;
        match result {
            Recomputed::Same => self.same += 1,
            Recomputed::Estimate => self.estimates += 1,
            Recomputed::Different(computed) => {
                self.different += 1;
                if self.named.len() < NAMED_MAX {
                    self.named.push((call, computed));
                }
            }
            Recomputed::Unknown(why) => {
                self.unknown[why as usize] += 1;
                if why == Unknown::NoTable {
                    self.missing.extend(call.price_version);
                }
            }
        }
    }

    /// Exit code 1 if a charge is another one, 3 if a table is missing.
    fn into_report(self) -> Report {
        let report = Report::new(self.text(), self.document());
        if self.different > 0 {
            report.incomplete()
        } else if self.unknown[Unknown::NoTable as usize] > 0 {
            report.inconclusive()
        } else {
            report
        }
    }

    fn document(&self) -> JsonObject {
        let named = self.named.iter().map(|(call, computed)| {
            json!({
                "id": call.id, "auditSeq": call.audit_seq, "model": call.model, "priceVersion": call.price_version,
                "chargedNanos": call.cost.get().to_string(), "computedNanos": computed.get().to_string(),
            })
        });
        let unknown = Unknown::ALL.iter().zip(self.unknown);
        let unknown: serde_json::Map<String, Value> = unknown
            .map(|(why, count)| (why.as_str().to_owned(), count.into()))
            .collect();
        document! {
            "ok": self.different == 0 && self.missing.is_empty(),
            "calls": self.calls, "chargedUsd": self.charged, "same": self.same, "estimates": self.estimates,
            "different": self.different, "unknown": unknown, "missingTables": self.missing,
            "differences": named.collect::<Vec<_>>(),
        }
    }

    fn text(&self) -> String {
        let [no_usage, unspelt, no_table] = self.unknown;
        let mut lines = vec![
            format!("{} calls, charged {} USD in all", self.calls, self.charged),
            format!("{} charges match the record", self.same),
            format!(
                "{} charges equal the estimate: no usage was recorded",
                self.estimates
            ),
            format!("{} charges are different", self.different),
        ];
        let mut add = |count: u64, why: &str| {
            if count > 0 {
                lines.push(format!(
                    "{count} charges cannot be recomputed from the record: {why}"
                ));
            }
        };
        add(
            no_usage,
            "without usage, more than the estimate was charged (a stream's text, `holds settle`)",
        );
        add(
            unspelt,
            "a service tier or price prefix has a name that the trail cannot contain",
        );
        let missing: Vec<&str> = self.missing.iter().map(String::as_str).collect();
        add(
            no_table,
            &format!("these price tables were not kept: {}", missing.join(", ")),
        );
        if !self.named.is_empty() {
            let rows: Vec<Vec<String>> = self
                .named
                .iter()
                .map(|(call, computed)| {
                    let version = call.price_version.clone().unwrap_or_default();
                    vec![
                        call.id.clone(),
                        call.cost.to_string(),
                        computed.to_string(),
                        version,
                    ]
                })
                .collect();
            lines.push(String::new());
            lines.push(table(&["CALL", "CHARGED USD", "COMPUTED USD", "PRICES"], &rows));
        }
        if self.different > self.named.len() as u64 {
            lines.push(format!("and {} more", self.different - self.named.len() as u64));
        }
        lines.join("\n")
    }
}
