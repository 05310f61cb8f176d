//! Slow and large heads and bodies: their memory is released.

use crate::fixture::{FULL, Fixture};
use domain::mode::Mode;
use harness::{RawClient, eventually, until};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// Accounts that send at the same time, bodies of each, and the length of a body.
const ACCOUNTS: usize = 4;
const BODIES: usize = 8;
const LENGTH: usize = 1 << 20;
/// Bytes that are sent at once: the bodies grow beside each other.
const PIECE: usize = 32 << 10;
/// Connections with a head that has no end, and its length.
const HEADS: usize = 256;
const HEAD: usize = 48 << 10;
/// Least memory that all bodies, and all heads, must have taken for the tests to prove anything.
const BODIES_MIN_KIB: u64 = 24 << 10;
const HEADS_MIN_KIB: u64 = 8 << 10;
/// Memory that may remain: connections, buffers, some pages.
const KEPT_MAX_KIB: u64 = 8 << 10;

/// A line of `/proc/PID/status`, in KiB.
fn kib(fixture: &Fixture, name: &str) -> u64 {
    let path = format!("/proc/{}/status", fixture.admin.pid());
    let text = std::fs::read_to_string(path).expect("the process");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name}"));
    line.trim().trim_end_matches(" kB").parse().expect("a size")
}

/// Checks that at least `least` KiB were taken beyond `before`, and waits until they are released, up to
/// [`KEPT_MAX_KIB`].
async fn given_back(fixture: &Fixture, before: u64, least: u64) {
    let taken = kib(fixture, "VmHWM:").saturating_sub(before);
    assert!(taken >= least, "{taken} KiB at the peak");
    until("the memory to be given back", async || {
        kib(fixture, "VmRSS:") <= before + KEPT_MAX_KIB
    })
    .await;
}

/// Sends each client its piece, in turns, until each has `length` bytes; the byte after that is missing.
async fn send_in_turns(clients: &mut [RawClient], length: usize) {
    let mut left = length;
    while left > 0 {
        let piece = vec![b' '; left.min(PIECE)];
        for client in &mut *clients {
            assert!(client.send(&piece).await);
        }
        left -= piece.len();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_large_bodies_is_returned() {
    let memory = (16 * ACCOUNTS * LENGTH * BODIES).to_string();
    let fixture =
        Fixture::start_with(|options| options.env("TOLLGATE_ADMIN__MAX_BUFFERED_BYTES", memory)).await;
    let mut clients = Vec::new();
    for _ in 0..ACCOUNTS {
        let (account, _) = fixture.account("enterprise").await;
        let key = account.issue(Mode::Live, FULL, &[], None).await;
        for _ in 0..BODIES {
            let mut client = RawClient::connect(fixture.admin.addr()).await;
            let head = format!(
                "POST /v1/agents HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {LENGTH}\r\n\r\n",
                key.secret
            );
            assert!(client.send(head).await);
            clients.push(client);
        }
    }
    let before = kib(&fixture, "VmRSS:");
    send_in_turns(&mut clients, LENGTH - 1).await;
    eventually("all bodies to be there", SOON, async || {
        let taken: usize = fixture.admin.metric("tollgate_admin_body_memory_bytes")?;
        (taken == clients.len() * (LENGTH - 1)).then_some(())
    })
    .await;
    for client in &mut clients {
        assert!(client.send("x").await);
        assert_eq!(client.reply(SOON).await.expect("an answer").status, 400);
    }
    given_back(&fixture, before, BODIES_MIN_KIB).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_slow_heads_is_returned() {
    let fixture = Fixture::start_with(|options| {
        options
            .env("TOLLGATE_ADMIN__CLIENT_TIMEOUT_MS", "10000")
            .env("TOLLGATE_ADMIN__MAX_CONNECTIONS_PER_ADDRESS", "1000")
    })
    .await;
    let before = kib(&fixture, "VmRSS:");
    let mut clients = Vec::new();
    for _ in 0..HEADS {
        let mut client = RawClient::connect(fixture.admin.addr()).await;
        let head = format!(
            "GET /reference HTTP/1.1\r\nHost: a\r\nX-Long: {}",
            "x".repeat(HEAD)
        );
        assert!(client.send(head).await);
        clients.push(client);
    }
    for client in &mut clients {
        client.read_to_end(SOON).await;
    }
    given_back(&fixture, before, HEADS_MIN_KIB).await;
}
