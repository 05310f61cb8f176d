//! The management rate limits: which limit a request counts against, and what its answer says of it (decisions D10, D53).

use crate::caller::{Caller, Who};
use crate::problem::{Code, Problem};
use crate::routes::{Rate, no_plan};
use crate::serve::App;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use shared::clock;
use shared::domain::mode::Mode;
use shared::store::keys::AccountKeys;
use shared::store::script::api_key::count::{self, Allowed, Counted, Standing};

/// Requests that the plan allows in a window.
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// Requests left in it.
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// When it ends, in seconds since 1970.
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// When a key was used is noted to the minute.
const NOTED_TO_MS: u64 = 60_000;

/// Counts a request of an API key, and leaves where the key stands in `standing`, for its answer. Sessions, test-mode keys
/// and unlimited plans are not counted.
///
/// # Errors
/// 429 `API_KEY_RATE_LIMITED`, 401 for a key that was revoked this moment, 503 when the request cannot be counted.
pub async fn count(
    app: &App,
    rate: Rate,
    caller: &Caller,
    standing: &mut Option<Standing>,
) -> Result<(), Problem> {
    let Who::Key { last_used_ms, .. } = &caller.who else {
        return Ok(());
    };
    let allowed = allowed(app, rate, caller)?;
    if allowed.is_none() && is_noted(*last_used_ms, clock::now_ms()) {
        return Ok(());
    }
    let keys = AccountKeys::of(&caller.account);
    match count::count(&app.store, &keys, &caller.actor, allowed).await? {
        Counted::Gone => Err(Code::InvalidApiKey.into()),
        Counted::Uncounted => Ok(()),
        Counted::Passed(stands) => {
            *standing = Some(stands);
            Ok(())
        }
        Counted::Over(stands) => {
            *standing = Some(stands);
            Err(over(rate, &stands))
        }
    }
}

/// What the caller's plan allows, if it limits this.
fn allowed(app: &App, rate: Rate, caller: &Caller) -> Result<Option<Allowed>, Problem> {
    let Some(rate) = rate.counted().filter(|_| caller.mode == Mode::Live) else {
        return Ok(None);
    };
    let plans = app.plans.load();
    let plan = plans
        .get(&caller.plan)
        .ok_or_else(|| no_plan(&caller.plan, &caller.account))?;
    Ok(rate.limit(plan).map(|limit| Allowed { rate, limit }))
}

/// Whether this minute's use of a key was noted before, so that nothing is left to do.
const fn is_noted(last_used_ms: Option<u64>, now_ms: u64) -> bool {
    match last_used_ms {
        Some(noted) => noted / NOTED_TO_MS == now_ms / NOTED_TO_MS,
        None => false,
    }
}

/// The answer when all requests of the window are used up.
fn over(rate: Rate, stands: &Standing) -> Problem {
    let wait = later_s(stands.left_ms);
    let window = rate.counted().map_or("window", |rate| rate.window_name());
    let message = format!(
        "This API key has used up the {} requests that its plan allows in a {window}. Wait {wait} seconds.",
        stands.limit
    );
    Problem::new(Code::ApiKeyRateLimited, message).header(header::RETRY_AFTER, &wait.to_string())
}

/// Puts where a key stands into the headers of an answer.
pub fn tell(stands: &Standing, headers: &mut HeaderMap) {
    for (name, value) in [
        (LIMIT, stands.limit),
        (REMAINING, stands.remaining),
        (RESET, later_s(stands.ends_at_ms)),
    ] {
        headers.insert(name, HeaderValue::from(value));
    }
}

/// The first full second after this many milliseconds: the store ends a window only when its last millisecond is over.
const fn later_s(ms: u64) -> u64 {
    ms / 1000 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_as_long_as_said_is_always_enough() {
        for (left_ms, wait_s) in [(0, 1), (1, 1), (999, 1), (1000, 2), (1001, 2), (59_999, 60)] {
            assert_eq!(later_s(left_ms), wait_s, "{left_ms}");
            assert!(later_s(left_ms) * 1000 > left_ms);
        }
    }

    #[test]
    fn a_use_is_noted_once_a_minute_of_the_clock() {
        assert!(is_noted(Some(120_000), 120_000) && is_noted(Some(120_000), 179_999));
        assert!(!is_noted(Some(120_000), 180_000) && !is_noted(Some(180_000), 179_999) && !is_noted(None, 0));
    }

    #[test]
    fn a_refusal_says_how_long_to_wait() {
        let stands = Standing {
            limit: 100,
            remaining: 0,
            left_ms: 41_999,
            ends_at_ms: 1_800_000_000_500,
        };
        let mut response = over(Rate::PerDay, &stands).into_response();
        tell(&stands, response.headers_mut());
        let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(header("retry-after"), "42");
        assert_eq!(
            ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map(header),
            ["100", "0", "1800000001"]
        );
    }
}
