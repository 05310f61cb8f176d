//! A handler whose caller leaves, and one that panics.

use super::*;
use crate::route::{Base, RouteRate};
use tokio::sync::oneshot;

fn route(method: Method, flags: &'static [Flag]) -> Route {
    Route {
        base: Base::Management,
        method,
        path: "/here",
        access: Access::Public,
        modes: Modes::Both,
        rate: RouteRate::Uncounted,
        flags,
    }
}

/// Returns whether a handler of this route completes after its caller has disconnected.
async fn goes_on(route: &Route) -> bool {
    let (go_on, may_go_on) = oneshot::channel::<()>();
    let (has_ended, ended) = oneshot::channel();
    let mut caller = Box::pin(run_handler(route, async move {
        drop(may_go_on.await);
        has_ended.send(()).ok();
        Reply::done()
    }));
    assert!(futures::poll!(&mut caller).is_pending());
    tokio::task::yield_now().await;
    drop(caller);
    tokio::task::yield_now().await;
    go_on.send(()).ok();
    ended.await.is_ok()
}

#[tokio::test]
async fn a_read_ends_with_its_caller_and_a_change_goes_on() {
    for method in [Method::POST, Method::PATCH, Method::DELETE] {
        assert!(goes_on(&route(method.clone(), &[])).await, "{method}");
    }
    assert!(!goes_on(&route(Method::GET, &[Flag::Query])).await);
    let creates = route(Method::GET, &[Flag::Confirmed]);
    assert!(goes_on(&creates).await, "a read that creates what it shows");
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    for method in [Method::GET, Method::POST] {
        let answer = run_handler(&route(method, &[]), async { panic!("a defect") }).await;
        assert_eq!(answer.unwrap_err().code(), Code::Internal);
    }
}
