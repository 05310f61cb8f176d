//! The callers, and a provider that behaves as the headers of each call request, in whole answers and in streams.

use crate::fixture::usd;
use harness::{Answer, Caller, Recorded, Reply, Script, SeededRandom};
use serde_json::json;
use std::collections::HashSet;
use std::time::{Duration, Instant};

const CALLERS: u64 = 32;
/// Pause between two calls of a caller, at most, in milliseconds.
const PAUSE_MS: u64 = 150;
/// Longest a patient caller waits; beyond every deadline of the edge.
const PATIENCE: Duration = Duration::from_secs(40);
/// Text of a stream: one token, no more than each call holds.
const TEXT: &str = "four";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProviderBehaviour {
    Fine,
    Slow,
    Zipped,
    NoUsage,
    BadRequest,
    Limited,
    Broken,
    Reset,
    Truncated,
    Stream,
    SlowStream,
    StreamWithoutUsage,
    CutStream,
    ResetStream,
    Hang,
}

impl ProviderBehaviour {
    const ALL: [(Self, &str); 15] = [
        (Self::Fine, "fine"),
        (Self::Slow, "slow"),
        (Self::Zipped, "zipped"),
        (Self::NoUsage, "no-usage"),
        (Self::BadRequest, "bad-request"),
        (Self::Limited, "limited"),
        (Self::Broken, "broken"),
        (Self::Reset, "reset"),
        (Self::Truncated, "truncated"),
        (Self::Stream, "stream"),
        (Self::SlowStream, "slow-stream"),
        (Self::StreamWithoutUsage, "stream-without-usage"),
        (Self::CutStream, "cut-stream"),
        (Self::ResetStream, "reset-stream"),
        (Self::Hang, "hang"),
    ];

    fn word(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(mood, _)| *mood == self)
            .expect("a mood")
            .1
    }

    /// Picks a behaviour: mostly fine, seldom hanging.
    fn roll(dice: &mut SeededRandom) -> Self {
        match dice.below(100) {
            0..40 => Self::Fine,
            40..41 => Self::Hang,
            _ => dice.pick(&Self::ALL[1..14]).0,
        }
    }

    fn is_stream(self) -> bool {
        self.ends_stream_whole()
            || matches!(
                self,
                Self::StreamWithoutUsage | Self::CutStream | Self::ResetStream
            )
    }

    /// Whether the answer is a stream that reports its usage.
    fn ends_stream_whole(self) -> bool {
        matches!(self, Self::Stream | Self::SlowStream)
    }

    fn status(self) -> u16 {
        match self {
            Self::Fine | Self::Slow | Self::Zipped | Self::NoUsage => 200,
            streamed if streamed.is_stream() => 200,
            Self::BadRequest => 400,
            Self::Limited => 429,
            Self::Broken => 500,
            Self::Reset | Self::Truncated => 502,
            _ => 504,
        }
    }
}

/// Answers as the headers of the call request.
pub fn provider(request: &Recorded) -> Answer {
    let word = request.header("x-stainless-mood").expect("a mood");
    let tokens: u64 = request
        .header("x-stainless-tokens")
        .expect("tokens")
        .parse()
        .expect("a number");
    let mood = ProviderBehaviour::ALL
        .iter()
        .find(|(_, name)| *name == word)
        .expect("a known mood")
        .0;
    let fine = Answer::chat(2, tokens);
    match mood {
        ProviderBehaviour::Fine => fine,
        ProviderBehaviour::Slow => fine.delay(Duration::from_millis(10 * tokens)),
        ProviderBehaviour::Zipped => fine.gzip(),
        ProviderBehaviour::NoUsage => Answer::chat_with_usage(json!(null)),
        ProviderBehaviour::BadRequest => Answer::error(400, "bad_request", "sk-abc is wrong"),
        ProviderBehaviour::Limited => Answer::error(429, "rate_limit", "slow down"),
        ProviderBehaviour::Broken => Answer::error(500, "server_error", "oh"),
        ProviderBehaviour::Reset => fine.reset_after(60),
        ProviderBehaviour::Truncated => fine.truncated(7),
        ProviderBehaviour::Hang => Answer::hang(),
        streamed => Answer::stream(script(streamed, tokens)),
    }
}

