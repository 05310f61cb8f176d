//! The metrics and labels that a PromQL expression names, compared with those that the programs expose. `promtool`
//! checks the syntax ([`crate::rules`]).

use crate::scrape::Scrape;

/// Labels that Prometheus adds to every sample.
const ADDED: [&str; 2] = ["instance", "job"];

/// A metric and the labels that are matched or grouped by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub metric: String,
    /// Each label with the value that it must equal, if the expression says so.
    pub labels: Vec<(String, Option<String>)>,
}

/// Every metric of ours in an expression.
pub fn named(expression: &str) -> Vec<Named> {
    let grouped = grouped_by(expression);
    let mut found: Vec<Named> = Vec::new();
    let mut rest = expression;
    while let Some(at) = ["tollgate_", "process_"]
        .iter()
        .filter_map(|prefix| rest.find(prefix))
        .min()
    {
        let from = &rest[at..];
        let is_word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
        let end = from.find(|byte| !is_word(byte)).unwrap_or(from.len());
        let starts = !rest[..at].ends_with(|byte| is_word(byte) || byte == '"' || byte == ':');
        let (metric, behind) = from.split_at(end);
        rest = behind;
        if !starts {
            continue;
        }
        let mut labels = Vec::new();
        if let Some(matchers) = behind.strip_prefix('{') {
            let (matchers, _) = matchers.split_once('}').expect("a closing brace");
            labels = matched(matchers);
        }
        labels.extend(grouped.iter().map(|label| (label.clone(), None)));
        found.push(Named {
            metric: metric.to_owned(),
            labels,
        });
    }
    found
}

/// Parses matchers: `a="x", b=~"y|z"`.
fn matched(matchers: &str) -> Vec<(String, Option<String>)> {
    let matchers = matchers.split("\",").map(str::trim).filter(|one| !one.is_empty());
    matchers
        .map(|one| {
            let (label, value) = one.split_once('"').expect("a quoted value");
            let operator = label.trim_start_matches(|byte: char| byte.is_ascii_alphanumeric() || byte == '_');
            let label = label.strip_suffix(operator).unwrap_or(label);
            let value = value.trim_end_matches('"').to_owned();
            (label.to_owned(), (operator == "=").then_some(value))
        })
        .collect()
}

/// The labels of all `by (…)`, but for those of histograms.
fn grouped_by(expression: &str) -> Vec<String> {
    let lists = expression
        .split("by (")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let mut labels: Vec<String> = lists
        .flat_map(|list| list.split(','))
        .map(|label| label.trim().to_owned())
        .filter(|label| label != "le")
        .collect();
    labels.sort();
    labels.dedup();
    labels
}

/// The mistakes of an expression: metrics and labels that do not exist.
pub fn missing(expression: &str, scrapes: &[Scrape]) -> Vec<String> {
    let mut wrong = Vec::new();
    for Named { metric, labels } in named(expression) {
        let Some(scrape) = scrapes.iter().find(|scrape| scrape.samples.contains_key(&metric)) else {
            wrong.push(format!("there is no metric {metric}"));
            continue;
        };
        let known = scrape.labels(&metric).unwrap_or_default();
        for (label, value) in labels {
            if ADDED.contains(&label.as_str()) {
                continue;
            }
            if !known.contains(label.as_str()) {
                wrong.push(format!("{metric} has no label {label}"));
            } else if let Some(value) = value
                && !scrape.samples[&metric]
                    .iter()
                    .any(|sample| sample.labels.get(&label) == Some(&value))
            {
                wrong.push(format!("{metric} has no {label}=\"{value}\""));
            }
        }
    }
    wrong
}

#[test]
fn words_are_found() {
    let found = named(
        r#"sum by (le, stage) (rate(tollgate_a_bucket{instance=~"$instance", x="1"}[5m])) / process_b{y!="2"} > tollgate:rec:ord"#,
    );
    let label = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    assert_eq!(
        found,
        [
            Named {
                metric: "tollgate_a_bucket".into(),
                labels: vec![
                    label("instance", None),
                    label("x", Some("1")),
                    label("stage", None)
                ]
            },
            Named {
                metric: "process_b".into(),
                labels: vec![label("y", None), label("stage", None)]
            },
        ]
    );
    let scrape = Scrape::parse("# TYPE tollgate_a_total counter\ntollgate_a_total{x=\"1\"} 0\n");
    let scrapes = [scrape];
    assert!(missing(r#"rate(tollgate_a_total{x="1", instance="i"}[5m])"#, &scrapes).is_empty());
    for bad in [
        "tollgate_b",
        r#"tollgate_a_total{z="1"}"#,
        r#"tollgate_a_total{x="2"}"#,
        "sum by (z) (tollgate_a_total)",
    ] {
        assert_eq!(missing(bad, &scrapes).len(), 1, "{bad}");
    }
}
