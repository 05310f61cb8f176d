//! The durability that the servers offer, as an operator sees it.

use super::confirmation::{config_of_server, followed_mark, nodes_query, offer_queries};
use crate::connection::cluster::replicas_listed;
use crate::connection::scan::Node;
use crate::connection::text;
use crate::durability::{DurabilityStatus, Offer};
use crate::{Store, StoreError};
use settings::durability::Durability;

impl Store {
    /// Queries all servers for the durability of changes of money.
    pub async fn durability(&self) -> Result<DurabilityStatus, StoreError> {
        Ok(self.durability_by(&self.offers().await?))
    }

    /// Returns the durability of changes of money on servers with these offers.
    pub fn durability_by(&self, offers: &[Offer]) -> DurabilityStatus {
        let money = self.money.as_ref();
        let configured = money.map_or(Durability::Async, |money| money.configured);
        DurabilityStatus::from_offers(configured, offers)
    }

    /// Queries the durability that each server offers.
    pub async fn offers(&self) -> Result<Vec<Offer>, StoreError> {
        let (info, config) = offer_queries();
        let nodes = self.nodes().await?;
        let (infos, configs) = (
            self.send_to(&nodes, &info).await,
            self.send_to(&nodes, &config).await,
        );
        let listed = self.listed(&nodes).await?;
        let offers = infos
            .into_iter()
            .zip(configs)
            .zip(listed)
            .map(|((info, config), listed)| {
                let (info, config) = (text(info?)?, config_of_server(config)?);
                Ok(Offer::from_info(&info, config.as_deref()).listed(listed))
            });
        offers.collect()
    }

    /// Renews the mark that a replica follows this single server, so that a process which starts after the replica left
    /// still expects it. Does nothing on a cluster, which lists its replicas, or without a replica.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn mark_followed(&self, offers: &[Offer]) -> Result<(), StoreError> {
        match offers {
            [offer] if offer.replicas > 0 && !self.is_cluster() => {
                self.command(&followed_mark(&offer.run_id)).await
            }
            _ => Ok(()),
        }
    }

    /// Counts the replicas that the cluster lists for each of these masters.
    async fn listed(&self, nodes: &[Node]) -> Result<Vec<u64>, StoreError> {
        if !self.is_cluster() {
            return Ok(vec![0; nodes.len()]);
        }
        let answers = self.send_to(nodes, &nodes_query()).await.into_iter();
        let listed = answers.map(|answer| Ok(replicas_listed(&text(answer?).unwrap_or_default()).usable));
        listed.collect()
    }
}
