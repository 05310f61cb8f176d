//! `make bench`: compares Tollgate with nginx and a bare Pingora in one run on loopback. `benches/README.md` documents
//! the method.

mod bisect;
mod contender;
mod fixture;
mod ledger;
mod machine;
mod measure;
mod phase;
mod plot;
mod process;
mod progress;
mod report;
mod results;
mod row;
mod section;
mod sections;
mod targets;

use clap::Parser;
use contender::Name;
use fixture::Fixture;
use gate_bench::facts;
use machine::Cores;
use measure::Runner;
use progress::{Progress, say};
use results::{Found, Measured, Results};
use section::{Lengths, Section};
use std::cell::RefCell;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Longest phase that an option can set, in seconds.
const SECONDS_MAX: f64 = 600.0;
/// Most rounds that an option can set.
const ROUNDS_MAX: usize = 50;

/// Measures Tollgate beside nginx and a bare Pingora pass-through
#[derive(Debug, Parser)]
struct Options {
    /// Directory of the measured programs: tollgate-proxy, bench-pass-through, bench-upstream, bench-load
    #[arg(long, default_value = "target/dist")]
    bin_dir: PathBuf,
    /// Measure only these sections, and keep the results of the others
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Section>,
    /// Short phases, some nine minutes in all: for a first impression, not for publication
    #[arg(long)]
    quick: bool,
    /// Length of every phase [default: 5, quick 1]
    #[arg(long)]
    seconds: Option<f64>,
    /// Rounds over all contenders; the medians are reported [default: 3, quick 1]
    #[arg(long)]
    rounds: Option<usize>,
    /// The directory of the results: latest.md, latest.json and the plots
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results"))]
    out: PathBuf,
    /// A sentence for the head of the report
    #[arg(long, default_value = "")]
    note: String,
}

impl Options {
    fn lengths(&self) -> Result<Lengths, String> {
        let base = if self.quick { Lengths::QUICK } else { Lengths::FULL };
        let (seconds, rounds) = (
            self.seconds.unwrap_or(base.seconds),
            self.rounds.unwrap_or(base.rounds),
        );
        if !(0.2..=SECONDS_MAX).contains(&seconds) {
            return Err(format!(
                "--seconds {seconds} is not between 0.2 and {SECONDS_MAX}"
            ));
        }
        if !(1..=ROUNDS_MAX).contains(&rounds) {
            return Err(format!("--rounds {rounds} is not between 1 and {ROUNDS_MAX}"));
        }
        Ok(Lengths {
            seconds,
            rounds,
            short_rounds: base.short_rounds.min(rounds),
            short_seconds: base.short_seconds.min(seconds),
            ..base
        })
    }

    fn sections(&self) -> Vec<Section> {
        let wanted = |section: &Section| self.only.is_empty() || self.only.contains(section);
        Section::ALL.into_iter().filter(wanted).collect()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("gate-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs the sections and writes the results after each. Returns whether there was no error.
async fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let (lengths, sections) = (options.lengths()?, options.sections());
    // The floods need more open files than the default limit allows, and so do the flooded servers, which inherit it.
    connections::open_files::raise();
    let cores = Cores::for_count(std::thread::available_parallelism()?.get());
    let fixture = Fixture::new(&options.bin_dir, cores)?;
    let real_time = machine::has_real_time();
    std::fs::create_dir_all(&options.out)?;
    let mut results = Results::new(facts::facts());
    results.add_fact("Cores", &cores.describe());
    let priority = match real_time {
        true => "real-time",
        false => "normal (chrt is refused)",
    };
    results.add_fact("Priority of the load and the provider at fixed rates", priority);
    results.note.clone_from(&options.note);
    if !options.only.is_empty() {
        results.keep_others(&options.out.join("latest.json"), &sections);
    }
    let planned = sections.iter().map(|section| section.planned(&lengths)).sum();
    let progress = Progress::new(planned);
    say(&format!("running in {}", fixture.dir().display()));
    let mut is_good = true;
    // From this run only: an earlier result may be that of another build.
    let mut saturation = None;
    for section in sections {
        let runner = Runner {
            fixture: &fixture,
            real_time,
            progress: &progress,
            errors: RefCell::default(),
        };
        let measured = measure(section, &runner, &lengths, saturation).await;
        for error in &measured.errors {
            say(&format!("ERROR in {}: {error}", section.shown()));
        }
        is_good &= measured.errors.is_empty();
        results.put(measured);
        if section == Section::FullLoad {
            saturation = row::row(results.full_load(), Name::Tollgate).map(|row| row.rate);
        }
        write(&results, options)?;
    }
    write!(std::io::stdout(), "{}", report::markdown(&results))?;
    Ok(is_good)
}

/// Measures one section. A failure becomes an error of the section, and the run continues.
async fn measure(
    section: Section,
    runner: &Runner<'_>,
    lengths: &Lengths,
    saturation: Option<f64>,
) -> Measured {
    let (at, load_average) = (
        domain::timestamp::iso_from_ms(clock::now_ms()),
        facts::load_average(),
    );
    let started = Instant::now();
    runner.progress.section(section.shown(), section.planned(lengths));
    let (found, calls_checked) = match section.run(runner, lengths, saturation).await {
        Ok(found) => found,
        Err(error) => {
            runner.errors.borrow_mut().push(error.to_string());
            (Found::Nothing, 0)
        }
    };
    Measured {
        section,
        at,
        commit: facts::commit(),
        lengths: lengths.describe(),
        load_average,
        took_seconds: started.elapsed().as_secs_f64().round(),
        calls_checked,
        errors: runner.errors.take(),
        found,
    }
}

fn write(results: &Results, options: &Options) -> Result<(), Box<dyn Error>> {
    results.write(&options.out.join("latest.json"), &targets::verdicts(results))?;
    std::fs::write(options.out.join("latest.md"), report::markdown(results))?;
    for (name, svg) in plot::all(results)? {
        std::fs::write(options.out.join(name), svg)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Options {
        Options::parse_from([&["gate-bench"], words].concat())
    }

    #[test]
    fn sections_and_lengths_are_as_requested() {
        assert_eq!(options(&[]).sections(), Section::ALL);
        assert_eq!(options(&[]).lengths(), Ok(Lengths::FULL));
        let some = options(&["--only", "frontier,bodies", "--quick", "--seconds", "2"]);
        assert_eq!(some.sections(), [Section::Frontier, Section::Bodies]);
        let lengths = some.lengths().unwrap();
        assert_eq!((lengths.seconds, lengths.rounds), (2.0, 1));
        for wrong in [
            ["--seconds", "NaN"],
            ["--seconds", "0"],
            ["--rounds", "0"],
            ["--rounds", "999"],
        ] {
            assert!(options(&wrong).lengths().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_whole_run_is_planned_to_take_some_35_minutes_and_a_quick_one_some_nine() {
        let planned = |lengths| -> f64 { Section::ALL.iter().map(|section| section.planned(&lengths)).sum() };
        assert!(
            (1800.0..2200.0).contains(&planned(Lengths::FULL)),
            "{}",
            planned(Lengths::FULL)
        );
        assert!(
            (400.0..580.0).contains(&planned(Lengths::QUICK)),
            "{}",
            planned(Lengths::QUICK)
        );
    }
}
