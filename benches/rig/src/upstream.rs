//! A provider that costs next to nothing: it answers every request with the same completion.

use crate::wire::{self, MESSAGE_BYTES_MAX};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers every connection until the task ends.
///
/// # Errors
/// When no more connections can be taken.
pub async fn serve(listener: TcpListener) -> io::Result<()> {
    let answer: &'static [u8] = Box::leak(wire::chat_answer().into_boxed_slice());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A connection that breaks shows at the other end, as an error of the run.
        tokio::spawn(async move { drop(answer_all(stream, answer).await) });
    }
}

async fn answer_all(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).await?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let broken = |wire::Broken(what)| io::Error::new(io::ErrorKind::InvalidData, what);
        while let Some(length) = wire::message_length(&buffer[..filled]).map_err(broken)? {
            if filled < length {
                break;
            }
            stream.write_all(answer).await?;
            buffer.copy_within(length..filled, 0);
            filled -= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_and_several_requests_at_once_are_all_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        tokio::spawn(serve(listener));
        let request = wire::chat_request("bench", "k", "r");
        let both = [request.as_slice(), &request].concat();
        let (first, rest) = both.split_at(100);
        stream.write_all(first).await.unwrap();
        stream.flush().await.unwrap();
        stream.write_all(rest).await.unwrap();
        let answer = wire::chat_answer();
        let mut buffer = vec![0; answer.len() * 2];
        stream.read_exact(&mut buffer).await.unwrap();
        assert_eq!(buffer, [answer.as_slice(), &answer].concat());
    }
}
