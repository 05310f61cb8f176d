//! Steady load on connections that are kept, and the definition of a failed call.
//!
//! A call **fails** when it gets another answer than 200, when its connection is refused, or when a *new* connection
//! ends without an answer. HTTP/1.1 allows a connection that was used before to end at any time while it is idle. When
//! it ends without a byte of an answer, the call is sent once more on a new one, as clients do. The provider must have
//! received as many requests as there were answers, which proves that no repeated call was processed twice.

use crate::fixture::{Fixture, body};
use harness::{RawClient, RawReply, http_client};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Longest time for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Pause of a caller between two calls.
const PAUSE: Duration = Duration::from_millis(5);
/// Callers of HTTP/1.1.
const CALLERS: usize = 6;
/// Callers of HTTP/1.1 with slow calls.
const SLOW_CALLERS: usize = 2;

/// Chooses the address of the next connection.
pub type Choose = Arc<dyn Fn() -> SocketAddr + Send + Sync>;

/// Replies of the callers.
#[derive(Debug, Default)]
pub struct Tally {
    pub answered: u64,
    /// Calls that were sent again, since the kept connection had ended.
    pub resent: u64,
    /// Number of calls by estimate.
    pub estimates: BTreeMap<String, u64>,
    pub failed: Vec<String>,
}

/// Callers at work.
pub struct Load {
    shared: Arc<Shared>,
    callers: Vec<JoinHandle<Tally>>,
}

/// State that callers share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
    /// The first call that failed.
    failed: OnceLock<String>,
}

#[derive(Clone)]
struct Caller {
    shared: Arc<Shared>,
    key: String,
    choose: Choose,
    is_slow: bool,
}

impl Load {
    /// Starts callers of the fixture's address: HTTP/1.1, quick and slow, and HTTP/2 without TLS.
    pub fn on(fixture: &Fixture) -> Self {
        let addr = fixture.addr();
        let mut load = Self::choosing(&fixture.key, Arc::new(move || addr));
        let client = reqwest_h2c();
        for is_slow in [false, true] {
            load.h2(client.clone(), format!("http://{addr}"), &fixture.key, is_slow);
        }
        load
    }

    /// Starts callers of HTTP/1.1; `choose` returns the address of each of their connections.
    pub fn choosing(key: &str, choose: Choose) -> Self {
        let caller = Caller {
            shared: Arc::default(),
            key: key.to_owned(),
            choose,
            is_slow: false,
        };
        let slow = Caller {
            is_slow: true,
            ..caller.clone()
        };
        let quick = std::iter::repeat_n(caller.clone(), CALLERS);
        let callers = quick.chain(std::iter::repeat_n(slow, SLOW_CALLERS));
        Self {
            callers: callers.map(|caller| tokio::spawn(caller.run())).collect(),
            shared: caller.shared,
        }
    }

    /// Returns a load without callers.
    pub fn empty() -> Self {
        Self {
            shared: Arc::default(),
            callers: Vec::new(),
        }
    }

    /// Adds a caller of HTTP/2, whose client multiplexes and never repeats a call that was sent.
    pub fn h2(&mut self, client: reqwest::Client, base: String, key: &str, is_slow: bool) {
        let shared = Arc::clone(&self.shared);
        let key = key.to_owned();
        self.callers.push(tokio::spawn(async move {
            let mut tally = Tally::default();
            while !shared.stop.load(Ordering::Acquire) {
                let url = format!("{base}/v1/chat/completions");
                let sent = client.post(url).bearer_auth(&key).json(&body(is_slow));
                match sent.send().await {
                    Ok(reply) if reply.status() == 200 && reply.version() == http::Version::HTTP_2 => {
                        let estimate = reply.headers()["x-service-estimated-usd"].to_str();
                        let estimate = estimate.expect("text").to_owned();
                        match reply.bytes().await {
                            Ok(_) => tally.answer(estimate, &shared),
                            Err(error) => tally.fail(format!("HTTP/2, cut off: {error:?}"), &shared),
                        }
                    }
                    other => tally.fail(format!("HTTP/2: {other:?}"), &shared),
                }
                tokio::time::sleep(PAUSE).await;
            }
            tally
        }));
    }

    /// Waits until this many more calls were answered.
    pub async fn answers(&self, more: u64) {
        let answered = || self.shared.answered.load(Ordering::Acquire);
        let wanted = answered() + more;
        harness::until("answers", async || {
            assert_eq!(self.shared.failed.get(), None);
            answered() >= wanted
        })
        .await;
    }

    /// Lets all calls end. Returns what the callers observed. No call may have failed.
    pub async fn end(self) -> Tally {
        self.shared.stop.store(true, Ordering::Release);
        let mut sum = Tally::default();
        for caller in self.callers {
            let tally = caller.await.expect("a caller");
            sum.answered += tally.answered;
            sum.resent += tally.resent;
            sum.failed.extend(tally.failed);
            for (estimate, count) in tally.estimates {
                *sum.estimates.entry(estimate).or_default() += count;
            }
        }
        assert!(sum.failed.is_empty(), "{sum:#?}");
        assert!(sum.answered > 0, "{sum:#?}");
        sum
    }
}

impl Tally {
    fn answer(&mut self, estimate: String, shared: &Shared) {
        self.answered += 1;
        shared.answered.fetch_add(1, Ordering::AcqRel);
        *self.estimates.entry(estimate).or_default() += 1;
    }

    fn fail(&mut self, what: String, shared: &Shared) {
        shared.failed.get_or_init(|| what.clone());
        self.failed.push(what);
    }
}

impl Caller {
    async fn run(self) -> Tally {
        let mut tally = Tally::default();
        let mut kept: Option<RawClient> = None;
        let body = body(self.is_slow).to_string();
        while !self.shared.stop.load(Ordering::Acquire) {
            if let Some(mut connection) = kept.take() {
                if let Some(reply) = self.send(&mut connection, &body).await {
                    kept = self.take(reply, connection, &mut tally);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                tally.resent += 1;
            }
            let addr = (self.choose)();
            let Some(mut connection) = RawClient::try_connect(addr).await else {
                tally.fail(format!("{addr} refused a connection"), &self.shared);
                continue;
            };
            match self.send(&mut connection, &body).await {
                Some(reply) => kept = self.take(reply, connection, &mut tally),
                None => tally.fail(format!("a new connection to {addr} ended"), &self.shared),
            }
            tokio::time::sleep(PAUSE).await;
        }
        tally
    }

    async fn send(&self, connection: &mut RawClient, body: &str) -> Option<RawReply> {
        match connection.send_chat(&self.key, "", body.as_bytes()).await {
            true => connection.reply(ANSWER_WITHIN).await,
            false => None,
        }
    }

    /// Counts an answer. Returns the connection if it can be used again.
    fn take(&self, reply: RawReply, connection: RawClient, tally: &mut Tally) -> Option<RawClient> {
        match (reply.status, reply.header("x-service-estimated-usd")) {
            (200, Some(estimate)) => tally.answer(estimate.to_owned(), &self.shared),
            _ => tally.fail(format!("{} {}", reply.head, reply.text()), &self.shared),
        }
        let closes = reply
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        (!closes).then_some(connection)
    }
}

/// A client that speaks HTTP/2 from the first byte.
fn reqwest_h2c() -> reqwest::Client {
    drop(http_client()); // installs the cryptography provider
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
    client
        .timeout(ANSWER_WITHIN)
        .tls_certs_only([])
        .build()
        .expect("a client")
}
