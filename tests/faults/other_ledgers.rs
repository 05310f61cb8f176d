//! Waiting settlements and voids belong to one ledger: they are delivered to no other one, and a hold counts as
//! missing only in a ledger that has the change which opened it (decisions D36, D47, D52).

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, PROXY, SOON, Setup, answer, metric, sha};
use crate::late_settlements::{another_edge, answered_without_a_store, journals};
use harness::{Edge, EdgeOptions, Redis, Seed, until};
use std::time::Duration;
use store::call::authorize::AUTHORIZE;
use store::keys::STORE;

/// Time for several rounds of the retry queue.
const ROUNDS: Duration = Duration::from_secs(2);

/// The ledger in the place of the right store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherLedger {
    /// A server without a ledger.
    Empty,
    /// Another ledger.
    Initialised,
    /// The same ledger as before the holds, as on a replica that was behind.
    Behind,
    /// The same, restored from a backup that is not accepted.
    Restored,
}

impl OtherLedger {
    const ALL: [Self; 4] = [Self::Empty, Self::Initialised, Self::Behind, Self::Restored];

    async fn start(self, right: &Redis) -> Redis {
        let other = Redis::start();
        match self {
            Self::Empty => {}
            Self::Initialised => drop(Seed::new(&other.store()).await),
            Self::Behind | Self::Restored => copy(right, &other).await,
        }
        if self == Self::Restored {
            let _: u64 = other.command(&["HSET", STORE, "restored", "yesterday"]);
        }
        other
    }
}

/// Copies the present state of `right` to `other`.
async fn copy(right: &Redis, other: &Redis) {
    let keys: u64 = right.command(&["DBSIZE"]);
    let _: String = other.command(&["REPLICAOF", "127.0.0.1", &right.port().to_string()]);
    until("a copy", async || {
        let info: String = other.command(&["INFO", "replication"]);
        let there: u64 = other.command(&["DBSIZE"]);
        info.contains("master_link_status:up") && there == keys
    })
    .await;
    let _: String = other.command(&["REPLICAOF", "NO", "ONE"]);
}

/// Leads the edge to another server, as when an address is given to it.
fn lead(fixture: &Fixture, to: &Redis) {
    fixture.wire().lead_to(to.port());
    fixture.wire().heal();
    fixture.wire().cut();
}

fn lines(fixture: &Fixture) -> usize {
    let journals = journals(&fixture.edge.dir().join("data"));
    journals.iter().map(|text| text.lines().count()).sum()
}

#[tokio::test]
async fn settlements_wait_for_the_ledger_of_their_holds() {
    for kind in OtherLedger::ALL {
        let fixture = Fixture::wired().await;
        let other = kind.start(&fixture.redis).await;
        let before: u64 = other.command(&["DBSIZE"]);
        let replies = answered_without_a_store(&fixture, 3).await;
        assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
        lead(&fixture, &other);
        tokio::time::sleep(ROUNDS).await;
        assert_eq!(
            (fixture.metric("tollgate_proxy_pending"), lines(&fixture)),
            (3, 3),
            "{kind:?}: {}",
            fixture.edge.logs()
        );
        assert_eq!(
            other.command::<u64>(&["DBSIZE"]),
            before,
            "{kind:?}: nothing is written there"
        );
        lead(&fixture, &fixture.redis);
        fixture.settled_at(4 * ACTUAL).await;
        let missing = fixture.metric(r#"tollgate_proxy_settlements_total{result="missing"}"#);
        assert_eq!(missing, 0, "{kind:?}");
    }
}

/// A lost approval is voided in the ledger where it was made.
#[tokio::test]
async fn voids_wait_for_the_ledger_of_their_holds() {
    for kind in OtherLedger::ALL {
        let fixture = Fixture::wired().await;
        let other = kind.start(&fixture.redis).await;
        // The edge has seen a higher version of the account than a store that is behind has.
        fixture.approved_call().await;
        fixture.at_rest().await;
        // The connection that breaks in the place of the reply is the last one to the right store.
        fixture.wire().lead_to(other.port());
        fixture.wire().lose_reply_to(sha(&AUTHORIZE), 1);
        fixture.unavailable_call().await;
        assert_eq!(fixture.wire().replies_lost(), 1, "the script ran");
        tokio::time::sleep(ROUNDS).await;
        assert_eq!(fixture.metric("tollgate_proxy_pending"), 1, "{kind:?}");
        assert_eq!(
            (fixture.charged(), fixture.open_holds()),
            ([2 * ACTUAL + ESTIMATE; 3], 1),
            "{kind:?}"
        );
        lead(&fixture, &fixture.redis);
        fixture.settled_at(2 * ACTUAL).await;
    }
}

/// The store is exchanged behind a connection that stays, while a call is at the provider: its settlement finds no
/// hold, which does not count as missing.
#[tokio::test]
async fn a_store_that_is_exchanged_in_a_call_loses_no_settlement() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    let gate = fixture.gated();
    let (reply, ()) = futures::future::join(fixture.call(), async {
        fixture.upstream.wait_for(2, SOON).await;
        let _: String = fixture.redis.command(&["SWAPDB", "0", "1"]);
        gate.notify_one();
    })
    .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    fixture.upstream.set(|_| answer());
    tokio::time::sleep(ROUNDS).await;
    assert_eq!(
        (fixture.metric("tollgate_proxy_pending"), lines(&fixture)),
        (1, 1)
    );
    let _: String = fixture.redis.command(&["SWAPDB", "0", "1"]);
    fixture.settled_at(2 * ACTUAL).await;
}

