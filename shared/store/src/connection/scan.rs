//! Reads across the whole store: scans all keys of each server, and many reads at once in any slots.

use super::{Link, Store};
use crate::StoreError;
use crate::error_counters;
use crate::keys::Bucket;
use crate::read::{Answers, Read};
use futures::{StreamExt, TryStreamExt, stream};
use redis::{Cmd, Pipeline, RedisError, Value};
use std::collections::BTreeMap;

/// Error code for a key of another type.
const WRONG_TYPE: &str = "WRONGTYPE";
/// Slots of a cluster that are read concurrently.
pub(super) const SLOTS_AT_ONCE: usize = 32;

/// Indexes of reads that were sent together, and their answers.
pub(super) type ReadGroup = (Vec<usize>, Vec<Value>);

/// One server of the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(Option<String>);

impl Node {
    /// Returns `host:port` of a cluster's master.
    pub(super) fn address(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Store {
    /// Returns the servers with keys: the single one, or the cluster's masters.
    ///
    /// # Errors
    /// [`StoreError::NotConnected`] if no cluster node answers.
    pub async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        let Link::Cluster(cluster) = &self.link else {
            return Ok(vec![Node(None)]);
        };
        let masters = cluster.masters().await;
        if masters.is_empty() {
            let away = std::io::Error::new(
                std::io::ErrorKind::ConnectionRefused,
                "no node of the cluster answers",
            );
            return Err(StoreError::NotConnected(away.into()));
        }
        let mut nodes: Vec<Node> = masters
            .into_iter()
            .map(|master| Node(Some(master.address)))
            .collect();
        nodes.sort();
        Ok(nodes)
    }

    /// Returns the bucket's server, if known; before the first refresh of a cluster all are one.
    pub(super) fn node_of(&self, bucket: Bucket) -> Node {
        match &self.link {
            Link::Single(_) => Node(None),
            Link::Cluster(cluster) => Node(cluster.address_of(&bucket.due())),
        }
    }

    /// Returns `host:port` of a server, or the path of its socket.
    fn name_of(&self, node: &Node) -> String {
        match (&self.link, node.address()) {
            (_, Some(address)) => address.to_owned(),
            (Link::Single(server), None) => server.address(),
            (Link::Cluster(_), None) => "the store".to_owned(),
        }
    }

    /// Executes a command on every server and returns one reply from each.
    ///
    /// # Errors
    /// [`StoreError`] if any server does not reply.
    pub(crate) async fn every_node(&self, command: &Cmd) -> Result<Vec<String>, StoreError> {
        let answers = self.send_to_every_node(command).await?;
        answers.into_iter().map(|answer| super::text(answer?)).collect()
    }

    /// Executes a command on every server, skipping those that do not reply. Returns the name of each server with its
    /// reply.
    ///
    /// # Errors
    /// [`StoreError`] if no server answers.
    pub(crate) async fn every_node_there(&self, command: &Cmd) -> Result<Vec<(String, String)>, StoreError> {
        let (mut answers, mut failed) = (Vec::new(), None);
        let nodes = self.nodes().await?;
        for (node, answer) in nodes.iter().zip(self.send_to(&nodes, command).await) {
            match answer.and_then(super::text) {
                Ok(answer) => answers.push((self.name_of(node), answer)),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if answers.is_empty() => Err(error),
            _ => Ok(answers),
        }
    }

    /// Executes a command on every server; answers in the order of addresses.
    pub(super) async fn send_to_every_node(
        &self,
        command: &Cmd,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        Ok(self.send_to(&self.nodes().await?, command).await)
    }

    /// Executes a command on each of these servers.
    pub(super) async fn send_to(&self, nodes: &[Node], command: &Cmd) -> Vec<Result<Value, StoreError>> {
        let replies = nodes.iter().map(|node| self.execute_on(node, command));
        futures::future::join_all(replies).await
    }

    /// Returns whether any server of the store replies.
    pub async fn is_partly_there(&self) -> bool {
        self.every_node_there(&redis::cmd("PING")).await.is_ok()
    }

    async fn execute_on(&self, node: &Node, command: &Cmd) -> Result<Value, StoreError> {
        let (Link::Cluster(cluster), Some(address)) = (&self.link, &node.0) else {
            return self.command(command).await;
        };
        self.in_time(Box::pin(cluster.execute_on(address, command))).await
    }

    /// Executes one step of a scan over a server's keys: returns the next cursor, `0` at the end, and some keys. A key
    /// that exists throughout is returned at least once.
    pub async fn scan(
        &self,
        node: &Node,
        cursor: &str,
        count: usize,
        pattern: Option<&str>,
    ) -> Result<(String, Vec<Vec<u8>>), StoreError> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("COUNT").arg(count);
        if let Some(pattern) = pattern {
            scan.arg("MATCH").arg(pattern);
        }
        let page = self.execute_on(node, &scan).await?;
        redis::from_redis_value(page).map_err(StoreError::unexpected)
    }

    /// Executes many reads: in one round trip on a single server, one per bucket on a cluster. An error because a key
    /// has another type counts as an answer.
    ///
    /// # Errors
    /// [`StoreError`] if there is no reply, or an error for another reason: a server that is loading would make
    /// existing records look absent.
    pub async fn many(&self, reads: &[Read]) -> Result<Answers, StoreError> {
        if reads.is_empty() {
            return Ok(Answers::new(Vec::new()));
        }
        if !self.is_cluster() {
            let answers = self.together(reads.iter()).await?;
            return Ok(Answers::new(answers.into_iter().map(Some).collect()));
        }
        let runs = groups(reads).into_iter().map(|(_, group)| async move {
            let answers = self.together(group.iter().map(|at| &reads[*at])).await?;
            Ok::<_, StoreError>((group, answers))
        });
        let runs = stream::iter(runs).buffer_unordered(SLOTS_AT_ONCE);
        let done: Vec<ReadGroup> = runs.try_collect().await?;
        Ok(in_order(reads.len(), done))
    }

    pub(super) async fn together<'a>(
        &self,
        reads: impl Iterator<Item = &'a Read>,
    ) -> Result<Vec<Value>, StoreError> {
        let mut pipeline = Pipeline::new();
        for read in reads {
            pipeline.add_command(read.command.clone());
        }
        pipeline.ignore_errors();
        let answers: Vec<Value> = self.pipeline(&pipeline).await?;
        let mut refused = answers.iter().filter_map(|answer| match answer {
            Value::ServerError(error) if error.code() != WRONG_TYPE => Some(RedisError::from(error.clone())),
            _ => None,
        });
        match refused.next() {
            Some(error) => Err(StoreError::from(error)).inspect_err(error_counters::count),
            None => Ok(answers),
        }
    }
}

/// Groups reads: those of one bucket together, each read outside the buckets separately.
pub(super) fn groups(reads: &[Read]) -> Vec<(Option<Bucket>, Vec<usize>)> {
    let mut buckets: BTreeMap<Bucket, Vec<usize>> = BTreeMap::new();
    let mut groups = Vec::new();
    for (at, read) in reads.iter().enumerate() {
        match read.bucket {
            Some(bucket) => buckets.entry(bucket).or_default().push(at),
            None => groups.push((None, vec![at])),
        }
    }
    groups.extend(buckets.into_iter().map(|(bucket, group)| (Some(bucket), group)));
    groups
}

pub(super) fn in_order(count: usize, groups: Vec<ReadGroup>) -> Answers {
    let mut answers = vec![None; count];
    for (places, values) in groups {
        for (place, value) in places.into_iter().zip(values) {
            if let Some(answer) = answers.get_mut(place) {
                *answer = Some(value);
            }
        }
    }
    Answers::new(answers)
}
