//! Many streams at once: exact counts, exact sums, also when callers leave, providers break off and an edge is killed
//! in the middle of them.

mod calls;

use crate::dice::{self, SeededRandom};
use crate::stage::{Actor, HELD, LONG, Stage, body, chunk, daily, open_cap, open_gate, options, usage_frame};
use calls::{BEGIN, Call, Caller, charge};
use futures::{StreamExt as _, stream};
use harness::{Admin, AdminOptions, Answer, Edge, EdgeOptions, EventStream, Script, eventually};
use serde_json::json;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use store::call::open_holds;
use store::call::reap::sweep;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const STREAMS: usize = 500;
/// Streams that are opened at once, where that they are many is not the point.
const AT_ONCE: usize = 32;
const PATH: &str = "/v1/chat/completions";

/// No deadline of the edge depends on how busy the machine is.
fn patient(options: EdgeOptions) -> EdgeOptions {
    options
        .env("TOLLGATE_STORE__TIMEOUT_MS", "120000")
        .env("TOLLGATE_PROXY__STREAM_DRAIN_MS", "600000")
}

/// Money for so many of 500 parallel calls: exactly so many start, over two edges. Then callers leave and providers
/// break off by chance, and one of the edges is killed. Each call is charged by the rule, from what the provider says
/// it sent; what the killed edge did not settle stays at its estimate.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_as_many_start_as_there_is_money_for_and_each_is_charged_by_the_rule() {
    // More than all calls of one edge: each of both has some.
    const ROOM: usize = STREAMS / 2 + 33;
    let seed = dice::seed();
    let stage = Stage::with(patient).await;
    let doomed = Edge::start(patient(options(&stage.redis, &stage.upstream)));
    let actor = stage.actor(daily(ROOM as u64 * HELD)).await;
    let crowd = Crowd::roll(seed, &stage);
    let started = crowd.call(&actor, [stage.edge.addr(), doomed.addr()]).await;
    assert_eq!(started.len(), ROOM);
    assert_eq!(actor.agent.counters().await.day_nanos, ROOM as u64 * HELD);
    stage.ledger_check().await.finds_nothing_wrong();

    let first = started
        .iter()
        .filter(|(number, _)| crowd.calls[*number].gate == 0);
    let first = first.count() as u64;
    let callers = started
        .into_iter()
        .map(|(number, stream)| crowd.follow(number, stream));
    let callers: Vec<_> = callers.collect();
    let mut opening = vec![open_gate(&crowd.gates[0])];
    eventually("some settlements", LONG, async || {
        (actor.agent.open_holds().await <= ROOM as u64 - first / 3).then_some(())
    })
    .await;
    doomed.kill9();
    opening.push(open_gate(&crowd.gates[1]));
    for caller in callers {
        caller.await.expect("a caller");
    }
    eventually("an edge at rest", LONG, async || {
        let open = stage.metric("tollgate_proxy_streams_open").await;
        let pending = stage.metric("tollgate_proxy_pending").await;
        (open == 0 && pending == 0).then_some(())
    })
    .await;
    eventually("the end of all answers", LONG, async || {
        (stage.upstream.played().len() == ROOM).then_some(())
    })
    .await;
    opening.iter().for_each(JoinHandle::abort);

    let kept = reap(&stage, &actor).await;
    let expected = crowd.expected(&stage, &kept);
    for number in 0..STREAMS {
        let spent = actor.agent.run_spent(&run(number)).await.unwrap_or(0);
        let expected = expected.get(&number).copied().unwrap_or(0);
        let call = crowd.calls[number];
        assert_eq!(spent, expected, "seed {seed}: {number}, {call:?}");
    }
    assert_eq!(expected.len(), ROOM, "seed {seed}");
    assert!(!kept.is_empty(), "seed {seed}: the edge was killed in the middle");
    assert!(kept.keys().all(|number| number % 2 == 1), "seed {seed}: {kept:?}");
    let sum: u64 = expected.values().sum();
    assert_eq!(actor.agent.charged(&stage.redis), [sum; 3], "seed {seed}");
    stage.ledger_check().await.is_in_order();
}

/// Calls by chance, and the gates that they wait at.
struct Crowd {
    calls: Arc<Vec<Call>>,
    gates: [Arc<Notify>; 2],
}

