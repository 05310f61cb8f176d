//! Many streams at once: exact counts, exact sums, also when callers leave, providers break off and an edge is killed
//! in the middle of them.

mod calls;
mod growing;
mod sandboxed;

use crate::fixture::{
    Actor, Fixture, HELD, LONG, body, chunk, daily, open_cap, open_gate, options, usage_frame,
};
use calls::{BEGIN, Call, Caller, charge};
use futures::{StreamExt as _, stream};
use harness::{
    Admin, AdminOptions, Answer, Edge, EdgeOptions, EventStream, Recorded, Script, SeededRandom, eventually,
    torture_seed,
};
use serde_json::json;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use store::call::reap::sweep;
use store::call::unsettled_holds;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const STREAMS: usize = 500;
/// Gates that the calls of a crowd wait at.
const GATES: usize = 2;
/// Streams opened at the same time, where the test needs no larger number.
const AT_ONCE: usize = 32;
const PATH: &str = "/v1/chat/completions";

/// Deadlines of the edge that no busy machine exceeds.
fn patient(options: EdgeOptions) -> EdgeOptions {
    options
        .env("TOLLGATE_STORE__TIMEOUT_MS", "120000")
        .env("TOLLGATE_PROXY__STREAM_DRAIN_MS", "600000")
}

/// With money for some of 500 parallel calls, exactly that many start, over two edges. Then callers leave and providers
/// break off at random, and one of the edges is killed. Each call is charged by the rule, from what the provider
/// recorded as sent; calls that the killed edge did not settle stay at their estimate.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_as_many_start_as_there_is_money_for_and_each_is_charged_by_the_rule() {
    // More than all calls of one edge, so that both have some.
    const ROOM: usize = STREAMS / 2 + 33;
    let seed = torture_seed();
    let fixture = Fixture::with(patient).await;
    let doomed = Edge::start(patient(options(&fixture.redis, &fixture.upstream)));
    let actor = fixture.actor("enterprise", daily(ROOM as u64 * HELD)).await;
    let crowd = Crowd::start(&fixture, roll(seed, STREAMS));
    let started = crowd.call(&actor, [fixture.edge.addr(), doomed.addr()]).await;
    assert_eq!(started.len(), ROOM);
    assert_eq!(actor.agent.counters().await.day_nanos, ROOM as u64 * HELD);
    fixture.ledger_check().await.finds_nothing_wrong();

    let kept = crowd.play((&fixture, &actor), &doomed, started).await;
    assert!(!kept.is_empty(), "seed {seed}: the edge was killed in the middle");
    assert!(kept.keys().all(|number| number % 2 == 1), "seed {seed}: {kept:?}");
    let sent = crowd.sent(&fixture);
    let costs = sent.iter().map(|(number, sent)| {
        let cost = kept.get(number).copied();
        (*number, cost.unwrap_or_else(|| charge(sent, HELD)))
    });
    let expected: HashMap<usize, u64> = costs.collect();
    assert_eq!(expected.len(), ROOM, "seed {seed}");
    crowd.is_charged((&fixture, &actor), &expected, seed).await;
}

/// Random calls, and the gates that they wait at.
struct Crowd {
    calls: Arc<Vec<Call>>,
    gates: [Arc<Notify>; GATES],
}

/// The number of the call that a request at the provider belongs to.
fn number_of(request: &Recorded) -> usize {
    let number = request.header("x-stainless-call").expect("its number");
    number.parse().expect("a number")
}

/// The run of a call; no other call has it.
fn run(number: usize) -> String {
    format!("run-{number}")
}

/// Random calls that wait at one of two gates.
fn roll(seed: u64, count: usize) -> Vec<Call> {
    let mut dice = SeededRandom::new(seed);
    (0..count).map(|_| Call::roll(&mut dice, GATES)).collect()
}

