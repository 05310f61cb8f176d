//! Streams: how many are open, how they end, and how soon they begin.

use domain::measured::CallEnd;
use prometheus::IntGauge;
use std::time::Duration;

/// Bucket bounds of the total duration of a stream, in seconds, up to the default of `proxy.stream_total_ms`.
const WHOLE: [f64; 10] = [0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 1800.0];
/// Bucket bounds of the time to the first byte, in seconds.
const FIRST_BYTE: [f64; 11] = [0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 100.0];

domain::words! {
    /// Outcome of an extension of a hold.
    pub enum Extension {
        /// The hold was raised.
        Raised = "raised",
        /// Cap or the plan denied it, or the key is revoked.
        Refused = "refused",
        /// There was no decision.
        Failed = "failed",
    }
}

/// Labels: whether the provider reported the usage.
const USAGE: [&str; 2] = ["missing", "reported"];

telemetry::metrics! {
    /// Counters, histograms and the gauge of streams.
    #[derive(Debug, Clone)]
    pub struct StreamMetrics {
        /// Streams being read from the provider.
        open: gauge("streams_open"),
        /// Streams that ended, by call.end.
        ended: counters("streams_total", "end", CallEnd::ALL.iter().map(|end| end.as_str())),
        /// Streams that ended, by whether the provider reported usage.
        usage: counters("streams_usage_total", "usage", USAGE),
        /// Streams read on after caller_gone, by whether their usage came within proxy.stream_drain_ms and 16 MiB.
        drained: counters("streams_drained_total", "usage", USAGE),
        /// Holds to be raised during a stream: raised; else the stream ends: refused (Cap, plan, key), failed (no
        /// decision).
        extensions: counters("stream_extensions_total", "result", Extension::ALL.map(Extension::as_str)),
        /// Time from the provider's request to the end of the stream.
        whole: histogram("stream_seconds", &WHOLE),
        /// Time from the provider's request to the first byte of the stream.
        first_byte: histogram("stream_first_byte_seconds", &FIRST_BYTE),
    }
}

/// Counts a stream as open until it is dropped.
#[derive(Debug)]
pub struct OpenStreamCount(IntGauge);

impl Drop for OpenStreamCount {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl StreamMetrics {
    /// Counts a stream that begins.
    pub fn opened(&self) -> OpenStreamCount {
        self.open.inc();
        OpenStreamCount(self.open.clone())
    }

    /// Records the first byte of a stream.
    pub fn began(&self, after: Duration) {
        self.first_byte.observe(after.as_secs_f64());
    }

    /// Records an extension of a hold.
    pub fn extended(&self, result: Extension) {
        self.extensions[result as usize].inc();
    }

    /// Records the end of a stream.
    pub fn ended(&self, end: CallEnd, usage_reported: bool, took: Duration) {
        self.ended[end as usize].inc();
        self.usage[usize::from(usage_reported)].inc();
        if end == CallEnd::CallerGone {
            self.drained[usize::from(usage_reported)].inc();
        }
        self.whole.observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::registrar::Registrar;

    #[test]
    fn extensions_are_in_the_order_of_their_declaration() {
        for (at, extension) in Extension::ALL.into_iter().enumerate() {
            assert_eq!(extension as usize, at, "{extension:?}");
        }
    }

    #[test]
    fn a_drained_stream_is_one_whose_caller_went() {
        let registrar = Registrar::new("x");
        let metrics = StreamMetrics::new(&registrar).unwrap();
        for (end, usage_reported) in [
            (CallEnd::CallerGone, true),
            (CallEnd::CallerGone, true),
            (CallEnd::CallerGone, false),
            (CallEnd::Completed, true),
            (CallEnd::ProviderBrokeOff, false),
        ] {
            metrics.ended(end, usage_reported, Duration::from_secs(1));
        }
        let text = registrar.text().unwrap();
        for line in [
            r#"x_streams_drained_total{usage="reported"} 2"#,
            r#"x_streams_drained_total{usage="missing"} 1"#,
            r#"x_streams_usage_total{usage="reported"} 3"#,
            r#"x_streams_usage_total{usage="missing"} 2"#,
            r#"x_streams_total{end="caller_gone"} 3"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
