//! Bytes in the kernel's queues of TCP connections on this machine (`/proc/net/tcp`).

use std::net::SocketAddr;

/// The state of a connection in use.
const ESTABLISHED: &str = "01";

/// Bytes that wait in the queues of all connections with one server.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Queues {
    /// Sent by the server, and not received yet by the client's kernel.
    pub server_sends: u64,
    /// Received by the client's kernel, and not read yet by the client.
    pub client_receives: u64,
}

impl Queues {
    /// The queues of the connections with the server that listens on `addr`.
    pub fn with(addr: SocketAddr) -> Self {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
        let mut all = Self::default();
        for line in table.lines().skip(1) {
            let mut columns = line.split_whitespace().skip(1);
            let mut next = || columns.next().expect("a column");
            let (local, remote, state, queues) = (next(), next(), next(), next());
            if state != ESTABLISHED {
                continue;
            }
            let (sends, receives) = queues.split_once(':').expect("two queues");
            if port(local) == addr.port() {
                all.server_sends += number(sends);
            } else if port(remote) == addr.port() {
                all.client_receives += number(receives);
            }
        }
        all
    }

    /// Bytes in both queues.
    pub const fn all(self) -> u64 {
        self.server_sends + self.client_receives
    }
}

fn port(address: &str) -> u16 {
    let (_, port) = address.split_once(':').expect("a port");
    u16::from_str_radix(port, 16).expect("a number")
}

fn number(text: &str) -> u64 {
    u64::from_str_radix(text, 16).expect("a number")
}
