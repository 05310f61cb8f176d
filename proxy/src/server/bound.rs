//! A listening socket that is bound before Pingora starts the services.
//!
//! Pingora binds an address when it starts its service, and reports nothing afterwards. Connections to a socket that
//! was bound before wait in its queue, so the edge may report that it is ready at any time. An occupied address is
//! reported at once, which Pingora does only after many retries.

use super::cannot_start::CannotStart;
use pingora::server::ListenFds;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd as _;

/// A listening socket and its address.
#[derive(Debug)]
pub struct Bound {
    address: SocketAddr,
    listener: TcpListener,
}

impl Bound {
    /// Binds the address of the setting `key`.
    ///
    /// # Errors
    /// One line that names the setting.
    pub fn new(key: &str, address: SocketAddr) -> Result<Self, CannotStart> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            // Pingora expects it of a socket that it is given.
            listener.set_nonblocking(true)?;
            Ok(Self { address, listener })
        };
        bind().map_err(|error| CannotStart::from_io(&format!("{key} {address}"), &error))
    }

    /// Gives the socket to Pingora, which takes the sockets of a hand-over from `fds`, too.
    pub fn give(self, fds: &ListenFds) {
        let fd = self.listener.into_raw_fd();
        fds.lock().add(self.address.to_string(), fd);
    }
}
