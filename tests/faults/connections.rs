//! Connections of callers are counted, and no connection waits for ever for its first request.

use crate::fixture::{ACTUAL, Fixture, SOON, Setup, answer, body, metric};
use crate::neighbours::neighbour;
use harness::{Edge, EdgeOptions, RawClient, eventually, executable_script, until};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// A connection from this address of the machine.
async fn from(address: &str, edge: &Edge) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    let here = SocketAddr::new(address.parse().expect("an address"), 0);
    socket.bind(here).expect("an address of this machine");
    socket.connect(edge.addr()).await.expect("a connection")
}

/// Returns true if the edge closes the connection within `SOON`, with or without an answer.
pub async fn ends(connection: &mut TcpStream) -> bool {
    let mut room = [0; 4096];
    let closed = async { while matches!(connection.read(&mut room).await, Ok(1..)) {} };
    timeout(SOON, closed).await.is_ok()
}

/// Returns true if the edge answers a request on this connection.
async fn is_served(connection: &mut TcpStream) -> bool {
    let request = "GET /v1/health HTTP/1.1\r\nHost: edge\r\n\r\n";
    if connection.write_all(request.as_bytes()).await.is_err() {
        return false;
    }
    let mut room = [0; 4096];
    matches!(timeout(SOON, connection.read(&mut room)).await, Ok(Ok(1..)))
}

/// A connection from this address with a call under way, a byte of whose body is missing.
async fn busy_connection(address: &str, fixture: &Fixture) -> TcpStream {
    let mut connection = from(address, &fixture.edge).await;
    let before = fixture.metric("tollgate_proxy_in_flight");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{",
        fixture.key
    );
    connection.write_all(head.as_bytes()).await.expect("a head");
    until("a call under way", async || {
        fixture.metric("tollgate_proxy_in_flight") == before + 1
    })
    .await;
    connection
}

/// Most connections of the ops listener.
const OPS_CONNECTIONS_MAX: usize = 64;
/// Time after which an edge has accepted what was connected.
const SETTLED: Duration = Duration::from_millis(300);

/// Strangers who take all places of the ops listener keep no probe out, and take no descriptors without end.
#[tokio::test]
async fn the_ops_listener_has_a_bound_of_its_own() {
    let fixture = Setup::default().start().await;
    let at = fixture.edge.ops_addr();
    let request = "GET /livez HTTP/1.1\r\nHost: ops\r\n\r\n";
    let mut probe = RawClient::connect(at).await;
    assert!(probe.send(request).await);
    assert_eq!(probe.reply(SOON).await.expect("an answer").status, 200);
    let mut strangers = Vec::new();
    for _ in 1..OPS_CONNECTIONS_MAX {
        strangers.push(TcpStream::connect(at).await.expect("a connection"));
    }
    let closed = |strangers: &[TcpStream]| {
        let is_closed = |stranger: &&TcpStream| match stranger.try_read(&mut [0]) {
            Err(error) => error.kind() != ErrorKind::WouldBlock,
            Ok(bytes) => bytes == 0,
        };
        strangers.iter().filter(is_closed).count()
    };
    sleep(SETTLED).await;
    assert_eq!(closed(&strangers), 0, "there is room for all");
    for _ in 0..4 {
        strangers.push(TcpStream::connect(at).await.expect("a connection"));
    }
    until("four are closed", async || closed(&strangers) >= 4).await;
    sleep(SETTLED).await;
    assert_eq!(closed(&strangers), 4, "one for each that came");
    assert!(probe.send(request).await);
    assert_eq!(probe.reply(SOON).await.expect("an answer").status, 200);
    assert_eq!(fixture.edge.ops("/readyz").expect("an answer").0, 200);
}

const REFUSED: &str = "tollgate_proxy_connections_refused_total";
const CLOSED: &str = "tollgate_proxy_connections_closed_for_others_total";

