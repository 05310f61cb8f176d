//! The sections of the bench, and the lengths of their phases.

use crate::phase::{CONNECTIONS, Phase, Wire};
use gate_bench_rig::wire::REQUEST_BODY_BYTES;
use serde::{Deserialize, Serialize};

/// A part that can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Section {
    /// CPU time a request with 64 connections, approvals and denials.
    FullLoad,
    /// The highest rates at which the proxy adds at most 1, 5 and 10 ms.
    Frontier,
    /// Latency at fixed rates.
    Latency,
    /// Requests of 1 KB to 4 MB.
    Bodies,
    /// HTTP/1.1, HTTP/2 and TLS.
    Protocols,
    /// Instructions of a call, under callgrind.
    Instructions,
    /// Memory when idle, loaded and afterwards.
    Memory,
    /// Several edges on one store.
    Edges,
    /// All calls of one account, and its neighbour.
    HotAccount,
    /// Answers that are streams of events.
    Streams,
    /// Attacks beside a well-behaved caller.
    Floods,
}

impl Section {
    /// All of them, in the order in which they run.
    pub(crate) const ALL: [Self; 11] = [
        Self::FullLoad,
        Self::Frontier,
        Self::Latency,
        Self::Bodies,
        Self::Protocols,
        Self::Instructions,
        Self::Memory,
        Self::Edges,
        Self::HotAccount,
        Self::Streams,
        Self::Floods,
    ];

    /// Name of the section in `--only`.
    pub(crate) const fn shown(self) -> &'static str {
        match self {
            Self::FullLoad => "full-load",
            Self::Frontier => "frontier",
            Self::Latency => "latency",
            Self::Bodies => "bodies",
            Self::Protocols => "protocols",
            Self::Instructions => "instructions",
            Self::Memory => "memory",
            Self::Edges => "edges",
            Self::HotAccount => "hot-account",
            Self::Streams => "streams",
            Self::Floods => "floods",
        }
    }
}

/// Lengths of phases, and numbers of rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lengths {
    /// Measured seconds of a phase.
    pub(crate) seconds: f64,
    /// Seconds before them.
    pub(crate) warm_up: f64,
    /// Rounds over the contenders, where the medians are reported.
    pub(crate) rounds: usize,
    /// Measured seconds of a phase where only a ratio counts: sizes and protocols.
    pub(crate) short_seconds: f64,
    /// Rounds of such phases.
    pub(crate) short_rounds: usize,
    /// Measured seconds of a probe of the frontier.
    pub(crate) probe_seconds: f64,
    /// Seconds between the end of a load and the reading of the memory.
    pub(crate) rest_seconds: f64,
}

impl Lengths {
    /// Some 35 minutes in all.
    pub(crate) const FULL: Self = Self {
        seconds: 5.0,
        warm_up: 1.0,
        rounds: 3,
        short_seconds: 3.0,
        short_rounds: 2,
        probe_seconds: 3.0,
        rest_seconds: 10.0,
    };
    /// Some nine minutes in all: for a first impression, not for publication.
    pub(crate) const QUICK: Self = Self {
        seconds: 1.0,
        warm_up: 0.3,
        rounds: 1,
        short_seconds: 1.0,
        short_rounds: 1,
        probe_seconds: 0.7,
        rest_seconds: 3.0,
    };

    /// A closed loop over 64 connections with requests of 1 KB.
    pub(crate) const fn closed(&self) -> Phase {
        Phase {
            connections: CONNECTIONS,
            rate: None,
            body_bytes: REQUEST_BODY_BYTES,
            wire: Wire::Clear,
            stream_every_us: None,
            seconds: self.seconds,
            warm_up: self.warm_up,
        }
    }

    /// The closed loop for sections where only a ratio counts.
    pub(crate) const fn short(&self) -> Phase {
        Phase {
            seconds: self.short_seconds,
            ..self.closed()
        }
    }

    /// An open loop with requests of 1 KB.
    pub(crate) const fn open(&self, connections: usize, rate: f64) -> Phase {
        Phase {
            connections,
            rate: Some(rate),
            ..self.closed()
        }
    }

    /// Seconds of one phase, with the start of the load generator.
    pub(crate) fn phase(&self) -> f64 {
        self.seconds + self.warm_up + 0.15
    }

    /// Seconds of one short phase.
    pub(crate) fn short_phase(&self) -> f64 {
        self.short_seconds + self.warm_up + 0.15
    }

    /// A sentence for the report.
    pub(crate) fn describe(&self) -> String {
        format!(
            "{} rounds of {} s ({} of {} s for sizes and protocols), each after {} s of warming up; probes of {} s",
            self.rounds,
            self.seconds,
            self.short_rounds,
            self.short_seconds,
            self.warm_up,
            self.probe_seconds
        )
    }
}
