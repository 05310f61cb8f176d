//! `tollgate-admin ledger check`: checks all invariants of the ledger.

use super::context::{CommandContext, CommandKind};
use super::table::table;
use super::value;
use crate::failure::CommandFailure;
use crate::report::Report;
use archive::Archive;
use clap::Subcommand;
use ledger_check::{CheckScope, Checked, Inconclusive, Invariant};
use serde_json::json;
use settings::{Settings, StoreSettings};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use store::Store;

/// Longest wait for one reply: reading a thousand records takes longer than a call of the edge.
const TIMEOUT_MS: u64 = 30_000;

/// `ledger …`
#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Recompute everything from its records and report violations; exit code 1 if there are any, 3 if some checks are
    /// inconclusive
    Check {
        /// Only this account's records
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: Option<String>,
        /// Also compare the books with the audit trail, which is read whole, in the store and the archive, and verified
        #[arg(long)]
        trail: bool,
    },
}

impl LedgerCommand {
    pub(super) async fn run(self, settings: Settings, kind: CommandKind) -> Result<Report, CommandFailure> {
        let context = CommandContext::open(settings, kind).await?;
        let Self::Check { account, trail } = self;
        if let Some(id) = &account {
            context.account(id).await?;
        }
        let patient = StoreSettings {
            timeout_ms: context.settings.store.timeout_ms.max(TIMEOUT_MS),
            ..context.settings.store.clone()
        };
        let store =
            Store::from_settings(&patient).map_err(|error| CommandFailure::usage(error.to_string()))?;
        let archive = Archive::from_settings(&context.settings.audit)?;
        let began = Instant::now();
        let shown = std::io::stderr().is_terminal();
        let progress = move |records: u64| {
            if shown {
                // Nothing can be reported if this fails.
                let _unwritable = write!(std::io::stderr().lock(), "\r{records} records read");
            }
        };
        let scope = CheckScope {
            account: account.as_deref(),
            with_trail: trail,
        };
        let checked = ledger_check::check(&store, &archive, scope, &progress).await?;
        if shown {
            let _unwritable = writeln!(std::io::stderr().lock());
        }
        let report = report(&checked, began.elapsed());
        Ok(match (checked.is_violated(), checked.ok()) {
            (true, _) => report.incomplete(),
            (false, true) => report,
            (false, false) => report.inconclusive(),
        })
    }
}

fn report(checked: &Checked, took: Duration) -> Report {
    let Checked {
        violations,
        more,
        inconclusive,
        records,
        passes,
    } = checked;
    let document = json!({
        "ok": checked.ok(), "violations": violations, "more": more, "inconclusive": inconclusive,
        "checked": records, "passes": passes,
        "tookMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    });
    let seconds = took.as_secs_f64();
    let word = if *passes == 1 { "pass" } else { "passes" };
    let head = format!("{records} records read in {seconds:.1} s, in {passes} {word}.");
    if checked.ok() {
        return Report::new(format!("{head} Everything holds."), document);
    }
    let undecided: Vec<String> = inconclusive.iter().map(undecided_line).collect();
    let text = if checked.is_violated() {
        let count = violations.len() as u64 + more;
        format!("{}\n{head} {count} violation(s).", findings(checked, &undecided))
    } else {
        format!("{}\n{head} {}", undecided.join("\n"), advice(inconclusive))
    };
    Report::new(text, document)
}

fn undecided_line(finding: &Inconclusive) -> String {
    let about = finding.records.join(", ");
    format!(
        "Inconclusive: {} ({about}): {}",
        finding.invariant.as_str(),
        finding.reason
    )
}

/// Returns the advice about findings of which none is a violation.
fn advice(inconclusive: &[Inconclusive]) -> String {
    let of_trail = inconclusive
        .iter()
        .any(|finding| finding.invariant == Invariant::Trail);
    let or = match of_trail {
        true => " Where the trail cannot be read, `tollgate-admin audit verify` says what is missing.",
        false => "",
    };
    format!(
        "No violation was found, but some findings are undecided: check again while less money moves.{or}"
    )
}

/// Returns the table of the violations, with the undecided findings below.
fn findings(checked: &Checked, undecided: &[String]) -> String {
    let rows: Vec<Vec<String>> = checked
        .violations
        .iter()
        .map(|violation| {
            vec![
                violation.invariant.as_str().to_owned(),
                violation.records.join(", "),
                violation.detail.clone(),
            ]
        })
        .collect();
    let mut text = table(&["INVARIANT", "RECORDS", "WHAT IS WRONG"], &rows);
    if checked.more > 0 {
        text = format!("{text}\nand {} more", checked.more);
    }
    for line in undecided {
        text = format!("{text}\n{line}");
    }
    text
}
