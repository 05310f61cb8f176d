//! The closed loop: each connection sends its next request when it has the answer to the last one. It finds the
//! throughput and the CPU time a request; its latencies say nothing about a fixed rate.

use crate::outcome::{Outcome, Seen, Watched, Window, cpu_between, cpu_now};
use crate::wire::{self, MESSAGE_BYTES_MAX};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs one connection for each of `requests` until the window ends; each finishes its last request.
///
/// # Errors
/// When a watched process is gone. What the target does wrong is counted instead.
pub async fn run(
    target: SocketAddr,
    requests: Vec<Vec<u8>>,
    expected: u16,
    window: Window,
    watched: &[Watched],
) -> io::Result<Outcome> {
    let mut connections = JoinSet::new();
    for request in requests {
        connections.spawn(connection(target, request, expected, window));
    }
    tokio::time::sleep_until(window.begin.into()).await;
    let before = cpu_now(watched)?;
    tokio::time::sleep_until(window.end.into()).await;
    let cpu_seconds = cpu_between(&before, cpu_now(watched)?);
    let mut all = Seen::default();
    while let Some(seen) = connections.join_next().await {
        all.add(seen?);
    }
    Ok(all.outcome(&window, cpu_seconds))
}

async fn connection(target: SocketAddr, request: Vec<u8>, expected: u16, window: Window) -> Seen {
    let mut seen = Seen::default();
    if let Err(error) = exchange_all(target, &request, expected, window, &mut seen).await {
        seen.errors.push(error.to_string());
    }
    seen
}

async fn exchange_all(
    target: SocketAddr,
    request: &[u8],
    expected: u16,
    window: Window,
    seen: &mut Seen,
) -> io::Result<()> {
    let mut stream = TcpStream::connect(target).await?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    loop {
        let sent = Instant::now();
        if sent >= window.end {
            return Ok(());
        }
        let exchange = exchange(&mut stream, request, &mut buffer);
        let status = tokio::time::timeout(ANSWER_TIMEOUT, exchange).await??;
        check(status, expected)?;
        seen.answered += 1;
        let answered = Instant::now();
        if window.holds(answered) {
            seen.latencies.push(answered - sent);
        }
    }
}

/// An answer with another status than expected is an error.
pub(crate) fn check(status: u16, expected: u16) -> io::Result<()> {
    if status == expected {
        Ok(())
    } else {
        Err(io::Error::other(format!("status {status} instead of {expected}")))
    }
}

async fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> io::Result<u16> {
    stream.write_all(request).await?;
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += read;
        if let Some(status) = whole_answer(&buffer[..filled])? {
            return Ok(status);
        }
    }
}

/// The status, once the answer is whole. Bytes beyond it are an error: nothing else was asked for.
pub(crate) fn whole_answer(bytes: &[u8]) -> io::Result<Option<u16>> {
    let broken = |wire::Broken(what)| io::Error::new(io::ErrorKind::InvalidData, what);
    match wire::message_length(bytes).map_err(broken)? {
        Some(length) if bytes.len() == length => wire::status(bytes).map(Some).map_err(broken),
        Some(length) if bytes.len() > length => Err(io::Error::other("more than one answer")),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_not_or_too_much() {
        let answer = wire::chat_answer();
        assert_eq!(whole_answer(&answer).unwrap(), Some(200));
        assert_eq!(whole_answer(&answer[..answer.len() - 1]).unwrap(), None);
        assert!(whole_answer(&[answer.as_slice(), b"x"].concat()).is_err());
        assert!(check(402, 402).is_ok() && check(503, 200).is_err());
    }

    #[tokio::test]
    async fn every_answer_is_counted_and_a_wrong_one_is_an_error() {
        let upstream = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = upstream.local_addr().unwrap();
        tokio::spawn(crate::upstream::serve(upstream));
        let requests = vec![wire::chat_request("bench", "k", "r"); 3];
        let window = || Window::after(Duration::from_millis(20), Duration::from_millis(200));
        let good = run(target, requests.clone(), 200, window(), &[]).await.unwrap();
        assert_eq!((good.errors, good.first_error), (0, None));
        assert!(good.answered > 0 && good.answered_in_all >= good.answered);
        assert!(good.latency.p50_us > 0.0 && good.latency.p50_us <= good.latency.p99_us);
        let bad = run(target, requests, 402, window(), &[]).await.unwrap();
        assert_eq!((bad.answered_in_all, bad.errors), (0, 3));
        assert_eq!(bad.first_error.as_deref(), Some("status 200 instead of 402"));
    }
}
