//! Callers that read one byte a second, all at once, from a provider that never stops sending: the waiting bytes are
//! bounded, and calls of others are answered meanwhile.

mod callers;
mod endless;
mod queues;

use crate::fixture::{Actor, Fixture, HELD, LONG, body, open_cap, usage};
use callers::SlowCallers;
use connections::open_files;
use endless::Endless;
use harness::{Answer, EdgeOptions, EventStream, Script, eventually};
use queues::Queues;
use serde_json::json;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Accounts that the callers belong to; each calls from an address of its own.
const ACCOUNTS: u8 = 4;
/// Maximum calls on their way to the provider while the crowd gathers; more prove nothing here.
const AT_ONCE: usize = 50;
/// Open files for each caller: its own, and two for the provider, as one of several upstreams gets three quarters.
const FILES_EACH: usize = 3;
/// Open files for everything else.
const FILES_BESIDE: usize = 512;
/// Whole calls, and as many streams, that another account makes while the crowd is connected.
const QUICK_CALLS: u64 = 20;
/// Cost of each quick call: 9 tokens at 2,000 nano-USD, and 12 at 8,000.
const QUICK_COST: u64 = 9 * 2000 + 12 * 8000;

/// Pause of a caller who reads its stream slowly.
const A_LITTLE: Duration = Duration::from_millis(20);
/// Streams of one connection of HTTP/2: fewer than the edge allows at a time (docs/reference/proxy.md).
const HTTP2_STREAMS: usize = 80;

/// Greatest part of a stream that waits in the edge: one read of the provider, and an event whose kind is not yet
/// known.
const WAITS_MAX: u64 = READ + EVENT;
const READ: u64 = 64 << 10;
const EVENT: u64 = 16 << 10;
/// Bound on the edge's memory for a stream whose caller does not read: a call that waits for its provider, the
/// waiting part, two buffers for reading from the provider, and one for writing (docs/guides/sizing.md).
const MEMORY_MAX: u64 = WAITING_CALL + WAITS_MAX + 2 * READ + WRITE_BUFFER;
const WAITING_CALL: u64 = 45 << 10;
const WRITE_BUFFER: u64 = 16 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn callers_who_read_slowly_are_bounded() {
    slow_callers(200).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn two_thousand_callers_who_read_slowly_are_bounded() {
    slow_callers(2000).await;
}

/// A stream does not outlast its deadline because its caller reads slowly, or not at all. The provider has always sent
/// more than was read.
#[tokio::test(flavor = "multi_thread")]
async fn slow_callers_do_not_outlast_the_deadline_of_the_whole() {
    let crowd = Crowd::with(|options| options.env("TOLLGATE_PROXY__STREAM_TOTAL_MS", "3000")).await;
    let [silent, steady] = [&crowd.accounts[0], &crowd.accounts[1]];
    let mut unread = crowd.fixture.open(silent, json!({})).await;
    let mut read = crowd.fixture.open(steady, json!({})).await;
    while read.more().await {
        tokio::time::sleep(A_LITTLE).await;
    }
    assert!(
        read.body.contains("upstream_timeout"),
        "{} bytes",
        read.body.len()
    );
    for actor in [silent, steady] {
        assert!(actor.settled().await >= HELD);
    }
    let ended = r#"tollgate_proxy_streams_total{end="total_timeout"}"#;
    assert_eq!(crowd.fixture.metric(ended).await, 2);
    assert!(unread.rest().await.contains("upstream_timeout"));
    crowd.fixture.ledger_check().await.is_in_order();
}

/// A crowd of slow callers, the provider that they read from, and another account with quick calls.
struct Crowd {
    fixture: Fixture,
    endless: Endless,
    accounts: Vec<Actor>,
    callers: SlowCallers,
    quick: Actor,
    quick_calls: u64,
    /// Resident memory of the edge before the callers came, in bytes.
    resident_before: u64,
}

async fn slow_callers(count: usize) {
    let files = open_files::raise();
    let needed = FILES_EACH * count + FILES_BESIDE;
    assert!(
        files >= needed,
        "{needed} open files, of which the system allows {files}"
    );
    let mut crowd = Crowd::new().await;
    crowd.gather(count).await;
    crowd.others_are_served(count as u64).await;
    crowd.endless.finish();
    let callers = std::mem::replace(&mut crowd.callers, SlowCallers::new());
    assert_eq!(callers.end().await, count / 2, "whole streams");
    crowd.charges_are_exact(count).await;
}

/// Callers of HTTP/2 on one connection that take no more than its smallest windows allow, with the same bounds.
#[tokio::test(flavor = "multi_thread")]
async fn http2_callers_who_do_not_read_are_bounded() {
    const WINDOW: u32 = 65_535;
    let mut crowd = Crowd::new().await;
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(WINDOW)
        .build()
        .expect("a client");
    let mut answers = Vec::new();
    for number in 0..HTTP2_STREAMS {
        let call = client
            .post(format!("{}/v1/chat/completions", crowd.fixture.edge.url()))
            .bearer_auth(&crowd.accounts[number % crowd.accounts.len()].key)
            .json(&body(json!({})));
        let answer = call.send().await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), answer.version()),
            (200, reqwest::Version::HTTP_2)
        );
        answers.push(answer);
    }
    crowd.others_are_served(HTTP2_STREAMS as u64).await;
    crowd.endless.finish();
    // Half of the callers reset their streams, the others read to the end.
    let stay = answers.split_off(HTTP2_STREAMS / 2);
    drop(answers);
    let texts = stay.into_iter().map(reqwest::Response::text);
    for text in futures::future::join_all(texts).await {
        assert!(text.expect("a whole stream").ends_with("data: [DONE]\n\n"));
    }
    crowd.charges_are_exact(HTTP2_STREAMS).await;
}

