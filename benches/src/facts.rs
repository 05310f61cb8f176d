//! Circumstances of a measurement: machine, versions, commit and load average. Every report begins with them.

use crate::output::output;

/// Name of the fact that ends with the number of cores.
pub const PROCESSOR: &str = "Processor";

/// Facts of the machine and the build: names and values.
pub fn facts() -> Vec<(String, String)> {
    let version_of =
        |program: &str, args: &[&str]| output(program, args).unwrap_or_else(|_| "unknown".to_owned());
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let rows = [
        (PROCESSOR, processor()),
        ("Memory", memory()),
        ("Kernel", version_of("uname", &["-sr"])),
        ("rustc", version_of("rustc", &["--version"])),
        (
            "Pingora",
            locked_version("pingora-core").unwrap_or_else(|| "unknown".to_owned()),
        ),
        ("nginx", version_of("nginx", &["-v"])),
        ("Redis", first(version_of("redis-server", &["--version"]))),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The load average of the last one, five and fifteen minutes.
pub fn load_average() -> String {
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

/// Returns the commit, and whether the working tree differs from it. Changes to the results do not count.
pub fn commit() -> String {
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
    fn the_locked_pingora_is_found() {
        assert!(locked_version("pingora-core").unwrap().starts_with("0.9."));
        assert_eq!(locked_version("no-such-package"), None);
    }
}
