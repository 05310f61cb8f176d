//! Passes the pieces of a stream from its reader to its writer, one at a time: while the caller has not taken a piece, no
//! other one is read. So at most one read of the provider waits for a slow caller.
//!
//! Both run in one task, which [`together`] polls until neither gets further. So neither end wakes a task: two wake-ups
//! for each event cost more than to read it. The reader may move to another task once the writer is gone.

use bytes::Bytes;
use futures::FutureExt as _;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// What lies between both ends.
#[derive(Debug, Default)]
struct Between {
    /// What is to be written.
    pieces: Option<Vec<Bytes>>,
    /// The last pieces were taken, and not all of them were written.
    is_writing: bool,
    is_giver_gone: bool,
    is_taker_gone: bool,
    /// How often one end changed something that the other may wait for.
    moves: u64,
}

/// One end's access to what lies between.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Between>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Between> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of the reader.
#[derive(Debug)]
pub struct Giver(Shared);

/// The end of the writer. Dropped, it says that the caller is gone.
#[derive(Debug)]
pub struct Taker(Shared);

/// The caller is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// Both ends.
#[must_use]
pub fn pair() -> (Giver, Taker) {
    let shared = Shared::default();
    (Giver(shared.clone()), Taker(shared))
}

impl Giver {
    /// Waits until the last pieces were written.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn ready(&self) -> Result<(), Gone> {
        self.when(|between| match between.is_taker_gone {
            true => Some(Err(Gone)),
            false => (between.pieces.is_none() && !between.is_writing).then_some(Ok(())),
        })
        .await
    }

    /// Gives pieces to the writer, once it is ready for them.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn give(&self, pieces: Vec<Bytes>) -> Result<(), Gone> {
        self.ready().await?;
        let mut between = self.0.lock();
        between.pieces = Some(pieces);
        between.moves += 1;
        Ok(())
    }

    /// Waits until the caller is gone.
    pub async fn gone(&self) {
        self.when(|between| between.is_taker_gone.then_some(())).await;
    }

    async fn when<T>(&self, ready: impl Fn(&Between) -> Option<T>) -> T {
        poll_fn(|_polled_by_together| match ready(&self.0.lock()) {
            Some(value) => Poll::Ready(value),
            None => Poll::Pending,
        })
        .await
    }
}

impl Drop for Giver {
    fn drop(&mut self) {
        let mut between = self.0.lock();
        between.is_giver_gone = true;
        between.moves += 1;
    }
}

impl Taker {
    /// Waits for the next pieces; those before were written. `None` when there are no more.
    pub async fn next(&mut self) -> Option<Vec<Bytes>> {
        poll_fn(|_polled_by_together| {
            let mut between = self.0.lock();
            let was_writing = std::mem::take(&mut between.is_writing);
            let pieces = between.pieces.take();
            between.is_writing = pieces.is_some();
            between.moves += u64::from(was_writing || pieces.is_some());
            match pieces {
                None if !between.is_giver_gone => Poll::Pending,
                pieces => Poll::Ready(pieces),
            }
        })
        .await
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        let mut between = self.0.lock();
        between.is_taker_gone = true;
        between.moves += 1;
    }
}

/// Runs the writer, to which `writing` gives the taker, and the `reader`, which has the giver, until the writer is done.
/// The reader is dropped then, and never before the taker.
pub async fn together<W: Future>(
    reader: impl Future + Unpin,
    pieces: Taker,
    writing: impl FnOnce(Taker) -> W,
) -> W::Output {
    let shared = pieces.0.clone();
    let mut reader = reader.fuse();
    let mut writing = pin!(writing(pieces));
    poll_fn(|context| {
        loop {
            if let Poll::Ready(written) = writing.as_mut().poll(context) {
                return Poll::Ready(written);
            }
            let seen = shared.lock().moves;
            let _is_done = reader.poll_unpin(context);
            if shared.lock().moves == seen {
                return Poll::Pending;
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::Context;

    fn piece(text: &'static str) -> Vec<Bytes> {
        vec![Bytes::from_static(text.as_bytes())]
    }

    #[tokio::test]
    async fn a_piece_is_given_when_the_one_before_was_written() {
        let (giver, mut taker) = pair();
        giver.give(piece("a")).await.unwrap();
        assert!(giver.ready().now_or_never().is_none());
        assert_eq!(taker.next().await, Some(piece("a")));
        assert!(giver.ready().now_or_never().is_none(), "it is being written");
        assert!(taker.next().now_or_never().is_none());
        assert_eq!(giver.ready().now_or_never(), Some(Ok(())));
        giver.give(piece("b")).await.unwrap();
        drop(giver);
        assert_eq!(taker.next().await, Some(piece("b")));
        assert_eq!(taker.next().await, None);
    }

    #[tokio::test]
    async fn a_caller_who_is_gone_is_noticed_everywhere() {
        let (giver, taker) = pair();
        giver.give(piece("a")).await.unwrap();
        assert!(giver.gone().now_or_never().is_none());
        drop(taker);
        giver.gone().await;
        assert_eq!(giver.ready().await, Err(Gone));
        assert_eq!(giver.give(piece("b")).await, Err(Gone));
    }

    /// In one poll, though neither end wakes the task.
    #[test]
    fn both_ends_go_on_until_neither_gets_further() {
        let (giver, taker) = pair();
        let reader = async move {
            for text in ["a", "b", "c"] {
                giver.give(piece(text)).await.unwrap();
            }
        };
        let writing = async |mut pieces: Taker| {
            let mut written = Vec::new();
            while let Some(some) = pieces.next().await {
                written.extend(some);
            }
            written.concat()
        };
        let written = together(Box::pin(reader), taker, writing).now_or_never();
        assert_eq!(written.as_deref(), Some(&b"abc"[..]));
    }

    /// It goes on in a task that nothing but this wakes.
    #[tokio::test]
    async fn a_reader_that_outlives_the_writer_finds_it_gone() {
        struct Rest<F: Future<Output = ()> + Send + Unpin + 'static>(Option<F>);
        impl<F: Future<Output = ()> + Send + Unpin + 'static> Future for Rest<F> {
            type Output = ();
            fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
                self.0.as_mut().unwrap().poll_unpin(context)
            }
        }
        impl<F: Future<Output = ()> + Send + Unpin + 'static> Drop for Rest<F> {
            fn drop(&mut self) {
                assert_eq!(self.0.take().unwrap().now_or_never(), Some(()));
            }
        }
        let (giver, taker) = pair();
        let reader = Rest(Some(Box::pin(async move { giver.gone().await })));
        together(reader, taker, |pieces| async move { drop(pieces) }).await;
        let (giver, taker) = pair();
        let reader = Rest(Some(Box::pin(async move { giver.gone().await })));
        let dropped = together(reader, taker, |pieces| async move {
            std::future::pending::<()>().await;
            drop(pieces);
        });
        assert!(dropped.now_or_never().is_none());
    }
}
