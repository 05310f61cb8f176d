//! SIGTERM behind a balancer: it sees that an edge is about to end before that edge stops listening.

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, SOON, body};
use crate::load::{Choose, Load};
use harness::{Answer, Edge, RawClient, eventually, free_port, until};
use parking_lot::RwLock;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two health checks of the balancer.
const LOOK: Duration = Duration::from_millis(50);
/// `proxy.drain_delay_ms`: long enough for many checks on a slow machine.
const DELAY_MS: u64 = 3000;

/// Late requests: their number, the delay of the first, the time between two, and the provider's time for each.
const LATE: usize = 24;
const LATE_AFTER: Duration = Duration::from_millis(1250);
const LATE_EVERY: Duration = Duration::from_millis(50);
const LATE_ANSWER: Duration = Duration::from_millis(700);
/// Far shorter than a drain, and than a hand-over that fails.
const AT_ONCE: Duration = Duration::from_secs(5);

/// One more edge of the fixture, with addresses of its own.
fn another(fixture: &Fixture) -> Edge {
    let at = |port: u16| format!("127.0.0.1:{port}");
    let options = fixture.options().env("TOLLGATE_PROXY__LISTEN", at(free_port()));
    Edge::start(options.env("TOLLGATE_PROXY__OPS_LISTEN", at(free_port())))
}

/// A connection on which a whole call was sent.
async fn caller_after_call(fixture: &Fixture, edge: &Edge) -> RawClient {
    let mut caller = RawClient::connect(edge.addr()).await;
    let body = body(false).to_string();
    assert!(caller.send_chat(&fixture.key, "", body.as_bytes()).await);
    caller
}

/// A balancer that takes turns over the edges that were ready at its last health check.
struct Balancer {
    ready: Arc<RwLock<Vec<SocketAddr>>>,
    poller: tokio::task::JoinHandle<()>,
}

impl Balancer {
    fn over(edges: &[&Edge]) -> Self {
        let edges: Vec<(SocketAddr, SocketAddr)> =
            edges.iter().map(|edge| (edge.addr(), edge.ops_addr())).collect();
        let all = edges.iter().map(|(addr, _)| *addr).collect();
        let ready = Arc::new(RwLock::new(all));
        let listed = Arc::clone(&ready);
        let client = harness::http_client();
        let poller = tokio::spawn(async move {
            loop {
                let mut found = Vec::new();
                for (addr, ops) in &edges {
                    let answer = client.get(format!("http://{ops}/readyz")).send().await;
                    if answer.is_ok_and(|answer| answer.status() == 200) {
                        found.push(*addr);
                    }
                }
                *listed.write() = found;
                tokio::time::sleep(LOOK).await;
            }
        });
        Self { ready, poller }
    }

