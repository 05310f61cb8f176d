//! Registers metrics, with all their series at once. So a counter exists at 0 before the first event, and counting is
//! one atomic addition without a look-up.

use parking_lot::Mutex;
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{
    Counter, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, Result, TextEncoder,
};
use std::sync::Arc;

/// Registers the metrics of one program, under its prefix.
#[derive(Debug, Clone)]
pub struct Registrar {
    registry: Registry,
    prefix: &'static str,
    /// Serialises scrapes.
    turn: Arc<Mutex<()>>,
}

impl Registrar {
    /// Creates a registrar for the prefix `prefix` and an underscore.
    pub fn new(prefix: &'static str) -> Self {
        Self {
            registry: Registry::new(),
            prefix,
            turn: Arc::default(),
        }
    }

    /// Returns the text of `/metrics`.
    ///
    /// # Errors
    /// The values cannot be encoded, which does not occur.
    pub fn text(&self) -> Result<String> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    /// Calls `collect` and returns the text of `/metrics`, one scrape at a time: values counted elsewhere are added as
    /// differences since the last scrape, which concurrent scrapes would add twice.
    pub fn text_after(&self, collect: impl FnOnce()) -> Result<String> {
        let _turn = self.turn.lock();
        collect();
        self.text()
    }

    /// Registers a metric whose name does not have the prefix.
    pub fn add<C: Collector + Clone + 'static>(&self, metric: C) -> Result<C> {
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn opts(&self, name: &str, help: &str) -> Opts {
        Opts::new(format!("{}_{name}", self.prefix), help)
    }

    /// Registers a counter.
    ///
    /// # Errors
    /// If the name is malformed or in use. The same applies to all functions below.
    pub fn counter(&self, name: &str, help: &str) -> Result<IntCounter> {
        self.add(IntCounter::with_opts(self.opts(name, help))?)
    }

    /// Registers a counter of seconds.
    pub fn seconds(&self, name: &str, help: &str) -> Result<Counter> {
        self.add(Counter::with_opts(self.opts(name, help))?)
    }

    /// Registers counters that differ in one label, in the order of its values.
    pub fn counters<'a>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<IntCounter>> {
        let family = self.counter_family(name, help, &[label])?;
        Ok(each(&family, values))
    }

    /// Registers counters whose label values are only known when counting; only for few values and off the hot path.
    pub fn counter_family(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec> {
        self.add(IntCounterVec::new(self.opts(name, help), labels)?)
    }

    /// Registers a gauge.
    pub fn gauge(&self, name: &str, help: &str) -> Result<IntGauge> {
        self.add(IntGauge::with_opts(self.opts(name, help))?)
    }

    /// Registers a gauge of fractions: seconds, ratios.
    pub fn fraction(&self, name: &str, help: &str) -> Result<Gauge> {
        self.add(Gauge::with_opts(self.opts(name, help))?)
    }

    /// Registers gauges that differ in one label, in the order of its values.
    pub fn gauges<'a>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<IntGauge>> {
        let family = self.gauge_family(name, help, &[label])?;
        Ok(each(&family, values))
    }

    /// Registers gauges whose label values are only known when setting; only for few values and off the hot path.
    pub fn gauge_family(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec> {
        self.add(IntGaugeVec::new(self.opts(name, help), labels)?)
    }

    /// Registers gauges of fractions that differ in one label, in the order of its values.
    pub fn fractions<'a>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Gauge>> {
        let family = self.add(GaugeVec::new(self.opts(name, help), &[label])?)?;
        Ok(each(&family, values))
    }

    /// Registers a histogram with these upper bounds of its buckets.
    pub fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram> {
        let opts = HistogramOpts::from(self.opts(name, help)).buckets(buckets.to_vec());
        self.add(Histogram::with_opts(opts)?)
    }

    /// Registers histograms whose label values are only known when observing; only for few values and off the hot path.
    pub fn histogram_family(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
        labels: &[&str],
    ) -> Result<HistogramVec> {
        let opts = HistogramOpts::from(self.opts(name, help)).buckets(buckets.to_vec());
        self.add(HistogramVec::new(opts, labels)?)
    }

    /// Registers histograms that differ in one label, in the order of its values.
    pub fn histograms<'a>(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
        label: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Histogram>> {
        let family = self.histogram_family(name, help, buckets, &[label])?;
        Ok(each(&family, values))
    }
}

/// Returns the members of a family with one label, in the order of its values.
fn each<'a, B: MetricVecBuilder>(
    family: &MetricVec<B>,
    values: impl IntoIterator<Item = &'a str>,
) -> Vec<B::M> {
    values
        .into_iter()
        .map(|value| family.with_label_values(&[value]))
        .collect()
}

/// Raises a counter to the count that its component keeps.
pub fn raise(counter: &IntCounter, count: u64) {
    counter.inc_by(count.saturating_sub(counter.get()));
}

/// Converts a count to the type of gauges.
pub fn level(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_there_before_anything_happened() {
        let metrics = Registrar::new("x");
        metrics
            .counters("calls_total", "Calls.", "kind", ["a", "b"])
            .unwrap()[1]
            .inc();
        let text = metrics.text().unwrap();
        assert!(text.contains("# HELP x_calls_total Calls.\n# TYPE x_calls_total counter\n"));
        assert!(text.contains("x_calls_total{kind=\"a\"} 0\nx_calls_total{kind=\"b\"} 1\n"));
        assert!(
            metrics.gauge("calls_total", "Twice.").is_err(),
            "a name is taken once"
        );
        assert_eq!((level(7_u64), level(u64::MAX)), (7, i64::MAX));
    }

    #[test]
    fn two_concurrent_collections_count_once() {
        const COUNTED: u64 = 5;
        let metrics = Registrar::new("x");
        let counter = metrics.counter("calls_total", "Calls.").unwrap();
        let collect = || {
            let more = COUNTED - counter.get();
            std::thread::sleep(std::time::Duration::from_millis(50));
            counter.inc_by(more);
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| metrics.text_after(collect).unwrap());
            }
        });
        assert_eq!(counter.get(), COUNTED);
    }
}
