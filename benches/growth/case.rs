//! The cases: which records the store holds in large numbers.

use crate::Outcome;
use crate::fill;
use crate::fixture::Fixture;

/// Kind of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Keys,
    Agents,
    Runs,
    Holds,
    Decisions,
}

/// A number of records of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    of: Of,
    /// Number of records to write.
    pub records: u64,
}

/// The cases of the published table.
const CASES: [(Of, u64); 7] = [
    (Of::Keys, 10),
    (Of::Keys, 10_000),
    (Of::Keys, 1_000_000),
    (Of::Agents, 100_000),
    (Of::Runs, 1_000_000),
    (Of::Holds, 1_000_000),
    (Of::Decisions, 10_000_000),
];

impl Case {
    /// Returns all cases with this percentage of their records, but at least ten.
    pub fn all(percent: u64) -> Vec<Self> {
        let part = |records: u64| (records * percent / 100).max(10);
        CASES
            .iter()
            .map(|&(of, records)| Self {
                of,
                records: part(records),
            })
            .collect()
    }

    /// Describes one record.
    pub const fn what(&self) -> &'static str {
        match self.of {
            Of::Keys => "virtual key: record, look-up, places in two indexes",
            Of::Agents => "agent with policy, provider key and counters",
            Of::Runs => "named run: record, place in the index of its agent",
            Of::Holds => "open hold: text, deadline",
            Of::Decisions => "past decision: audit line, before it is sealed",
        }
    }

    /// Describes what the store holds.
    pub fn name(&self) -> String {
        let things = match self.of {
            Of::Keys => "virtual keys",
            Of::Agents => "agents",
            Of::Runs => "runs",
            Of::Holds => "open holds",
            Of::Decisions => "past decisions",
        };
        format!("{} {things}", self.records)
    }

    /// Writes the records. If calls can use them, calls are spread over them.
    pub async fn fill(&self, fixture: &mut Fixture) -> Outcome<()> {
        match self.of {
            Of::Keys => fill::keys(fixture, self.records).await,
            Of::Agents => fill::agents(fixture, self.records).await,
            Of::Runs => fill::runs(fixture, self.records).await,
            Of::Holds => fill::holds(fixture, self.records).await,
            Of::Decisions => fill::decisions(fixture, self.records).await,
        }
    }
}
