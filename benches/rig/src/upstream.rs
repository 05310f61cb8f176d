//! A provider with minimal cost: it reads every request to its end and answers with the same completion, or with the
//! requested stream.

use crate::stream_wire::{StreamSpec, stream_end, stream_event, stream_head};
use crate::wire::{self, PIECE_BYTES};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::TlsAcceptor;

/// Serves connections until the task ends, with TLS if there is an acceptor.
///
/// # Errors
/// When a connection cannot be accepted.
pub async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>) -> io::Result<()> {
    let answer: &'static [u8] = Box::leak(wire::chat_answer().into_boxed_slice());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let tls = tls.clone();
        // The other end counts a broken connection as an error of the run.
        tokio::spawn(async move {
            let ended = match tls {
                Some(tls) => answer_all(tls.accept(stream).await?, answer).await,
                None => answer_all(stream, answer).await,
            };
            drop(ended);
            io::Result::Ok(())
        });
    }
}

async fn answer_all(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let broken = |wire::Broken(what)| io::Error::new(io::ErrorKind::InvalidData, what);
        while let Some(length) = wire::message_length(&buffer[..filled]).map_err(broken)? {
            // The stream is requested in the body, which often arrives after the head.
            if filled < length.min(buffer.len()) {
                break;
            }
            let here = length.min(filled);
            let spec = StreamSpec::from_request(&buffer[..here]);
            if here < length {
                // Too long for the buffer: the rest is read and discarded.
                drain(&mut stream, &mut buffer, length - here).await?;
                filled = 0;
            } else {
                buffer.copy_within(length..filled, 0);
                filled -= length;
            }
            match spec {
                Some(spec) => write_stream(&mut stream, spec).await?,
                None => stream.write_all(answer).await?,
            }
            stream.flush().await?;
        }
    }
}

/// Sends the head with the first event, then each event when it is due.
async fn write_stream(stream: &mut (impl AsyncWrite + Unpin), spec: StreamSpec) -> io::Result<()> {
    let (began, every) = (Instant::now(), Duration::from_micros(spec.every_us));
    let event = stream_event();
    stream.write_all(&[stream_head(), event.clone()].concat()).await?;
    stream.flush().await?;
    let mut due = began;
    for _ in 1..spec.events {
        due += every;
        sleep_until(due).await;
        stream.write_all(&event).await?;
        stream.flush().await?;
    }
    stream.write_all(&stream_end()).await
}

async fn drain(stream: &mut (impl AsyncRead + Unpin), buffer: &mut [u8], mut left: usize) -> io::Result<()> {
    while left > 0 {
        let room = left.min(buffer.len());
        match stream.read(&mut buffer[..room]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn pieces_several_requests_at_once_and_long_ones_are_all_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        tokio::spawn(serve(listener, None));
        let request = |bytes| wire::chat_request("bench", "k", "r", &wire::chat_body(bytes));
        let all = [request(1024), request(1024), request(300_000), request(1024)].concat();
        let (first, rest) = all.split_at(100);
        stream.write_all(first).await.unwrap();
        stream.flush().await.unwrap();
        stream.write_all(rest).await.unwrap();
        let answer = wire::chat_answer();
        let mut buffer = vec![0; answer.len() * 4];
        stream.read_exact(&mut buffer).await.unwrap();
        assert_eq!(buffer, answer.repeat(4));
    }

    #[tokio::test]
    async fn a_stream_is_sent_also_when_the_body_comes_behind_the_head() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        tokio::spawn(serve(listener, None));
        let spec = StreamSpec {
            every_us: 100,
            events: 3,
        };
        let request = wire::chat_request("bench", "k", "r", &spec.body(1024));
        let body = request.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        let (head, body) = request.split_at(body);
        stream.write_all(head).await.unwrap();
        // Long enough for the server to read the head alone.
        tokio::time::sleep(Duration::from_millis(20)).await;
        stream.write_all(body).await.unwrap();
        let due = [stream_head(), stream_event().repeat(3), stream_end()].concat();
        let mut found = vec![0; due.len()];
        stream.read_exact(&mut found).await.unwrap();
        assert_eq!(found, due);
    }
}
