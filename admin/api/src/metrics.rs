//! Metrics of spends.

use domain::intent::Reason;
use prometheus::IntCounterVec;
use telemetry::registrar::Registrar;

/// Spends by result.
pub struct SpendMetrics {
    spends: IntCounterVec,
}

impl SpendMetrics {
    /// Registers them, all at zero; every reason has its series from the start.
    pub fn new(metrics: &Registrar) -> prometheus::Result<Self> {
        let spends = metrics.counter_family(
            "spends_total",
            "Spends decided: settled, pending_approval, or the reason for the block.",
            &["result"],
        )?;
        for reason in Reason::ALL {
            spends.with_label_values(&[reason.as_str()]);
        }
        for result in ["settled", "pending_approval"] {
            spends.with_label_values(&[result]);
        }
        Ok(Self { spends })
    }

    /// Counts a spend that was settled, waits for approval, or was blocked for a reason.
    pub fn spend(&self, result: &str) {
        self.spends.with_label_values(&[result]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_has_its_series_from_the_start() {
        let registrar = Registrar::new("tollgate_admin");
        let metrics = SpendMetrics::new(&registrar).unwrap();
        metrics.spend("injection_detected");
        let text = registrar.text_after(|| {}).unwrap();
        for line in [
            r#"tollgate_admin_spends_total{result="injection_detected"} 1"#,
            r#"tollgate_admin_spends_total{result="settled"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
