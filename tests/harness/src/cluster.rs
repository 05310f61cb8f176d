//! A private Redis Cluster, assembled with `CLUSTER` commands: masters and, optionally, replicas.

use crate::net::{blocking_until, free_port, loopback};
use crate::{Gate, Redis, Wire};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// Longest wait for the nodes to agree, on a slow and busy machine.
const WAIT: Duration = Duration::from_secs(60);
/// Hash slots of a cluster.
const SLOTS: usize = 16_384;
/// The cluster's node timeout, in ms: longer than a node of a busy machine can be silent, so that only nodes that a
/// test stops are replaced.
const PATIENCE_MS: &str = "60000";
/// The node timeout, in ms, from the moment at which a test stops a master. A failed election is repeated after twice
/// this time.
const SILENCE_MS: &str = "3000";
/// Time to wait for a manual failover before the next request for one. The nodes abandon it after five seconds.
const HAND_OVER_GIVEN_UP: Duration = Duration::from_secs(6);
/// Most keys that one call of [`RedisCluster::move_some`] moves.
const MOVED_AT_ONCE: &str = "100";

/// Options of clusters with replicas.
const REPLICATED: [&str; 6] = [
    "--cluster-require-full-coverage",
    "no",
    "--repl-diskless-sync-delay",
    "0",
    "--repl-ping-replica-period",
    "1",
];

/// The wires in front of a node. The node announces their addresses as its own.
#[derive(Debug)]
struct NodeWires {
    clients: Wire,
    bus: Wire,
    /// The source address of the node's own connections.
    source: IpAddr,
}

/// A private cluster; killed on drop.
#[derive(Debug)]
pub struct RedisCluster {
    /// The masters first, then as many replicas, in the same order.
    nodes: Vec<Redis>,
    ids: Vec<String>,
    masters: usize,
    /// One per node, or none at all.
    wires: Vec<NodeWires>,
}

impl RedisCluster {
    /// Starts `count` masters without replicas, and waits until each of them reports the cluster as complete.
    pub fn start(count: usize) -> Self {
        Self::start_nodes(count, count, "", &[], false)
    }

    /// Like [`Self::start`], plus one master without slots, as the last node.
    pub fn start_with_spare(count: usize) -> Self {
        Self::start_nodes(count, count + 1, "", &[], false)
    }

    /// Starts `count` masters with a replica each, which replaces a lost master while the other masters continue.
    pub fn start_replicated(count: usize) -> Self {
        Self::start_replicated_as("", count, &[])
    }

    /// Like [`Self::start_replicated`], with more options; the harness signs in as `login` ([`Redis::start_as`]).
    pub fn start_replicated_as(login: &str, count: usize, options: &[&str]) -> Self {
        let options = [&REPLICATED[..], options].concat();
        Self::start_nodes(count, 2 * count, login, &options, false).replicated(count)
    }

    /// Starts `count` masters with a replica each. Nodes and clients connect over wires, so any master can be
    /// [isolated](Self::isolate).
    pub fn start_wired(count: usize) -> Self {
        Self::start_nodes(count, 2 * count, "", &REPLICATED, true).replicated(count)
    }

    fn replicated(self, count: usize) -> Self {
        let cluster = self;
        for at in 0..count {
            let (master, replica) = (&cluster.ids[at], &cluster.nodes[count + at]);
            blocking_until("a replica of its master", WAIT, || {
                let done = replica.try_command::<String>(&["CLUSTER", "REPLICATE", master]);
                done.is_ok().then_some(())
            });
        }
        for at in 0..count {
            cluster.wait_for_replica(count + at);
        }
        cluster
    }

