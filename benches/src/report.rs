//! The tables, as Markdown: printed, and kept in `results/latest.md`.

mod limits;
mod loads;
mod shapes;
mod table;

use crate::results::{Found, Measured, Results};
use crate::row::{OTHERS_PERCENT_MAX, Row};
use crate::section::Section;
use crate::targets::{Verdict, verdicts};
use std::fmt::Write;
use table::Table;

const HEAD: &str = "\
# Bench

Written by `make bench`; `benches/README.md` says who is measured and how, and how to read it. Everything on \
loopback, every proxy with one worker thread; medians over interleaved rounds. The same numbers for programs are in \
[latest.json](latest.json).
";

/// The whole report.
pub(crate) fn markdown(results: &Results) -> String {
    let mut text = HEAD.to_owned();
    if !results.note.is_empty() {
        let _ = write!(text, "\n**{}**\n", results.note);
    }
    text.push('\n');
    for (name, value) in &results.machine {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text.push_str(&targets(&verdicts(results)));
    text.push_str(&circumstances(results));
    for measured in &results.sections {
        text.push_str(&section(measured));
    }
    text.push_str(&errors(results));
    text
}

fn section(measured: &Measured) -> String {
    match &measured.found {
        Found::FullLoad(rows) => loads::full_load(rows),
        Found::Frontier(frontier) => limits::frontier(frontier),
        Found::Latency(paced) => paced.iter().map(loads::paced).collect(),
        Found::Bodies(bodies) => shapes::bodies(bodies),
        Found::Protocols(spoken) => shapes::protocols(spoken),
        Found::Instructions(counted) => loads::instructions(counted),
        Found::Memory(weighed) => limits::memory(weighed),
        Found::Edges(several) => limits::edges(several),
        Found::HotAccount(heats) => loads::hot_account(heats),
        Found::Streams(streams) => shapes::streams(streams),
        Found::Floods(flooded) => limits::floods(flooded),
        Found::Nothing => String::new(),
    }
}

fn targets(verdicts: &[Verdict]) -> String {
    let mut table = Table::new(&["target, everything on", "found", "at most", "verdict"]);
    for verdict in verdicts {
        let number = |value: f64| format!("{value:.2} {}", verdict.unit);
        let words = match (verdict.found, verdict.is_met) {
            (None, _) => "not measured",
            (_, true) => "met",
            (_, false) => "**not met**",
        };
        table.row(&[
            verdict.what.clone(),
            verdict.found.map_or_else(|| table::NONE.to_owned(), number),
            format!("{} {}", verdict.limit, verdict.unit),
            words.to_owned(),
        ]);
    }
    format!("\n## Targets\n\n{}", table.text)
}

/// Highest percentage of a core that other processes took while the proxies of a section were measured.
fn disturbance(found: &Found) -> Option<f64> {
    if let Found::Frontier(frontier) = found {
        let curves = frontier.curves.iter();
        return curves.map(|curve| curve.others_percent).max_by(f64::total_cmp);
    }
    let rows: Vec<&Row> = match found {
        Found::FullLoad(rows) => rows.iter().collect(),
        Found::Latency(paced) => paced.iter().flat_map(|paced| &paced.rows).collect(),
        Found::Bodies(bodies) => bodies.iter().flat_map(|body| &body.rows).collect(),
        Found::Protocols(spoken) => spoken.iter().flat_map(|spoken| &spoken.rows).collect(),
        Found::Streams(streams) => streams.iter().flat_map(|load| &load.rows).collect(),
        Found::Edges(several) => several.iter().map(|several| &several.row).collect(),
        // Not the rows of the neighbour: other load beside it is intended.
        Found::HotAccount(heats) => {
            let rows = heats.iter().map(|heat| &heat.row);
            rows.filter(|row| row.edge_us.is_some()).collect()
        }
        Found::Frontier(_)
        | Found::Instructions(_)
        | Found::Memory(_)
        | Found::Floods(_)
        | Found::Nothing => Vec::new(),
    };
    rows.iter().map(|row| row.others_percent).max_by(f64::total_cmp)
}

fn circumstances(results: &Results) -> String {
    let mut table = Table::new(&[
        "part",
        "measured at",
        "commit",
        "load average before",
        "others, % of a core at most",
        "took, s",
    ]);
    let (mut lengths, mut noisy): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for measured in &results.sections {
        let others = disturbance(&measured.found);
        if others.is_some_and(|percent| percent > OTHERS_PERCENT_MAX) {
            noisy.push(measured.section.shown());
        }
        if !lengths.contains(&measured.lengths.as_str()) {
            lengths.push(&measured.lengths);
        }
        table.row(&[
            measured.section.shown().to_owned(),
            measured.at.clone(),
            measured.commit.clone(),
            measured.load_average.clone(),
            table::whole(others),
            table::whole(Some(measured.took_seconds)),
        ]);
    }
    let mut text = format!("\n## When, and how quiet the machine was\n\n{}", table.text);
    let _ = write!(text, "\nPhases: {}.\n", lengths.join("; or "));
    if !noisy.is_empty() {
        let _ = write!(
            text,
            "\n**The machine was not quiet** during {}: others took more than {OTHERS_PERCENT_MAX} % of a core. Run \
             them again.\n",
            noisy.join(", ")
        );
    }
    text
}

fn errors(results: &Results) -> String {
    let mut text = "\n## Errors\n\n".to_owned();
    let lines = results.sections.iter().flat_map(|measured| {
        let name = measured.section.shown();
        measured
            .errors
            .iter()
            .map(move |error| format!("- {name}: {error}\n"))
    });
    let lines: String = lines.collect();
    let calls: u64 = results
        .sections
        .iter()
        .map(|measured| measured.calls_checked)
        .sum();
    let missing: Vec<&str> = Section::ALL
        .iter()
        .filter(|section| results.found(**section).is_none())
        .map(|section| section.shown())
        .collect();
    text.push_str(&lines);
    if lines.is_empty() {
        let _ = writeln!(
            text,
            "None. The ledgers hold exactly the cost of the {calls} approved calls, and no hold is open."
        );
    }
    if !missing.is_empty() {
        let _ = writeln!(text, "\nNot measured: {}.", missing.join(", "));
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::contender::{EDGE, Name, STORE};
    use crate::results::tests::measured;
    use crate::row::tests::outcome;
    use crate::sections::bodies::Body;
    use crate::sections::edges::{EdgeScaling, Race};
    use crate::sections::floods::{FloodResult, Side};
    use crate::sections::frontier::{Curve, Frontier, Highest, Point};
    use crate::sections::hot_account::HotLoad;
    use crate::sections::instructions::CallInstructions;
    use crate::sections::latency::Paced;
    use crate::sections::memory::MemoryUse;
    use crate::sections::protocols::ProtocolPair;
    use crate::sections::streams::{MANY, ONE, SOME, StreamLoad};

    fn row(name: Name, edge: f64, store: Option<f64>, p50: f64) -> Row {
        let mut cpu = vec![(EDGE, edge), ("machine", edge + 0.1)];
        cpu.extend(store.map(|store| (STORE, store)));
        if name == Name::Direct {
            cpu.clear();
        }
        Row::from_outcomes(name, &[outcome(1_000_000, p50, &cpu)]).unwrap()
    }

    fn rows() -> Vec<Row> {
        vec![
            row(Name::Direct, 0.0, None, 20.0),
            row(Name::Nginx, 16.0, None, 60.0),
            row(Name::PassThrough, 32.0, None, 70.0),
            row(Name::Tollgate, 48.0, Some(30.0), 180.0),
        ]
    }

    fn flooded(flood: Option<&str>, p99_us: f64) -> FloodResult {
        FloodResult {
            side: Side::Edge,
            flood: flood.map(str::to_owned),
            peak_kib: 30_000,
            after_kib: 20_000,
            percent: 12.0,
            p50_us: 300.0,
            p99_us,
            errors: 0,
        }
    }

    fn full_load() -> Vec<Row> {
        let mut rows = rows();
        rows.push(row(Name::TollgateMemory, 47.0, Some(20.0), 180.0));
        rows.push(row(Name::DeniedByDay, 20.0, Some(9.0), 90.0));
        rows.push(row(Name::DeniedByRate, 19.0, Some(8.0), 90.0));
        rows
    }

    fn frontier() -> Frontier {
        let point = |rate, p99_ms| Point {
            rate,
            p99_ms,
            direct_ms: 0.2,
            is_whole: true,
        };
        let highest = |bound_ms, rate, is_of_rig| Highest {
            bound_ms,
            rate,
            is_of_rig,
        };
        Frontier {
            curves: vec![Curve {
                name: Name::Tollgate,
                saturation: 20_000.0,
                others_percent: 1.0,
                highest: vec![highest(10.0, Some(19_000.0), true), highest(1.0, None, false)],
                points: vec![point(9_000.0, 1.4), point(19_000.0, 8.0)],
            }],
        }
    }

    /// Results of every part.
    pub(crate) fn everything() -> Results {
        let mut results = Results::new(vec![("Kernel".to_owned(), "Linux 6".to_owned())]);
        let paced = |connections, is_half_of_saturation| Paced {
            connections,
            rate: 500.0,
            is_half_of_saturation,
            rows: rows(),
        };
        let weighed = MemoryUse {
            name: Name::Tollgate,
            idle_kib: 10_000,
            loaded_kib: 20_000,
            recovered_kib: 11_000,
            large_kib: 90_000,
            large_recovered_kib: 20_000,
        };
        let counted = |name, streamed, of_one: u64| CallInstructions {
            name,
            streamed,
            calls: 2_000,
            instructions: 2_000 * of_one,
        };
        let race = Race {
            approved: 4000,
            denied: 20,
            due_nanos: 208_200_000,
            charged_nanos: 208_200_000,
            limit_nanos: 208_300_000,
            overspent: 0,
        };
        let found = [
            Found::FullLoad(full_load()),
            Found::Frontier(frontier()),
            Found::Latency(vec![paced(1, false), paced(64, true)]),
            Found::Bodies(vec![Body {
                bytes: 1 << 20,
                rows: rows(),
            }]),
            Found::Protocols(vec![ProtocolPair {
                front: "HTTP/1.1 over TLS".to_owned(),
                back: "HTTP/1.1".to_owned(),
                rows: rows(),
            }]),
            Found::Instructions(vec![
                counted(Name::PassThrough, false, 90_000),
                counted(Name::PassThrough, true, 3_000_000),
                counted(Name::Tollgate, false, 180_000),
                counted(Name::Tollgate, true, 3_600_000),
            ]),
            Found::Memory(vec![weighed]),
            Found::Edges(vec![EdgeScaling {
                edges: 4,
                has_cores: false,
                row: row(Name::Tollgate, 50.0, Some(31.0), 200.0),
                race,
            }]),
            Found::HotAccount(vec![HotLoad {
                whose: "one agent, in 64 runs".to_owned(),
                row: row(Name::Tollgate, 51.0, Some(32.0), 210.0),
            }]),
            Found::Streams(
                [ONE, SOME, MANY]
                    .map(|streams| StreamLoad {
                        streams,
                        every_us: 2500,
                        rows: rows(),
                        kib_a_stream: vec![(Name::Tollgate, 30.0)],
                    })
                    .into(),
            ),
            Found::Floods(vec![
                flooded(None, 500.0),
                flooded(Some("4,000 slow heads"), 1500.0),
            ]),
        ];
        for (section, found) in Section::ALL.into_iter().zip(found) {
            results.put(measured(section, "2026-11-22T10:00:00.000Z", found));
        }
        results
    }

    #[test]
    fn the_report_has_the_ratios_and_what_is_added() {
        let text = markdown(&everything());
        for line in [
            "- Kernel: Linux 6",
            "| edge CPU a request over the pass-through | 1.50 × | 1.25 × | **not met** |",
            "| p50 added to the pass-through, 1 connection | 110.00 µs | 250 µs | met |",
            "| full-load | 2026-11-22T10:00:00.000Z | c0ffee | 0.10 0.20 0.30 | 5 | 12 |",
            "| (a) nginx proxy_pass | 500000 | 16.0 | 16.0–16.0 | – | 800 | 0 | 5 |",
            "## Fixed rate: 500 requests/s over 1 connection, open loop",
            "## Fixed rate: 500 requests/s (half of what (c) can do) over 64 connections, open loop",
            "| (c) Tollgate, everything on | 180 | 270 | 360 | 540 | 160 | 320 | 110 | 220 | 0 | 48.0 | 30.0 | 1500 |",
            "| (c) Tollgate, everything on | none | ≥ 19000 | 20000 |",
            "| 1 MB | 16.0 | 32.0 | 48.0 | 1.50 | 3.00 |",
            "| HTTP/1.1 over TLS | HTTP/1.1 | 16.0 | 32.0 | 48.0 | 1.50 | 3.00 |",
            "| (c) Tollgate, everything on | 10.2 | 20.5 | 11.3 | 1.10 | 92.2 | 20.5 | 2.00 |",
            "| a call | (c) Tollgate, everything on | 180000 | 2.00 | 2000 |",
            "| a stream | (c) Tollgate, everything on | 3600000 | 1.20 | 2000 |",
            "| 4 | shared | 500000 | 50.0 | 31.0 | 4000 | 20 | 0.208200000 | 0.208200000 | 0.208300000 | 0 |",
            "| none | edge | 31 | 20 | 12 | 0.30 | 0.50 | 1.0 | 0 |",
            "| 4,000 slow heads | edge | 31 | 20 | 12 | 0.30 | 1.50 | 3.0 | 0 |",
            "| 64 | 2.5 | (c) Tollgate, everything on | 180 | 360 | 110 | 220 | 0 | 48.0 | 48.0–48.0 | 0.2 | 1.50 | 30.0 | 30.0 | 0 |",
            "| one agent, in 64 runs | 500000 | 51.0 | 32.0 | 210 | 420 | 630 |",
            "the 77 approved calls",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(
            !text.contains("was not quiet") && !text.contains("Not measured"),
            "{text}"
        );
    }

    #[test]
    fn errors_noise_and_what_is_missing_are_plain() {
        let mut noisy = rows();
        noisy[1].others_percent = 35.0;
        let mut results = Results::new(Vec::new());
        let mut part = measured(Section::FullLoad, "now", Found::FullLoad(noisy));
        part.errors.push("one".to_owned());
        results.put(part);
        results.note = "A first look".to_owned();
        let text = markdown(&results);
        for line in [
            "**A first look**",
            "**The machine was not quiet** during full-load",
            "- full-load: one",
            "Not measured: frontier, latency, bodies, protocols, instructions, memory, edges, hot-account, streams, floods.",
            "| edge CPU a request of 1 MB over the pass-through | – | 1.5 × | not measured |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("None."), "{text}");
    }
}
