//! A listening socket that is bound before Pingora starts the services.
//!
//! Pingora binds an address when it starts its service, and reports nothing afterwards. Connections to a socket that
//! was bound before wait in its queue, so the edge may report that it is ready at any time. An occupied address is
//! reported at once, which Pingora does only after many retries.

use nix::sys::socket::{Backlog, listen};
use pingora::server::ListenFds;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd as _;

/// A listening socket and its address.
#[derive(Debug)]
pub struct Bound {
    address: SocketAddr,
    listener: TcpListener,
}

impl Bound {
    /// Binds an address.
    ///
    /// # Errors
    /// The system's. Its kind says whether the address is in use or cannot be bound at all.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        // Callers that connect before they are accepted: as many as the system allows, as in Pingora's own bind.
        listen(&listener, Backlog::MAXALLOWABLE)?;
        // Pingora expects it of a socket that it is given.
        listener.set_nonblocking(true)?;
        Ok(Self { address, listener })
    }

    /// Gives the socket to Pingora, which takes the sockets of a hand-over from `fds`, too.
    pub fn give(self, fds: &ListenFds) {
        let fd = self.listener.into_raw_fd();
        fds.lock().add(self.address.to_string(), fd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::time::Duration;

    /// The standard library's bind lets 128 wait; the next ones would be left to their time-outs.
    #[test]
    fn a_crowd_can_connect_before_anybody_is_accepted() {
        let bound = Bound::new(([127, 0, 0, 1], 0).into()).unwrap();
        let address = bound.listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(1)).unwrap();
        let crowd: Vec<TcpStream> = (0..300).map(connect).collect();
        assert_eq!(crowd.len(), 300);
    }
}
