//! One, two and four edges on a cluster: accounts on every node, and each limit used up to the nano, however many edges
//! decide.

use crate::fixture::{COST, Fixture, MASTERS, call, cap};
use futures::StreamExt;
use futures::stream;

/// Calls that each account has room for, and calls made.
const ROOM: usize = 30;
const CALLS: usize = 60;
/// Calls under way at the same time.
const AT_ONCE: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_on_any_number_of_edges() {
    let fixture = Fixture::start(4).await;
    for edges in [1, 2, 4] {
        let mut residents = Vec::new();
        for node in 0..MASTERS {
            residents.push(fixture.resident_on(node, cap(Some(ROOM as u64 * COST))).await);
        }
        let before = fixture.upstream.arrived();
        let calls = (0..CALLS * residents.len()).map(|number| {
            let resident = number % residents.len();
            let caller = fixture.edges[number / residents.len() % edges].caller(&residents[resident].key);
            async move {
                let reply = caller.chat(call(&format!("{edges} edges, call {number}"))).await;
                let reason = reply.header("x-service-reason").unwrap_or_default().to_owned();
                (resident, reply.status, reason)
            }
        });
        let answers: Vec<_> = stream::iter(calls).buffer_unordered(AT_ONCE).collect().await;
        for (at, resident) in residents.iter().enumerate() {
            let of = |status: u16, reason: &str| {
                let matching = |answer: &&(usize, u16, String)| {
                    answer.0 == at && answer.1 == status && (status == 200 || answer.2 == reason)
                };
                answers.iter().filter(matching).count()
            };
            assert_eq!(of(200, ""), ROOM, "{edges} edges");
            assert_eq!(of(402, "daily_limit"), CALLS - ROOM, "{edges} edges");
            assert_eq!(resident.agent.counters().await.day_nanos, ROOM as u64 * COST);
            assert_eq!(resident.agent.open_holds().await, 0);
        }
        assert_eq!(fixture.upstream.arrived() - before, ROOM * residents.len());
    }
    for node in &fixture.cluster.nodes()[..MASTERS] {
        assert!(node.calls("evalsha") > 0, "each node decides for its accounts");
    }
}
