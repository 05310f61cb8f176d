//! A crowd with the sandbox as the provider: each call is charged by the rule, from what the sandbox lists as sent.

use super::{AT_ONCE, LONG, PATH, patient, run};
use crate::fixture::{Fixture, HELD, body, open_cap};
use futures::{StreamExt as _, stream};
use harness::{Caller, EventStream, SeededRandom, eventually, torture_seed};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use tokio::net::TcpListener;

const CALLS: usize = 120;
const EVENTS_MAX: u64 = 40;
/// Bytes of an event's text with which a stream is longer than what is held for it.
const LONG_EVENT: u64 = 4 * HELD;
/// A key that the sandbox accepts.
const KEY: &str = "sk-sandbox-0123456789abcdef";

/// A call: the options of its stream, and whether its caller leaves in the middle, with a reset or without.
struct Call {
    options: String,
    leaves: Option<bool>,
}

impl Call {
    fn roll(dice: &mut SeededRandom) -> Self {
        let events = 5 + dice.below(EVENTS_MAX - 5);
        let (delay, piece) = (dice.below(8), 1 + dice.below(200));
        let mut options = format!("events={events},delay={delay},piece={piece}");
        options += &match dice.below(6) {
            0 => format!(",cut={}", 1 + dice.below(events - 1)),
            1 => format!(",end={}", 1 + dice.below(events - 1)),
            2 => ",usage=none".to_owned(),
            3 => format!(",usage=none,bytes={LONG_EVENT}"),
            4 => ",usage=after-done".to_owned(),
            _ => String::new(),
        };
        Self {
            options,
            leaves: dice.percent(40).then(|| dice.percent(50)),
        }
    }

    /// Makes the call, and plays its caller.
    async fn play(&self, number: usize, fixture: &Fixture, key: &str) {
        let head = format!(
            "X-Service-Run-Id: {0}\r\nX-Client-Request-Id: {0}\r\n",
            run(number)
        );
        let sent = body(json!({ "user": format!("sandbox-stream:{}", self.options) }));
        let mut stream = EventStream::open(fixture.edge.addr(), PATH, key, &head, sent).await;
        assert_eq!(stream.status(), 200, "{}", stream.head);
        stream.until("data:").await;
        match self.leaves {
            Some(true) => stream.reset(),
            Some(false) => drop(stream),
            None => drop(stream.ends_whole().await),
        }
    }
}

/// Cost of a call that the sandbox lists, in nano-USD: its usage, else the larger of the held amount and the cost of
/// its text.
fn charge(sent: &Value) -> u64 {
    let usage = sent["usage"]["completion_tokens"].as_u64();
    let text = sent["text_bytes"].as_u64().expect("a number").div_ceil(4);
    usage.unwrap_or_else(|| text.max(HELD))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_is_charged_by_what_the_sandbox_says_that_it_sent() {
    let seed = torture_seed();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let sandbox = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(sandbox::serve(listener, Duration::ZERO, std::future::pending()));
    let fixture =
        Fixture::with(|options| patient(options).env("TOLLGATE_UPSTREAM__BASE_URL", format!("{sandbox}/v1")))
            .await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let mut dice = SeededRandom::new(seed);
    let calls: Vec<Call> = (0..CALLS).map(|_| Call::roll(&mut dice)).collect();
    let playing = stream::iter(calls.iter().enumerate())
        .map(|(number, call)| call.play(number, &fixture, &actor.key))
        .buffer_unordered(AT_ONCE);
    playing.collect::<Vec<()>>().await;

    // A call is listed once it is over, also for those whose callers have left.
    let caller = Caller::new(&sandbox, KEY);
    let listed = eventually("the sandbox's list", LONG, async || {
        let document = caller.get("/sandbox/calls").await.json();
        let calls = document["calls"].as_array().expect("a list").clone();
        (calls.len() == CALLS).then_some(calls)
    })
    .await;
    let sent: HashMap<&str, &Value> = listed
        .iter()
        .map(|sent| (sent["client_request_id"].as_str().expect("an id"), sent))
        .collect();
    let total = actor.settled().await;
    let mut sum = 0;
    for (number, call) in calls.iter().enumerate() {
        let sent = sent[run(number).as_str()];
        let shown = format!("seed {seed}: {} {:?} {sent}", call.options, call.leaves);
        assert_ne!(sent["end"], "peer_gone", "the edge read to the end: {shown}");
        assert_eq!(
            actor.agent.run_spent(&run(number)).await,
            Some(charge(sent)),
            "{shown}"
        );
        sum += charge(sent);
    }
    assert_eq!(total, sum, "seed {seed}");
    assert_eq!(actor.agent.charged(&fixture.redis), [sum; 3], "seed {seed}");
    fixture.ledger_check().await.is_in_order();
}
