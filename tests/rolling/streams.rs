//! Streams that run while their edge ends or hands over: they stay with it and are whole, or, at the end of the drain
//! time, cut off and charged the held amount.

use crate::fixture::{ACTUAL, ADMIN, ESTIMATE, Fixture, SOON, body};
use harness::{Admin, AdminOptions, Answer, Edge, EventStream, Feed, RawClient, Script, eventually, until};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Streams at the same time.
const STREAMS: usize = 20;
/// Streams, and calls without a stream, after a hand-over. Fewer than those of the old process, so that the counts
/// differ.
const LATER: usize = 10;
/// Polls of an edge that must not end. Together they take longer than the end of an edge without calls, about a second.
const LOOKS: usize = 50;
const LOOK: Duration = Duration::from_millis(50);

/// A fixture whose edges stream, and the pieces that its provider sends. Calls without a stream are answered at once.
struct Streaming {
    fixture: Fixture,
    feeds: Arc<Mutex<Vec<Feed>>>,
}

/// Streams that were opened together.
struct Streams {
    /// `None`: the caller has left.
    streams: Vec<Option<EventStream>>,
    feeds: Vec<Feed>,
}

impl Streaming {
    async fn on(fixture: Fixture) -> Self {
        let fixture = fixture.env("PROXY__STREAMING", true);
        let feeds = Arc::<Mutex<Vec<Feed>>>::default();
        let opened = Arc::clone(&feeds);
        fixture.upstream.set(move |request| {
            if request.json()["stream"] != true {
                return Answer::chat(9, 12);
            }
            let feed = Feed::new();
            opened.lock().push(feed.clone());
            Answer::stream(Script::new().feed(&feed))
        });
        Self { fixture, feeds }
    }

    /// Opens this many streams at the fixture's address.
    async fn open(&self, count: usize) -> Streams {
        let mut streamed_body = body(false);
        streamed_body["stream"] = json!(true);
        let mut streams = Vec::new();
        for _ in 0..count {
            let (edge, path) = (self.fixture.addr(), "/v1/chat/completions");
            let stream = EventStream::open(edge, path, &self.fixture.key, "", streamed_body.clone()).await;
            assert_eq!(stream.status(), 200, "{}", stream.head);
            streams.push(Some(stream));
        }
        let feeds = self.begun();
        Streams { streams, feeds }
    }

    /// Ends an edge by SIGTERM, or hands over to the next one, which is returned.
    async fn end(&self, edge: &Edge, hands_over: bool) -> Option<Edge> {
        if hands_over {
            return Some(self.fixture.next_of(edge, self.fixture.options()).await);
        }
        edge.term();
        None
    }

    /// Returns the streams that have begun since the last call.
    fn begun(&self) -> Vec<Feed> {
        std::mem::take(&mut *self.feeds.lock())
    }
}

/// The provider sends a text.
fn send_text(feed: &Feed, text: &str) {
    feed.event(json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }));
}

/// The provider sends the usage and the end.
fn finish(feed: &Feed) {
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21 });
    feed.event(json!({ "choices": [], "usage": usage }));
    feed.event("[DONE]");
    feed.end();
}

impl Streams {
    /// Sends a text in each stream, and each caller must receive it.
    async fn pass(&mut self, text: &str) {
        for (feed, stream) in self.feeds.iter().zip(&mut self.streams) {
            send_text(feed, text);
            if let Some(stream) = stream {
                stream.until(text).await;
            }
        }
    }

    /// Every second caller leaves.
    fn half_of_the_callers_leave(&mut self) {
        for stream in self.streams.iter_mut().step_by(2) {
            stream.take().expect("a caller").reset();
        }
    }

    /// Ends the streams whose callers are left, each of which must be whole. Returns the other feeds.
    async fn are_whole(self) -> Vec<Feed> {
        let mut left = Vec::new();
        for (feed, stream) in self.feeds.into_iter().zip(self.streams) {
            let Some(mut stream) = stream else {
                left.push(feed);
                continue;
            };
            finish(&feed);
            assert!(
                stream.rest().await.ends_with("data: [DONE]\n\n"),
                "{}",
                stream.body
            );
        }
        left
    }

    async fn are_cut_off(self) {
        for mut stream in self.streams.into_iter().flatten() {
            assert!(!stream.ends_whole().await, "{}", stream.body);
        }
    }
}

/// Waits until the edge's address refuses connections.
async fn closes(edge: &Edge) {
    until("no listener", async || {
        RawClient::try_connect(edge.addr()).await.is_none()
    })
    .await;
}

/// Checks that an edge does not end while it still reads the usage of streams whose callers have all left. On an idle
/// machine, an edge that ends does so within this time.
async fn goes_on(edge: &Edge) {
    for _ in 0..LOOKS {
        assert!(edge.is_running());
        tokio::time::sleep(LOOK).await;
    }
}