    fn start_nodes(masters: usize, count: usize, login: &str, options: &[&str], is_wired: bool) -> Self {
        let mut nodes = Vec::new();
        let mut wires = Vec::new();
        let mut addresses = Vec::new();
        for at in 0..count {
            let bus_port = free_port();
            let bus = bus_port.to_string();
            let source = IpAddr::from(Ipv4Addr::new(127, 0, 1, u8::try_from(at).expect("few nodes") + 1));
            let source_text = source.to_string();
            let own = [
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                // A replica that was cut off takes over however long a busy machine needs until its master is killed.
                "--cluster-replica-validity-factor",
                "0",
                "--cluster-node-timeout",
                PATIENCE_MS,
            ];
            let wired = [
                "--cluster-announce-ip",
                "127.0.0.1",
                "--bind-source-addr",
                &source_text,
            ];
            let wired = if is_wired { &wired[..] } else { &[] };
            let node = Redis::start_as(login, &[&own[..], wired, options].concat(), &[]);
            if is_wired {
                let (clients, bus) = (Wire::to_port(node.port()), Wire::to_port(bus_port));
                announce(&node, &clients, &bus);
                addresses.push([&clients, &bus].map(|wire| wire.addr().port().to_string()));
                wires.push(NodeWires { clients, bus, source });
            } else {
                addresses.push([node.port().to_string(), bus]);
            }
            if at < masters {
                let (first, last) = (at * SLOTS / masters, (at + 1) * SLOTS / masters - 1);
                let range = [first.to_string(), last.to_string()];
                let _: String = node.command(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]);
            }
            let epoch = (at + 1).to_string();
            let _: String = node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            nodes.push(node);
        }
        for [port, bus] in addresses.iter().skip(1) {
            let _: String = nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", port, bus]);
        }
        let ids = nodes.iter().map(|node| node.command(&["CLUSTER", "MYID"]));
        let cluster = Self {
            ids: ids.collect(),
            nodes,
            masters,
            wires,
        };
        for node in &cluster.nodes {
            let whole = format!("cluster_known_nodes:{count}");
            blocking_until("a whole cluster", WAIT, || {
                let info: String = node.command(&["CLUSTER", "INFO"]);
                (info.contains("cluster_state:ok") && info.contains(&whole)).then_some(())
            });
        }
        cluster
    }

    /// `redis-cluster://127.0.0.1:port,127.0.0.1:port,…`
    pub fn url(&self) -> String {
        let hosts = (0..self.nodes.len()).map(|at| format!("127.0.0.1:{}", self.announced_port(at)));
        format!("redis-cluster://{}", hosts.collect::<Vec<_>>().join(","))
    }

    /// The port that the node at `at` announces to clients.
    pub fn announced_port(&self, at: usize) -> u16 {
        let port = self.nodes[at].port();
        self.wires
            .get(at)
            .map_or(port, |wires| wires.clients.addr().port())
    }

    /// Cuts the master at `at` off from all other nodes, which replace it after a short node timeout. With `it_stops`,
    /// it stops serving after the same time. With `with_clients`, clients reach only it, else every node.
    pub fn isolate(&self, at: usize, it_stops: bool, with_clients: bool) {
        for (other, node) in self.nodes.iter().enumerate() {
            if it_stops || other != at {
                let _: String = node.command(&["CONFIG", "SET", "cluster-node-timeout", SILENCE_MS]);
            }
        }
        let isolated = &self.wires[at];
        for (_, other) in self.wires.iter().enumerate().filter(|(other, _)| *other != at) {
            for (wire, from) in [(&isolated.bus, other.source), (&other.bus, isolated.source)] {
                wire.shut_out(from);
            }
            for (wire, from) in [
                (&isolated.clients, other.source),
                (&other.clients, isolated.source),
            ] {
                wire.shut_out(from);
            }
            if with_clients {
                other.clients.shut_out(loopback(0).ip());
            }
        }
    }

    /// Puts a gate before every node of a wired cluster.
    pub fn put_gate(&self, gate: &Gate) {
        for wires in &self.wires {
            wires.clients.put_gate(gate);
        }
    }

    /// Restarts the node at `at`. A wired node announces its wires again.
    pub fn restart(&self, at: usize) {
        self.nodes[at].restart();
        if let Some(wires) = self.wires.get(at) {
            announce(&self.nodes[at], &wires.clients, &wires.bus);
        }
    }

    /// Ends every isolation: nodes and clients reach every node again.
    pub fn reunite(&self) {
        for wires in &self.wires {
            wires.bus.let_all_in();
            wires.clients.let_all_in();
        }
    }

    /// Whether the node at `at` serves no requests, since it reaches too few other nodes.
    pub fn has_stopped(&self, at: usize) -> bool {
        let info: String = self.nodes[at].command(&["CLUSTER", "INFO"]);
        info.contains("cluster_state:fail")
    }

    /// The servers: the initial masters, then their replicas.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The index of the replica that the master at `at` started with.
    pub const fn replica_of(&self, at: usize) -> usize {
        self.masters + at
    }

    /// The hash slot of a key.
    pub fn slot(&self, key: &str) -> u16 {
        self.any(&["CLUSTER", "KEYSLOT", key]).expect("a node")
    }

    fn any<T: redis::FromRedisValue>(&self, words: &[&str]) -> Option<T> {
        self.nodes.iter().find_map(|node| node.try_command(words).ok())
    }

    /// The index of the master that serves the slot of `key`, as the node at `node` reports it.
    pub fn holder_known_to(&self, node: usize, key: &str) -> Option<usize> {
        let slot = self.slot(key);
        let text: String = self.nodes[node].try_command(&["CLUSTER", "NODES"]).ok()?;
        text.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let serves = words.iter().skip(8).any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let bound = |text: &str| text.parse::<u16>().ok();
                bound(first)
                    .zip(bound(last))
                    .is_some_and(|(first, last)| (first..=last).contains(&slot))
            });
            let alive = words
                .get(2)
                .is_some_and(|flags| flags.contains("master") && !flags.contains("fail"));
            (serves && alive).then(|| self.ids.iter().position(|id| id == words[0]))?
        })
    }

    /// Waits until the node at `at` follows a master, has all its data, and receives new writes. The state `online` is
    /// not enough: a master reports it before the replica's first acknowledgement (one a second), and sends nothing
    /// until then.
    pub fn wait_for_replica(&self, at: usize) {
        let replica = &self.nodes[at];
        let mut written = None;
        blocking_until("a replica in step", WAIT, || {
            let info: String = replica.try_command(&["INFO", "replication"]).ok()?;
            let whole = info.contains("master_link_status:up") && info.contains("master_sync_in_progress:0");
            let master = number(&info, "master_port:").filter(|_| whole)?;
            let received = number(&info, "slave_repl_offset:")?;
            let is_master = |at: &usize| u64::from(self.announced_port(*at)) == master;
            let master = (0..self.nodes.len()).find(is_master)?;
            let info: String = self.nodes[master].try_command(&["INFO", "replication"]).ok()?;
            let offset = number(&info, "master_repl_offset:")?;
            // The master's next ping, at the latest, raises the offset above this.
            (received > *written.get_or_insert(offset)).then_some(())
        });
    }

    /// Kills the master at `at`, which serves `key`, and waits until its replica serves it.
    pub fn lose(&self, at: usize, key: &str) {
        self.end_patience();
        self.nodes[at].kill9();
        self.wait_for_holder(key, self.replica_of(at), &[at]);
    }

    /// Kills several masters at once, each with a key that it serves, and makes their replicas take over, as an
    /// operator does: the remaining masters may be too few for an election.
    pub fn lose_together(&self, lost: &[(usize, &str)]) {
        self.end_patience();
        let gone: Vec<usize> = lost.iter().map(|(at, _)| *at).collect();
        for at in &gone {
            self.nodes[*at].kill9();
        }
        for (at, key) in lost {
            let to = self.replica_of(*at);
            blocking_until("a replica that takes over", WAIT, || {
                let takes = ["CLUSTER", "FAILOVER", "TAKEOVER"];
                let accepted = self.nodes[to].try_command::<String>(&takes);
                (accepted.is_ok() || self.holder_known_to(to, key) == Some(to)).then_some(())
            });
        }
        for (at, key) in lost {
            self.wait_for_holder(key, self.replica_of(*at), &gone);
        }
    }

    fn end_patience(&self) {
        for node in &self.nodes {
            let _: String = node.command(&["CONFIG", "SET", "cluster-node-timeout", SILENCE_MS]);
        }
    }

    /// Makes the replica at `at` take over from its running master, and waits until every node reports that.
    pub fn hand_over(&self, key: &str, at: usize) {
        self.end_patience();
        let mut started: Option<Instant> = None;
        blocking_until("a new master", WAIT, || {
            if self.holder_known_to(at, key) == Some(at) {
                return Some(());
            }
            // A second request restarts the failover, so it must wait until the nodes have abandoned the first.
            if started.is_none_or(|started| started.elapsed() > HAND_OVER_GIVEN_UP) {
                let taken = self.nodes[at].try_command::<String>(&["CLUSTER", "FAILOVER"]);
                started = taken.is_ok().then(Instant::now);
            }
            None
        });
        self.wait_for_holder(key, at, &[]);
    }

    /// Waits until the replica at `at` has all that its master has written.
    pub fn wait_in_step(&self, at: usize) {
        self.nodes[at].wait_in_step_with(&self.nodes[at - self.masters]);
    }

    /// Cuts the replica at `at` off from its running master for good: it never receives later writes. (A frozen replica
    /// would find them in its socket when it resumes.)
    pub fn cut_off(&self, at: usize) {
        let words = [
            "CONFIG",
            "SET",
            "masteruser",
            "nobody",
            "masterauth",
            "no password",
        ];
        let _: String = self.nodes[at].command(&words);
        let master = &self.nodes[at - self.masters];
        let _: u64 = master.command(&["CLIENT", "KILL", "TYPE", "REPLICA"]);
        blocking_until("a replica without its master", WAIT, || {
            let info: String = master.command(&["INFO", "replication"]);
            info.contains("connected_slaves:0").then_some(())
        });
    }

    /// Waits until every node but those at `gone` reports that the node at `at` serves `key`.
    pub fn wait_for_holder(&self, key: &str, at: usize, gone: &[usize]) {
        let remaining: Vec<usize> = (0..self.nodes.len())
            .filter(|node| !gone.contains(node))
            .collect();
        blocking_until("a new master", WAIT, || {
            let knows = |&node: &usize| self.holder_known_to(node, key) == Some(at);
            remaining.iter().all(knows).then_some(())
        });
    }

    /// Begins to move a slot: from now on `from` serves the keys that it still has, and `to` the others.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        let [importing, migrating] = [("IMPORTING", from), ("MIGRATING", to)];
        let _: String =
            self.nodes[to].command(&["CLUSTER", "SETSLOT", &slot, importing.0, &self.ids[importing.1]]);
        let _: String =
            self.nodes[from].command(&["CLUSTER", "SETSLOT", &slot, migrating.0, &self.ids[migrating.1]]);
    }

    /// Moves at most [`MOVED_AT_ONCE`] keys of the slot, with a command each. Returns how many it found.
    pub fn move_some(&self, slot: u16, from: usize, to: usize) -> usize {
        let keys: Vec<String> =
            self.nodes[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), MOVED_AT_ONCE]);
        let port = self.nodes[to].port().to_string();
        for key in &keys {
            let _: String = self.nodes[from].command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
        }
        keys.len()
    }

    /// Ends the move: the slot belongs to `to`.
    pub fn end_move(&self, slot: u16, to: usize) {
        for at in std::iter::once(to).chain((0..self.masters).filter(|at| *at != to)) {
            let words = ["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &self.ids[to]];
            let _: String = self.nodes[at].command(&words);
        }
    }
}

/// Lets a node announce its wires.
fn announce(node: &Redis, clients: &Wire, bus: &Wire) {
    for (name, wire) in [
        ("cluster-announce-port", clients),
        ("cluster-announce-bus-port", bus),
    ] {
        let port = wire.addr().port().to_string();
        let _: String = node.command(&["CONFIG", "SET", name, &port]);
    }
}

/// The number of the field `name` of `INFO`.
fn number(info: &str, name: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|text| text.trim().parse().ok())
}
