//! The closed loop over 64 connections: CPU time a request of proxy and store, for approvals and for denials of each
//! kind.

use super::Outcome;
use crate::contender::{Contender, Name};
use crate::fixture::{EdgeSetup, Sides, plain, tollgate};
use crate::ledger::AgentKind;
use crate::measure::Runner;
use crate::row::Row;
use crate::section::Lengths;
use std::path::PathBuf;

/// The denials, each with its kind of agents and its status.
const DENIALS: [(Name, AgentKind, u16); 5] = [
    (Name::DeniedByDay, AgentKind::Spent, 402),
    (Name::DeniedByFreeze, AgentKind::Frozen, 403),
    (Name::DeniedByRate, AgentKind::Hasty, 429),
    (Name::DeniedByRevocation, AgentKind::Revoked, 401),
    (Name::DeniedInMemory, AgentKind::Invented, 401),
];
/// Contenders whose calls are approved.
const APPROVED: usize = 8;

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    8.0 + ((APPROVED + DENIALS.len()) * lengths.rounds) as f64 * lengths.phase()
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<Row>> {
    let (fixture, sides) = (runner.fixture, Sides::default());
    let provider = fixture.provider(sides)?;
    let nginx = fixture.nginx(&provider, sides)?;
    let pass_through = fixture.pass_through(&provider, sides)?;
    let (durable, memory) = (fixture.ledger(true).await?, fixture.ledger(false).await?);
    let start = |ledger, is_quiet| {
        let setup = EdgeSetup {
            is_quiet,
            ..fixture.edge_setup()
        };
        fixture.edge(setup, ledger, &provider, sides)
    };
    let (edge, quiet) = (start(&durable, false)?, start(&durable, true)?);
    let (in_memory, bare) = (start(&memory, false)?, start(&memory, true)?);
    let socket = fixture.edge(fixture.edge_setup().over_socket(), &durable, &provider, sides)?;

    let mut contenders = vec![
        plain(Name::Direct, None, &provider, &durable),
        plain(Name::Nginx, Some(&nginx), &provider, &durable),
        plain(Name::PassThrough, Some(&pass_through), &provider, &durable),
        tollgate(Name::Tollgate, &[&edge], &durable, &provider),
        tollgate(Name::TollgateQuiet, &[&quiet], &durable, &provider),
        tollgate(Name::TollgateSocket, &[&socket], &durable, &provider),
        tollgate(Name::TollgateMemory, &[&in_memory], &memory, &provider),
        tollgate(Name::TollgateBare, &[&bare], &memory, &provider),
    ];
    for (name, kind, status) in DENIALS {
        let keys: PathBuf = durable.add_refused(kind).await?;
        contenders.push(Contender {
            keys,
            expect: vec![status],
            ..tollgate(name, &[&edge], &durable, &provider)
        });
    }
    let rows = runner.rounds(lengths.rounds, &contenders, lengths.closed())?;
    let checked = runner.check(&durable, &edge.url()).await + runner.check(&memory, &in_memory.url()).await;
    Ok((rows, checked))
}