/// Streams that an edge has open, by its metrics.
fn streams_open(edge: &Edge) -> Option<u64> {
    edge.metric("tollgate_proxy_streams_open")
}

/// The edge waits for its streams, those of callers who have left included.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_streams_are_whole_behind_a_sigterm() {
    let at = Streaming::on(Fixture::new().await).await;
    let edge = at.fixture.edge();
    let mut streams = at.open(STREAMS).await;
    streams.pass("before").await;
    edge.term();
    closes(&edge).await;
    streams.pass("behind").await;
    streams.half_of_the_callers_leave();
    streams.pass("later").await;
    let left = streams.are_whole().await;
    goes_on(&edge).await;
    left.iter().for_each(finish);
    at.fixture.ends_well(edge).await;
    at.fixture.settled_at(STREAMS as u64 * ACTUAL).await;
}

/// Running streams stay with the old process, new calls and streams go to the new one, and each of them is whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_streams_are_whole_behind_a_hand_over() {
    let at = Streaming::on(Fixture::new().await).await;
    let old = at.fixture.edge();
    let mut streams = at.open(STREAMS).await;
    streams.pass("before").await;
    let new = at.fixture.next_of(&old, at.fixture.options()).await;
    // For a moment both processes listen, also for metrics.
    let mut calls = STREAMS + LATER;
    let mut later = eventually("streams at the new process", SOON, async || {
        if streams_open(&new) != Some(0) {
            return None;
        }
        let later = at.open(LATER).await;
        if streams_open(&new) == Some(LATER as u64) {
            return Some(later);
        }
        calls += LATER;
        later.are_whole().await;
        None
    })
    .await;
    later.pass("new").await;
    streams.pass("meanwhile").await;
    streams.half_of_the_callers_leave();
    let left = streams.are_whole().await;
    for _ in 0..LATER {
        assert_eq!(new.caller(&at.fixture.key).chat(body(false)).await.status, 200);
        calls += 1;
    }
    goes_on(&old).await;
    left.iter().for_each(finish);
    at.fixture.ends_well(old).await;
    later.pass("alone").await;
    assert!(later.are_whole().await.is_empty());
    at.fixture.settled_at(calls as u64 * ACTUAL).await;
    assert!(new.is_running());
}

/// HTTP/2 callers receive GOAWAY, and their streams go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_http_2_are_whole_behind_both() {
    for hands_over in [false, true] {
        let at = Streaming::on(Fixture::new().await).await;
        let edge = at.fixture.edge();
        let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
        let client = client.build().expect("a client");
        let mut streamed_body = body(false);
        streamed_body["stream"] = json!(true);
        let mut answers = Vec::new();
        for _ in 0..STREAMS {
            let url = format!("{}/v1/chat/completions", edge.url());
            let call = client.post(url).bearer_auth(&at.fixture.key).json(&streamed_body);
            answers.push(call.send().await.expect("an answer"));
        }
        let feeds = at.begun();
        feeds.iter().for_each(|feed| send_text(feed, "before"));
        let next = at.end(&edge, hands_over).await;
        if !hands_over {
            closes(&edge).await;
        }
        feeds.iter().for_each(|feed| send_text(feed, "behind"));
        feeds.iter().for_each(finish);
        for answer in answers {
            let text = answer.text().await.expect("a whole stream");
            assert!(text.contains("before") && text.contains("behind"), "{text}");
            assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
        }
        at.fixture.ends_well(edge).await;
        at.fixture.settled_at(STREAMS as u64 * ACTUAL).await;
        drop(next);
    }
}

/// Streams that go on beyond the drain time are cut off. Their estimates stay charged, and the reaper makes them
/// visible.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_outlive_the_drain_keep_their_estimates() {
    for hands_over in [false, true] {
        let fixture = Fixture::new().await.env("PROXY__DRAIN_MS", 1500);
        let at = Streaming::on(fixture).await;
        let fixture = &at.fixture;
        let edge = fixture.edge();
        let mut streams = at.open(STREAMS).await;
        streams.pass("before").await;
        let next = at.end(&edge, hands_over).await;
        streams.are_cut_off().await;
        let ended = tokio::task::spawn_blocking(move || (edge.wait_exit(SOON), edge.logs()));
        let (code, logs) = ended.await.expect("an end");
        assert_eq!(code, Some(0), "{logs}");
        assert!(logs.contains("their estimates stay charged"), "{logs}");
        let charged = [STREAMS as u64 * ESTIMATE; 3];
        assert_eq!(
            (fixture.charged(), fixture.open_holds()),
            (charged, STREAMS as u64)
        );
        let _admin = Admin::start(AdminOptions::new(ADMIN, fixture.redis.url()));
        fixture.bot.pass_deadlines().await;
        fixture.settled_at(charged[0]).await;
        assert_eq!(fixture.bot.kept_holds().await, STREAMS as u64);
        drop(next);
    }
}
