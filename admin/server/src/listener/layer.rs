//! A stream that wraps another one: it handles writes and shutdown itself and delegates everything else.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The behaviour of a stream on top of another one.
pub(super) trait Layer: Unpin {
    /// The stream below.
    type Below: AsyncRead + AsyncWrite + Unpin;

    fn below(&mut self) -> Pin<&mut Self::Below>;

    fn is_below_vectored(&self) -> bool;

    /// Writes `pieces`, of which the stream below may take a part.
    fn write(&mut self, context: &mut Context<'_>, pieces: Pieces<'_>) -> Poll<io::Result<usize>>;

    /// Shuts down the writing side.
    fn shut_down(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.below().poll_shutdown(context)
    }
}

/// The bytes of one write.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pieces<'a> {
    One(&'a [u8]),
    /// Lets hyper send a body without copying it for each connection.
    Several(&'a [IoSlice<'a>]),
}

impl<'a> Pieces<'a> {
    /// Returns the only piece; `None` if there are several.
    pub(super) fn only(self) -> Option<&'a [u8]> {
        match self {
            Self::One(piece) => Some(piece),
            Self::Several([piece]) => Some(piece),
            Self::Several(_) => None,
        }
    }

    /// Writes them to `stream`.
    pub(super) fn write(
        self,
        stream: Pin<&mut impl AsyncWrite>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::One(piece) => stream.poll_write(context, piece),
            Self::Several(pieces) => stream.poll_write_vectored(context, pieces),
        }
    }
}

/// The stream that a layer makes.
#[derive(Debug)]
pub(super) struct Layered<L>(pub(super) L);

impl<L: Layer> AsyncRead for Layered<L> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().0.below().poll_read(context, buffer)
    }
}

impl<L: Layer> AsyncWrite for Layered<L> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().0.write(context, Pieces::One(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().0.write(context, Pieces::Several(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_below_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.below().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.shut_down(context)
    }
}
