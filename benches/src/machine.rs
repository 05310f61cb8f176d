//! The machine: which core belongs to whom while something is measured, and what it was measured on.

use crate::process::output;
use std::error::Error;

/// Who runs where. The edge has a core of its own; on a machine with two, everything else shares the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cores {
    /// The measured proxy.
    pub(crate) edge: usize,
    /// Redis.
    pub(crate) store: usize,
    /// The provider.
    pub(crate) upstream: usize,
    /// The load generator.
    pub(crate) load: usize,
    /// All cores of the machine.
    count: usize,
}

impl Cores {
    /// The layout for this many cores.
    pub(crate) const fn of(count: usize) -> Self {
        let (store, upstream, load) = match count {
            0 | 1 => (0, 0, 0),
            2 => (1, 1, 1),
            3 => (1, 2, 2),
            _ => (1, 2, 3),
        };
        Self {
            edge: 0,
            store,
            upstream,
            load,
            count,
        }
    }

    /// The cores of so many edges, and whether each has one of its own: the first, and those behind the load
    /// generator's. Otherwise they share the first.
    pub(crate) fn of_edges(&self, edges: usize) -> (Vec<usize>, bool) {
        let spare = self.load + 1..self.count;
        let own: Vec<usize> = std::iter::once(self.edge).chain(spare).take(edges).collect();
        match own.len() == edges && self.load != self.edge {
            true => (own, true),
            false => (vec![self.edge; edges], edges == 1),
        }
    }

    /// A sentence for the report.
    pub(crate) fn describe(&self) -> String {
        let Self {
            edge,
            store,
            upstream,
            load,
            ..
        } = self;
        format!(
            "the measured proxy alone on core {edge}, Redis on core {store}, the provider on core {upstream}, the load \
             generator on core {load}"
        )
    }
}

/// Binds a process and all its threads to a core.
pub(crate) fn pin(pid: u32, core: usize) -> Result<(), Box<dyn Error>> {
    output(
        "taskset",
        &["-a", "-c", "-p", &core.to_string(), &pid.to_string()],
    )
    .map(drop)
}

/// Whether the load generator may run with real-time priority.
pub(crate) fn has_real_time() -> bool {
    output("chrt", &["-f", "10", "true"]).is_ok()
}

/// What the numbers are measured on: names and values.
pub(crate) fn facts() -> Vec<(String, String)> {
    let said = |program: &str, args: &[&str]| output(program, args).unwrap_or_else(|_| "unknown".to_owned());
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let rows = [
        ("Processor", processor()),
        ("Memory", memory()),
        ("Kernel", said("uname", &["-sr"])),
        ("rustc", said("rustc", &["--version"])),
        (
            "Pingora",
            locked_version("pingora-core").unwrap_or_else(|| "unknown".to_owned()),
        ),
        ("nginx", said("nginx", &["-v"])),
        ("Redis", first(said("redis-server", &["--version"]))),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The load average of the last one, five and fifteen minutes.
pub(crate) fn load_average() -> String {
    let text = read("/proc/loadavg");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn memory() -> String {
    let info = read("/proc/meminfo");
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<f64> = total.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
    kib.map_or_else(
        || "unknown".to_owned(),
        |kib| format!("{:.1} GiB", kib / f64::from(1 << 20)),
    )
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn processor() -> String {
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = info.lines().filter(|line| line.starts_with("processor")).count();
    format!("{}, {cores} cores", model.map_or("unknown", |(_, model)| model))
}

/// The commit, and whether the tree was as committed. The results themselves do not count.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| output("git", &[&["-C", env!("CARGO_MANIFEST_DIR")], args].concat());
    match (
        git(&["rev-parse", "--short", "HEAD"]),
        git(&["status", "--porcelain", "--", ":/", ":!results"]),
    ) {
        (Ok(commit), Ok(changes)) if changes.is_empty() => commit,
        (Ok(commit), _) => format!("{commit}, with changes that are not committed"),
        _ => "unknown".to_owned(),
    }
}

fn locked_version(package: &str) -> Option<String> {
    let lock = include_str!("../../Cargo.lock");
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_shares_its_core_with_nobody_from_two_cores_on() {
        for count in 2..9 {
            let Cores {
                edge,
                store,
                upstream,
                load,
                ..
            } = Cores::of(count);
            assert!(
                [store, upstream, load]
                    .iter()
                    .all(|core| *core != edge && *core < count),
                "{count}"
            );
        }
        assert!(Cores::of(1).describe().contains("core 0"));
    }

    #[test]
    fn several_edges_have_cores_of_their_own_where_there_are_some() {
        assert_eq!(Cores::of(2).of_edges(1), (vec![0], true));
        assert_eq!(Cores::of(2).of_edges(4), (vec![0; 4], false));
        assert_eq!(Cores::of(4).of_edges(2), (vec![0; 2], false));
        assert_eq!(Cores::of(5).of_edges(2), (vec![0, 4], true));
        assert_eq!(Cores::of(8).of_edges(4), (vec![0, 4, 5, 6], true));
    }

    #[test]
    fn the_locked_pingora_is_found() {
        assert!(locked_version("pingora-core").unwrap().starts_with("0.9."));
        assert_eq!(locked_version("no-such-package"), None);
    }
}
