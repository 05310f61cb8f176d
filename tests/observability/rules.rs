//! The alert rules: `promtool` checks them and runs their tests. The tests here check the rest: every metric and label
//! exists, and each alert has a severity, a section in the runbook, and a test of both kinds.

use crate::fixture::Fixture;
use crate::queries::missing;
use std::path::Path;
use std::process::{Command, Stdio};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/prometheus");
const RUNBOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/runbook.md");

/// `promtool`: the one that `TOLLGATE_PROMTOOL` names, the one on this machine, or the one that
/// `deploy/local/packages.sh prometheus` put below the target folder.
pub fn promtool() -> Command {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let unpacked = target.join("prometheus/usr/bin/promtool");
    let named = std::env::var_os("TOLLGATE_PROMTOOL").map(Into::into);
    let program = named.unwrap_or_else(|| match unpacked.exists() {
        true => unpacked,
        false => "promtool".into(),
    });
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).current_dir(FOLDER);
    command
}

/// Runs `promtool`; an error that it finds fails the test.
#[track_caller]
pub fn check(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("promtool: {error}; `deploy/local/packages.sh prometheus` brings it"));
    let report = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&report));
}

/// An alert of the file.
#[derive(Debug, Default)]
struct Alert {
    name: String,
    expression: String,
    severity: String,
    summary: String,
    runbook: String,
}

/// The rules of alerts.yml: one key a line, as `promtool check` has approved it.
fn alerts(text: &str) -> (Vec<String>, Vec<Alert>) {
    let (mut records, mut alerts) = (Vec::new(), Vec::<Alert>::new());
    let plain = |value: &str| serde_json::from_str(value).unwrap_or_else(|_| value.to_owned());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            alerts.push(Alert {
                name: name.to_owned(),
                ..Alert::default()
            });
        }
        let Some((key, value)) = line.split_once(": ") else {
            continue;
        };
        match (key, alerts.last_mut()) {
            ("expr", None) => records.push(plain(value)),
            ("expr", Some(alert)) => alert.expression = plain(value),
            ("labels", Some(alert)) => {
                alert.severity = value.trim_matches(['{', '}', ' ']).replacen("severity: ", "", 1);
            }
            ("summary", Some(alert)) => alert.summary = plain(value),
            ("runbook_url", Some(alert)) => alert.runbook = value.to_owned(),
            _ => {}
        }
    }
    (records, alerts)
}

fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(FOLDER).join(name)).unwrap()
}

#[test]
fn promtool_takes_the_configuration_and_the_rules() {
    check(promtool().args(["check", "config", "prometheus.yml"]));
    check(promtool().args(["check", "rules", "alerts.yml"]));
}

#[test]
fn each_alert_fires_when_it_should_and_only_then() {
    check(promtool().args(["test", "rules", "alerts_test.yml"]));
    let (_, alerts) = alerts(&file("alerts.yml"));
    let tests = file("alerts_test.yml");
    for alert in &alerts {
        for what in ["fires", "stays quiet"] {
            let title = format!("- name: {} {what}\n", alert.name);
            assert!(tests.contains(&title), "no test that {} {what}", alert.name);
        }
    }
}

#[tokio::test]
async fn alerts_name_what_there_is_and_say_what_to_do() {
    let fixture = Fixture::new().await;
    fixture.traffic().await;
    let scrapes = fixture.scrapes();
    let (records, alerts) = alerts(&file("alerts.yml"));
    assert!(records.len() >= 6 && alerts.len() >= 35, "{}", alerts.len());
    for expression in &records {
        assert_eq!(missing(expression, &scrapes), [""; 0], "{expression}");
    }
    let runbook = std::fs::read_to_string(RUNBOOK).unwrap();
    for alert in &alerts {
        let name = &alert.name;
        assert_eq!(missing(&alert.expression, &scrapes), [""; 0], "{name}");
        assert!(
            ["critical", "warning", "info"].contains(&alert.severity.as_str()),
            "{alert:?}"
        );
        assert!(alert.summary.ends_with('.'), "{alert:?}");
        assert_eq!(
            alert.runbook,
            format!("docs/guides/runbook.md#{}", name.to_lowercase()),
            "{name}"
        );
        let section = runbook.split(&format!("\n### {name}\n")).nth(1);
        let section = section.unwrap_or_else(|| panic!("the runbook has no section {name}"));
        let section = section.split("\n### ").next().unwrap();
        for part in ["**Meaning.** ", "**Check.**", "**Action.** ", &alert.summary] {
            assert!(section.contains(part), "{name}: no {part} in the runbook");
        }
    }
    let sections = runbook.matches("\n### ").count();
    assert_eq!(
        sections,
        alerts.len(),
        "the runbook has sections of alerts that are gone"
    );
}
