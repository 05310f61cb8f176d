//! Extensions of holds: many at once against one cap, and on stores that fail.

use super::{Payer, code};
use crate::fixture::{open_cap, settlement, usd};
use domain::cap::CapPolicy;
use futures::future::join_all;
use harness::{Cli, Redis, Seed, Wire, eventually};
use std::time::Duration;
use store::call::extend::{Extend, Extended};
use store::call::hold::HoldName;
use store::call::settle::{Settle, Settled};
use store::{Store, StoreError};

const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Connections, as several edges have them.
const EDGES: usize = 3;
const HOLDS: usize = 50;
/// Extensions that each hold tries.
const STEPS: usize = 4;
const FIT: u64 = 117;
/// The store's deadline in the tests of failures.
const DEADLINE: Duration = Duration::from_millis(300);
/// A store that is back is used again within this time.
const RECONNECT: Duration = Duration::from_secs(2);
const ESTIMATE: u64 = 1_000_003;
const BY: u64 = 70_001;

struct Growing {
    payer: Payer,
    stores: Vec<Store>,
}

/// A hold with its current estimate.
struct ExtendedHold {
    name: HoldName,
    estimate: u64,
    extensions: u64,
}

impl Growing {
    /// Tries to extend a hold [`STEPS`] times, each time through two edges at once, as if the reply of one were lost.
    async fn grow(&self, at: usize, name: HoldName) -> ExtendedHold {
        let mut grown = ExtendedHold {
            name,
            estimate: ESTIMATE,
            extensions: 0,
        };
        for step in 0..STEPS {
            let (from, to) = (grown.estimate, grown.estimate + BY);
            let through = async |edge: usize| {
                let store = &self.stores[(at + step + edge) % EDGES];
                extend(store, &self.payer, &grown.name, from, to).await
            };
            let (first, second) = futures::join!(through(0), through(1));
            match (first.unwrap(), second.unwrap()) {
                (Extended::Extended { .. }, Extended::Extended { .. }) => {
                    grown.estimate += BY;
                    grown.extensions += 1;
                }
                (Extended::Denied(_), Extended::Denied(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        grown
    }

    /// Settles a hold as if it were unknown whether its last extension took place. Returns the cost.
    async fn settle(&self, at: usize, grown: &ExtendedHold) -> u64 {
        let took_place = grown.extensions > 0 && at.is_multiple_of(2);
        let (estimate, extension) = if took_place {
            (grown.estimate - BY, grown.estimate)
        } else {
            (grown.estimate, grown.estimate + BY)
        };
        let cost = at as u64 * 50_021;
        let settle = settle_either(grown.name.clone(), estimate, extension, cost);
        assert_eq!(
            settle
                .execute(&grown.name.keys(), None, &self.stores[at % EDGES])
                .await
                .unwrap(),
            Settled::Done
        );
        cost
    }
}

/// Races once; returns how many extensions took place.
async fn race(policy: impl Fn(u64) -> CapPolicy, tracked: bool, room: u64) -> u64 {
    let redis = Redis::start();
    let stores: Vec<Store> = (0..EDGES).map(|_| redis.store()).collect();
    let mut payer = Payer::new(&Seed::new(&stores[0]).await).await;
    let held = HOLDS as u64 * ESTIMATE;
    payer.agent.cap(policy(held + room)).await;
    payer.agent.policy_record().await;
    if tracked {
        payer.plan.tracked_usd_per_month = Some(usd(held + room));
    }
    let mut names = Vec::new();
    for _ in 0..HOLDS {
        names.push(payer.approve(&stores[0], ESTIMATE).await);
    }
    let growing = Growing { payer, stores };
    let grown = names
        .into_iter()
        .enumerate()
        .map(|(at, name)| growing.grow(at, name));
    let grown = join_all(grown).await;
    let extensions = grown.iter().map(|grown| grown.extensions).sum::<u64>();
    let estimates: u64 = grown.iter().map(|grown| grown.estimate).sum();
    assert_eq!(estimates, held + extensions * BY);
    assert_eq!(growing.payer.charged().await, estimates, "the sum is exact");
    let checked = || Cli::new(ADMIN, redis.url()).json(&["ledger", "check"]);
    assert_eq!(checked()["ok"], true, "{}", checked());
    let costs = grown
        .iter()
        .enumerate()
        .map(|(at, grown)| growing.settle(at, grown));
    let cost: u64 = join_all(costs).await.into_iter().sum();
    assert_eq!(growing.payer.charged().await, cost);
    assert_eq!(checked()["ok"], true, "{}", checked());
    extensions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_as_many_extensions_as_the_cap_allows() {
    assert!(FIT < (HOLDS * STEPS) as u64);
    for room in [FIT * BY, (FIT + 1) * BY - 1] {
        let daily = |limit| CapPolicy {
            daily: Some(usd(limit)),
            ..open_cap()
        };
        assert_eq!(race(daily, false, room).await, FIT);
    }
    let per_run = |limit| CapPolicy {
        per_run: Some(usd(limit)),
        ..open_cap()
    };
    assert_eq!(race(per_run, false, FIT * BY).await, FIT);
    assert_eq!(race(|_| open_cap(), true, FIT * BY).await, FIT);
}

async fn extend(
    store: &Store,
    payer: &Payer,
    name: &HoldName,
    from: u64,
    to: u64,
) -> Result<Extended, StoreError> {
    let request = Extend {
        name,
        key_id: &payer.key_id,
        view: &payer.view,
        plan: &payer.plan,
        from: usd(from),
        to: usd(to),
        hold_life: Duration::from_secs(60),
    };
    request.execute(&name.keys(), store).await
}

fn settle_either(name: HoldName, estimate: u64, extension: u64, cost: u64) -> Settle {
    Settle {
        extension: Some(usd(extension)),
        ..settlement(name, estimate, cost)
    }
}

/// The reply is lost after the script has run: a repetition raises nothing twice, and a settlement that names both
/// estimates moves the difference from the one that the hold has.
#[tokio::test]
async fn an_extension_whose_reply_is_lost_is_repeated_or_settled() {
    let redis = Redis::start();
    let payer = Payer::new(&Seed::new(&redis.store()).await).await;
    let wire = Wire::to_port(redis.port());
    let store = Store::open(&wire.redis_url(), DEADLINE).unwrap();
    // The first extension loads the script into the server.
    let first = payer.approve(&store, 5).await;
    extend(&store, &payer, &first, 5, 6).await.unwrap();
    let mut spent = 6;
    for is_repeated in [true, false] {
        let name = payer.approve(&store, 100).await;
        wire.lose_reply_to(name.allow_id.as_bytes(), 1);
        let error = extend(&store, &payer, &name, 100, 150).await.unwrap_err();
        assert!(error.may_have_run(), "{error:?}");
        if is_repeated {
            let again = async || extend(&store, &payer, &name, 100, 150).await.ok();
            let again = eventually("an answer", RECONNECT, again).await;
            assert!(matches!(again, Extended::Extended { .. }), "{again:?}");
        }
        assert_eq!(payer.charged().await, spent + 150);
        let settle = settle_either(name, 100, 150, 30);
        let settled = eventually("an answer", RECONNECT, async || {
            settle.execute(&settle.name.keys(), None, &store).await.ok()
        })
        .await;
        spent += 30;
        assert_eq!((settled, payer.charged().await), (Settled::Done, spent));
    }
    assert_eq!(wire.replies_lost(), 2);
}

/// The request arrives long after the edge has given up and settled the call, or has extended it further: it changes
/// nothing.
#[tokio::test]
async fn an_extension_that_arrives_late_charges_nothing() {
    let redis = Redis::start();
    let direct = redis.store();
    let payer = Payer::new(&Seed::new(&direct).await).await;
    for is_settled in [true, false] {
        let wire = Wire::to_port(redis.port());
        let store = Store::open(&wire.redis_url(), DEADLINE).unwrap();
        let name = payer.approve(&store, 100).await;
        let before = payer.charged().await;
        wire.hold_requests();
        let error = extend(&store, &payer, &name, 100, 150).await.unwrap_err();
        assert!(error.may_have_run() && wire.is_holding(), "{error:?}");
        let after = if is_settled {
            let settle = settle_either(name, 100, 150, 30);
            assert_eq!(
                settle.execute(&settle.name.keys(), None, &direct).await.unwrap(),
                Settled::Done
            );
            before - 70
        } else {
            for (from, to) in [(100, 150), (150, 170)] {
                let extended = extend(&direct, &payer, &name, from, to).await.unwrap();
                assert!(matches!(extended, Extended::Extended { .. }), "{extended:?}");
            }
            before + 70
        };
        let (sent, ran) = (wire.bytes().0, redis.calls("evalsha"));
        wire.release_requests();
        let arrived = async || (wire.bytes().0 > sent && redis.calls("evalsha") > ran).then_some(());
        eventually("the late request", RECONNECT, arrived).await;
        assert_eq!(payer.charged().await, after, "settled: {is_settled}");
    }
}

/// A full store changes nothing. Neither does a script that breaks off, since the index of deadlines has the wrong
/// type.
#[tokio::test]
async fn an_extension_that_cannot_run_changes_nothing() {
    let redis = Redis::start();
    let store = redis.store();
    let payer = Payer::new(&Seed::new(&store).await).await;
    let name = payer.approve(&store, 100).await;
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = extend(&store, &payer, &name, 100, 150).await.unwrap_err();
    assert_eq!((code(&error), error.may_have_run()), ("OOM", false));
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let due = payer.agent.account.keys.bucket().due();
    let _: String = redis.command(&["RENAME", &due, "aside"]);
    let _: String = redis.command(&["SET", &due, "no index"]);
    for _ in 0..2 {
        let error = extend(&store, &payer, &name, 100, 150).await.unwrap_err();
        assert!(error.broken_script().is_some(), "{error:?}");
    }
    assert_eq!(payer.charged().await, 100);
    let _: String = redis.command(&["RENAME", "aside", &due]);
    let settle = settle_either(name, 100, 150, 30);
    assert_eq!(
        settle.execute(&settle.name.keys(), None, &store).await.unwrap(),
        Settled::Done
    );
    assert_eq!(payer.charged().await, 30);
}