#[tokio::test]
async fn a_connection_beyond_a_limit_is_closed_at_once_where_all_others_are_at_work() {
    let fixture = Setup::default()
        .env("PROXY__MAX_CONNECTIONS", 5)
        .env("PROXY__MAX_CONNECTIONS_PER_ADDRESS", 3)
        .start()
        .await;
    let mut held = Vec::new();
    for (address, count) in [("127.0.0.1", 3), ("127.0.0.2", 2)] {
        for _ in 0..count {
            held.push(busy_connection(address, &fixture).await);
        }
        assert!(
            ends(&mut from(address, &fixture.edge).await).await,
            "one too many from {address}"
        );
    }
    assert!(
        ends(&mut from("127.0.0.3", &fixture.edge).await).await,
        "one too many in all"
    );
    assert_eq!(fixture.metric("tollgate_proxy_connections"), 5);
    assert_eq!(fixture.metric("tollgate_proxy_connections_max"), 5);
    assert_eq!(fixture.metric(&format!("{REFUSED}{{limit=\"address\"}}")), 1);
    assert_eq!(fixture.metric(&format!("{REFUSED}{{limit=\"all\"}}")), 2);
    assert_eq!(fixture.metric(CLOSED), 0);
    held.remove(0);
    until("a free place", async || {
        let mut connection = from("127.0.0.1", &fixture.edge).await;
        is_served(&mut connection).await
    })
    .await;
    for connection in &mut held {
        connection.write_all(b"}").await.expect("a body");
        let mut room = [0; 4096];
        let answer = timeout(SOON, connection.read(&mut room)).await;
        assert!(matches!(answer, Ok(Ok(1..))), "those that are open stay");
    }
    drop(held);
    until("no connection", async || {
        fixture.metric("tollgate_proxy_connections") == 0
    })
    .await;
    fixture.approved_call().await;
}

/// Strangers who take all places do not keep callers out, over either protocol.
#[tokio::test]
async fn idle_connections_make_room_and_unknown_callers_go_first() {
    let fixture = Setup::default().env("PROXY__MAX_CONNECTIONS", 4).start().await;
    let mut working = busy_connection("127.0.0.1", &fixture).await;
    let mut strangers = Vec::new();
    for address in ["127.0.0.2", "127.0.0.3", "127.0.0.4"] {
        let mut stranger = from(address, &fixture.edge).await;
        assert!(is_served(&mut stranger).await);
        strangers.push(stranger);
    }
    let gate = fixture.gated();
    let mut calls = Vec::new();
    for (number, stranger) in strangers.iter_mut().enumerate() {
        let client = reqwest::Client::builder().no_proxy();
        let client = match number {
            0 => client.http2_prior_knowledge(),
            _ => client,
        };
        let caller = fixture
            .edge
            .caller(&fixture.key)
            .with_client(client.build().expect("a client"));
        calls.push(tokio::spawn(async move { caller.chat(body()).await.status }));
        fixture.upstream.wait_for(number + 1, SOON).await;
        assert!(ends(stranger).await, "the longest idle one is closed first");
    }
    assert_eq!(fixture.metric(CLOSED), 3);
    assert!(
        ends(&mut from("127.0.0.5", &fixture.edge).await).await,
        "all are at work"
    );
    fixture.upstream.set(|_| answer());
    gate.notify_waiters();
    for call in calls {
        assert_eq!(call.await.expect("a call"), 200);
    }
    working.write_all(b"}").await.expect("a body");
    let mut room = [0; 4096];
    assert!(matches!(
        timeout(SOON, working.read(&mut room)).await,
        Ok(Ok(1..))
    ));
    fixture.settled_at(3 * ACTUAL).await;
}

/// A list of models that is requested with a key also makes its connection a known caller's.
#[tokio::test]
async fn a_caller_that_lists_models_counts_as_known() {
    let fixture = Setup::default().env("PROXY__MAX_CONNECTIONS", 3).start().await;
    let mut known = Vec::new();
    for (address, path) in [("127.0.0.1", "/v1/models"), ("127.0.0.2", "/v1/models/none")] {
        let mut connection = from(address, &fixture.edge).await;
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\r\n",
            fixture.key
        );
        connection.write_all(head.as_bytes()).await.expect("a head");
        let mut room = [0; 4096];
        let answer = timeout(SOON, connection.read(&mut room)).await;
        assert!(matches!(answer, Ok(Ok(1..))));
        known.push((address, connection));
    }
    // A stranger who comes last.
    let mut stranger = from("127.0.0.3", &fixture.edge).await;
    assert!(is_served(&mut stranger).await);
    let mut next = from("127.0.0.4", &fixture.edge).await;
    assert!(is_served(&mut next).await);
    assert!(ends(&mut stranger).await);
    for (address, connection) in &mut known {
        assert!(is_served(connection).await, "{address} stays");
    }
}

#[tokio::test]
async fn connections_of_a_trusted_proxy_are_not_those_of_one_caller() {
    let fixture = Setup::default()
        .env("PROXY__MAX_CONNECTIONS", 8)
        .env("PROXY__MAX_CONNECTIONS_PER_ADDRESS", 2)
        .env("NETWORK__TRUSTED_PROXIES", "127.0.0.2/32")
        .start()
        .await;
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(busy_connection("127.0.0.2", &fixture).await);
    }
    assert!(
        ends(&mut from("127.0.0.2", &fixture.edge).await).await,
        "the limit for all binds"
    );
}

