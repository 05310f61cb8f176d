//! The tables, as Markdown: printed, and kept in `results/latest.md`.

use crate::contender::Name;
use crate::measure::{Phase, Rounds};
use crate::summary::{self, Busy, Paced};
use std::fmt::Write;

/// Everything that was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The closed loop.
    pub(crate) closed: Rounds,
    /// Open loops, with the load of each.
    pub(crate) open: Vec<(Phase, Rounds)>,
    /// What went wrong; empty in a good run.
    pub(crate) errors: Vec<String>,
    /// Calls that the ledgers were checked against.
    pub(crate) calls_checked: u64,
}

/// The whole report; `head` says what was measured, where and how.
pub(crate) fn markdown(head: &str, found: &Found) -> String {
    let mut text = head.to_owned();
    text.push_str(&closed_table(&found.closed));
    for (phase, rounds) in found.open.iter().filter(|(_, rounds)| !rounds.is_empty()) {
        text.push_str(&open_table(*phase, rounds));
    }
    text.push_str(&floor_lines(&found.closed));
    text.push_str(&error_lines(found));
    text
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"))
}

fn row(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn header(text: &mut String, cells: &[&str]) {
    let numbers = "---:|".repeat(cells.len() - 1);
    let _ = writeln!(text, "| {} |\n|---|{numbers}", cells.join(" | "));
}

fn closed_table(rounds: &Rounds) -> String {
    let mut text = "\n## Full load: 64 connections, closed loop\n\n".to_owned();
    header(
        &mut text,
        &[
            "",
            "requests/s",
            "edge CPU-µs a request",
            "store CPU-µs a request",
            "edge, % of a core",
            "store, provider and load, % of a core",
            "others, % of a core",
        ],
    );
    for name in Name::ALL {
        let Some(busy) = summary::busy(rounds, name) else {
            continue;
        };
        let Busy {
            rate,
            edge_us,
            store_us,
            edge_percent,
            rig_percent,
            others_percent,
        } = busy;
        let percent = |value: f64| format!("{value:.0}");
        let cells = [
            name.shown().to_owned(),
            percent(rate),
            number(edge_us),
            number(store_us),
            edge_percent.map_or_else(|| "–".to_owned(), percent),
            percent(rig_percent),
            percent(others_percent),
        ];
        row(&mut text, &cells);
    }
    text
}

fn open_table(phase: Phase, rounds: &Rounds) -> String {
    let rate = phase.rate.unwrap_or_default();
    let connections = match phase.connections {
        1 => "1 connection".to_owned(),
        several => format!("{several} connections"),
    };
    let mut text = format!("\n## Fixed rate: {rate} requests/s over {connections}, open loop\n\n");
    header(
        &mut text,
        &[
            "µs from the intended sending",
            "p50",
            "p99",
            "p50 added to direct",
            "p99 added to direct",
            "p50 added to (b)",
            "p99 added to (b)",
            "generator late, p99",
        ],
    );
    let direct = summary::paced(rounds, Name::Direct);
    let pass = summary::paced(rounds, Name::PassThrough);
    for name in Name::AT_FIXED_RATE {
        let Some(paced) = summary::paced(rounds, name) else {
            continue;
        };
        let added = |base: Option<Paced>, of: fn(&Paced) -> f64| {
            number(
                base.map(|base| of(&paced) - of(&base))
                    .filter(|_| name != Name::Direct),
            )
        };
        let base = pass.filter(|_| name == Name::Tollgate);
        let cells = [
            name.shown().to_owned(),
            number(Some(paced.p50)),
            number(Some(paced.p99)),
            added(direct, |paced| paced.p50),
            added(direct, |paced| paced.p99),
            added(base, |paced| paced.p50),
            added(base, |paced| paced.p99),
            number(Some(paced.late_p99)),
        ];
        row(&mut text, &cells);
    }
    text
}

fn floor_lines(closed: &Rounds) -> String {
    let mut text = "\n## Floor\n\n".to_owned();
    for check in summary::floor(closed) {
        let verdict = if check.is_met() { "met" } else { "NOT met" };
        let found = check
            .found
            .map_or_else(|| "not measured".to_owned(), |found| format!("{found:.2}"));
        let _ = writeln!(
            text,
            "- {}: {found}, at most {}: {verdict}",
            check.what, check.limit
        );
    }
    if let Some(percent) = summary::disturbance(closed) {
        let _ = writeln!(
            text,
            "\nOthers took up to {percent:.0} % of a core meanwhile: the machine was not quiet, run it again."
        );
    }
    text
}

fn error_lines(found: &Found) -> String {
    let mut text = "\n## Errors\n\n".to_owned();
    if found.errors.is_empty() {
        let calls = found.calls_checked;
        let _ = writeln!(
            text,
            "None. The ledgers hold exactly the cost of the {calls} approved calls, and no hold is open."
        );
    }
    for error in &found.errors {
        let _ = writeln!(text, "- {error}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gate_bench_rig::outcome::{Outcome, Quantiles};
    use std::collections::BTreeMap;

    fn outcome(edge: f64, p50_us: f64) -> Vec<Outcome> {
        let latency = Quantiles {
            p50_us,
            p99_us: p50_us * 2.0,
            max_us: 0.0,
        };
        vec![Outcome {
            answered: 1_000_000,
            answered_in_all: 1_000_000,
            errors: 0,
            first_error: None,
            seconds: 10.0,
            latency,
            lateness: Quantiles::default(),
            cpu_seconds: BTreeMap::from([("edge".to_owned(), edge), ("store".to_owned(), 30.0)]),
        }]
    }

    fn rounds() -> Rounds {
        Rounds::from([
            (Name::Direct, outcome(0.0, 20.0)),
            (Name::Nginx, outcome(16.0, 60.0)),
            (Name::PassThrough, outcome(32.0, 70.0)),
            (Name::Tollgate, outcome(48.0, 180.0)),
        ])
    }

    #[test]
    fn the_report_has_the_ratios_and_what_is_added() {
        let phase = Phase {
            connections: 1,
            rate: Some(500.0),
        };
        let found = Found {
            closed: rounds(),
            open: vec![(phase, rounds())],
            errors: Vec::new(),
            calls_checked: 7,
        };
        let text = markdown("# Head\n", &found);
        for line in [
            "# Head",
            "| (a) nginx proxy_pass | 100000 | 16.0 | 30.0 | 160 | 300 | 0 |",
            "## Fixed rate: 500 requests/s over 1 connection, open loop",
            "| direct, no proxy | 20.0 | 40.0 | – | – | – | – | 0.0 |",
            "| (c) Tollgate, everything on | 180.0 | 360.0 | 160.0 | 320.0 | 110.0 | 220.0 | 0.0 |",
            "- edge CPU, c/b: 1.50, at most 1.6: met",
            "- edge CPU, c/a: 3.00, at most 3.3: met",
            "- store CPU-µs a call: 30.00, at most 40: met",
            "the 7 approved calls",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn errors_and_a_floor_that_is_not_met_are_plain() {
        let found = Found {
            closed: Rounds::from([
                (Name::Nginx, outcome(10.0, 1.0)),
                (Name::Tollgate, outcome(34.0, 1.0)),
            ]),
            open: Vec::new(),
            errors: vec!["one".to_owned()],
            calls_checked: 0,
        };
        let text = markdown("", &found);
        assert!(
            text.contains("- edge CPU, c/a: 3.40, at most 3.3: NOT met"),
            "{text}"
        );
        assert!(
            text.contains("- edge CPU, c/b: not measured, at most 1.6: NOT met"),
            "{text}"
        );
        assert!(!text.contains("was not quiet"), "{text}");
        assert!(text.contains("\n- one\n") && !text.contains("None."), "{text}");
    }
}
