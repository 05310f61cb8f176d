//! One, two and four edges on one store: CPU time a call, throughput, and exactness of limits across edges. On a
//! machine with too few cores the edges share one; then only CPU time and exactness are meaningful.

use super::Outcome;
use crate::contender::{Contender, Name};
use crate::fixture::{EdgeSetup, Sides, tollgate};
use crate::ledger::{AgentKind, Keyring, LITTLE_NANOS, Ledger};
use crate::measure::Runner;
use crate::row::Row;
use crate::section::Lengths;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// Numbers of edges.
const COUNTS: [usize; 3] = [1, 2, 4];
/// Agents that all connections share until the daily limits are reached.
const LITTLE_AGENTS: usize = 8;
/// Most phases until the limits are reached; a slow machine needs more than one.
const RACE_PHASES_MAX: usize = 20;

/// Result for one number of edges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EdgeScaling {
    pub(crate) edges: usize,
    /// Whether each had a core of its own.
    pub(crate) has_cores: bool,
    /// Rates and times; the CPU time is that of all edges together.
    pub(crate) row: Row,
    /// Eight agents shared by all edges until they were denied.
    pub(crate) race: Race,
}

/// Spending of agents through all edges, against their daily limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Race {
    pub(crate) approved: u64,
    /// Calls that were denied by the daily limit.
    pub(crate) denied: u64,
    /// Cost of the approved calls, in nano-USD.
    pub(crate) due_nanos: u64,
    /// Sum of the charges, in nano-USD.
    pub(crate) charged_nanos: u64,
    /// Sum of the agents' limits, in nano-USD.
    pub(crate) limit_nanos: u64,
    /// Agents that were charged more than their limit.
    pub(crate) overspent: usize,
}

impl Race {
    fn wrong(&self) -> Option<String> {
        let is_exact = self.charged_nanos == self.due_nanos && self.overspent == 0;
        let is_spent = self.denied > 0;
        (!is_exact || !is_spent).then(|| format!("several edges: not exact, or never at the limit: {self:?}"))
    }
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    COUNTS.len() as f64 * ((lengths.short_rounds + 1) as f64 * lengths.phase() + 3.0)
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<EdgeScaling>> {
    let (fixture, sides) = (runner.fixture, Sides::default());
    let provider = fixture.provider(sides)?;
    let (mut found, mut checked) = (Vec::new(), 0);
    for count in COUNTS {
        let ledger = fixture.ledger(true).await?;
        let (cores, has_cores) = fixture.cores.of_edges(count);
        let start = |core: &usize| {
            let setup = EdgeSetup {
                core: *core,
                ..fixture.edge_setup()
            };
            fixture.edge(setup, &ledger, &provider, sides)
        };
        let edges = cores.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let all: Vec<_> = edges.iter().collect();
        let contender = tollgate(Name::Tollgate, &all, &ledger, &provider);
        let rows = runner.rounds(
            lengths.short_rounds,
            std::slice::from_ref(&contender),
            lengths.closed(),
        )?;
        let Some(edge) = edges.first() else { continue };
        checked += runner.check(&ledger, &edge.url()).await;
        let race = race(runner, lengths, contender, &ledger, &edge.url()).await?;
        runner.errors.borrow_mut().extend(race.wrong());
        checked += race.approved;
        for row in rows {
            found.push(EdgeScaling {
                edges: count,
                has_cores,
                row,
                race,
            });
        }
    }
    Ok((found, checked))
}

/// Lets a few agents spend their daily limits over all connections and edges.
async fn race(
    runner: &Runner<'_>,
    lengths: &Lengths,
    contender: Contender<'_>,
    ledger: &Ledger,
    edge: &str,
) -> Result<Race, Box<dyn Error>> {
    let little: Keyring = ledger.add(AgentKind::Little, LITTLE_AGENTS).await?;
    let contender = Contender {
        keys: little.file.clone(),
        expect: vec![200, 402],
        ledger: None,
        ..contender
    };
    let (mut approved, mut denied) = (0, 0);
    for _ in 0..RACE_PHASES_MAX {
        let outcome = runner.load(&contender, lengths.closed())?;
        approved += outcome.approved();
        denied += outcome.statuses.get(&402).copied().unwrap_or_default();
        if denied > 0 {
            break;
        }
    }
    let spent = little.spent_today().await;
    Ok(Race {
        approved,
        denied,
        due_nanos: approved * ledger.price(edge).await?,
        charged_nanos: spent.iter().sum(),
        limit_nanos: LITTLE_NANOS * spent.len() as u64,
        overspent: spent.iter().filter(|spent| **spent > LITTLE_NANOS).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_race_that_ends_at_the_limit_to_the_nano_is_right() {
        let right = Race {
            approved: 10,
            denied: 3,
            due_nanos: 1000,
            charged_nanos: 1000,
            limit_nanos: 1010,
            overspent: 0,
        };
        assert_eq!(right.wrong(), None);
        let wrong = [
            Race {
                charged_nanos: 999,
                ..right
            },
            Race {
                overspent: 1,
                ..right
            },
            Race { denied: 0, ..right },
        ];
        assert!(wrong.iter().all(|race| race.wrong().is_some()));
    }
}
