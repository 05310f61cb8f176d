//! Compares the drawing of the crates in ARCHITECTURE.md with cargo's dependencies, and checks the rules on the
//! dependencies of each crate.
#![cfg(test)]

#[path = "architecture/circles.rs"]
mod circles;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Crates that tests and benches alone use, and the one that owns the binaries.
const NOT_DRAWN: [&str; 4] = ["gate-bench", "gate-bench-rig", "harness", "tollgate"];

type Uses = BTreeMap<String, BTreeSet<String>>;

fn text(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// Dependencies of each crate of the product, without those of tests.
fn dependencies() -> Uses {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
            "--locked",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let drawn = packages
        .iter()
        .map(|package| (package["name"].as_str().unwrap(), package))
        .filter(|(name, _)| !NOT_DRAWN.contains(name));
    drawn
        .map(|(name, package)| {
            let all = package["dependencies"].as_array().unwrap().iter();
            let built = all.filter(|one| one["kind"].is_null());
            let names = built.map(|one| one["name"].as_str().unwrap().to_owned());
            (name.to_owned(), names.collect())
        })
        .collect()
}

/// The arrows of the drawing: `a --> b & c`.
fn drawing() -> Uses {
    let document = text("ARCHITECTURE.md");
    let (_, rest) = document.split_once("```mermaid\n").unwrap();
    let (lines, _) = rest.split_once("```").unwrap();
    let arrows = lines.lines().filter_map(|line| line.trim().split_once(" --> "));
    arrows
        .map(|(from, to)| (from.to_owned(), to.split(" & ").map(str::to_owned).collect()))
        .collect()
}

/// Everything that can be reached from a crate along the arrows.
fn below(uses: &Uses, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&String> = uses.get(name).into_iter().flatten().collect();
    while let Some(next) = left.pop() {
        if found.insert(next.clone()) {
            left.extend(uses.get(next).into_iter().flatten());
        }
    }
    found
}

#[test]
fn the_drawing_is_what_is_built() {
    let (built, drawn) = (dependencies(), drawing());
    let ours = |name: &&String| built.contains_key(*name);
    for (name, uses) in &built {
        let uses: BTreeSet<&String> = uses.iter().filter(ours).collect();
        let reached = below(&drawn, name);
        for used in &uses {
            assert!(
                reached.contains(*used),
                "{name} uses {used}, and no arrow leads there"
            );
        }
        for arrow in drawn.get(name).into_iter().flatten() {
            assert!(
                uses.contains(arrow),
                "an arrow leads from {name} to {arrow}, which it does not use"
            );
        }
        assert!(!reached.contains(name), "a circle leads back to {name}");
    }
    let names: BTreeSet<&String> = drawn
        .iter()
        .flat_map(|(from, to)| to.iter().chain([from]))
        .collect();
    let there: BTreeSet<&String> = built.keys().collect();
    assert_eq!(names, there, "the crates in the drawing and in the workspace");
}

#[test]
fn the_domain_knows_nothing_of_the_world_and_only_the_store_says_redis() {
    let built = dependencies();
    for world in [
        "redis",
        "bb8-redis",
        "tokio",
        "http",
        "pingora",
        "clock",
        "store",
        "tracing",
    ] {
        assert!(!built["domain"].contains(world), "the domain uses {world}");
    }
    let says_redis = built.iter().filter(|(_, uses)| uses.contains("redis"));
    let names: Vec<&str> = says_redis.map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["store"]);
}

/// Lines of other crates are not logged below `info`: they could hold secrets.
#[test]
fn every_crate_that_logs_is_known_to_the_filter_of_logs() {
    let source = text("shared/telemetry/src/filter.rs");
    let (_, rest) = source.split_once("const OWN_CRATES: ").unwrap();
    let (_, rest) = rest.split_once('=').unwrap();
    let (list, _) = rest.split_once(';').unwrap();
    let known: BTreeSet<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let logging = dependencies()
        .into_iter()
        .filter(|(_, uses)| uses.contains("tracing"));
    assert_eq!(known, logging.map(|(name, _)| name.replace('-', "_")).collect());
}
