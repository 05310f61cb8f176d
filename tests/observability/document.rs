//! docs/reference/observability.md lists every metric: name, type, labels and help, as `/metrics` describes them.
//!
//! `TOLLGATE_REWRITE_DOCS=1 cargo test --test observability document` writes the tables anew.

use crate::scrape::Scrape;
use crate::stage::Stage;
use std::fmt::Write as _;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/observability.md");
const REWRITE: &str = "TOLLGATE_REWRITE_DOCS";
const BEGIN: &str = "<!-- metrics: written by the test -->\n";
const END: &str = "<!-- end of metrics -->";

/// The rows of one program's metrics whose names begin so.
fn table(scrape: &Scrape, prefixes: &[&str]) -> String {
    let mut table = "| metric | type | labels | |\n|---|---|---|---|\n".to_owned();
    for (name, family) in &scrape.families {
        if !prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let sample = match family.kind.as_str() {
            "histogram" => format!("{name}_count"),
            _ => name.clone(),
        };
        let labels = scrape.labels(&sample).unwrap_or_default();
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let help = family.help.replace('|', "\\|");
        let _ = writeln!(
            table,
            "| `{name}` | {} | {} | {help} |",
            family.kind,
            labels.join(", ")
        );
    }
    table
}

#[tokio::test]
async fn every_metric_is_in_the_document() {
    let stage = Stage::new().await;
    stage.traffic().await;
    let [edge, admin] = stage.scrapes();
    for scrape in [&edge, &admin] {
        for (name, family) in &scrape.families {
            assert!(family.help.ends_with('.'), "{name}: {:?}", family.help);
            let counts = name.ends_with("_total");
            assert_eq!(counts, family.kind == "counter", "{name} is a {}", family.kind);
            for unit in ["_ms", "_milliseconds", "_kb", "_usd", "_micros"] {
                assert!(!name.contains(unit), "{name} is not in a base unit");
            }
        }
    }
    let both = ["process_", "tollgate_build_info"];
    assert_eq!(
        table(&edge, &both),
        table(&admin, &both),
        "both tell the same of their processes"
    );
    let mut tables = format!("{BEGIN}\n### Both\n\n{}", table(&edge, &both));
    let _ = write!(tables, "\n### The edge\n\n{}", table(&edge, &["tollgate_proxy_"]));
    let _ = write!(
        tables,
        "\n### The admin server\n\n{}\n",
        table(&admin, &["tollgate_admin_"])
    );
    let kept = std::fs::read_to_string(FILE).unwrap();
    let (head, rest) = kept.split_once(BEGIN).expect("the place of the tables");
    let (_, tail) = rest.split_once(END).expect("the end of the tables");
    let page = format!("{head}{tables}{END}{tail}");
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(FILE, &page).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap();
    let different = kept.lines().zip(page.lines()).find(|(kept, page)| kept != page);
    assert!(
        kept == page,
        "docs/reference/observability.md is not what /metrics says; {REWRITE}=1 writes it anew: {different:?}"
    );
}