impl Crowd {
    async fn new() -> Self {
        Self::with(|options| options).await
    }

    async fn with(change: impl FnOnce(EdgeOptions) -> EdgeOptions) -> Self {
        let endless = Endless::start();
        let url = endless.base_url();
        let fixture = Fixture::with(|options| {
            change(options)
                // Long, since callers that do not read would be disconnected after half a minute.
                .env("TOLLGATE_PROXY__CLIENT_TIMEOUT_MS", "3600000")
                .env("TOLLGATE_PROXY__STREAM_DRAIN_MS", "600000")
                .env("TOLLGATE_UPSTREAMS__ENDLESS__BASE_URL", url)
                .env("TOLLGATE_UPSTREAMS__ENDLESS__MODELS", "nano")
                .env("TOLLGATE_UPSTREAMS__ENDLESS__PRICE_PREFIX", "")
        })
        .await;
        fixture
            .upstream
            .set(|request| match request.json()["stream"] == true {
                true => Answer::stream(Script::chat(&["Hell", "o"], &usage(9, 12))),
                false => Answer::chat(9, 12),
            });
        let mut accounts = Vec::new();
        for _ in 0..ACCOUNTS {
            let actor = fixture.actor("enterprise", open_cap()).await;
            actor
                .agent
                .provider_key_for("endless", "sk-test-endless-key")
                .await;
            accounts.push(actor);
        }
        let quick = fixture.actor("enterprise", open_cap()).await;
        let mut crowd = Self {
            fixture,
            endless,
            accounts,
            callers: SlowCallers::new(),
            quick,
            quick_calls: 0,
            resident_before: 0,
        };
        crowd.quick_call().await;
        crowd.resident_before = crowd.resident();
        crowd
    }

    /// Starts this many streams.
    async fn gather(&mut self, count: usize) {
        let edge = self.fixture.edge.addr();
        for number in 0..count {
            let account = number % self.accounts.len();
            let from = Ipv4Addr::new(127, 0, 1, 1 + u8::try_from(account).expect("few"));
            self.callers.call(edge, from, &self.accounts[account].key).await;
            eventually("streams that have begun", LONG, async || {
                (self.endless.begun() + AT_ONCE > number).then_some(())
            })
            .await;
        }
        eventually("the last stream", LONG, async || {
            (self.endless.begun() == count).then_some(())
        })
        .await;
    }

    /// Another account's calls are answered while every stream of the crowd is open and no more is read for it.
    async fn others_are_served(&mut self, count: u64) {
        self.stands(count).await;
        for _ in 0..QUICK_CALLS {
            self.quick_call().await;
        }
        self.fixture.ledger_check().await.finds_nothing_wrong();
        self.stands(count).await;
    }

    /// Waits until the provider has sent nothing more between two quick calls. Asserts that the waiting bytes are
    /// bounded, and that no caller has left.
    async fn stands(&mut self, count: u64) {
        eventually("callers that read", LONG, async || {
            self.callers.all_read().then_some(())
        })
        .await;
        eventually("a provider that is not read any more", LONG, async || {
            self.memory_is_bounded(count);
            let sent = self.endless.sent();
            self.quick_call().await;
            (self.endless.sent() == sent).then_some(())
        })
        .await;
        self.memory_is_bounded(count);
        let (provider, edge) = (self.endless.addr(), self.fixture.edge.addr());
        let (from_provider, to_callers) = (Queues::with(provider), Queues::with(edge));
        let read = self.endless.sent().saturating_sub(from_provider.all());
        let waits = read.saturating_sub(to_callers.all() + self.callers.have_read());
        assert!(waits <= count * WAITS_MAX, "{waits} bytes for {count} callers");
        // The stream of the last quick call may just end; none of the crowd's may.
        eventually("all streams open", LONG, async || {
            let open = self.fixture.metric("tollgate_proxy_streams_open").await;
            (open == count).then_some(())
        })
        .await;
    }

    fn memory_is_bounded(&self, count: u64) {
        let grown = self.resident().saturating_sub(self.resident_before);
        assert!(grown <= count * MEMORY_MAX, "{grown} bytes for {count} callers");
    }

    /// Makes a whole call and a stream of the other account.
    async fn quick_call(&mut self) {
        let (edge, plain) = (&self.fixture.edge, json!({ "model": "plain", "max_tokens": 20 }));
        let mut whole = body(plain.clone());
        whole["stream"] = json!(false);
        let reply = edge.caller(&self.quick.key).chat(whole).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let path = "/v1/chat/completions";
        let mut stream = EventStream::open(edge.addr(), path, &self.quick.key, "", body(plain)).await;
        assert_eq!(stream.status(), 200, "{}", stream.head);
        assert!(stream.rest().await.ends_with("data: [DONE]\n\n"));
        self.quick_calls += 2;
        let charged = self.quick.agent.charged(&self.fixture.redis);
        assert_eq!(charged, [self.quick_calls * QUICK_COST; 3]);
    }

    /// Resident memory of the edge, in bytes.
    fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.fixture.edge.pid());
        let status = std::fs::read_to_string(path).expect("the process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.expect("a size").trim().trim_end_matches(" kB");
        kib.parse::<u64>().expect("a number") << 10
    }

    /// Asserts that each stream is charged the real cost, whether its caller stayed or left.
    async fn charges_are_exact(self, count: usize) {
        let each = (count / self.accounts.len()) as u64 * Endless::OUTPUT;
        for account in &self.accounts {
            assert_eq!(account.agent.settled_within(LONG).await, each);
        }
        self.fixture.ledger_check().await.is_in_order();
    }
}
