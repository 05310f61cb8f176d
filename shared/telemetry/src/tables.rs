//! Counts reloads of plans and prices.

use super::registrar::Registrar;
use prometheus::{IntCounter, Result};

/// A reloadable table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// `plans.file`
    Plans,
    /// `prices.file` with imported prices.
    Prices,
}

/// Both, in the order of [`Table`].
const TABLES: [&str; 2] = ["plans", "prices"];
/// Labels: whether reading succeeded.
const RESULTS: [&str; 2] = ["ok", "failed"];

/// Counters of reloads, by table and success.
#[derive(Debug, Clone)]
pub struct TableMetrics([[IntCounter; 2]; 2]);

impl TableMetrics {
    /// Registers them.
    pub fn new(metrics: &Registrar) -> Result<Self> {
        let family = metrics.counter_family(
            "table_reads_total",
            "Reloads of plans or prices; after a failed one those in force stay.",
            &["table", "result"],
        )?;
        Ok(Self(TABLES.map(|table| {
            RESULTS.map(|result| family.with_label_values(&[table, result]))
        })))
    }

    /// Records a reload, successful or not.
    pub fn read_again(&self, table: Table, done: bool) {
        self.0[table as usize][usize::from(!done)].inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_lands_on_its_own_labels() {
        let registrar = Registrar::new("x");
        let tables = TableMetrics::new(&registrar).unwrap();
        tables.read_again(Table::Plans, true);
        tables.read_again(Table::Prices, false);
        let text = registrar.text().unwrap();
        for (labels, count) in [
            (r#"result="ok",table="plans""#, 1),
            (r#"result="failed",table="plans""#, 0),
            (r#"result="ok",table="prices""#, 0),
            (r#"result="failed",table="prices""#, 1),
        ] {
            let line = format!("x_table_reads_total{{{labels}}} {count}");
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