/// Open files of the edge in the next tests, and the callers' part of them.
const FILES: usize = 320;
const CALLERS: usize = (FILES - 256) / 2;
/// Maximum calls of an account under way: half of the connections with the provider, which are as many as the callers'.
const PART: usize = CALLERS / 2;
/// Calls over HTTP/1, each with a connection: fewer than one address may have.
const MORE: usize = 5;

/// An edge that may have no more than [`FILES`] open.
fn with_few_files(fixture: &Fixture, dir: &std::path::Path) -> Edge {
    let script = dir.join("edge.sh");
    let text = format!(
        "#!/bin/sh\nulimit -n {FILES}\nexec {} \"$@\"\n",
        crate::fixture::PROXY
    );
    let binary = executable_script(&script, &text);
    Edge::start(EdgeOptions::new(
        &binary,
        fixture.redis.url(),
        fixture.upstream.base_url(),
    ))
}

/// Maximum connections of one address, if callers get no more than [`CALLERS`].
const OF_ADDRESS: usize = CALLERS / 4;

/// The limit of an address follows the limit of all, so that no address takes all places.
#[tokio::test]
async fn one_address_cannot_take_all_places_that_few_descriptors_leave() {
    let fixture = Setup::default().start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let edge = with_few_files(&fixture, dir.path());
    let mut flood = Vec::new();
    for _ in 0..2 * CALLERS {
        flood.push(from("127.0.0.1", &edge).await);
    }
    // Its earlier connections make room. One that arrives while another is chosen is closed, so connect again.
    let _last = eventually("an answer", SOON, async || {
        let mut last = from("127.0.0.1", &edge).await;
        is_served(&mut last).await.then_some(last)
    })
    .await;
    assert_eq!(metric(&edge, "tollgate_proxy_connections"), OF_ADDRESS as u64);
    let mut other = from("127.0.0.2", &edge).await;
    assert!(is_served(&mut other).await);
    assert_eq!(metric(&edge, "tollgate_proxy_connections"), OF_ADDRESS as u64 + 1);
    assert!(
        edge.logs()
            .contains("proxy.max_connections_per_address is lowered"),
        "{}",
        edge.logs()
    );
}

/// The limit on connections follows that on open files, so that descriptors for the provider are always free.
#[tokio::test]
async fn callers_cannot_use_up_the_descriptors_of_the_provider() {
    let fixture = Setup::default().start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let edge = with_few_files(&fixture, dir.path());
    let mut flood = Vec::new();
    for number in 0..2 * FILES {
        let mut connection = from(&format!("127.0.0.{}", 1 + number % 8), &edge).await;
        let _ = connection.write_all(b"GET /v1/he").await;
        flood.push(connection);
    }
    // A connection that arrives while another is chosen is closed, so connect again.
    let (_caller, reply) = eventually("an answer", SOON, async || {
        let mut caller = RawClient::connect(edge.addr()).await;
        caller
            .send_chat(&fixture.key, "", body().to_string().as_bytes())
            .await;
        let reply = caller.reply(SOON).await?;
        Some((caller, reply))
    })
    .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(metric(&edge, "tollgate_proxy_connections_max"), CALLERS as u64);
    assert_eq!(metric(&edge, "tollgate_proxy_connections"), CALLERS as u64);
    assert!(
        edge.logs().contains("proxy.max_connections is lowered"),
        "{}",
        edge.logs()
    );
    drop(flood);
    fixture.settled_at(ACTUAL).await;
}

/// Calls over few connections of HTTP/2.
/// Calls over one connection with HTTP/2, or over one with HTTP/1 for each.
fn calls_at_once(edge: &Edge, key: &str, count: usize, is_http2: bool) -> Vec<JoinHandle<u16>> {
    let client = reqwest::Client::builder().no_proxy();
    let client = match is_http2 {
        true => client.http2_prior_knowledge(),
        false => client.http1_only(),
    };
    let caller = edge.caller(key).with_client(client.build().expect("a client"));
    let call = |_| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.chat(body()).await.status })
    };
    (0..count).map(call).collect()
}

/// Numbers of approved and of refused calls.
async fn outcomes(calls: Vec<JoinHandle<u16>>) -> (usize, usize) {
    let mut statuses = Vec::new();
    for call in calls {
        statuses.push(call.await.expect("a call"));
    }
    let count = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert_eq!(count(200) + count(503), statuses.len(), "{statuses:?}");
    (count(200), count(503))
}