impl Crowd {
    /// Makes the fixture's provider answer these calls from now on.
    fn start(fixture: &Fixture, calls: Vec<Call>) -> Self {
        let (calls, gates) = (Arc::new(calls), <[Arc<Notify>; GATES]>::default());
        let (of_provider, at_provider) = (Arc::clone(&calls), gates.clone());
        fixture
            .upstream
            .set(move |request| Answer::stream(of_provider[number_of(request)].script(&at_provider)));
        Self { calls, gates }
    }

    /// Makes all calls in parallel, those of even numbers at the first edge. Returns those that have started; the
    /// others were refused.
    async fn call(&self, actor: &Actor, edges: [SocketAddr; 2]) -> Vec<(usize, EventStream)> {
        let calls = self.calls.iter().enumerate().map(|(number, call)| {
            let (key, edge) = (actor.key.clone(), edges[number % 2]);
            let sent = match call.limit {
                Some(limit) => body(json!({ "max_tokens": limit })),
                None => body(json!({})),
            };
            tokio::spawn(async move {
                let head = format!(
                    "X-Service-Run-Id: {}\r\nX-Stainless-Call: {number}\r\n",
                    run(number)
                );
                EventStream::open(edge, PATH, &key, &head, sent).await
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

    /// Plays the callers, opens the gates one behind the other, and kills an edge in between. Returns the estimates of
    /// the calls that it left behind.
    async fn play(
        &self,
        (fixture, actor): (&Fixture, &Actor),
        doomed: &Edge,
        started: Vec<(usize, EventStream)>,
    ) -> HashMap<usize, u64> {
        let all = started.len();
        let at_first = started.iter().filter(|(number, _)| self.calls[*number].gate == 0);
        let first = at_first.count() as u64;
        let callers = started
            .into_iter()
            .map(|(number, stream)| self.follow(number, stream));
        let callers: Vec<_> = callers.collect();
        let mut opening = vec![open_gate(&self.gates[0])];
        eventually("some settlements", LONG, async || {
            (actor.agent.open_holds().await <= all as u64 - first / 3).then_some(())
        })
        .await;
        doomed.kill9();
        opening.push(open_gate(&self.gates[1]));
        for caller in callers {
            caller.await.expect("a caller");
        }
        eventually("an edge at rest", LONG, async || {
            let open = fixture.metric("tollgate_proxy_streams_open").await;
            let pending = fixture.metric("tollgate_proxy_pending").await;
            (open == 0 && pending == 0).then_some(())
        })
        .await;
        eventually("the end of all answers", LONG, async || {
            (fixture.upstream.played().len() == all).then_some(())
        })
        .await;
        opening.iter().for_each(JoinHandle::abort);
        reap(fixture, actor).await
    }

    /// Returns the bytes that the provider sent of each call that started.
    fn sent(&self, fixture: &Fixture) -> HashMap<usize, Vec<u8>> {
        let played: HashMap<usize, usize> = fixture
            .upstream
            .played()
            .into_iter()
            .map(|played| (played.number, played.body_bytes))
            .collect();
        let requests = fixture.upstream.requests().into_iter();
        let sent = requests.map(|request| {
            let number = number_of(&request);
            let mut sent = self.calls[number].script(&self.gates).bytes();
            sent.truncate(played[&request.number]);
            (number, sent)
        });
        sent.collect()
    }

    /// Asserts these charges of runs, agent and account. Calls missing from `expected` cost nothing.
    async fn is_charged(
        &self,
        (fixture, actor): (&Fixture, &Actor),
        expected: &HashMap<usize, u64>,
        seed: u64,
    ) {
        for (number, call) in self.calls.iter().enumerate() {
            let spent = actor.agent.run_spent(&run(number)).await.unwrap_or(0);
            let expected = expected.get(&number).copied().unwrap_or(0);
            assert_eq!(spent, expected, "seed {seed}: {number}, {call:?}");
        }
        let sum: u64 = expected.values().sum();
        assert_eq!(actor.agent.charged(&fixture.redis), [sum; 3], "seed {seed}");
        fixture.ledger_check().await.is_in_order();
    }
}

/// Lets the deadlines of all open holds pass and reaps them. Returns the estimates of kept holds by call.
async fn reap(fixture: &Fixture, actor: &Actor) -> HashMap<usize, u64> {
    actor.agent.pass_deadlines().await;
    let bucket = actor.agent.account.keys.bucket();
    eventually("no open hold", LONG, async || {
        let swept = sweep(fixture.seed.store(), bucket, clock::now_ms()).await;
        swept.expect("a sweep");
        (actor.agent.open_holds().await == 0).then_some(())
    })
    .await;
    let kept = unsettled_holds::list(fixture.seed.store(), Some(&actor.agent.account.id), 2 * STREAMS).await;
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
    let fixture = Fixture::with(patient).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    fixture.provider_streams(Script::new().send(chunk(BEGIN)).hang());
    let opened = stream::iter(0..STREAMS).map(|_| async {
        let mut stream = fixture.open(&actor, json!({})).await;
        stream.until(BEGIN).await;
        stream
    });
    let streams: Vec<_> = opened.buffer_unordered(AT_ONCE).collect().await;
    fixture.ledger_check().await.finds_nothing_wrong();
    fixture.edge.kill9();
    for mut stream in streams {
        assert!(!stream.ends_whole().await);
    }
    let all_is_charged = async || {
        assert_eq!(actor.agent.charged(&fixture.redis), [BEGUN * HELD; 3]);
        fixture.ledger_check().await.is_in_order();
    };
    all_is_charged().await;
    let next = Edge::start(patient(options(&fixture.redis, &fixture.upstream)));
    let _admin = Admin::start(AdminOptions::new(crate::fixture::ADMIN, fixture.redis.url()));
    let (open, kept) = (actor.agent.open_holds().await, actor.agent.kept_holds().await);
    assert_eq!((open, kept), (BEGUN, 0), "no hold is due yet");
    actor.agent.pass_deadlines().await;
    eventually("the reaper", LONG, async || {
        let (open, kept) = (actor.agent.open_holds().await, actor.agent.kept_holds().await);
        ((open, kept) == (0, BEGUN)).then_some(())
    })
    .await;
    all_is_charged().await;
    let bucket = actor.agent.account.keys.bucket();
    let left: Vec<String> = fixture.redis.command(&["KEYS", &bucket.hold("*")]);
    assert_eq!(left, Vec::<String>::new(), "records of open holds");
    let listed = fixture.admin(&["holds", "list", "--json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(listed["total"], BEGUN);
    assert_eq!(listed["holds"][0]["state"], "kept");
    // The next edge works as usual.
    fixture.provider_streams(Script::new().send(usage_frame(12)).event("[DONE]"));
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
    let fixture =
        Fixture::with(|options| patient(options).env("TOLLGATE_PROXY__STREAM_EXTEND", "true")).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let part = chunk(&BEGIN.repeat(900));
    fixture.provider_streams(Script::new().send(BEGIN).hang());
    let open = fixture.open(&actor, json!({})).await;
    fixture.provider_streams(
        Script::new()
            .send(part.clone())
            .send(part)
            .send(usage_frame(OUTPUT))
            .event("[DONE]"),
    );
    let (stop, ended) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        // A key for each caller, so that none reaches its rate limit.
        let (key, edge) = (actor.agent.virtual_key().await, fixture.edge.addr());
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
        fixture.ledger_check().await.finds_nothing_wrong();
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
        fixture
            .metric(r#"tollgate_proxy_stream_extensions_total{result="raised"}"#)
            .await
            > 0
    );
    eventually("all settlements but one", LONG, async || {
        (actor.agent.open_holds().await == 1).then_some(())
    })
    .await;
    let charged = ended.load(Ordering::SeqCst) * OUTPUT + HELD;
    assert_eq!(actor.agent.charged(&fixture.redis), [charged; 3]);
    fixture.ledger_check().await.is_in_order();
    drop(open);
}
