//! The closed loop: each connection sends its next request when it has received the answer to the last one. It measures
//! throughput and CPU time a request; its latencies say nothing about a fixed rate.

use crate::outcome::{Outcome, Samples, WatchedProcess, Window};
use crate::target::{ANSWER_TIMEOUT, Request, Target, Version};
use crate::wire::{self, PIECE_BYTES};
use crate::{multiplexed, tls};
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;

/// Keeps one request of each of `requests` under way until the window ends; the last ones are answered, too. With
/// HTTP/2, `streams` of them share a connection.
///
/// # Errors
/// When a watched process has ended. Errors of the target are counted instead.
pub async fn run(
    target: Arc<Target>,
    requests: Vec<Request>,
    streams: usize,
    window: Window,
    watched: &[WatchedProcess],
) -> io::Result<Outcome> {
    let mut connections = JoinSet::new();
    match target.version {
        Version::Http1 => {
            for request in requests {
                connections.spawn(connection(Arc::clone(&target), request, window));
            }
        }
        Version::Http2 => {
            for group in requests.chunks(streams.max(1)) {
                connections.spawn(multiplexed::connection(
                    Arc::clone(&target),
                    group.to_vec(),
                    window,
                ));
            }
        }
    }
    let cpu_seconds = window.cpu_seconds(watched).await?;
    let mut all = Samples::default();
    while let Some(samples) = connections.join_next().await {
        all.add(samples?);
    }
    Ok(all.outcome(&window, cpu_seconds))
}

async fn connection(target: Arc<Target>, request: Request, window: Window) -> Samples {
    let mut samples = Samples::default();
    if let Err(error) = dial_and_exchange(&target, &request, window, &mut samples).await {
        samples.errors.push(error.to_string());
    }
    samples
}

/// Exchanges until the window ends. Opens a new connection whenever the target closes one.
async fn dial_and_exchange(
    target: &Target,
    request: &Request,
    window: Window,
    samples: &mut Samples,
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    while Instant::now() < window.end {
        let stream = target.connect(request.number).await?;
        let http1 = &request.http1;
        match &target.tls {
            Some(connector) => {
                let stream = connector.connect(tls::name()?, stream);
                let stream = tokio::time::timeout(ANSWER_TIMEOUT, stream).await??;
                exchange_all(stream, target, http1, window, &mut buffer, samples).await?;
            }
            None => exchange_all(stream, target, http1, window, &mut buffer, samples).await?,
        }
    }
    Ok(())
}

/// Exchanges until the window or the connection ends.
async fn exchange_all(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    target: &Target,
    request: &[u8],
    window: Window,
    buffer: &mut [u8],
    samples: &mut Samples,
) -> io::Result<()> {
    loop {
        let sent = Instant::now();
        if sent >= window.end {
            return Ok(());
        }
        let exchange = exchange(&mut stream, request, buffer);
        let (status, closes) = tokio::time::timeout(ANSWER_TIMEOUT, exchange).await??;
        samples.count(status, &target.expected)?;
        let answered = Instant::now();
        if window.holds(answered) {
            samples.latencies.push(answered - sent);
        }
        if closes {
            return Ok(());
        }
    }
}

/// Sends one request and reads its answer. Returns the status, and whether the connection ends with the answer.
async fn exchange(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: &[u8],
    buffer: &mut [u8],
) -> io::Result<(u16, bool)> {
    stream.write_all(request).await?;
    stream.flush().await?;
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += read;
        if let Some(status) = whole_answer(&buffer[..filled])? {
            return Ok((status, wire::closes(&buffer[..filled])));
        }
    }
}

/// Returns the status once the answer is whole. Bytes beyond it are an error.
pub(crate) fn whole_answer(bytes: &[u8]) -> io::Result<Option<u16>> {
    let broken = |wire::Broken(what)| io::Error::new(io::ErrorKind::InvalidData, what);
    match wire::message_length(bytes).map_err(broken)? {
        Some(length) if bytes.len() == length => wire::status(bytes).map(Some).map_err(broken),
        Some(length) if bytes.len() > length => Err(io::Error::other("more than one answer")),
        Some(length) if length > PIECE_BYTES => Err(io::Error::other("an answer that is too long")),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::tests::plain;
    use std::time::Duration;

    /// Length of a load: a busy machine can stall for a second.
    const LENGTH: Duration = Duration::from_secs(2);

    #[test]
    fn an_answer_is_whole_or_not_or_too_much() {
        let answer = wire::chat_answer();
        assert_eq!(whole_answer(&answer).unwrap(), Some(200));
        assert_eq!(whole_answer(&answer[..answer.len() - 1]).unwrap(), None);
        assert!(whole_answer(&[answer.as_slice(), b"x"].concat()).is_err());
    }

    #[tokio::test]
    async fn a_target_that_closes_is_dialled_again() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (target, requests) = plain(listener.local_addr().unwrap(), &[401], 1);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                assert!(stream.read(&mut request).await.unwrap() > 1024);
                let answer = b"HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(answer).await.unwrap();
            }
        });
        let window = Window::after(Duration::ZERO, LENGTH);
        let found = run(target, requests, 1, window, &[]).await.unwrap();
        assert_eq!((found.errors, found.first_error), (0, None));
        assert!(found.answered > 1, "{}", found.answered);
    }

    #[tokio::test]
    async fn every_answer_is_counted_and_a_wrong_one_is_an_error() {
        let upstream = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = upstream.local_addr().unwrap();
        tokio::spawn(crate::upstream::serve(upstream, None));
        let window = || Window::after(Duration::from_millis(20), LENGTH);
        let (target, requests) = plain(address, &[200, 402], 3);
        let good = run(target, requests, 1, window(), &[]).await.unwrap();
        assert_eq!((good.errors, good.first_error), (0, None));
        assert!(good.answered > 0 && good.answered_in_all >= good.answered);
        assert_eq!(good.statuses.get(&200), Some(&good.answered_in_all));
        assert!(good.latency.p50_us > 0.0 && good.latency.p50_us <= good.latency.p99_us);
        let (target, requests) = plain(address, &[402], 3);
        let bad = run(target, requests, 1, window(), &[]).await.unwrap();
        assert_eq!((bad.answered_in_all, bad.errors), (0, 3));
        assert_eq!(bad.first_error.as_deref(), Some("status 200 instead of [402]"));
    }
}