/// The steps of a stream with the usage 2 + `tokens`.
fn script(mood: ProviderBehaviour, tokens: u64) -> Script {
    let usage = json!({ "prompt_tokens": 2, "completion_tokens": tokens, "total_tokens": 2 + tokens });
    let begun = Script::new().event(json!({ "choices": [{ "index": 0, "delta": { "content": TEXT } }] }));
    match mood {
        ProviderBehaviour::Stream => Script::chat(&[TEXT], &usage),
        ProviderBehaviour::SlowStream => {
            let rest = Script::chat(&[], &usage);
            begun
                .pause(Duration::from_millis(10 * tokens))
                .in_pieces(100, rest.bytes())
        }
        ProviderBehaviour::StreamWithoutUsage => Script::chat(&[TEXT], &json!(null)),
        ProviderBehaviour::CutStream => begun.pause(Duration::from_millis(tokens)).break_off(),
        _ => begun.pause(Duration::from_millis(tokens)).reset(),
    }
}

/// One call and its caller's reply.
#[derive(Debug)]
pub struct Call {
    pub id: String,
    pub agent: String,
    mood: ProviderBehaviour,
    max_tokens: u64,
    tokens: u64,
    /// The answer, if the caller got one.
    received: Option<Reply>,
}

/// Two prompt tokens at 150 nano-USD, and completion tokens at 600.
const fn price(tokens: u64) -> u64 {
    2 * 150 + tokens * 600
}

/// The estimate of a call: the message's frame counts as well (decision D68).
const fn estimate(max_tokens: u64) -> u64 {
    price(max_tokens) + 4 * 150
}

impl Call {
    fn new(id: String, agent: &str, dice: &mut SeededRandom) -> Self {
        let max_tokens = 1 + dice.below(60);
        let tokens = dice.below(max_tokens + 1);
        Self {
            id,
            agent: agent.to_owned(),
            mood: ProviderBehaviour::roll(dice),
            max_tokens,
            tokens,
            received: None,
        }
    }

    /// The call's cost once the provider has received it.
    pub fn cost(&self) -> u64 {
        match self.mood {
            ProviderBehaviour::Fine | ProviderBehaviour::Slow | ProviderBehaviour::Zipped => {
                price(self.tokens)
            }
            streamed if streamed.ends_stream_whole() => price(self.tokens),
            ProviderBehaviour::BadRequest | ProviderBehaviour::Limited => 0,
            _ => estimate(self.max_tokens),
        }
    }

    async fn make(&mut self, caller: &Caller, patience: Duration) {
        let body = json!({ "model": "gpt-4o-mini", "max_tokens": self.max_tokens,
            "stream": self.mood.is_stream(), "messages": [{ "role": "user", "content": "hello" }] });
        let tokens = self.tokens.to_string();
        let headers = [
            ("x-stainless-call", self.id.as_str()),
            ("x-service-run-id", &self.id),
            ("x-stainless-mood", self.mood.word()),
            ("x-stainless-tokens", &tokens),
            ("x-service-stream-cost", "true"),
        ];
        let call = caller.try_send("POST", "/v1/chat/completions", &headers, body.to_string());
        self.received = tokio::time::timeout(patience, call)
            .await
            .ok()
            .and_then(Result::ok);
    }

    /// Asserts that the answer agrees with the call and with the provider's record of it.
    pub fn check_answer(&self, arrived: bool, allow_ids: &mut HashSet<String>) {
        let Some(reply) = &self.received else { return };
        match reply.header("x-service-decision") {
            Some("approved") => {
                assert!(arrived, "approved, and the provider has not seen it: {self:?}");
                assert_eq!(reply.status, self.mood.status(), "{self:?}");
                let id = reply.header("x-service-allow-id").expect("its id").to_owned();
                assert!(allow_ids.insert(id), "two calls with one id: {self:?}");
                let estimate = usd(estimate(self.max_tokens));
                assert_eq!(
                    reply.header("x-service-estimated-usd"),
                    Some(estimate.as_str()),
                    "{self:?}"
                );
                if matches!(
                    self.mood,
                    ProviderBehaviour::Fine | ProviderBehaviour::Slow | ProviderBehaviour::Zipped
                ) {
                    let actual = usd(self.cost());
                    assert_eq!(
                        reply.header("x-service-actual-usd"),
                        Some(actual.as_str()),
                        "{self:?}"
                    );
                }
                if self.mood.is_stream() {
                    let cost = format!(": x-service-actual-usd: {}\n\n", usd(self.cost()));
                    let is_whole = self.mood.ends_stream_whole();
                    let body = reply.text();
                    assert_eq!(body.ends_with(&cost), is_whole, "{self:?}: {body}");
                    assert_eq!(
                        body.contains("upstream_unreachable"),
                        self.is_cut(),
                        "{self:?}: {body}"
                    );
                }
            }
            Some("denied") => {
                assert!(!arrived, "denied, and the provider has seen it: {self:?}");
                let reason = reply.header("x-service-reason").expect("a reason");
                let capped = self.agent == "capped" && (reply.status, reason) == (402, "daily_limit");
                assert!(
                    capped || (reply.status, reason) == (503, "service_unavailable"),
                    "{self:?}"
                );
            }
            other => panic!("{other:?}: {self:?}"),
        }
    }

