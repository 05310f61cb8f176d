//! Plays an answer on a connection and records how far it got.

use super::answer::Play;
use super::feed::{Feed, Piece};
use super::step::Step;
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer that ended before its last byte: its script or feed broke it off, or the other side closed.
#[derive(Debug, Clone, Copy)]
struct CutShort;

/// An answer that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// The number of its request.
    pub number: usize,
    /// Bytes of a scripted body that were handed to the connection, without the transfer encoding.
    pub body_bytes: usize,
}

/// State of an answer that is being sent.
struct Player<'a> {
    stream: &'a mut TcpStream,
    chunked: bool,
    body_bytes: usize,
    /// True while a scripted body is sent: a wait then ends when the peer closes.
    watches: bool,
}

/// Plays an answer. The second value is false if the connection has ended.
pub(super) async fn play(stream: &mut TcpStream, play: Play, number: usize) -> (Played, bool) {
    let mut player = Player {
        stream,
        chunked: play.chunked,
        body_bytes: 0,
        watches: false,
    };
    let whole = player.all(play.steps, play.script).await.is_ok();
    let played = Played {
        number,
        body_bytes: player.body_bytes,
    };
    (played, play.keep_alive && whole)
}

impl Player<'_> {
    async fn all(&mut self, steps: Vec<Step>, script: Option<Vec<Step>>) -> Result<(), CutShort> {
        for step in steps {
            self.step(step).await?;
        }
        let Some(script) = script else {
            return Ok(());
        };
        self.watches = true;
        for step in script {
            self.step(step).await?;
        }
        if self.chunked {
            self.write(b"0\r\n\r\n").await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: Step) -> Result<(), CutShort> {
        match step {
            Step::Send(bytes) => self.write(&bytes).await,
            Step::Body(bytes) => self.body(&bytes).await,
            Step::Pause(time) => self.wait(tokio::time::sleep(time)).await,
            Step::Wait(gate) => self.wait(gate.notified()).await,
            Step::Feed(feed) => self.feed(&feed).await,
            Step::Hang => {
                // Until the other side closes.
                let mut sink = [0; 1024];
                while let Ok(1..) = self.stream.read(&mut sink).await {}
                Err(CutShort)
            }
            Step::Reset => self.reset(),
            Step::BreakOff => Err(CutShort),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), CutShort> {
        self.stream.write_all(bytes).await.map_err(|_| CutShort)
    }

    /// Writes a piece of the body, in one write with its chunk header.
    async fn body(&mut self, bytes: &[u8]) -> Result<(), CutShort> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.chunked {
            let head = format!("{:x}\r\n", bytes.len());
            self.write(&[head.as_bytes(), bytes, b"\r\n"].concat()).await?;
        } else {
            self.write(bytes).await?;
        }
        self.body_bytes += bytes.len();
        Ok(())
    }

    async fn wait(&self, over: impl Future<Output = ()>) -> Result<(), CutShort> {
        if !self.watches {
            over.await;
            return Ok(());
        }
        tokio::select! {
            () = over => Ok(()),
            () = gone(self.stream) => Err(CutShort),
        }
    }

    async fn feed(&mut self, feed: &Feed) -> Result<(), CutShort> {
        loop {
            let piece = tokio::select! {
                biased;
                piece = feed.next() => piece,
                () = gone(self.stream) => {
                    feed.note_peer_gone();
                    return Err(CutShort);
                }
            };
            match piece {
                None => return Ok(()),
                Some(Piece::Send(bytes)) => {
                    let sent = self.body(&bytes).await;
                    sent.inspect_err(|_| feed.note_peer_gone())?;
                }
                Some(Piece::Reset) => self.reset()?,
                Some(Piece::BreakOff) => return Err(CutShort),
            }
        }
    }

    fn reset(&self) -> Result<(), CutShort> {
        let _ = self.stream.set_zero_linger();
        Err(CutShort)
    }
}

/// Ends when the other side has closed the connection. A request that it sends meanwhile stays unread.
async fn gone(stream: &TcpStream) {
    let peeked: io::Result<usize> = stream.peek(&mut [0]).await;
    if let Ok(1..) = peeked {
        std::future::pending::<()>().await;
    }
}
