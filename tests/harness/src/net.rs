//! Free ports, bounded waiting, and the runtime of the harness's own servers.

use entropy::random_bytes;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;
use tokio::runtime::{Builder, Runtime};

/// Range of the ports: above the well-known ones, below those that Linux gives to outgoing connections.
const PORTS: std::ops::Range<u16> = 10_240..32_000;
/// The root of the repository.
pub const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Pause between two attempts in [`eventually`] and [`until`].
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Longest wait of [`until`]. Only a test that fails waits so long, so a busy machine has room.
const UNTIL_MAX: Duration = Duration::from_secs(120);

/// The runtime of the wires and upstreams, separate from the test's runtime, which a test may block.
pub(crate) static BACKGROUND: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_name("harness").enable_all();
    runtime.build().expect("a runtime for the harness")
});

/// A free port of 127.0.0.1. Each test process starts its search at a random port.
pub fn free_port() -> u16 {
    let address = free_listener().local_addr();
    address.expect("an address").port()
}

/// A listener on a [free port](free_port) of 127.0.0.1. No other process can take the port in between.
pub(crate) fn free_listener() -> TcpListener {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        let random = u16::from_be_bytes(random_bytes().expect("randomness"));
        AtomicU16::new(random)
    });
    for _ in PORTS {
        let port = PORTS.start + NEXT.fetch_add(1, Ordering::Relaxed) % (PORTS.end - PORTS.start);
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener;
        }
    }
    panic!("no free port on 127.0.0.1");
}

/// A port of 127.0.0.1 that refuses connections. It is bound but not listened on, so no other process can listen on it
/// until this is dropped.
#[derive(Debug)]
pub struct ClosedPort {
    address: SocketAddr,
    _taken: TcpSocket,
}

impl ClosedPort {
    /// Takes a port. Needs no runtime.
    pub fn take() -> Self {
        let taken = TcpSocket::new_v4().expect("a socket");
        taken.bind(loopback(0)).expect("a port");
        let address = taken.local_addr().expect("an address");
        Self {
            address,
            _taken: taken,
        }
    }

    /// Its address, with 127.0.0.1.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Calls `probe` until it returns something; panics with `what` after `within`. Blocks the thread.
#[track_caller]
pub(crate) fn blocking_until<T>(what: &str, within: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + within;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not happen within {within:?}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Calls `probe` until it returns something; panics with `what` after `within`.
pub async fn eventually<T>(what: &str, within: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + within;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not happen within {within:?}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Calls `holds` until it returns true; panics with `what` after two minutes. A test that asserts a bound, or needs
/// what it waited for, takes [`eventually`].
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    eventually(what, UNTIL_MAX, async || holds().await.then_some(())).await;
}
