//! A private Redis Cluster: masters only, put together by hand.

use crate::Redis;
use crate::net::{blocking_until, free_port};
use std::time::Duration;

/// Longest wait for the nodes to agree.
const WAIT: Duration = Duration::from_secs(30);
/// Hash slots of a cluster.
const SLOTS: usize = 16_384;

/// A private cluster of masters without replicas; killed on drop.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts `count` masters and waits until each of them says that the cluster is whole.
    #[must_use]
    pub fn start(count: usize) -> Self {
        let mut nodes = Vec::new();
        let mut buses = Vec::new();
        for at in 0..count {
            let bus = free_port().to_string();
            let node = Redis::start_with(&["--cluster-enabled", "yes", "--cluster-port", &bus]);
            let (first, last) = (at * SLOTS / count, (at + 1) * SLOTS / count - 1);
            let range = [first.to_string(), last.to_string()];
            let _: String = node.command(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]);
            let epoch = (at + 1).to_string();
            let _: String = node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            nodes.push(node);
            buses.push(bus);
        }
        for (node, bus) in nodes.iter().zip(&buses).skip(1) {
            let port = node.port().to_string();
            let _: String = nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
        }
        for node in &nodes {
            let whole = format!("cluster_known_nodes:{count}");
            blocking_until("a whole cluster", WAIT, || {
                let info: String = node.command(&["CLUSTER", "INFO"]);
                (info.contains("cluster_state:ok") && info.contains(&whole)).then_some(())
            });
        }
        Self { nodes }
    }

    /// `redis-cluster://127.0.0.1:port,127.0.0.1:port,…`
    #[must_use]
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port()))
            .collect();
        format!("redis-cluster://{}", hosts.join(","))
    }

    /// The servers.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }
}
