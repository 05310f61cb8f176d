//! Runs a decided call to completion even if its caller disconnects. The call runs in the task that serves the caller,
//! and moves to its own task only if that one is dropped: a task for each call would cost two more wake-ups. There it
//! still counts as in flight, so a draining process waits for it.

use crate::admission::RequestAdmission;
use crate::boxed;
use futures::FutureExt;
use futures::future::{BoxFuture, CatchUnwind};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// A future that continues in the background when it is dropped. Resolves to `None` after a panic, which the panic hook
/// logs.
#[must_use = "it begins when it is polled, or dropped"]
pub struct RunToCompletion<T: Send + 'static> {
    /// `None` once it has ended.
    call: Option<CatchUnwind<AssertUnwindSafe<BoxFuture<'static, T>>>>,
    /// Counts the call once its caller no longer does.
    admission: Arc<RequestAdmission>,
}

impl<T: Send + 'static> RunToCompletion<T> {
    /// Boxes the future of a call, so that it moves to another task as a pointer.
    pub fn new<F>(admission: &Arc<RequestAdmission>, call: impl FnOnce() -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let call: BoxFuture<'static, T> = boxed::future(call);
        Self {
            call: Some(AssertUnwindSafe(call).catch_unwind()),
            admission: Arc::clone(admission),
        }
    }
}

impl<T: Send + 'static> Future for RunToCompletion<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(call) = self.call.as_mut() else {
            return Poll::Ready(None);
        };
        let ended = std::task::ready!(call.poll_unpin(context));
        self.call = None;
        Poll::Ready(ended.ok())
    }
}

impl<T: Send + 'static> Drop for RunToCompletion<T> {
    fn drop(&mut self) {
        // Without a runtime the process is about to end. The reaper then ends the hold of the call.
        if let (Some(call), Ok(runtime)) = (self.call.take(), Handle::try_current()) {
            let in_flight = self.admission.count_detached();
            drop(runtime.spawn(async move {
                drop(call.await);
                drop(in_flight);
            }));
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
    async fn a_call_completes_in_the_task_that_awaits_it() {
        assert_eq!(
            RunToCompletion::new(&Arc::default(), || async { 7 }).await,
            Some(7)
        );
    }

    #[tokio::test]
    async fn a_dropped_call_runs_to_completion() {
        let (resume, resumed) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let admission = Arc::default();
        let call = RunToCompletion::new(&admission, || async move {
            resumed.await.unwrap();
            done.send("settled").unwrap();
        });
        assert!(
            timeout(Duration::from_millis(1), call).await.is_err(),
            "given up on"
        );
        assert_eq!(admission.in_flight(), 1, "a drain waits for it");
        resume.send(()).unwrap();
        assert_eq!(timeout(LONG, is_done).await.unwrap().unwrap(), "settled");
        while admission.in_flight() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_call_that_was_never_polled_runs_too() {
        let (done, is_done) = oneshot::channel();
        drop(RunToCompletion::new(&Arc::default(), || async move {
            done.send(1).unwrap()
        }));
        assert_eq!(timeout(LONG, is_done).await.unwrap().unwrap(), 1);
    }

    #[tokio::test]
    async fn a_panic_ends_only_the_call() {
        let call = RunToCompletion::new(&Arc::default(), || async {
            assert!(
                tokio::time::Instant::now().elapsed() > LONG,
                "this panic belongs to a test"
            );
        });
        assert_eq!(call.await, None);
    }
}
