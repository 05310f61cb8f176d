//! Cores and scheduling priorities of the processes of a measurement.

use gate_bench::output::output;
use std::error::Error;

/// Cores of each process. The edge has a core of its own; on a machine with two, everything else shares the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cores {
    /// The measured proxy.
    pub(crate) edge: usize,
    /// Redis.
    pub(crate) store: usize,
    /// Fake provider.
    pub(crate) upstream: usize,
    /// The load generator.
    pub(crate) load: usize,
    /// All cores of the machine.
    count: usize,
}

impl Cores {
    /// The layout for this many cores.
    pub(crate) const fn for_count(count: usize) -> Self {
        let (store, upstream, load) = match count {
            0 | 1 => (0, 0, 0),
            2 => (1, 1, 1),
            3 => (1, 2, 2),
            _ => (1, 2, 3),
        };
        Self {
            edge: 0,
            store,
            upstream,
            load,
            count,
        }
    }

    /// Returns the cores of `edges` edges, and whether each has one of its own. The first edge has its usual core, the
    /// others those after the load generator's. If these do not suffice, all share the first.
    pub(crate) fn of_edges(&self, edges: usize) -> (Vec<usize>, bool) {
        let spare = self.load + 1..self.count;
        let own: Vec<usize> = std::iter::once(self.edge).chain(spare).take(edges).collect();
        match own.len() == edges && self.load != self.edge {
            true => (own, true),
            false => (vec![self.edge; edges], edges == 1),
        }
    }

    /// A sentence for the report.
    pub(crate) fn describe(&self) -> String {
        let Self {
            edge,
            store,
            upstream,
            load,
            ..
        } = self;
        format!(
            "the measured proxy alone on core {edge}, Redis on core {store}, the provider on core {upstream}, the load \
             generator on core {load}"
        )
    }
}

/// Binds a process and all its threads to a core.
pub(crate) fn pin(pid: u32, core: usize) -> Result<(), Box<dyn Error>> {
    output(
        "taskset",
        &["-a", "-c", "-p", &core.to_string(), &pid.to_string()],
    )
    .map(drop)
}

/// Options of `chrt` for real-time policy and priority.
pub(crate) const REAL_TIME: [&str; 2] = ["-f", "10"];

/// Gives a process and all its threads real-time priority, or takes it back.
pub(crate) fn prioritise(pid: u32, is_real_time: bool) -> Result<(), Box<dyn Error>> {
    schedule(pid, if is_real_time { REAL_TIME } else { ["-o", "0"] })
}

/// Gives a process and all its threads the lowest weight: it gets little more of its core than other processes leave.
pub(crate) fn yield_core(pid: u32) -> Result<(), Box<dyn Error>> {
    schedule(pid, ["-i", "0"])
}

fn schedule(pid: u32, [policy, priority]: [&str; 2]) -> Result<(), Box<dyn Error>> {
    output("chrt", &["-a", policy, "-p", priority, &pid.to_string()]).map(drop)
}

/// Whether the load generator and the provider may run with real-time priority.
pub(crate) fn has_real_time() -> bool {
    let [policy, priority] = REAL_TIME;
    output("chrt", &[policy, priority, "true"]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_has_a_core_of_its_own_from_two_cores_on() {
        for count in 2..9 {
            let Cores {
                edge,
                store,
                upstream,
                load,
                ..
            } = Cores::for_count(count);
            assert!(
                [store, upstream, load]
                    .iter()
                    .all(|core| *core != edge && *core < count),
                "{count}"
            );
        }
        assert!(Cores::for_count(1).describe().contains("core 0"));
    }

    #[test]
    fn several_edges_have_cores_of_their_own_where_there_are_some() {
        assert_eq!(Cores::for_count(2).of_edges(1), (vec![0], true));
        assert_eq!(Cores::for_count(2).of_edges(4), (vec![0; 4], false));
        assert_eq!(Cores::for_count(4).of_edges(2), (vec![0; 2], false));
        assert_eq!(Cores::for_count(5).of_edges(2), (vec![0, 4], true));
        assert_eq!(Cores::for_count(8).of_edges(4), (vec![0, 4, 5, 6], true));
    }
}
