//! The dashboards name only metrics and labels that exist, and need no plugin.

use crate::fixture::Fixture;
use crate::queries::missing;
use crate::rules::{check, promtool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/grafana/dashboards");
/// Built-in panels of Grafana that are used.
const PANELS: [&str; 2] = ["timeseries", "stat"];

fn dashboards() -> Vec<(PathBuf, Value)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let dashboard =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, dashboard)
    };
    files.into_iter().map(read).collect()
}

/// The expressions of a dashboard, as Prometheus receives them from Grafana.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    targets
        .map(|target| {
            let text = target["expr"].as_str().unwrap();
            text.replace("$__rate_interval", "5m").replace("$instance", ".*")
        })
        .collect()
}

#[tokio::test]
async fn dashboards_name_what_there_is() {
    let fixture = Fixture::new().await;
    fixture.traffic().await;
    let scrapes = fixture.scrapes();
    let mut rules = "groups:\n  - name: panels\n    rules:\n".to_owned();
    let (mut uids, mut count) = (BTreeSet::new(), 0);
    for (path, dashboard) in dashboards() {
        let file = path.display();
        assert!(
            uids.insert(dashboard["uid"].as_str().unwrap().to_owned()),
            "{file}"
        );
        let expressions = expressions(&dashboard);
        assert!(!expressions.is_empty(), "{file}");
        for expression in expressions {
            let wrong = missing(&expression, &scrapes);
            assert!(wrong.is_empty(), "{file}: {wrong:?} in {expression}");
            assert!(
                !expression.contains('$'),
                "{file}: a variable is left in {expression}"
            );
            assert!(
                !expression.contains("timestamp_seconds") || expression.contains("> 0"),
                "{file}: {expression} begins in 1970, since a moment that was not yet is 0"
            );
            let quoted = serde_json::to_string(&expression).unwrap();
            let _ = writeln!(rules, "      - {{ record: 'panel:{count}', expr: {quoted} }}");
            count += 1;
        }
    }
    assert!(count > 80, "{count} expressions");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("panels.yml");
    std::fs::write(&file, rules).unwrap();
    check(promtool().arg("check").arg("rules").arg(&file));
}

#[test]
fn dashboards_need_nothing_but_grafana_and_a_prometheus() {
    for (path, dashboard) in dashboards() {
        let file = path.display();
        let variables: Vec<&str> = dashboard["templating"]["list"]
            .as_array()
            .unwrap()
            .iter()
            .map(|variable| variable["name"].as_str().unwrap())
            .collect();
        assert_eq!(variables, ["datasource", "instance"], "{file}");
        let mut ids = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{file}: {title}");
            assert!(
                PANELS.contains(&panel["type"].as_str().unwrap()),
                "{file}: {title}"
            );
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{file}: {title}");
            let unit = panel["fieldConfig"]["defaults"]["unit"].as_str();
            assert!(
                unit.is_some_and(|unit| !unit.is_empty()),
                "{file}: {title} has no unit"
            );
            let place = &panel["gridPos"];
            let (x, width) = (place["x"].as_u64().unwrap(), place["w"].as_u64().unwrap());
            assert!(x + width <= 24, "{file}: {title} is beside the page");
        }
    }
}