/// Waits until [`MORE`] calls found no connection with the provider.
async fn refused_here(edge: &Edge) {
    until("the calls decided", async || {
        let refused = metric(edge, "tollgate_proxy_upstream_failures_total{stage=\"local\"}");
        refused == MORE as u64
    })
    .await;
}

/// More calls than descriptors for the provider, from accounts within their shares: calls without a descriptor cost
/// nothing (decision D69).
#[tokio::test]
async fn calls_beyond_the_descriptors_for_the_provider_are_503() {
    let fixture = Setup::default().start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let edge = with_few_files(&fixture, dir.path());
    let others = [neighbour(&fixture).await, neighbour(&fixture).await];
    let gate = fixture.gated();
    let mut calls = Vec::new();
    for key in [&fixture.key, &others[0]] {
        calls.extend(calls_at_once(&edge, key, PART, true));
    }
    fixture.upstream.wait_for(CALLERS, SOON).await;
    calls.extend(calls_at_once(&edge, &others[1], MORE, false));
    refused_here(&edge).await;
    fixture.upstream.set(|_| answer());
    gate.notify_waiters();
    assert_eq!(outcomes(calls).await, (CALLERS, MORE));
}

/// A known key on one connection over HTTP/2: half of all such requests are one account's, and its calls over HTTP/1 do
/// not count.
#[tokio::test]
async fn requests_of_one_account_over_http_2_are_bounded() {
    let fixture = Setup::default().start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let edge = with_few_files(&fixture, dir.path());
    let other = neighbour(&fixture).await;
    let gate = fixture.gated();
    let calls = calls_at_once(&edge, &fixture.key, PART + 3, true);
    fixture.upstream.wait_for(PART, SOON).await;
    let one_more = calls_at_once(&edge, &fixture.key, 1, true);
    assert_eq!(outcomes(one_more).await, (0, 1));
    fixture.upstream.set(|_| answer());
    assert_eq!(outcomes(calls_at_once(&edge, &other, 1, true)).await, (1, 0));
    gate.notify_waiters();
    assert_eq!(outcomes(calls).await, (PART, 3));
    assert_eq!(
        outcomes(calls_at_once(&edge, &fixture.key, PART, true)).await,
        (PART, 0)
    );
}

/// A provider that answers late, and an account with as many calls under way as a few connections allow.
#[tokio::test]
async fn slow_calls_of_one_account_leave_descriptors_for_those_of_another() {
    let fixture = Setup::default().start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let edge = with_few_files(&fixture, dir.path());
    let other = neighbour(&fixture).await;
    let gate = fixture.gated();
    let mut calls = calls_at_once(&edge, &fixture.key, PART, true);
    fixture.upstream.wait_for(PART, SOON).await;
    calls.extend(calls_at_once(&edge, &fixture.key, MORE, false));
    refused_here(&edge).await;
    fixture.upstream.set(|_| answer());
    assert_eq!(
        outcomes(calls_at_once(&edge, &other, PART, true)).await,
        (PART, 0)
    );
    gate.notify_waiters();
    assert_eq!(outcomes(calls).await, (PART, MORE));
    fixture.settled_at(PART as u64 * ACTUAL).await;
    let again = outcomes(calls_at_once(&edge, &fixture.key, PART, true)).await;
    assert_eq!(again, (PART, 0), "its calls have ended");
}

/// Bytes that a caller sends before it falls silent.
fn openings() -> Vec<(&'static str, Vec<u8>)> {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let settings = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    // HEADERS without END_HEADERS.
    let headers = vec![0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82];
    vec![
        ("nothing", Vec::new()),
        ("half a line", b"POST /v1/chat/completions HT".to_vec()),
        ("half a preface", preface[..12].to_vec()),
        ("a preface", preface.clone()),
        ("settings", [preface.clone(), settings.clone()].concat()),
        ("half of the headers", [preface, settings, headers].concat()),
    ]
}

#[tokio::test]
async fn the_first_head_has_one_deadline_over_any_protocol() {
    let fixture = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 700)
        .start()
        .await;
    for (what, said) in openings() {
        let mut connection = TcpStream::connect(fixture.edge.addr())
            .await
            .expect("a connection");
        connection.write_all(&said).await.expect("a connection");
        assert!(ends(&mut connection).await, "{what}: still open");
    }
    fixture.approved_call().await;
}
