//! No connection to the provider is made: the log names the upstream, its host and port, and the cause, and no secret.

use crate::fixture::{Fixture, PROVIDER_KEY, SOON, estimated_body, open_cap};
use crate::shape::refused;
use crate::tls::{Certificate, Terminator};
use harness::{eventually, free_port};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Makes a call through an edge whose provider is at `base_url` and cannot be reached. Returns the cause in the line of
/// the edge's log that has this stage.
async fn logged(base_url: &str, stage: &str, address: &str) -> String {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_UPSTREAM__BASE_URL", base_url)).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let reply = actor.caller.chat(estimated_body(100)).await;
    refused(&reply, 502, "upstream_unreachable");
    let line = eventually("a line of the log", SOON, async || {
        let logs = fixture.edge.logs();
        let mut lines = logs
            .lines()
            .rev()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| line["upstream.stage"] == stage)
    })
    .await;
    assert_eq!(line["upstream.name"], "openai", "{line}");
    assert_eq!(line["upstream.address"], address, "{line}");
    let logs = fixture.edge.logs();
    assert!(
        !logs.contains(PROVIDER_KEY) && !logs.contains(&actor.key),
        "{logs}"
    );
    line["upstream.error"].as_str().expect("a cause").to_owned()
}

/// Starts a provider that writes these bytes to each connection, without waiting for a request, and closes it. Returns
/// its address and its task.
async fn provider_that_says(bytes: &'static [u8]) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", free_port()))
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(bytes).await;
        }
    });
    (address, task)
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_named() {
    let certificate = Certificate::for_names(&["localhost"]);
    let behind = ([127, 0, 0, 1], free_port()).into();
    let front = Terminator::start(&certificate, behind).await;
    let address = format!("localhost:{}", front.addr.port());
    let cause = logged(&format!("https://{address}/v1"), "connect", &address).await;
    assert!(
        cause.contains("TLS") && cause.contains("UnknownIssuer"),
        "{cause}"
    );
}

#[tokio::test]
async fn a_provider_without_tls_is_named() {
    let (address, plain) = provider_that_says(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let cause = logged(&format!("https://{address}/v1"), "connect", &address).await;
    assert!(cause.contains("TLS"), "{cause}");
    plain.abort();
}

#[tokio::test]
async fn a_closed_port_is_named() {
    let address = format!("127.0.0.1:{}", free_port());
    let cause = logged(&format!("http://{address}/v1"), "connect", &address).await;
    assert!(cause.contains("Connection refused"), "{cause}");
}

/// The name is one of those that never resolve (RFC 6761).
#[tokio::test]
async fn a_name_that_does_not_resolve_is_named() {
    let cause = logged("https://provider.invalid/v1", "resolve", "provider.invalid:443").await;
    assert!(!cause.is_empty());
}

/// An answer that is no HTTP is quoted nowhere: it may repeat the prompt.
#[tokio::test]
async fn an_answer_that_breaks_off_is_named_and_not_quoted() {
    let (address, odd) = provider_that_says(b"canary of an answer\r\n\r\n").await;
    let cause = logged(&format!("http://{address}/v1"), "head", &address).await;
    assert!(!cause.is_empty() && !cause.contains("canary"), "{cause}");
    odd.abort();
}
