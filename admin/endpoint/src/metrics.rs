//! Metrics of requests. Names and help texts are a contract with dashboards and alerts.

mod limited;

pub use limited::LimitedMetrics;

use crate::memory::SharedMemory;
use axum::http::{Method, StatusCode};
use std::time::Duration;
use telemetry::registrar::level;

/// Upper ends of the duration buckets, in seconds.
const DURATIONS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

telemetry::metrics! {
    /// Counters and gauges of requests.
    pub struct RequestMetrics {
        /// Management requests answered.
        requests: counter_family("requests_total", &["method", "route", "status"]),
        /// Time from a request's head to its answer.
        durations: histogram_family("request_seconds", &DURATIONS, &["method", "route"]),
        /// Memory of request bodies.
        body_bytes: gauge("body_memory_bytes"),
        /// Limit of the memory of request bodies (admin.max_buffered_bytes).
        body_bytes_max: gauge("body_memory_max_bytes"),
        /// Memory of long answers that are being sent.
        answer_bytes: gauge("answer_memory_bytes"),
        /// Limit of the memory of long answers.
        answer_bytes_max: gauge("answer_memory_max_bytes"),
        /// Requests refused by a limit that holds for every plan.
        pub limited: LimitedMetrics,
        /// Requests from blocked addresses.
        pub blocked: counter("blocked_total"),
    }
}

impl RequestMetrics {
    /// Counts one answered request.
    pub fn request(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let method = method_label(method);
        self.requests
            .with_label_values(&[method, route, status.as_str()])
            .inc();
        self.durations
            .with_label_values(&[method, route])
            .observe(took.as_secs_f64());
    }

    /// Records the memory that request bodies and long answers use, and may use.
    pub fn memory(&self, bodies: &SharedMemory, answers: &SharedMemory) {
        self.body_bytes.set(level(bodies.taken()));
        self.body_bytes_max.set(level(bodies.max()));
        self.answer_bytes.set(level(answers.taken()));
        self.answer_bytes_max.set(level(answers.max()));
    }
}

/// Returns the label of a method. Unusual methods share one label, since callers can send any.
pub(crate) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::PUT => "PUT",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::registrar::Registrar;

    #[test]
    fn a_request_is_counted_under_its_route() {
        let registrar = Registrar::new("tollgate_admin");
        let metrics = RequestMetrics::new(&registrar).unwrap();
        metrics.request(&Method::GET, "/agents", StatusCode::OK, Duration::from_millis(2));
        let text = registrar.text_after(|| {}).unwrap();
        let line = r#"tollgate_admin_requests_total{method="GET",route="/agents",status="200"} 1"#;
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}
