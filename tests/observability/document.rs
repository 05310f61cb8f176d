//! docs/reference/observability.md lists every metric: name with labels, and help, as `/metrics` describes them. The
//! type follows from the name (`_total` is a counter), but for histograms, which are marked.
//!
//! `TOLLGATE_REWRITE_DOCS=1 cargo test --workspace --test observability document` writes the tables anew.

use crate::fixture::Fixture;
use crate::scrape::{Family, Scrape};
use harness::{REPOSITORY, compare_written};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const FILE: &str = "docs/reference/observability.md";
const BEGIN: &str = "<!-- metrics: written by the test -->\n";
const END: &str = "<!-- end of metrics -->";

/// Prefixes of metrics that both programs have under one name.
const BOTH: [&str; 2] = ["process_", "tollgate_build_info"];
const EDGE: &str = "tollgate_proxy_";
const ADMIN: &str = "tollgate_admin_";
/// Stands for both prefixes in the name of a metric that both programs have.
const EITHER: &str = "tollgate_*_";

/// Rows of a table: the cells behind a metric's name, by its name.
type Rows = BTreeMap<String, String>;

/// The rows of one program's metrics with one of these prefixes.
fn rows(scrape: &Scrape, prefixes: &[&str]) -> Rows {
    let families = scrape.families.iter();
    let wanted = families.filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    let row = |(name, family): (&String, &Family)| {
        let sample = match family.kind.as_str() {
            "histogram" => format!("{name}_count"),
            _ => name.clone(),
        };
        let labels = scrape.labels(&sample).unwrap_or_default();
        let labels: Vec<&str> = labels.into_iter().collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let kind = match family.kind.as_str() {
            "histogram" => " (histogram)",
            _ => "",
        };
        let help = family.help.replace('|', "\\|");
        (format!("`{name}{labels}`{kind}"), format!("{help} |"))
    };
    wanted.map(row).collect()
}

/// Moves the rows that are equal in both tables out of them.
fn shared(edge: &mut Rows, admin: &mut Rows) -> Rows {
    let mut shared = Rows::new();
    edge.retain(|name, cells| {
        let twin = name.replacen(EDGE, ADMIN, 1);
        let is_shared = admin.get(&twin) == Some(cells);
        if is_shared {
            admin.remove(&twin);
            shared.insert(name.replacen(EDGE, EITHER, 1), cells.clone());
        }
        !is_shared
    });
    shared
}

fn table(rows: &Rows) -> String {
    let mut table = "| metric | |\n|---|---|\n".to_owned();
    for (name, cells) in rows {
        let _ = writeln!(table, "| {name} | {cells}");
    }
    table
}

#[tokio::test]
async fn every_metric_is_in_the_document() {
    let fixture = Fixture::new().await;
    fixture.traffic().await;
    let [edge, admin] = fixture.scrapes();
    for scrape in [&edge, &admin] {
        for (name, family) in &scrape.families {
            assert!(family.help.ends_with('.'), "{name}: {:?}", family.help);
            // A help text must make sense by itself: neither the tables nor `/metrics` keep the order of the source.
            for word in ["Its ", "Their ", "Of these", "of them", "these"] {
                assert!(!family.help.contains(word), "{name}: {:?}", family.help);
            }
            let counts = name.ends_with("_total");
            assert_eq!(counts, family.kind == "counter", "{name} is a {}", family.kind);
            assert!(
                counts || ["gauge", "histogram"].contains(&family.kind.as_str()),
                "{name}"
            );
            for unit in ["_ms", "_milliseconds", "_kb", "_usd", "_micros"] {
                assert!(!name.contains(unit), "{name} is not in a base unit");
            }
        }
    }
    let mut both = rows(&edge, &BOTH);
    assert_eq!(both, rows(&admin, &BOTH), "both describe process metrics alike");
    let [mut edge, mut admin] = [rows(&edge, &[EDGE]), rows(&admin, &[ADMIN])];
    both.extend(shared(&mut edge, &mut admin));
    let mut tables = format!("{BEGIN}\n### Both\n\n{}", table(&both));
    let _ = write!(tables, "\n### The edge\n\n{}", table(&edge));
    let _ = write!(tables, "\n### The admin server\n\n{}\n", table(&admin));
    let kept = std::fs::read_to_string(format!("{REPOSITORY}/{FILE}")).unwrap();
    let (head, rest) = kept.split_once(BEGIN).expect("the place of the tables");
    let (_, tail) = rest.split_once(END).expect("the end of the tables");
    let page = format!("{head}{tables}{END}{tail}");
    compare_written(FILE, &page, "--test observability document");
}
