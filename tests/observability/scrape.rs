//! The exposition format, as a scraper reads it.

use std::collections::{BTreeMap, BTreeSet};

/// A metric as `# HELP` and `# TYPE` describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    pub kind: String,
    pub help: String,
}

/// One sample: its labels and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// The content of one `/metrics`.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    pub families: BTreeMap<String, Family>,
    /// By the name of the sample: with `_bucket`, `_sum` or `_count` for histograms.
    pub samples: BTreeMap<String, Vec<Sample>>,
}

impl Scrape {
    /// Parses the text; a malformed line fails the test.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        let mut helps = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("a help text");
                helps.insert(name.to_owned(), help.to_owned());
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                let family = Family {
                    kind: kind.to_owned(),
                    help: helps.get(name).cloned().unwrap_or_default(),
                };
                let twice = scrape.families.insert(name.to_owned(), family);
                assert!(twice.is_none(), "{name} is there twice");
            } else {
                let (name, sample) = sample(line).unwrap_or_else(|| panic!("no sample: {line}"));
                scrape.samples.entry(name).or_default().push(sample);
            }
        }
        scrape
    }

    /// The sum of the samples of this name with these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.samples.get(name).into_iter().flatten();
        let fits = |sample: &&Sample| {
            labels
                .iter()
                .all(|(label, value)| sample.labels.get(*label).is_some_and(|found| found == value))
        };
        samples.filter(fits).map(|sample| sample.value).sum()
    }

    /// The labels that samples of this name have; `None` when there is no sample.
    pub fn labels(&self, name: &str) -> Option<BTreeSet<&str>> {
        let samples = self.samples.get(name)?;
        Some(
            samples
                .iter()
                .flat_map(|sample| sample.labels.keys().map(String::as_str))
                .collect(),
        )
    }
}

/// `name{label="value",…} 1.5`; no value of ours holds a quote, a comma or a brace.
fn sample(line: &str) -> Option<(String, Sample)> {
    let (series, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let (name, labels) = match series.split_once('{') {
        None => (series, ""),
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
    };
    let pairs = labels.split("\",").filter(|pair| !pair.is_empty());
    let labels = pairs
        .map(|pair| {
            let (label, value) = pair.split_once("=\"")?;
            Some((label.to_owned(), value.trim_end_matches('"').to_owned()))
        })
        .collect::<Option<_>>()?;
    Some((name.to_owned(), Sample { labels, value }))
}

#[test]
fn samples_are_read() {
    let text = "# HELP a_total All of a.\n# TYPE a_total counter\na_total{x=\"1\",y=\"/b/{c}\"} 2\na_total{x=\"2\",y=\"d\"} 3\nb 0.5\n";
    let scrape = Scrape::parse(text);
    assert_eq!(scrape.families["a_total"].help, "All of a.");
    assert!((scrape.sum("a_total", &[]) - 5.0).abs() < 1e-9);
    assert!((scrape.sum("a_total", &[("x", "2")]) - 3.0).abs() < 1e-9);
    assert_eq!(scrape.labels("a_total"), Some(["x", "y"].into()));
    assert!((scrape.sum("b", &[]) - 0.5).abs() < 1e-9);
}