    fn choose(&self) -> Choose {
        let (ready, turn) = (Arc::clone(&self.ready), std::sync::atomic::AtomicUsize::new(0));
        Arc::new(move || {
            let ready = ready.read();
            let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            ready[turn % ready.len()]
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_one_of_two_edges_after_the_other_is_replaced() {
    let fixture = Fixture::new().await.env("PROXY__DRAIN_DELAY_MS", DELAY_MS);
    let (first, second, third) = (another(&fixture), another(&fixture), another(&fixture));
    let balancer = Balancer::over(&[&first, &second, &third]);
    let load = Load::choosing(&fixture.key, balancer.choose());
    load.answers(60).await;
    for edge in [first, second] {
        edge.term();
        eventually(
            "readiness that fails while calls are answered",
            SOON,
            async || {
                let readiness = edge.ops("/readyz")?;
                (readiness == (503, "this process is about to end\n".to_owned())).then_some(())
            },
        )
        .await;
        let mut late = caller_after_call(&fixture, &edge).await;
        let reply = late.reply(SOON).await.expect("an answer");
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
        fixture.ends_well(edge).await;
        load.answers(60).await;
    }
    let tally = load.end().await;
    balancer.poller.abort();
    let calls = tally.answered + 2;
    assert_eq!(fixture.upstream.arrived() as u64, calls);
    fixture.settled_at(calls * ACTUAL).await;
    assert!(third.is_running());
}

#[tokio::test]
async fn a_second_sigterm_does_not_wait_for_balancers() {
    let fixture = Fixture::new().await.env("PROXY__DRAIN_DELAY_MS", 300_000);
    let edge = fixture.edge();
    edge.term();
    eventually("readiness that fails", SOON, async || {
        (edge.ops("/readyz")?.0 == 503).then_some(())
    })
    .await;
    edge.term();
    fixture.ends_well(edge).await;
}

/// A call that takes longer than the drain: its caller gets no answer, and its estimate stays charged.
#[tokio::test]
async fn a_call_that_outlives_the_drain_keeps_its_estimate() {
    let fixture = Fixture::new().await.env("PROXY__DRAIN_MS", 1500);
    let edge = fixture.edge();
    fixture.upstream.set(|_| Answer::hang());
    let mut call = caller_after_call(&fixture, &edge).await;
    fixture.upstream.wait_for(1, SOON).await;
    edge.term();
    assert_eq!(call.reply(SOON).await, None, "cut off");
    let ended = tokio::task::spawn_blocking(move || (edge.wait_exit(SOON), edge.logs()));
    let (code, logs) = ended.await.expect("an end");
    assert_eq!(code, Some(0), "{logs}");
    assert!(logs.contains("their estimates stay charged"), "{logs}");
    assert_eq!((fixture.charged(), fixture.open_holds()), ([ESTIMATE; 3], 1));
    let left: Vec<_> = std::fs::read_dir(fixture.data()).expect("a directory").collect();
    assert_eq!(left.len(), 1, "its settlement might still have come: {left:?}");
}

/// While the last spans delay the end of an edge, idle connections may still send a request. Every request that the
/// provider received is answered; a request without an answer never reached it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_the_last_moment_is_answered_or_not_forwarded() {
    // The collector accepts connections, but neither reads nor answers.
    let collector = TcpListener::bind("127.0.0.1:0").expect("a collector");
    let collector = collector
        .local_addr()
        .map(|addr| (addr, collector))
        .expect("its address");
    let fixture = Fixture::new()
        .await
        .env("TELEMETRY__OTLP_ENDPOINT", format!("http://{}", collector.0))
        .env("TELEMETRY__SAMPLE_RATIO", "1.0");
    let edge = fixture.edge();
    let body = body(false).to_string();
    let mut idle = Vec::new();
    for _ in 0..LATE {
        let mut client = RawClient::connect(edge.addr()).await;
        assert!(client.send_chat(&fixture.key, "", body.as_bytes()).await);
        assert_eq!(client.reply(SOON).await.expect("an answer").status, 200);
        idle.push(client);
    }
    fixture.upstream.set(|_| Answer::chat(9, 12).delay(LATE_ANSWER));
    edge.term();
    let calls = idle.into_iter().enumerate().map(|(number, mut client)| {
        let (key, body) = (fixture.key.clone(), body.clone());
        tokio::spawn(async move {
            tokio::time::sleep(LATE_AFTER + LATE_EVERY * u32::try_from(number).expect("few")).await;
            client.send_chat(&key, "", body.as_bytes()).await && client.reply(SOON).await.is_some()
        })
    });
    let mut answered = 0;
    for call in calls.collect::<Vec<_>>() {
        answered += usize::from(call.await.expect("a call"));
    }
    fixture.ends_well(edge).await;
    assert_eq!(
        fixture.upstream.arrived(),
        LATE + answered,
        "{answered} of {LATE}"
    );
}

/// SIGINT ends the edge at once, without a drain.
#[tokio::test]
async fn sigint_ends_a_drain() {
    let fixture = Fixture::new().await;
    let edge = fixture.edge();
    fixture.upstream.set(|_| Answer::hang());
    let mut call = RawClient::connect(edge.addr()).await;
    assert!(
        call.send_chat(&fixture.key, "", body(false).to_string().as_bytes())
            .await
    );
    fixture.upstream.wait_for(1, SOON).await;
    edge.term();
    until("no listener", async || {
        RawClient::try_connect(edge.addr()).await.is_none()
    })
    .await;
    let reported = Instant::now();
    edge.signal("INT");
    fixture.ends_well(edge).await;
    assert!(reported.elapsed() < AT_ONCE, "{:?}", reported.elapsed());
    assert_eq!((fixture.charged(), fixture.open_holds()), ([ESTIMATE; 3], 1));
}

#[tokio::test]
async fn a_process_that_drains_hands_nothing_over() {
    let fixture = Fixture::new().await;
    let edge = fixture.edge();
    let gate = Arc::new(tokio::sync::Notify::new());
    let waiting = Arc::clone(&gate);
    fixture
        .upstream
        .set(move |_| Answer::chat(9, 12).wait_for(&waiting));
    let mut call = caller_after_call(&fixture, &edge).await;
    fixture.upstream.wait_for(1, SOON).await;
    edge.term();
    until("no listener", async || {
        RawClient::try_connect(edge.addr()).await.is_none()
    })
    .await;
    edge.signal("QUIT");
    // The next process finds the addresses free, also with `--upgrade`.
    let next = tokio::task::spawn_blocking({
        let options = fixture.options().arg("--upgrade");
        move || Edge::start(options)
    });
    let next = next.await.expect("a process");
    gate.notify_one();
    assert_eq!(call.reply(SOON).await.expect("an answer").status, 200);
    fixture.ends_well(edge).await;
    gate.notify_one();
    assert_eq!(next.caller(&fixture.key).chat(body(false)).await.status, 200);
    fixture.settled_at(2 * ACTUAL).await;
}
