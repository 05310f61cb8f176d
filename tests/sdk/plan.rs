//! Calls for a client, and their expected outcomes: at the client, at the provider, in the ledger.

use crate::install::Sdk;
use crate::provider::{self, PIECES, VECTOR};
use crate::sandbox;
use harness::{CapPolicy, Edge, EdgeOptions, Nanos, Redis, Seed, SeedAgent, Upstream};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const PRICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/prices.toml");
/// Estimate of a call of `gpt-4o-mini` without a limit, in nano-USD.
const HELD: u64 = 1024;
/// Cost of a call with the usage 9 + 12, in nano-USD.
const COST: u64 = 12;
/// Price of a completion token of `prices.toml`, in nano-USD; a prompt token costs nothing.
pub const COMPLETION_NANOS: u64 = 1;
/// Price of a token of an embedding, at 2 USD a million, in nano-USD.
pub const EMBEDDING_TOKEN_NANOS: u64 = 2000;
/// Cost of six tokens of an embedding, in nano-USD.
const EMBEDDING_COST: u64 = 6 * EMBEDDING_TOKEN_NANOS;
/// Longest wait for a settlement on a busy machine.
pub const SETTLED: Duration = Duration::from_secs(60);

/// The Agents SDK where every request says `store: false`.
pub const UNSTORED: &str = "agents-unstored";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    Chat,
    Responses,
    Embeddings,
}

/// Behaviour of caller and provider in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Answers,
    /// The caller requests the usage of the stream.
    AnswersWithUsage,
    /// The caller requests the cost of the stream, which follows it as a comment.
    AnswersWithCost,
    /// The model calls a tool: two requests to the provider.
    UsesTool,
    /// As before, with a model that reasons before each answer: the client sends the reasoning back.
    Reasons,
    /// The caller offers a tool that the provider runs.
    OffersHostedTool,
    /// A second question, with the conversation so far.
    SecondTurn,
    /// As before, and the client refers to a conversation that the provider has stored.
    SecondTurnStored,
    /// The cap has no room.
    Denied,
    /// The provider breaks off after the first piece.
    BreaksOff,
    /// The caller leaves after the first piece.
    Leaves,
    /// The provider fails, and the estimate stays charged.
    FailsCharged,
    /// As before, and the client repeats the call twice.
    FailsRepeated,
}

