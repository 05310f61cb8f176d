//! A program of the bench that listens.

use crate::contender::watched;
use crate::machine::pin;
use crate::process::{Running, children};
use gate_bench_rig::outcome::WatchedProcess;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longest wait for workers: a master process listens before it has any.
const WORKERS_WAIT: Duration = Duration::from_secs(10);
/// Interval between two polls.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A running server; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Address that it listens on.
    pub(crate) at: SocketAddr,
    /// The process and its children.
    pub(crate) pids: Vec<u32>,
    process: Running,
}

impl Server {
    /// Starts `program` and waits until it listens at `at` and has started as many `workers` of its own.
    pub(crate) fn start(
        program: &str,
        at: SocketAddr,
        words: &[String],
        workers: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let process = Running::start(program, words, at)?;
        let end = Instant::now() + WORKERS_WAIT;
        let mut pids = children(process.pid())?;
        while pids.len() < workers {
            if Instant::now() > end {
                return Err(format!("{program} has started {} of {workers} workers", pids.len()).into());
            }
            std::thread::sleep(LOOK_AGAIN);
            pids = children(process.pid())?;
        }
        pids.push(process.pid());
        Ok(Self { at, pids, process })
    }

    /// Id of the started process, not of its children.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Binds the process and its children to a core.
    pub(crate) fn pin(&self, core: usize) -> Result<(), Box<dyn Error>> {
        self.pids.iter().try_for_each(|pid| pin(*pid, core))
    }

    /// Returns the process and its children, all under one name.
    pub(crate) fn watched(&self, name: &str) -> Vec<WatchedProcess> {
        self.pids.iter().map(|pid| watched(name, *pid)).collect()
    }
}
