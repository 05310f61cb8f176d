//! Reading much of the store: walking over all keys of each server, and many reads in one go whatever slots they are in.

use super::{Link, Store, connect, within};
use crate::store::StoreError;
use crate::store::keys::Bucket;
use crate::store::read::{Answers, Read};
use futures::{StreamExt, TryStreamExt, stream};
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Pipeline, Value};
use std::collections::BTreeMap;

/// Reads of different slots of a cluster that are under way at the same time.
const SLOTS_AT_ONCE: usize = 32;

/// One server that holds a part of the keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(Option<(String, u16)>);

impl Store {
    /// The servers that hold the keys: one, or the masters of a cluster.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        if !self.is_cluster() {
            return Ok(vec![Node(None)]);
        }
        let slots: Vec<Vec<Value>> = self.command(redis::cmd("CLUSTER").arg("SLOTS")).await?;
        let nonsense = || StoreError::Nonsense("CLUSTER SLOTS".to_owned());
        let mut nodes = Vec::new();
        for range in slots {
            // <first> <last> <master> <replica>…, each server being <host> <port> and more.
            let master = range.into_iter().nth(2).ok_or_else(nonsense)?;
            let master: Vec<Value> = redis::from_redis_value(master).map_err(|_| nonsense())?;
            let mut words = master.into_iter();
            let host = words.next().and_then(|word| redis::from_redis_value(word).ok());
            let port = words.next().and_then(|word| redis::from_redis_value(word).ok());
            nodes.push(Node(Some(host.zip(port).ok_or_else(nonsense)?)));
        }
        nodes.sort();
        nodes.dedup();
        Ok(nodes)
    }

    /// One step of a walk over the keys of a server: the next cursor, which is `0` at the end, and some keys. A key that is
    /// there all the time is seen at least once.
    ///
    /// # Errors
    /// [`StoreError`].
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
        let (Link::Cluster(client, cell), Some((host, port))) = (&self.link, &node.0) else {
            return self.command(&scan).await;
        };
        let to = RoutingInfo::SingleNode(SingleNodeRoutingInfo::ByAddress {
            host: host.clone(),
            port: *port,
        });
        let run = async { connect(client, cell).await?.route_command(scan, to).await };
        let page = within(self.timeout, run).await?;
        redis::from_redis_value(page).map_err(|error| StoreError::Nonsense(error.to_string()))
    }

    /// Runs many reads: in one round trip on a single server, one a bucket on a cluster. One that the server refused,
    /// since the key is of another type, is an answer too.
    ///
    /// # Errors
    /// [`StoreError`] when there is no answer.
    pub async fn many(&self, reads: &[Read]) -> Result<Answers, StoreError> {
        if reads.is_empty() {
            return Ok(Answers::new(Vec::new()));
        }
        if !self.is_cluster() {
            return self.together(reads.iter()).await.map(Answers::new);
        }
        let mut buckets: BTreeMap<Bucket, Vec<usize>> = BTreeMap::new();
        let mut groups = Vec::new();
        for (at, read) in reads.iter().enumerate() {
            match read.bucket {
                Some(bucket) => buckets.entry(bucket).or_default().push(at),
                None => groups.push(vec![at]),
            }
        }
        groups.extend(buckets.into_values());
        let runs = groups.into_iter().map(|group| async move {
            let answers = self.together(group.iter().map(|at| &reads[*at])).await?;
            Ok::<_, StoreError>(group.into_iter().zip(answers).collect::<Vec<_>>())
        });
        let runs = stream::iter(runs).buffer_unordered(SLOTS_AT_ONCE);
        let done: Vec<Vec<(usize, Value)>> = runs.try_collect().await?;
        let mut answers: Vec<(usize, Value)> = done.into_iter().flatten().collect();
        answers.sort_by_key(|(at, _)| *at);
        Ok(Answers::new(
            answers.into_iter().map(|(_, answer)| answer).collect(),
        ))
    }

    async fn together<'a>(&self, reads: impl Iterator<Item = &'a Read>) -> Result<Vec<Value>, StoreError> {
        let mut pipeline = Pipeline::new();
        for read in reads {
            pipeline.add_command(read.command.clone());
        }
        pipeline.ignore_errors();
        self.pipeline(&pipeline).await
    }
}
