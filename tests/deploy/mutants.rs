//! The lists of `make mutants` name files that exist: a file that was moved would no longer be mutated, and nothing
//! would notice.

use crate::files::{all_below, path, text};
use std::io::Write;
use std::process::{Command, Stdio};

/// The patterns of `examine_globs`, one a line.
fn patterns(config: &str) -> Vec<&str> {
    let (_, list) = config.split_once("examine_globs = [").unwrap();
    let lines = list.lines().take_while(|line| *line != "]");
    lines
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
        .collect()
}

#[test]
fn every_pattern_names_a_file() {
    let config = text(".cargo/mutants.toml");
    let patterns = patterns(&config);
    assert!(patterns.len() > 30, "{patterns:?}");
    for pattern in patterns {
        let is_there = match pattern.strip_suffix("/**/*.rs") {
            Some(folder) => all_below(folder).iter().any(|file| file.ends_with(".rs")),
            None => path(pattern).is_file(),
        };
        assert!(is_there, "{pattern}");
    }
}

/// `make mutants` runs the unit tests of the crate that a fault is in.
#[test]
fn the_crate_of_each_file_is_found() {
    let config = text(".cargo/mutants.toml");
    let files = patterns(&config).join("\n") + "\n";
    let mut command = Command::new(path("tests/mutants/run.sh"));
    command
        .arg("packages")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut started = command.spawn().unwrap();
    started.stdin.take().unwrap().write_all(files.as_bytes()).unwrap();
    let printed = started.wait_with_output().unwrap();
    assert!(printed.status.success());
    let packages = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(packages, "api\nchat\ndomain\nproxy\nsse\nstore\nworkers\n");
}

/// A slow test that was renamed would be run for each fault.
#[test]
fn the_slow_tests_are_there() {
    let script = text("tests/mutants/run.sh");
    let (_, names) = script.split_once("slow=(").unwrap();
    let tests = text("shared/chat/src/tests/properties.rs");
    for name in names.split(')').next().unwrap().split(' ') {
        let function = name.strip_prefix("tests::properties::").unwrap();
        assert!(tests.contains(&format!("fn {function}(")), "{name}");
    }
}

/// `file: text of the line | column: what is done`, and indented below it why nothing notices that.
#[test]
fn every_explained_fault_is_in_a_line_that_is_there() {
    let list = text("tests/mutants/equivalent.txt");
    let mut lines = list
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    while let Some(name) = lines.next() {
        let reason = lines.next().unwrap_or_default();
        assert!(
            reason.starts_with("    ") && reason.trim().len() > 10,
            "no reason: {name}"
        );
        let (file, rest) = name.split_once(": ").unwrap();
        let (line, place) = rest.rsplit_once(" | ").unwrap();
        let column: usize = place.split_once(": ").unwrap().0.parse().unwrap();
        assert!(text(file).lines().any(|there| there.trim() == line), "{name}");
        assert!((1..=line.len()).contains(&column), "{name}");
    }
}