/// Field in which a client shows why a call failed.
#[derive(Debug, Clone, Copy)]
pub enum Reason {
    /// As the exception's `code`.
    Code(&'static str),
    /// In the exception's text alone.
    Text(&'static str),
}

/// The exception of a client: its class, the status that it shows, and the reason.
pub struct Failure {
    pub class: &'static str,
    pub status: Option<u16>,
    pub reason: Reason,
}

pub struct Call {
    pub client: &'static str,
    pub api: Api,
    pub streamed: bool,
    pub behaviour: Behaviour,
    /// Whether the client shows the usage.
    pub shows_usage: bool,
    /// Whether the client shows the text of a stream that broke off.
    pub shows_pieces: bool,
    pub failure: Option<Failure>,
}

impl Failure {
    fn shown(&self) -> Value {
        match self.reason {
            Reason::Code(code) => json!([self.class, self.status, code]),
            Reason::Text(_) => json!([self.class, self.status, Value::Null, true]),
        }
    }

    /// An exception in the form of `shown`.
    fn as_reported(&self, error: &Value) -> Value {
        let [class, status, code] = ["class", "status", "code"].map(|name| error[name].clone());
        match self.reason {
            Reason::Code(_) => json!([class, status, code]),
            Reason::Text(reason) => {
                let text = error["message"].as_str().unwrap_or_default();
                json!([class, status, code, text.contains(reason)])
            }
        }
    }
}

impl Call {
    pub const fn new(client: &'static str, api: Api, streamed: bool, behaviour: Behaviour) -> Self {
        Self {
            client,
            api,
            streamed,
            behaviour,
            shows_usage: true,
            shows_pieces: true,
            failure: None,
        }
    }

    pub const fn without_usage(mut self) -> Self {
        self.shows_usage = false;
        self
    }

    pub const fn without_pieces(mut self) -> Self {
        self.shows_pieces = false;
        self
    }

    pub const fn fails(mut self, class: &'static str, status: Option<u16>, reason: Reason) -> Self {
        self.failure = Some(Failure {
            class,
            status,
            reason,
        });
        self
    }

    pub fn name(&self) -> String {
        let streamed = if self.streamed { "streamed" } else { "whole" };
        format!("{} {:?} {streamed} {:?}", self.client, self.api, self.behaviour)
    }

    /// The plan of calls that the client receives.
    pub fn plan(&self, number: usize, key: &str) -> Value {
        let api = format!("{:?}", self.api).to_lowercase();
        json!({
            "client": self.client, "api": api, "streamed": self.streamed, "key": key,
            "model": if self.behaviour == Behaviour::Reasons { "gpt-5-mini" } else { "gpt-4o-mini" },
            "text": format!("call number {number}"),
            "asksCost": self.behaviour == Behaviour::AnswersWithCost,
            // The client's default settings, except in calls that need others.
            "repeats": self.behaviour != Behaviour::FailsCharged,
            "stores": !matches!(self.behaviour, Behaviour::SecondTurn | Behaviour::Reasons),
            "asksUsage": self.behaviour == Behaviour::AnswersWithUsage,
            "usesTool": matches!(self.behaviour, Behaviour::UsesTool | Behaviour::Reasons),
            "offersHostedTool": self.behaviour == Behaviour::OffersHostedTool,
            "turns": if matches!(self.behaviour, Behaviour::SecondTurn | Behaviour::SecondTurnStored) { 2 } else { 1 },
            "leaves": self.behaviour == Behaviour::Leaves,
        })
    }

    /// The text that the client sees.
    fn text(&self) -> String {
        match self.behaviour {
            Behaviour::Denied
            | Behaviour::OffersHostedTool
            | Behaviour::FailsCharged
            | Behaviour::FailsRepeated => String::new(),
            Behaviour::BreaksOff if !self.shows_pieces => String::new(),
            Behaviour::SecondTurn => PIECES.concat().repeat(2),
            Behaviour::BreaksOff | Behaviour::Leaves => PIECES[0].to_owned(),
            _ if self.api == Api::Embeddings => VECTOR.to_owned(),
            _ => PIECES.concat(),
        }
    }

    /// Requests that reach the provider.
    const fn sent(&self) -> usize {
        match self.behaviour {
            Behaviour::Denied | Behaviour::OffersHostedTool => 0,
            Behaviour::UsesTool | Behaviour::Reasons | Behaviour::SecondTurn => 2,
            Behaviour::FailsRepeated => 3,
            _ => 1,
        }
    }

    /// Charge that stays, in nano-USD.
    const fn charged(&self) -> u64 {
        match (self.behaviour, self.api) {
            (Behaviour::Denied | Behaviour::OffersHostedTool, _) => 0,
            (Behaviour::UsesTool | Behaviour::Reasons | Behaviour::SecondTurn, _) => 2 * COST,
            (Behaviour::BreaksOff | Behaviour::FailsCharged, _) => HELD,
            (Behaviour::FailsRepeated, _) => 3 * HELD,
            (_, Api::Embeddings) => EMBEDDING_COST,
            _ => COST,
        }
    }

    /// Differences between an outcome and the expected one.
    fn complaints(&self, outcome: &Value, sent: usize, charged: u64) -> Vec<String> {
        let error = self.failure.as_ref().map_or(Value::Null, Failure::shown);
        let reported = match (&self.failure, &outcome["error"]) {
            (Some(failure), error) if !error.is_null() => failure.as_reported(error),
            (_, error) => error.clone(),
        };
        let mut expected = vec![
            ("text", json!(self.text()), outcome["text"].clone()),
            ("error", error, reported),
            ("requests at the provider", json!(self.sent()), json!(sent)),
            ("charged", json!(self.charged()), json!(charged)),
        ];
        let is_whole = self.failure.is_none() && self.behaviour != Behaviour::Leaves;
        if is_whole && self.shows_usage {
            let turn = if self.api == Api::Embeddings { 6 } else { 21 };
            let total = outcome["tokens"].as_u64().unwrap_or(0);
            expected.push((
                "usage",
                json!(true),
                json!(total == turn || total == turn * self.sent() as u64),
            ));
        } else if is_whole {
            expected.push(("usage", Value::Null, outcome["tokens"].clone()));
        }
        let wrong = expected.into_iter().filter(|(_, wanted, found)| wanted != found);
        let name = self.name();
        wrong
            .map(|(what, wanted, found)| format!("{name}: {what}: {found}, not {wanted}; {outcome}"))
            .collect()
    }
}

/// Makes the calls with a client and checks their outcomes: all of them with a scripted provider, then the plain ones
/// with the sandbox.
pub async fn prove(sdk: Sdk, calls: Vec<Call>) {
    let (sdk, calls) = (Arc::new(sdk), Arc::new(calls));
    prove_scripted(&sdk, &calls).await;
    sandbox::prove(&sdk, &calls).await;
}

async fn prove_scripted(sdk: &Arc<Sdk>, calls: &Arc<Vec<Call>>) {
    let gates: Arc<Vec<Arc<Notify>>> = Arc::new(calls.iter().map(|_| Arc::default()).collect());
    let redis = Redis::start();
    let upstream = Upstream::start({
        let (calls, gates) = (Arc::clone(calls), Arc::clone(&gates));
        move |request| provider::answer(&calls, &gates, request)
    });
    let seed = Seed::new(&redis.store()).await;
    let edge = Edge::start(options(&redis, upstream.base_url()));
    let all: Vec<&Call> = calls.iter().collect();
    let (agents, plans) = agents(&seed, &all).await;
    let outcomes = run(sdk, &edge, &plans).await;
    // The leaving callers have disconnected: now the provider sends the rest.
    for gate in gates.iter() {
        gate.notify_one();
    }
    assert_eq!(outcomes.len(), calls.len());
    let mut sent = vec![0; calls.len()];
    for request in upstream.requests() {
        let number = provider::number_of(&request);
        sent[number] += 1;
        if calls[number].client == UNSTORED {
            assert_eq!(request.json()["store"], false, "{}", calls[number].name());
        }
    }
    let mut complaints = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let charged = agents[number].settled_within(SETTLED).await;
        complaints.extend(call.complaints(&outcomes[number], sent[number], charged));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    check_ends(&edge, calls);
}

/// An agent for each call, and the plan of the calls.
pub async fn agents(seed: &Seed, calls: &[&Call]) -> (Vec<SeedAgent>, Vec<Value>) {
    let mut agents = Vec::new();
    let mut plans = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let (agent, key) = seed.ready_agent("enterprise", cap(call.behaviour)).await;
        agents.push(agent);
        plans.push(call.plan(number, &key));
    }
    (agents, plans)
}

/// Lets the client make the calls of a plan. Returns its report of each.
pub async fn run(sdk: &Arc<Sdk>, edge: &Edge, plans: &[Value]) -> Vec<Value> {
    let plan = json!({ "baseUrl": format!("{}/v1", edge.url()), "calls": plans });
    let sdk = Arc::clone(sdk);
    let printed = tokio::task::spawn_blocking(move || sdk.run(&plan.to_string()))
        .await
        .expect("the script");
    let last = printed.trim_end().lines().next_back().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// An edge in front of the provider at `base_url`, with all options that the clients need.
pub fn options(redis: &Redis, base_url: String) -> EdgeOptions {
    EdgeOptions::new(env!("CARGO_BIN_EXE_tollgate-proxy"), redis.url(), base_url)
        .env("TOLLGATE_PRICES__FILE", PRICES)
        .env("TOLLGATE_PROXY__STREAMING", "true")
        .env("TOLLGATE_PROXY__RESPONSES", "true")
        .env("TOLLGATE_PROXY__EMBEDDINGS", "true")
        // The provider sends the rest of a stream whose caller left when the client's process has ended.
        .env("TOLLGATE_PROXY__STREAM_DRAIN_MS", "300000")
}

fn cap(behaviour: Behaviour) -> CapPolicy {
    let limit = if behaviour == Behaviour::Denied {
        1
    } else {
        1_000_000
    };
    CapPolicy {
        enabled: true,
        daily: Nanos::new(limit),
        ..CapPolicy::default()
    }
}

/// Checks the number of streams that the provider broke off, and of those whose caller left.
fn check_ends(edge: &Edge, calls: &[Call]) {
    for (behaviour, end) in [
        (Behaviour::Leaves, "caller_gone"),
        (Behaviour::BreaksOff, "provider_broke_off"),
    ] {
        let count = edge.metric(&format!("tollgate_proxy_streams_total{{end=\"{end}\"}}"));
        let expected = calls.iter().filter(|call| call.behaviour == behaviour).count();
        assert_eq!(count.unwrap_or(0), expected, "{end}");
    }
}
