//! A store of several nodes: events of accounts on each of them are dispatched and delivered.

use crate::fixture::{BINARY, Owner, accepting, quick, receiver, url};
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Answer, RedisCluster, Seed, Store, until};
use std::collections::HashSet;
use std::time::Duration;

const NODES: usize = 3;
/// Most accounts that are made until each node has one: with 60 a node is left out once in 10^10 runs.
const ACCOUNTS_MAX: usize = 60;

#[tokio::test]
async fn webhooks_of_accounts_on_all_nodes_are_delivered_to() {
    let cluster = RedisCluster::start(NODES);
    let store = Store::open(&cluster.url(), Duration::from_secs(5)).expect("the cluster");
    let seed = Seed::new(&store).await;
    let admin = Admin::start(quick(AdminOptions::new(BINARY, cluster.url())));
    let (good, flaky) = (accepting(), receiver(|_| Answer::bytes(500, "")));
    let mut owners = Vec::new();
    let mut nodes = HashSet::new();
    for _ in 0..ACCOUNTS_MAX {
        if nodes.len() == NODES {
            break;
        }
        let account = seed.account("startup").await;
        let record = account.keys.record();
        nodes.extend(cluster.nodes().iter().position(|node| {
            let found = node.try_command::<u64>(&["EXISTS", &record]);
            found.is_ok_and(|found| found == 1)
        }));
        let key = account.api_key(Mode::Live).await;
        let owner = Owner {
            caller: admin.caller(&key),
            account,
            key,
        };
        let webhooks = [
            owner.register(&url(&good), &["agent.frozen"]).await,
            owner.register(&url(&flaky), &["agent.frozen"]).await,
        ];
        owner.freeze("bot").await;
        owners.push((owner, webhooks));
    }
    for (owner, [to_good, to_flaky]) in &owners {
        owner
            .wait_for(to_good, "its delivery", |delivery| {
                delivery["status"] == "delivered"
            })
            .await;
        owner
            .wait_for(to_flaky, "three attempts", |delivery| {
                crate::fixture::attempts(delivery) == 3
            })
            .await;
    }
    flaky.set(|_| Answer::bytes(200, ""));
    for (owner, [_, to_flaky]) in &owners {
        owner.freeze("bot").await;
        until("what was parked", async || {
            owner.deliveries_with(to_flaky, "status=delivered").await.1 == 2
        })
        .await;
    }
    assert_eq!(nodes.len(), NODES, "there are accounts on each node");
}