    fn is_cut(&self) -> bool {
        matches!(
            self.mood,
            ProviderBehaviour::CutStream | ProviderBehaviour::ResetStream
        )
    }

    /// Whether the caller received a stream to its end.
    fn is_received_stream(&self) -> bool {
        self.mood.is_stream() && self.status() == 200
    }

    fn status(&self) -> u16 {
        self.received.as_ref().map_or(0, |reply| reply.status)
    }
}

pub struct Crowd {
    pub urls: [String; 2],
    /// Keys of the agent without limits, and of the capped one.
    pub keys: [Vec<String>; 2],
    pub until: Duration,
}

impl Crowd {
    pub async fn call(&self, seed: u64) -> Vec<Call> {
        let callers = (0..CALLERS)
            .map(|number| self.caller(number, SeededRandom::new(seed.rotate_left(7) ^ (number << 8 | 1))));
        futures::future::join_all(callers)
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    async fn caller(&self, number: u64, mut dice: SeededRandom) -> Vec<Call> {
        let end = Instant::now() + self.until;
        let client = if number.is_multiple_of(4) {
            let builder = reqwest::Client::builder().http2_prior_knowledge().no_proxy();
            builder.tls_certs_only([]).build().expect("a client")
        } else {
            harness::http_client()
        };
        let mut calls = Vec::new();
        while Instant::now() < end {
            let capped = dice.percent(25);
            let agent = if capped { "capped" } else { "bot" };
            let url = &self.urls[usize::from(dice.percent(50))];
            let keys = &self.keys[usize::from(capped)];
            let key = &keys[calls.len() % keys.len()];
            let caller = Caller::new(url, key).with_client(client.clone());
            let mut call = Call::new(format!("c-{number}-{}", calls.len()), agent, &mut dice);
            let hangs_up = dice.percent(15);
            let patience = if hangs_up {
                Duration::from_millis(dice.below(120))
            } else {
                PATIENCE
            };
            call.make(&caller, patience).await;
            calls.push(call);
            tokio::time::sleep(Duration::from_millis(dice.below(PAUSE_MS))).await;
        }
        calls
    }
}

/// Asserts that every outcome occurred; without some of them a run shows little.
pub fn assert_every_outcome_occurred(calls: &[Call], unsettled: usize, highest: u64, seed: u64) {
    let count = |status: u16| calls.iter().filter(|call| call.status() == status).count();
    let summary: Vec<(u16, usize)> = [0, 200, 400, 402, 429, 500, 502, 503, 504]
        .map(|status| (status, count(status)))
        .to_vec();
    println!(
        "seed {seed}: {} calls {summary:?}, {unsettled} kept, at most {highest} of the cap",
        calls.len()
    );
    let streams = calls.iter().filter(|call| call.is_received_stream());
    let (cut, whole): (Vec<_>, Vec<_>) = streams.partition(|call| call.is_cut());
    let left = calls
        .iter()
        .filter(|call| call.mood.is_stream() && call.status() == 0);
    let (cut, whole, left) = (cut.len(), whole.len(), left.count());
    println!("seed {seed}: {whole} whole streams, {cut} cut, {left} without an end");
    assert!(
        cut >= 20 && whole >= 40 && left >= 10,
        "seed {seed}: too few streams"
    );
    for (status, least) in [(0, 20), (200, 200), (402, 20), (503, 20), (502, 5)] {
        assert!(
            count(status) >= least,
            "seed {seed}: too few calls ended with {status}: {summary:?}"
        );
    }
}
