//! A call that is decided goes on to its end, whoever waits for it. It runs where its caller is served; only when that is
//! given up, it goes on in a task of its own: a task for each call would be woken twice more.

use futures::FutureExt;
use futures::future::{BoxFuture, CatchUnwind};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// A future that is not stopped by being dropped. It ends with `None` when it panicked, which the panic hook tells of.
#[must_use = "it begins when it is polled, or dropped"]
pub struct ToTheEnd<T: Send + 'static>(Option<CatchUnwind<AssertUnwindSafe<BoxFuture<'static, T>>>>);

impl<T: Send + 'static> ToTheEnd<T> {
    /// Of `call`, on the heap: it is handed over without being moved.
    pub fn of(call: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(AssertUnwindSafe(call.boxed()).catch_unwind()))
    }
}

impl<T: Send + 'static> Future for ToTheEnd<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(call) = self.0.as_mut() else {
            return Poll::Ready(None);
        };
        let ended = std::task::ready!(call.poll_unpin(context));
        self.0 = None;
        Poll::Ready(ended.ok())
    }
}

impl<T: Send + 'static> Drop for ToTheEnd<T> {
    fn drop(&mut self) {
        // Without a runtime the process is at its end: what the call leaves behind then is a hold, for the reaper.
        if let (Some(call), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            drop(runtime.spawn(call));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    const LONG: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn a_call_ends_where_it_is_waited_for() {
        assert_eq!(ToTheEnd::of(async { 7 }).await, Some(7));
    }

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_any_more_goes_on() {
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let call = ToTheEnd::of(async move {
            gone.await.unwrap();
            tell.send("settled").unwrap();
        });
        assert!(
            timeout(Duration::from_millis(1), call).await.is_err(),
            "given up on"
        );
        go.send(()).unwrap();
        assert_eq!(timeout(LONG, told).await.unwrap().unwrap(), "settled");
    }

    #[tokio::test]
    async fn a_call_that_nobody_waited_for_begins_all_the_same() {
        let (tell, told) = oneshot::channel();
        drop(ToTheEnd::of(async move { tell.send(1).unwrap() }));
        assert_eq!(timeout(LONG, told).await.unwrap().unwrap(), 1);
    }

    #[tokio::test]
    async fn a_panic_ends_the_call_and_no_more() {
        let call = ToTheEnd::of(async {
            assert!(
                tokio::time::Instant::now().elapsed() > LONG,
                "this panic belongs to a test"
            );
        });
        assert_eq!(call.await, None);
    }
}
