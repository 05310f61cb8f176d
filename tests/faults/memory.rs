//! Memory: it is returned after a load, and a waiting call takes little.

use crate::fixture::{Fixture, SOON, Setup};
use crate::sizes::body_of;
use harness::until;

/// Callers at the same time, and the length of their bodies.
const CALLERS: usize = 8;
const LENGTH: usize = 8 << 20;
/// Minimum memory of all callers together, without which the test proves nothing. Far less than their bodies, which
/// come one after the other when the machine is slow.
const TAKEN_MIN_KIB: u64 = 24 << 10;
/// Memory that may stay: connections, buffers, some pages.
const KEPT_MAX_KIB: u64 = 6 << 10;

/// The allocator's memory before the first line of the program: a huge page for its own records, one for the first
/// blocks.
const HUGE_MAX_KIB: u64 = 4 << 10;

/// A line of a file of `/proc/PID`, in KiB.
fn kib(pid: u32, file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("the process");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {file}"));
    line.trim().trim_end_matches(" kB").parse().expect("a size")
}

pub fn resident_kib(pid: u32) -> u64 {
    kib(pid, "status", "VmRSS:")
}

async fn large_call(fixture: &Fixture, body: &[u8]) {
    let mut raw = fixture.raw().await;
    assert!(raw.send_chat(&fixture.key, "", body).await);
    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_large_bodies_is_returned() {
    let fixture = Setup::default().start().await;
    let pid = fixture.edge.pid();
    fixture.approved_call().await;
    let before = resident_kib(pid);
    let body = body_of(LENGTH);
    futures::future::join_all((0..CALLERS).map(|_| large_call(&fixture, &body))).await;
    let taken = kib(pid, "status", "VmHWM:").saturating_sub(before);
    assert!(taken >= TAKEN_MIN_KIB, "{taken} KiB at the peak");
    until("the memory to be given back", async || {
        resident_kib(pid) <= before + KEPT_MAX_KIB
    })
    .await;
    let huge = kib(pid, "smaps_rollup", "AnonHugePages:");
    assert!(
        huge <= HUGE_MAX_KIB,
        "{huge} KiB in huge pages, of which most are zeros"
    );
}

/// Calls that wait for the provider hold less memory than their bodies, which are sent by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_for_the_provider_keep_no_bodies() {
    const WAITING: usize = 128;
    const LENGTH: usize = 256 << 10;
    let fixture = Setup::default().start().await;
    let pid = fixture.edge.pid();
    fixture.approved_call().await;
    let before = resident_kib(pid);
    let gate = fixture.gated();
    let body = body_of(LENGTH);
    let mut callers = Vec::new();
    for calls in 1..=WAITING {
        callers.push(fixture.waiting_call(&body, calls + 1).await);
    }
    assert_eq!(fixture.upstream.arrived(), WAITING + 1);
    let bodies = u64::try_from((WAITING * LENGTH) >> 10).expect("KiB");
    until("less memory than bodies", async || {
        resident_kib(pid) < before + bodies
    })
    .await;
    gate.notify_waiters();
    for mut raw in callers {
        assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    }
}