/// A journal that was taken over waits for its own ledger too, and does not block what other processes left for the
/// present one.
#[tokio::test]
async fn a_journal_that_was_taken_over_waits_for_its_ledger() {
    let fixture = Fixture::wired().await;
    answered_without_a_store(&fixture, 3).await;
    fixture.edge.kill9();
    let data = fixture.edge.dir().join("data");
    let other = Redis::start();
    let start = |redis: &Redis| {
        let options = EdgeOptions::new(PROXY, redis.url(), fixture.upstream.base_url()).until_alive();
        Edge::start(options.env("TOLLGATE_PROXY__DATA_DIR", data.display().to_string()))
    };
    for _ in 0..2 {
        let wrong = start(&other);
        tokio::time::sleep(ROUNDS).await;
        assert_eq!(
            (metric(&wrong, "tollgate_proxy_pending"), lines(&fixture)),
            (3, 3),
            "{}",
            wrong.logs()
        );
        // In the next round the wrong store has a ledger, but another one.
        drop(Seed::new(&other.store()).await);
        wrong.kill9();
    }
    let right = another_edge(&fixture, &data);
    fixture.bot.settled_within(SOON).await;
    assert_eq!(fixture.charged(), [4 * ACTUAL; 3], "{}", right.logs());
}

/// A hold that is missing in a ledger which has the change that opened it was resolved: nothing waits for it.
#[tokio::test]
async fn a_hold_that_was_resolved_is_waited_for_no_longer() {
    let fixture = Fixture::wired().await;
    answered_without_a_store(&fixture, 2).await;
    let bucket = fixture.bot.account.keys.bucket();
    let open: Vec<String> = fixture.redis.command(&["ZRANGE", &bucket.due(), "0", "-1"]);
    let _: u64 = fixture.redis.command(&["DEL", &bucket.hold(&open[0])]);
    let _: u64 = fixture.redis.command(&["ZREM", &bucket.due(), &open[0]]);
    lead(&fixture, &fixture.redis);
    fixture.at_rest().await;
    assert_eq!(fixture.charged(), [2 * ACTUAL + ESTIMATE; 3]);
    let missing = fixture.metric(r#"tollgate_proxy_settlements_total{result="missing"}"#);
    assert_eq!(missing, 1);
}

/// When the operator accepts the lost writes, nothing waits for them any longer.
#[tokio::test]
async fn an_account_that_was_accepted_ends_the_waiting() {
    let fixture = Fixture::wired().await;
    let behind = OtherLedger::Behind.start(&fixture.redis).await;
    answered_without_a_store(&fixture, 2).await;
    lead(&fixture, &behind);
    tokio::time::sleep(ROUNDS).await;
    assert_eq!(fixture.metric("tollgate_proxy_pending"), 2);
    let record = fixture.bot.account.keys.record();
    let _: u64 = behind.command(&["HINCRBY", &record, "generation", "1"]);
    fixture.at_rest().await;
    let missing = fixture.metric(r#"tollgate_proxy_settlements_total{result="missing"}"#);
    assert_eq!(missing, 2);
    fixture.recovered().await;
}
