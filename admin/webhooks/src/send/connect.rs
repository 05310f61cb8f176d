//! The connection of an attempt: to one of the judged addresses, with TLS if the URL requires it. There is no other
//! outgoing connection: names are not resolved here, and proxies are not used.

use super::Deadline;
use super::address_limiter::AddressPermit;
use super::failure::AttemptFailure;
use crate::target::DeliveryTarget;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// A connection to a receiver, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Takes a turn at an address, if one is free.
pub(super) type TryEnter<'a> = &'a (dyn Fn(SocketAddr) -> Option<AddressPermit> + Sync);

/// Connects to the first of `addresses` that accepts the connection. The caller has a turn at the first of them;
/// returns the turn at another one.
pub(super) async fn connect(
    target: &DeliveryTarget,
    addresses: &[SocketAddr],
    tls: &TlsConnector,
    (deadline, try_enter): (Deadline, TryEnter<'_>),
) -> Result<(Box<dyn Stream>, Option<AddressPermit>), AttemptFailure> {
    let (stream, turn) = first(addresses, deadline, try_enter).await?;
    // Without this option small requests wait for the peer's acknowledgement, but the connection still works.
    let _unset = stream.set_nodelay(true);
    if !target.tls {
        return Ok((Box::new(stream), turn));
    }
    let encrypted = tls.connect(target.host.server_name(), stream).await;
    let encrypted = encrypted.map_err(|error| AttemptFailure::from_tls(&error))?;
    Ok((Box::new(encrypted), turn))
}

/// Tries the addresses in order. Each address may use only its share of the remaining time, so that one that does not
/// reply leaves time for the others.
async fn first(
    addresses: &[SocketAddr],
    deadline: Deadline,
    try_enter: TryEnter<'_>,
) -> Result<(TcpStream, Option<AddressPermit>), AttemptFailure> {
    let mut failed = AttemptFailure::Unreachable;
    for (at, address) in addresses.iter().enumerate() {
        let turn = if at == 0 { None } else { try_enter(*address) };
        if at > 0 && turn.is_none() {
            continue;
        }
        let left = deadline.left();
        let others = u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
        match timeout(left / others.max(1), TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok((stream, turn)),
            Ok(Err(error)) => failed = AttemptFailure::from_connect(error.kind()),
            Err(_elapsed) => failed = AttemptFailure::TimedOut(deadline.timeout_ms),
        }
    }
    Err(failed)
}
