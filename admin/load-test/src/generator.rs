//! Sends calls when they are due, over a bounded number of connections, and records their answers.

use super::answer::TimedAnswer;
use super::fixtures::Fixtures;
use super::kind::RequestKind;
use super::mix;
use super::pace;
use super::plan::LoadPlan;
use super::record::{RecordedSamples, Sample, SampleEnd};
use super::scenario::Phase;
use super::streamed::COST_HEADER;
use crate::error::LoadTestError;
use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::{Client, Url};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A call that has waited this long for a connection is not sent.
const DROPPED_AFTER: Duration = Duration::from_secs(10);
/// Time limit of calls in flight after the run is stopped.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Interval of checking whether to stop.
const POLL: Duration = Duration::from_millis(50);
/// Body sent for [`RequestKind::Malformed`].
const MALFORMED: &[u8] = b"{\"model\": ";

/// Charges of one agent in the answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedCharges {
    /// Nano-USD that the answers report as charged.
    pub nanos: u64,
    /// Number of calls whose charge is unknown, since they got no answer with it.
    pub unknown: u64,
    /// Number of calls whose callers left in the middle of the stream, as planned; their charge is unknown, too.
    pub left: u64,
    /// Nano-USD that were held at first for those calls.
    pub left_estimates: u64,
    /// Number of calls that cost more than their initial estimate.
    pub above_estimate: u64,
}

/// Sender of calls.
pub(super) struct LoadGenerator {
    client: Client,
    url: Url,
    connections: usize,
    share: u64,
    bodies: Vec<Bytes>,
    denials: Vec<RequestKind>,
    /// By kind: agent (an index into the fixtures's) and key.
    members: Vec<(RequestKind, Vec<(usize, SecretString)>)>,
    ledger: Mutex<Vec<ReportedCharges>>,
    next: AtomicU64,
    now: Mutex<Option<RecordedSamples>>,
    timeout: Duration,
    is_streamed: bool,
    /// Of approved calls whose callers leave in the middle, in parts per million.
    leave_share: u64,
}

impl LoadGenerator {
    pub(super) fn new(plan: &LoadPlan, fixtures: &Fixtures) -> Result<Self, LoadTestError> {
        // TLS needs a process-wide crypto provider. The first one installed stays.
        drop(rustls::crypto::ring::default_provider().install_default());
        let bad = |error: &dyn std::fmt::Display| LoadTestError::Usage(format!("--ca-file: {error}"));
        let mut builder = Client::builder()
            .no_proxy()
            .http1_only()
            .tcp_nodelay(true)
            .pool_max_idle_per_host(plan.connections)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .timeout(plan.timeout);
        if let Some(pem) = &plan.ca {
            let trusted = reqwest::Certificate::from_pem_bundle(pem).map_err(|error| bad(&error))?;
            builder = builder.tls_certs_merge(trusted);
        } else if plan.target.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| bad(&error))?;
        let url = plan.target.join("/v1/chat/completions");
        let url = url.map_err(|error| LoadTestError::Usage(format!("--target: {error}")))?;
        let by_kind = RequestKind::ALL.map(|kind| (kind, fixtures.of_kind(kind)));
        let members: Vec<_> = by_kind
            .into_iter()
            .filter(|(_, members)| !members.is_empty())
            .collect();
        let denials = members.iter().map(|(kind, _)| *kind);
        Ok(Self {
            client,
            url,
            connections: plan.connections,
            share: plan.deny_share,
            bodies: plan.bodies().into_iter().map(Bytes::from).collect(),
            denials: denials.filter(|kind| *kind != RequestKind::Approved).collect(),
            members,
            ledger: Mutex::new(vec![ReportedCharges::default(); fixtures.agents().len()]),
            next: AtomicU64::new(0),
            now: Mutex::new(None),
            timeout: plan.timeout,
            is_streamed: plan.stream.is_some(),
            leave_share: plan.leave_share,
        })
    }

    /// Returns the charges of each agent so far.
    pub(super) fn ledger(&self) -> Vec<ReportedCharges> {
        self.ledger.lock().clone()
    }

    /// Reads the results of the phase so far.
    pub(super) fn peek<T>(&self, read: impl FnOnce(&RecordedSamples) -> T) -> Option<T> {
        let now = self.now.lock();
        now.as_ref().map(read)
    }

    fn note(&self, shot: Sample) {
        let mut now = self.now.lock();
        if let Some(now) = now.as_mut() {
            now.note(shot);
        }
    }

    fn drop_one(&self) {
        let mut now = self.now.lock();
        if let Some(now) = now.as_mut() {
            now.dropped += 1;
        }
    }

    /// Sends one call and takes its answer in.
    async fn send(&self, number: u64, due: Instant) {
        let (kind, turn) = mix::kind_of(number, self.share, &self.denials);
        let of_kind = self.members.iter().find(|(other, _)| *other == kind);
        let Some((_, members)) = of_kind else {
            return self.drop_one();
        };
        let among = |count: usize| usize::try_from(turn % count.max(1) as u64).unwrap_or(0);
        let (agent, key) = &members[among(members.len())];
        let body = match kind {
            RequestKind::Malformed => Bytes::from_static(MALFORMED),
            _ => self.bodies[among(self.bodies.len())].clone(),
        };
        let bytes_sent = body.len() as u64;
        let sent = Instant::now();
        let request = self
            .client
            .post(self.url.clone())
            .bearer_auth(key.expose_secret());
        let request = request.header("content-type", "application/json").body(body);
        let request = match self.is_streamed {
            true => request.header(COST_HEADER, "true"),
            false => request,
        };
        let leaves = kind == RequestKind::Approved && mix::is_left(turn, self.leave_share);
        let (status, reason, bytes_received, first_byte) = match TimedAnswer::take_in(request, leaves).await {
            Ok(answer) => {
                self.charge(*agent, &answer);
                let first_byte = Some(answer.first_byte - sent);
                (answer.status, answer.reason(), answer.bytes, first_byte)
            }
            Err(error) => {
                // A request that was not even connected did not reach the edge.
                if !error.is_connect() {
                    self.unknown(*agent);
                }
                (0, failure_text(&error).to_owned(), 0, None)
            }
        };
        let ended = Instant::now();
        self.note(Sample {
            end: SampleEnd { kind, status, reason },
            since_due: ended - due,
            since_sent: ended - sent,
            first_byte,
            bytes_sent,
            bytes_received,
        });
    }

    fn charge(&self, agent: usize, answer: &TimedAnswer) {
        if answer.is_left {
            let mut ledger = self.ledger.lock();
            ledger[agent].left += 1;
            ledger[agent].left_estimates += answer.estimated().unwrap_or(0);
            return;
        }
        match answer.charged() {
            Some(nanos) => {
                let mut ledger = self.ledger.lock();
                ledger[agent].nanos += nanos;
                ledger[agent].above_estimate += u64::from(answer.is_above_estimate());
            }
            None => self.unknown(agent),
        }
    }

    /// Records that calls in flight were abandoned; their agents are unknown.
    fn unknown_everywhere(&self) {
        let mut ledger = self.ledger.lock();
        ledger.iter_mut().for_each(|seen| seen.unknown += 1);
    }

    fn unknown(&self, agent: usize) {
        let mut ledger = self.ledger.lock();
        ledger[agent].unknown += 1;
    }
}

