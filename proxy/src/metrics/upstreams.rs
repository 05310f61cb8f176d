//! Answers of each upstream. The label values are the upstreams' names in the configuration, so their number is
//! bounded.

use prometheus::{Histogram, IntCounter, Result};
use std::time::Duration;
use telemetry::registrar::Registrar;

/// Bucket bounds of the provider's answers, in seconds, up to the default deadline of 100 seconds.
pub const ANSWER_TIME: [f64; 10] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 100.0];

domain::words! {
    /// The provider's answer to an approved call.
    pub enum UpstreamResult {
        Success = "2xx",
        Redirect = "3xx",
        ClientError = "4xx",
        /// 5xx, or a status beyond the classes.
        ServerError = "5xx",
        /// No whole answer within `upstream.timeout_ms`.
        Timeout = "timeout",
        /// The provider was not reached, or the connection broke.
        Unreachable = "unreachable",
    }
}

/// Counters and times, indexed by upstream.
#[derive(Debug)]
pub struct UpstreamMetrics(Vec<OfUpstream>);

#[derive(Debug)]
struct OfUpstream {
    answers: [IntCounter; UpstreamResult::ALL.len()],
    time: Histogram,
    ignored_usages: IntCounter,
}

impl UpstreamMetrics {
    /// Registers the metrics of upstreams with these providers, in the order of their indexes.
    pub fn new<'a>(metrics: &Registrar, providers: impl Iterator<Item = &'a str>) -> Result<Self> {
        let answers = metrics.counter_family(
            "upstream_answers_total",
            "Approved calls, by upstream (upstream.provider for the default one) and its answer.",
            &["upstream", "result"],
        )?;
        let time = metrics.histogram_family(
            "upstream_answer_seconds",
            "Time from the provider's request to its whole answer, or to the end of its stream.",
            &ANSWER_TIME,
            &["upstream"],
        )?;
        let ignored_usages = metrics.counter_family(
            "upstream_ignored_usages_total",
            "Approved calls whose reported usage did not count: implausible, or beyond usage_tokens_max.",
            &["upstream"],
        )?;
        let each = providers.map(|provider| OfUpstream {
            answers: UpstreamResult::ALL
                .map(|result| answers.with_label_values(&[provider, result.as_str()])),
            time: time.with_label_values(&[provider]),
            ignored_usages: ignored_usages.with_label_values(&[provider]),
        });
        Ok(Self(each.collect()))
    }

    /// Records an approved call to the upstream of this index.
    pub fn answered(&self, upstream: usize, result: UpstreamResult, took: Duration) {
        if let Some(of_upstream) = self.0.get(upstream) {
            of_upstream.answers[result as usize].inc();
            of_upstream.time.observe(took.as_secs_f64());
        }
    }

    /// Records a reported usage of this upstream that does not count.
    pub fn ignored_usage(&self, upstream: usize) {
        if let Some(of_upstream) = self.0.get(upstream) {
            of_upstream.ignored_usages.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_upstream_has_its_own_series_from_the_start() {
        let registrar = Registrar::new("x");
        let metrics = UpstreamMetrics::new(&registrar, ["openai", "azure"].into_iter()).unwrap();
        metrics.answered(1, UpstreamResult::Timeout, Duration::from_secs(3));
        metrics.answered(2, UpstreamResult::Success, Duration::ZERO);
        metrics.ignored_usage(1);
        metrics.ignored_usage(2);
        let text = registrar.text().unwrap();
        for line in [
            r#"x_upstream_answers_total{result="timeout",upstream="azure"} 1"#,
            r#"x_upstream_answers_total{result="timeout",upstream="openai"} 0"#,
            r#"x_upstream_answers_total{result="2xx",upstream="azure"} 0"#,
            r#"x_upstream_answer_seconds_bucket{upstream="azure",le="5"} 1"#,
            r#"x_upstream_answer_seconds_count{upstream="openai"} 0"#,
            r#"x_upstream_ignored_usages_total{upstream="azure"} 1"#,
            r#"x_upstream_ignored_usages_total{upstream="openai"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