/// The run of a call, which has no other.
fn run(number: usize) -> String {
    format!("run-{number}")
}

impl Crowd {
    fn roll(seed: u64, stage: &Stage) -> Self {
        let mut dice = SeededRandom::new(seed);
        let gates: [Arc<Notify>; 2] = Default::default();
        let calls = (0..STREAMS).map(|_| Call::roll(&mut dice, gates.len()));
        let calls: Arc<Vec<Call>> = Arc::new(calls.collect());
        let (of_provider, at_provider) = (Arc::clone(&calls), gates.clone());
        stage.upstream.set(move |request| {
            let number: usize = request
                .header("x-stainless-call")
                .expect("its number")
                .parse()
                .expect("a number");
            Answer::stream(of_provider[number].script(&at_provider))
        });
        Self { calls, gates }
    }

    /// Makes all calls in parallel, those of even numbers at the first edge. Returns those that have started; the
    /// others were refused.
    async fn call(&self, actor: &Actor, edges: [SocketAddr; 2]) -> Vec<(usize, EventStream)> {
        let calls = (0..STREAMS).map(|number| {
            let (key, edge) = (actor.key.clone(), edges[number % 2]);
            tokio::spawn(async move {
                let head = format!(
                    "X-Service-Run-Id: {}\r\nX-Stainless-Call: {number}\r\n",
                    run(number)
                );
                EventStream::open(edge, PATH, &key, &head, body(json!({}))).await
            })
        });
        let mut started = Vec::new();
        for (number, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
            let mut stream = call.await.expect("a call");
            match stream.status() {
                200 => {
                    stream.until(BEGIN).await;
                    started.push((number, stream));
                }
                status => assert_eq!(status, 402, "{}", stream.head),
            }
        }
        started
    }

    /// Plays the caller of a stream.
    fn follow(&self, number: usize, mut stream: EventStream) -> JoinHandle<()> {
        let call = self.calls[number];
        tokio::spawn(async move {
            match call.caller {
                Caller::LeavesBefore { reset: false } => drop(stream),
                Caller::LeavesBefore { reset: true } => stream.reset(),
                Caller::LeavesWithin(ms) => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    stream.reset();
                }
                // The killed edge breaks its streams off.
                Caller::Stays => assert!(stream.ends_whole().await || number % 2 == 1, "{number}: {call:?}"),
            }
        })
    }

    /// The expected cost of each call that started.
    fn expected(&self, stage: &Stage, kept: &HashMap<usize, u64>) -> HashMap<usize, u64> {
        let played: HashMap<usize, usize> = stage
            .upstream
            .played()
            .into_iter()
            .map(|played| (played.number, played.body_bytes))
            .collect();
        let requests = stage.upstream.requests().into_iter();
        let costs = requests.map(|request| {
            let number: usize = request
                .header("x-stainless-call")
                .expect("its number")
                .parse()
                .expect("a number");
            let sent = &self.calls[number].script(&self.gates).bytes()[..played[&request.number]];
            (number, kept.get(&number).copied().unwrap_or_else(|| charge(sent)))
        });
        costs.collect()
    }
}

/// Lets the deadlines of all open holds pass and reaps them. Returns the estimates of kept holds by call.
async fn reap(stage: &Stage, actor: &Actor) -> HashMap<usize, u64> {
    actor.agent.pass_deadlines().await;
    let bucket = actor.agent.account.keys.bucket();
    eventually("no open hold", LONG, async || {
        let swept = sweep(stage.seed.store(), bucket, clock::now_ms()).await;
        swept.expect("a sweep");
        (actor.agent.open_holds().await == 0).then_some(())
    })
    .await;
    let kept = open_holds::list(stage.seed.store(), Some(&actor.agent.account.id), 2 * STREAMS).await;
    let kept = kept.expect("the holds").into_iter().map(|found| {
        let number = found.hold.name.run.strip_prefix("run-").expect("a call's");
        (number.parse().expect("a number"), found.hold.estimate.get())
    });
    kept.collect()
}