/// Sends the calls of a phase. Returns the results.
///
/// # Errors
/// There is no memory or no thread for it.
pub(super) async fn phase(
    generator: &Arc<LoadGenerator>,
    phase: &Phase,
    stop: &Arc<AtomicBool>,
) -> Result<RecordedSamples, LoadTestError> {
    let calls = phase.calls();
    generator.next.store(0, Ordering::Release);
    let cannot =
        |what: &dyn std::fmt::Display| LoadTestError::Refused(format!("the load cannot start: {what}"));
    let empty = RecordedSamples::new().ok_or_else(|| cannot(&"no memory for its figures"))?;
    *generator.now.lock() = Some(empty);
    let gate = Arc::new(Semaphore::new(0));
    let start = Instant::now();
    pace::start(Arc::clone(&gate), start, phase.rate, calls, Arc::clone(stop))
        .map_err(|error| cannot(&error))?;
    let mut connections = JoinSet::new();
    for _ in 0..generator.connections {
        let (generator, gate, rate) = (Arc::clone(generator), Arc::clone(&gate), phase.rate);
        connections.spawn(async move { send_in_turn(&generator, &gate, calls, (start, rate)).await });
    }
    let answers = async { while connections.join_next().await.is_some() {} };
    let stopped = async {
        while !stop.load(Ordering::Acquire) {
            tokio::time::sleep(POLL).await;
        }
        tokio::time::sleep(LAST_ANSWERS.min(generator.timeout)).await;
    };
    tokio::select! {
        () = answers => {}
        () = stopped => {}
    }
    let given_up = connections.len() as u64;
    connections.shutdown().await;
    let took = start.elapsed();
    let seen = generator.now.lock().take();
    let mut seen = seen.ok_or_else(|| cannot(&"its figures are gone"))?;
    seen.took = took;
    if given_up > 0 {
        let end = SampleEnd {
            kind: RequestKind::Approved,
            status: 0,
            reason: "given up".to_owned(),
        };
        *seen.ends.entry(end).or_default() += given_up;
        generator.unknown_everywhere();
    }
    Ok(seen)
}

/// Sends calls over one connection as `gate` releases them, until all `calls` of the phase, which begins at `start`
/// with `rate` calls per second, are taken.
async fn send_in_turn(
    generator: &LoadGenerator,
    gate: &Semaphore,
    calls: u64,
    (start, rate): (Instant, u32),
) {
    while generator.next.load(Ordering::Acquire) < calls {
        let Ok(permit) = gate.acquire().await else {
            return;
        };
        permit.forget();
        let number = generator.next.fetch_add(1, Ordering::AcqRel);
        if number + 1 >= calls {
            gate.close();
        }
        let due = pace::due(start, rate, number);
        match due.elapsed() > DROPPED_AFTER {
            true => generator.drop_one(),
            false => generator.send(number, due).await,
        }
    }
}

/// Describes why a call got no answer, in few words and without addresses.
fn failure_text(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "connection broken"
    }
}
