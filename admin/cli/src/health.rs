//! `tollgate-admin health`: checks a server on this machine, for probes without a shell and curl.

use crate::failure::CommandFailure;
use crate::report::Report;
use clap::ValueEnum;
use serde_json::json;
use settings::Settings;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for the whole answer: shorter than probes usually wait.
const PATIENCE: Duration = Duration::from_secs(4);
/// Longest answer that is read, in bytes: a status line and a sentence.
const LONGEST: u64 = 16 * 1024;

/// Checks the health of a server on this machine.
#[derive(Debug, clap::Args)]
pub(super) struct Health {
    /// The server, at proxy.ops_listen or admin.ops_listen
    server: ServerKind,
    /// Check only whether the process replies, not whether it can serve
    #[arg(long)]
    live: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ServerKind {
    /// tollgate-proxy
    Edge,
    /// tollgate-admin serve
    Admin,
}

impl Health {
    pub(super) async fn run(self, settings: &Settings) -> Result<Report, CommandFailure> {
        let listen = match self.server {
            ServerKind::Edge => settings.proxy.ops_listen,
            ServerKind::Admin => settings.admin.ops_listen,
        };
        let (address, path) = (reachable(listen), if self.live { "/livez" } else { "/readyz" });
        let url = format!("http://{address}{path}");
        let answer = timeout(PATIENCE, get(address, path)).await;
        let answer = answer
            .map_err(|_elapsed| unhealthy(&url, "no answer in time"))?
            .map_err(|error| unhealthy(&url, &error.to_string()))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        match head.split(' ').nth(1) {
            Some("200") => Ok(Report::new(
                format!("{url} is well."),
                json!({ "ok": true, "url": url }),
            )),
            Some(status) => {
                let reason = body.lines().next().unwrap_or_default();
                Err(unhealthy(&url, &format!("{status} {reason}")))
            }
            None => Err(unhealthy(&url, "the answer is not HTTP")),
        }
    }
}

fn unhealthy(url: &str, why: &str) -> CommandFailure {
    CommandFailure::refused("UNHEALTHY", format!("{url}: {why}"))
}

/// Returns the address at which a listener is reachable from this machine: a listener on all addresses is also on
/// loopback.
const fn reachable(listen: SocketAddr) -> SocketAddr {
    match listen {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => {
            SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), v4.port())
        }
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), v6.port())
        }
        other => other,
    }
}

async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_met_on_loopback() {
        for (listen, met) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:9091", "[::1]:9091"),
            ("10.0.0.7:9090", "10.0.0.7:9090"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), met);
        }
    }
}