/// An edge that is killed in the middle of 500 streams: their estimates stay charged, the reaper makes them visible,
/// and nothing stays behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_edge_leaves_the_estimates_charged() {
    const BEGUN: u64 = STREAMS as u64;
    let stage = Stage::with(patient).await;
    let actor = stage.actor(open_cap()).await;
    stage.provider_streams(Script::new().send(chunk(BEGIN)).hang());
    let opened = stream::iter(0..STREAMS).map(|_| async {
        let mut stream = stage.open(&actor, json!({})).await;
        stream.until(BEGIN).await;
        stream
    });
    let streams: Vec<_> = opened.buffer_unordered(AT_ONCE).collect().await;
    stage.ledger_check().await.finds_nothing_wrong();
    stage.edge.kill9();
    for mut stream in streams {
        assert!(!stream.ends_whole().await);
    }
    let all_is_charged = async || {
        assert_eq!(actor.agent.charged(&stage.redis), [BEGUN * HELD; 3]);
        stage.ledger_check().await.is_in_order();
    };
    all_is_charged().await;
    let next = Edge::start(patient(options(&stage.redis, &stage.upstream)));
    let _admin = Admin::start(AdminOptions::new(crate::stage::ADMIN, stage.redis.url()));
    let (open, kept) = (actor.agent.open_holds().await, actor.agent.kept_holds().await);
    assert_eq!((open, kept), (BEGUN, 0), "they have their time");
    actor.agent.pass_deadlines().await;
    eventually("the reaper", LONG, async || {
        let (open, kept) = (actor.agent.open_holds().await, actor.agent.kept_holds().await);
        ((open, kept) == (0, BEGUN)).then_some(())
    })
    .await;
    all_is_charged().await;
    let bucket = actor.agent.account.keys.bucket();
    let left: Vec<String> = stage.redis.command(&["KEYS", &bucket.hold("*")]);
    assert_eq!(left, Vec::<String>::new(), "records of open holds");
    let listed = stage.admin(&["holds", "list", "--json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(listed["total"], BEGUN);
    assert_eq!(listed["holds"][0]["state"], "kept");
    // The next edge is not hindered.
    stage.provider_streams(Script::new().send(usage_frame(12)).event("[DONE]"));
    let mut stream = EventStream::open(next.addr(), PATH, &actor.key, "", body(json!({}))).await;
    assert!(stream.rest().await.ends_with("[DONE]\n\n"), "{}", stream.body);
    assert_eq!(actor.settled().await, BEGUN * HELD + 12);
}

/// `ledger check` beside streams that start, grow and end, and one that stays open: it finds nothing wrong at any time.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_can_be_checked_beside_streams() {
    const CALLERS: usize = 16;
    const CHECKS: usize = 5;
    const OUTPUT: u64 = 1500;
    let stage = Stage::with(|options| patient(options).env("TOLLGATE_PROXY__STREAM_EXTEND", "true")).await;
    let actor = stage.actor(open_cap()).await;
    let part = chunk(&BEGIN.repeat(900));
    stage.provider_streams(Script::new().send(BEGIN).hang());
    let open = stage.open(&actor, json!({})).await;
    stage.provider_streams(
        Script::new()
            .send(part.clone())
            .send(part)
            .send(usage_frame(OUTPUT))
            .event("[DONE]"),
    );
    let (stop, ended) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        // A key of its own, so that none meets its rate.
        let (key, edge) = (actor.agent.virtual_key().await, stage.edge.addr());
        let (stop, ended) = (Arc::clone(&stop), Arc::clone(&ended));
        callers.push(tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let mut stream = EventStream::open(edge, PATH, &key, "", body(json!({}))).await;
                assert!(stream.rest().await.ends_with("[DONE]\n\n"), "{}", stream.body);
                ended.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    for _ in 0..CHECKS {
        let before = ended.load(Ordering::SeqCst);
        stage.ledger_check().await.finds_nothing_wrong();
        eventually("traffic", LONG, async || {
            (ended.load(Ordering::SeqCst) > before + CALLERS as u64).then_some(())
        })
        .await;
    }
    stop.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.expect("a caller");
    }
    assert!(
        stage
            .metric(r#"tollgate_proxy_stream_extensions_total{result="raised"}"#)
            .await
            > 0
    );
    eventually("all settlements but one", LONG, async || {
        (actor.agent.open_holds().await == 1).then_some(())
    })
    .await;
    let charged = ended.load(Ordering::SeqCst) * OUTPUT + HELD;
    assert_eq!(actor.agent.charged(&stage.redis), [charged; 3]);
    stage.ledger_check().await.is_in_order();
    drop(open);
}
