//! Resident memory: idle after one call a key, the peak under load, and some seconds afterwards; with requests of 1 KB
//! and of 4 MB. Each proxy is started for its measurement.

use super::{Outcome, bodies};
use crate::contender::{Contender, Name};
use crate::fixture::{Sides, plain, tollgate};
use crate::measure::Runner;
use crate::phase::{CONNECTIONS, Phase};
use crate::section::Lengths;
use gate_bench_rig::memory::{forget_peak, sum};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::time::Duration;

/// Size of the large requests.
const LARGE_BYTES: usize = 4 << 20;
/// Rate of the one call a key before the first reading, in requests a second.
const WARM_UP_RATE: f64 = 320.0;
/// Pause between the warm-up and the first reading, in seconds.
const SETTLE_SECONDS: f64 = 2.0;

/// Resident memory of one proxy, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryUse {
    pub(crate) name: Name,
    /// After one call a key.
    pub(crate) idle_kib: u64,
    /// The peak under 64 connections with requests of 1 KB.
    pub(crate) loaded_kib: u64,
    /// Some seconds after that load.
    pub(crate) recovered_kib: u64,
    /// The peak under 16 connections with requests of 4 MB.
    pub(crate) large_kib: u64,
    /// Some seconds after that load.
    pub(crate) large_recovered_kib: u64,
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    let one = 2.0 + SETTLE_SECONDS + 2.0 * (lengths.phase() + lengths.rest_seconds);
    Name::PROXIES.len() as f64 * one
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<MemoryUse>> {
    let (fixture, sides) = (runner.fixture, Sides::default());
    let provider = fixture.provider(sides)?;
    let ledger = fixture.ledger(true).await?;
    let mut found = Vec::new();
    {
        let nginx = fixture.nginx(&provider, sides)?;
        let contender = plain(Name::Nginx, Some(&nginx), &provider, &ledger);
        found.push(weigh(runner, lengths, &contender, &nginx.pids)?);
    }
    {
        let pass_through = fixture.pass_through(&provider, sides)?;
        let contender = plain(Name::PassThrough, Some(&pass_through), &provider, &ledger);
        found.push(weigh(runner, lengths, &contender, &pass_through.pids)?);
    }
    let edge = fixture.edge(fixture.edge_setup(), &ledger, &provider, sides)?;
    let contender = tollgate(Name::Tollgate, &[&edge], &ledger, &provider);
    found.push(weigh(runner, lengths, &contender, &[edge.pid()])?);
    let checked = runner.check(&ledger, &edge.url()).await;
    Ok((found, checked))
}

fn weigh(
    runner: &Runner<'_>,
    lengths: &Lengths,
    contender: &Contender<'_>,
    pids: &[u32],
) -> Result<MemoryUse, Box<dyn Error>> {
    let one_each = Phase {
        seconds: CONNECTIONS as f64 / WARM_UP_RATE,
        warm_up: 0.0,
        ..lengths.open(CONNECTIONS, WARM_UP_RATE)
    };
    runner.load(contender, one_each)?;
    rest(SETTLE_SECONDS);
    let idle_kib = sum(pids, "VmRSS:")?;
    let large = Phase {
        connections: bodies::CONNECTIONS,
        body_bytes: LARGE_BYTES,
        ..lengths.closed()
    };
    let mut peaks_and_afters = [(0, 0); 2];
    for (found, phase) in peaks_and_afters.iter_mut().zip([lengths.closed(), large]) {
        forget_peak(pids)?;
        runner.load(contender, phase)?;
        let peak = sum(pids, "VmHWM:")?;
        rest(lengths.rest_seconds);
        *found = (peak, sum(pids, "VmRSS:")?);
    }
    let [(loaded_kib, recovered_kib), (large_kib, large_recovered_kib)] = peaks_and_afters;
    Ok(MemoryUse {
        name: contender.name,
        idle_kib,
        loaded_kib,
        recovered_kib,
        large_kib,
        large_recovered_kib,
    })
}

pub(super) fn rest(seconds: f64) {
    std::thread::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default());
}
