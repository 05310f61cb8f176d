//! A hot account: the cost of calls that all belong to one account or to one agent, and the latency of a quiet
//! neighbour on the same edge and store.

use super::Outcome;
use crate::contender::{Contender, Name};
use crate::fixture::{Sides, tollgate};
use crate::ledger::{Keyring, Ledger};
use crate::measure::Runner;
use crate::phase::{CONNECTIONS, Phase};
use crate::row::Row;
use crate::section::Lengths;
use gate_bench_rig::outcome::Outcome as Load;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// Requests a second of the neighbour, over one connection.
const NEIGHBOUR_RATE: f64 = 100.0;
/// Time that the crowd calls longer than the neighbour: at least the start time of a load generator.
const MARGIN_SECONDS: f64 = 0.5;
/// Loads in a round: all of them alone, the neighbour alone, and the neighbour beside two of them.
const LOADS: usize = 6;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HotLoad {
    /// Callers that were measured.
    pub(crate) whose: String,
    pub(crate) row: Row,
}

/// Agents of one account that call at once, and their approved calls.
struct Crowd<'a> {
    keyring: Keyring,
    contender: Contender<'a>,
    approved: u64,
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    4.0 + (LOADS * lengths.short_rounds) as f64 * lengths.short_phase()
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<HotLoad>> {
    let (fixture, sides) = (runner.fixture, Sides::default());
    let provider = fixture.provider(sides)?;
    let ledger = fixture.ledger(true).await?;
    let edge = fixture.edge(fixture.edge_setup(), &ledger, &provider, sides)?;
    let spread = tollgate(Name::Tollgate, &[&edge], &ledger, &provider);
    let mut crowds = [
        (
            "64 agents of one account",
            Crowd::new(&ledger, &spread, CONNECTIONS).await?,
        ),
        ("one agent, in 64 runs", Crowd::new(&ledger, &spread, 1).await?),
    ];
    // The CPU time of the edge would include that of the crowd's calls.
    let neighbour = Contender {
        watched: Vec::new(),
        ..spread.clone()
    };
    let quiet = Phase {
        seconds: lengths.short_seconds,
        ..lengths.open(1, NEIGHBOUR_RATE)
    };
    let rounds = 0..lengths.short_rounds;

    let all: Result<_, _> = rounds
        .clone()
        .map(|_| runner.load(&spread, lengths.short()))
        .collect();
    let mut found = vec![heat("64 agents of 8 accounts", all?)];
    for (whose, crowd) in &mut crowds {
        let all: Result<_, _> = rounds
            .clone()
            .map(|_| crowd.load(runner, lengths.short()))
            .collect();
        found.push(heat(whose, all?));
    }
    let all: Result<_, _> = rounds.clone().map(|_| runner.load(&neighbour, quiet)).collect();
    found.push(heat("a neighbour, alone", all?));
    for (whose, crowd) in &mut crowds {
        let all: Result<_, _> = rounds
            .clone()
            .map(|_| crowd.beside(runner, lengths, &neighbour, quiet))
            .collect();
        found.push(heat(&format!("a neighbour, beside {whose}"), all?));
    }

    let mut checked = runner.check(&ledger, &edge.url()).await;
    let price = ledger.price(&edge.url()).await?;
    for (whose, crowd) in &crowds {
        let charged: u64 = crowd.keyring.spent_today().await.iter().sum();
        if charged != crowd.approved * price {
            let error = format!(
                "{whose}: {} calls at {price} nano-USD, {charged} were charged",
                crowd.approved
            );
            runner.errors.borrow_mut().push(error);
        }
        checked += crowd.approved;
    }
    let found = found.into_iter().flatten().collect();
    Ok((found, checked))
}

fn heat(whose: &str, outcomes: Vec<Load>) -> Option<HotLoad> {
    let row = Row::from_outcomes(Name::Tollgate, &outcomes)?;
    Some(HotLoad {
        whose: whose.to_owned(),
        row,
    })
}

impl<'a> Crowd<'a> {
    async fn new(ledger: &Ledger, like: &Contender<'a>, agents: usize) -> Result<Self, Box<dyn Error>> {
        let keyring = ledger.add_crowd(agents).await?;
        let contender = Contender {
            keys: keyring.file.clone(),
            ledger: None,
            ..like.clone()
        };
        Ok(Self {
            keyring,
            contender,
            approved: 0,
        })
    }

    fn load(&mut self, runner: &Runner<'_>, phase: Phase) -> Result<Load, Box<dyn Error>> {
        let outcome = runner.load(&self.contender, phase)?;
        self.approved += outcome.approved();
        Ok(outcome)
    }

    /// Measures the neighbour while the crowd calls as fast as it can.
    fn beside(
        &mut self,
        runner: &Runner<'_>,
        lengths: &Lengths,
        neighbour: &Contender<'_>,
        quiet: Phase,
    ) -> Result<Load, Box<dyn Error>> {
        let phase = Phase {
            seconds: quiet.seconds + quiet.warm_up + MARGIN_SECONDS,
            ..lengths.short()
        };
        let heat = runner.start(&self.contender, phase)?;
        let found = runner.load(neighbour, quiet)?;
        self.approved += runner.finish(&self.contender, phase, heat)?.approved();
        Ok(found)
    }
}
