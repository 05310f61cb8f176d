//! The measurements, one file for each part of the bench.

pub(crate) mod bodies;
pub(crate) mod edges;
pub(crate) mod floods;
pub(crate) mod frontier;
pub(crate) mod full_load;
pub(crate) mod hot_account;
pub(crate) mod instructions;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod protocols;
pub(crate) mod streams;

use crate::contender::{Contender, Name};
use crate::fixture::{Edge, Fixture, Server, Sides, plain, tollgate};
use crate::ledger::Ledger;
use crate::measure::Runner;
use crate::results::Found;
use crate::section::{Lengths, Section};
use std::error::Error;

/// The outcome of a section: the numbers, and the approved calls that ledgers were compared with.
pub(crate) type Outcome<T> = Result<(T, u64), Box<dyn Error>>;

/// nginx, the pass-through and an edge before one provider.
#[derive(Debug)]
pub(crate) struct Contenders {
    /// Fake provider of all three.
    pub(crate) provider: Server,
    /// (a)
    pub(crate) nginx: Server,
    /// (b)
    pub(crate) pass_through: Server,
    /// (c)
    pub(crate) edge: Edge,
    /// The store of (c).
    pub(crate) ledger: Ledger,
}

impl Contenders {
    pub(crate) async fn start(fixture: &Fixture, sides: Sides) -> Result<Self, Box<dyn Error>> {
        let provider = fixture.provider(sides)?;
        let ledger = fixture.ledger(true).await?;
        Ok(Self {
            nginx: fixture.nginx(&provider, sides)?,
            pass_through: fixture.pass_through(&provider, sides)?,
            edge: fixture.edge(fixture.edge_setup(), &ledger, &provider, sides)?,
            ledger,
            provider,
        })
    }

    /// (a), (b) and (c).
    pub(crate) fn contenders(&self) -> Vec<Contender<'_>> {
        let (provider, ledger) = (&self.provider, &self.ledger);
        vec![
            plain(Name::Nginx, Some(&self.nginx), provider, ledger),
            plain(Name::PassThrough, Some(&self.pass_through), provider, ledger),
            tollgate(Name::Tollgate, &[&self.edge], ledger, provider),
        ]
    }

    /// The provider itself.
    pub(crate) fn direct(&self) -> Contender<'_> {
        plain(Name::Direct, None, &self.provider, &self.ledger)
    }
}

impl Section {
    /// Measures the section. `saturation` is the highest known rate of (c), in requests a second.
    pub(crate) async fn run(
        self,
        runner: &Runner<'_>,
        lengths: &Lengths,
        saturation: Option<f64>,
    ) -> Outcome<Found> {
        fn found<T>((numbers, checked): (T, u64), section: fn(T) -> Found) -> (Found, u64) {
            (section(numbers), checked)
        }
        Ok(match self {
            Self::FullLoad => found(full_load::run(runner, lengths).await?, Found::FullLoad),
            Self::Frontier => found(frontier::run(runner, lengths).await?, Found::Frontier),
            Self::Latency => found(latency::run(runner, lengths, saturation).await?, Found::Latency),
            Self::Bodies => found(bodies::run(runner, lengths).await?, Found::Bodies),
            Self::Protocols => found(protocols::run(runner, lengths).await?, Found::Protocols),
            Self::Instructions => found(instructions::run(runner, lengths).await?, Found::Instructions),
            Self::Memory => found(memory::run(runner, lengths).await?, Found::Memory),
            Self::Edges => found(edges::run(runner, lengths).await?, Found::Edges),
            Self::HotAccount => found(hot_account::run(runner, lengths).await?, Found::HotAccount),
            Self::Streams => found(streams::run(runner, lengths).await?, Found::Streams),
            Self::Floods => found(floods::run(runner, lengths).await?, Found::Floods),
        })
    }

    /// Estimated duration, in seconds.
    pub(crate) fn planned(self, lengths: &Lengths) -> f64 {
        match self {
            Self::FullLoad => full_load::planned(lengths),
            Self::Frontier => frontier::planned(lengths),
            Self::Latency => latency::planned(lengths),
            Self::Bodies => bodies::planned(lengths),
            Self::Protocols => protocols::planned(lengths),
            Self::Instructions => instructions::planned(),
            Self::Memory => memory::planned(lengths),
            Self::Edges => edges::planned(lengths),
            Self::HotAccount => hot_account::planned(lengths),
            Self::Streams => streams::planned(lengths),
            Self::Floods => floods::planned(lengths),
        }
    }
}
