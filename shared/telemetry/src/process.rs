//! Process metrics under the standard Prometheus names, and build information. Read from `/proc` at each scrape;
//! without `/proc` the values stay 0. The start time is recorded at start, since a service that can only see its own
//! processes (`ProcSubset=pid`) has no `/proc/stat` with the boot time.

use super::background;
use super::registrar::{Registrar, level, raise};
use clock::now_ms;
use prometheus::{Counter, Gauge, IntCounter, IntGauge, IntGaugeVec, Opts, Result};

/// Clock ticks per second in `/proc`. Constant for programs, whatever the kernel's own tick rate is.
const TICKS_A_SECOND: f64 = 100.0;
/// Bytes of a page of memory on the machines we build for.
const PAGE_BYTES: u64 = 4096;

/// The commit of the build: `make dist`, `make static`, `make pgo` and the image pass it to the compiler as
/// `TOLLGATE_COMMIT`. Development builds do not, since each commit would recompile this crate, and with it all others.
pub const COMMIT: &str = commit(option_env!("TOLLGATE_COMMIT"));

/// Sources without git history have no commit.
const fn commit(given: Option<&'static str>) -> &'static str {
    match given {
        Some(commit) if !commit.is_empty() => commit,
        _ => "unknown",
    }
}

/// The gauges of the process.
#[derive(Debug, Clone)]
pub struct ProcessMetrics {
    cpu: Counter,
    resident: IntGauge,
    open_fds: IntGauge,
    most_fds: IntGauge,
    threads: IntGauge,
    background_panics: IntCounter,
}

impl ProcessMetrics {
    /// Registers them, and the build.
    pub fn new(metrics: &Registrar) -> Result<Self> {
        let gauge = |name: &str, help: &str| metrics.add(IntGauge::new(name, help)?);
        build(metrics)?;
        let started = metrics.add(Gauge::new(
            "process_start_time_seconds",
            "Start time, in seconds since 1970.",
        )?)?;
        started.set(as_f64(now_ms() / 1000));
        Ok(Self {
            cpu: metrics.add(Counter::new(
                "process_cpu_seconds_total",
                "CPU time, user and system.",
            )?)?,
            resident: gauge("process_resident_memory_bytes", "Resident memory.")?,
            open_fds: gauge("process_open_fds", "Open file descriptors.")?,
            most_fds: gauge("process_max_fds", "Limit of open file descriptors.")?,
            threads: gauge("process_threads", "Threads.")?,
            background_panics: metrics.counter(
                "background_panics_total",
                "Panics of background tasks, which started again.",
            )?,
        })
    }

    /// Updates the gauges.
    pub fn update(&self) {
        raise(&self.background_panics, background::panics());
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{file}")).unwrap_or_default();
        if let Some(stat) = Stat::parse(&read("self/stat")) {
            let cpu = stat.cpu_seconds();
            self.cpu.inc_by((cpu - self.cpu.get()).max(0.0));
            self.resident.set(level(stat.resident_pages * PAGE_BYTES));
            self.threads.set(level(stat.threads));
        }
        let limits = read("self/limits");
        if let Some(most) = number_after(&limits, "Max open files") {
            self.most_fds.set(level(most));
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            // One of them is the open `/proc/self/fd` itself.
            self.open_fds.set(level(open.count().saturating_sub(1)));
        }
    }
}

/// Registers `…_build_info`: a gauge that is always 1, with labels that describe the build.
fn build(metrics: &Registrar) -> Result<()> {
    let family = metrics.add(IntGaugeVec::new(
        Opts::new("tollgate_build_info", "1; the labels name the build."),
        &["version", "commit"],
    )?)?;
    family
        .with_label_values(&[env!("CARGO_PKG_VERSION"), COMMIT])
        .set(1);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
const fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Returns the first number after `name` in a line that starts with it.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Parsed part of `/proc/self/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    resident_pages: u64,
}

impl Stat {
    /// Parses the fields after the program's name, which is in brackets and may contain anything.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // The first of them is field 3 in proc(5).
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            resident_pages: field(24)?,
        })
    }

    fn cpu_seconds(&self) -> f64 {
        as_f64(self.cpu_ticks) / TICKS_A_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_any_name() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194304 500 0 0 0 150 50 0 0 20 0 9 0 12345 1000000 321 18446744073709551615 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            stat,
            Stat {
                cpu_ticks: 200,
                threads: 9,
                resident_pages: 321
            }
        );
        assert!((stat.cpu_seconds() - 2.0).abs() < 1e-9);
        assert_eq!(Stat::parse("nonsense"), None);
    }

    #[test]
    fn this_process_is_seen() {
        let metrics = Registrar::new("x");
        let process = ProcessMetrics::new(&metrics).unwrap();
        process.update();
        assert!(process.resident.get() > 0 && process.open_fds.get() > 0 && process.most_fds.get() > 0);
        assert!(process.threads.get() > 0);
        let text = metrics.text().unwrap();
        let started = text
            .lines()
            .find_map(|line| line.strip_prefix("process_start_time_seconds "))
            .unwrap();
        let now = as_f64(now_ms()) / 1000.0;
        let ago = now - started.parse::<f64>().unwrap();
        assert!((0.0..60.0).contains(&ago), "{ago}");
        assert!(text.contains("tollgate_build_info{commit="), "{text}");
    }

    #[test]
    fn a_build_without_a_commit_says_so() {
        assert_eq!(commit(Some("0123abc")), "0123abc");
        assert_eq!([commit(None), commit(Some(""))], ["unknown"; 2]);
    }
}
