//! The rate limits of the management API: those of the plans, for live-mode API keys (decisions D10, D53), and the
//! technical ones, for test-mode API keys and sessions (decision D71).

use crate::admission::Admission;
use crate::call::no_plan;
use crate::caller::{Caller, Credential};
use crate::problem::{Code, Problem};
use crate::route::{Flag, Route, RouteRate};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use domain::mode::Mode;
use domain::rate;
use std::time::Duration;
use store::account::refused::LIFE;
use store::api_key::script::count;
use store::api_key::script::count::{Allowed, CountOutcome, WindowState};
use store::keys::AccountKeys;
use store::request_limits;
use store::request_limits::Limit;

/// Header with the requests that the plan allows in a window.
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// Header with the remaining requests in the window.
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// Header with the end of the window, in seconds since 1970.
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Precision of the noted time of a key's last use.
const NOTED_TO_MS: u64 = 60_000;

/// Counts a request, and stores the window of a live-mode key in `window`, for the headers of its answer. Live-mode
/// keys of unlimited plans are not counted.
///
/// # Errors
/// 429 `API_KEY_RATE_LIMITED`, 401 for a key that was just revoked, 503 if the request cannot be counted.
pub async fn count(
    admission: &Admission,
    route: &Route,
    caller: &Caller,
    window: &mut Option<WindowState>,
) -> Result<(), Problem> {
    let rate = route.rate;
    count_technical(admission, route, caller).await?;
    let Credential::Key { last_used_ms, .. } = &caller.credential else {
        return Ok(());
    };
    let allowed = allowed(admission, rate, caller)?;
    if allowed.is_none() && is_noted(*last_used_ms, clock::now_ms()) {
        return Ok(());
    }
    let keys = AccountKeys::new(&caller.account);
    match count::count(&admission.store, &keys, &caller.actor, allowed).await? {
        CountOutcome::Gone => Err(Code::InvalidApiKey.into()),
        CountOutcome::Uncounted => Ok(()),
        CountOutcome::Passed(window_state) => {
            *window = Some(window_state);
            Ok(())
        }
        CountOutcome::Over(window_state) => {
            *window = Some(window_state);
            Err(over(rate, &window_state))
        }
    }
}

/// Refuses the creation of records by an account that uses far more of a nearly full store than others (decision D71).
///
/// # Errors
/// 429 `API_KEY_RATE_LIMITED`.
pub(crate) fn require_room(admission: &Admission, route: &Route, caller: &Caller) -> Result<(), Problem> {
    let Some(cause) = admission
        .refused
        .cause(&caller.account)
        .filter(|_| route.makes_records())
    else {
        return Ok(());
    };
    admission.metrics.limited.over_store_share();
    let problem = Problem::new(Code::ApiKeyRateLimited, cause.message());
    Err(problem.header(header::RETRY_AFTER, &LIFE.as_secs().to_string()))
}

/// Counts a request of a test-mode key or of a user's sessions against its technical limit and that of its account.
/// Operations that end or protect something are refused neither because of other callers of the account nor because of
/// other sessions of the user: who has stolen one could keep the user from ending it.
async fn count_technical(admission: &Admission, route: &Route, caller: &Caller) -> Result<(), Problem> {
    let limit = match (&caller.credential, caller.mode) {
        (Credential::Session { .. }, _) => session_limit(admission),
        (Credential::Key { .. }, Mode::Test) => test_limit(admission),
        (Credential::Key { .. }, Mode::Live) => return Ok(()),
    };
    let (store, keys) = (&admission.store, AccountKeys::new(&caller.account));
    let is_always_allowed = route.has(Flag::AlwaysAllowed);
    let (id, whose) = match &caller.credential {
        Credential::Session { id, .. } if is_always_allowed => (id, "This session has"),
        // A session counts for its user: sessions can be opened freely, so each one would add a limit.
        Credential::Session { .. } => (&caller.actor, "Your sessions have"),
        Credential::Key { .. } => (&caller.actor, "This test-mode API key has"),
    };
    let counted = match is_always_allowed {
        true => limit.count_alone(store, &keys, id).await?,
        false => limit.count(store, &keys, id).await?,
    };
    let (most, left, whose) = match counted {
        request_limits::LimitOutcome::Passed => return Ok(()),
        request_limits::LimitOutcome::Over(left) => (limit.most, left, whose),
        request_limits::LimitOutcome::AccountOver(left) => (limit.of_account(), left, all_have(limit.rate)),
    };
    admission.metrics.limited.over_rate(limit.rate);
    Err(over_technical(limit.rate, whose, most, left))
}

const fn test_limit(admission: &Admission) -> Limit {
    Limit {
        rate: rate::Rate::Test,
        most: admission.limits.test_requests_per_minute,
    }
}

const fn session_limit(admission: &Admission) -> Limit {
    Limit {
        rate: rate::Rate::Session,
        most: admission.limits.session_requests_per_minute,
    }
}

/// Begins the sentence about the limit of all callers of an account.
const fn all_have(rate: rate::Rate) -> &'static str {
    match rate {
        rate::Rate::Session => "The sessions of this account together have",
        _ => "The test-mode API keys of this account together have",
    }
}

/// Returns the error for a technical limit of `most` requests that is used up for the time `left`. `whose` begins its
/// sentence.
fn over_technical(rate: rate::Rate, whose: &str, most: u64, left: Duration) -> Problem {
    let wait = later_s(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
    let window = rate.window_name();
    let message = format!(
        "{whose} used up the {most} requests that this installation allows in a {window}. Wait {wait} seconds."
    );
    Problem::new(Code::ApiKeyRateLimited, message).header(header::RETRY_AFTER, &wait.to_string())
}

/// Returns the number of requests that the caller's plan allows in a window; `None` if it is unlimited.
fn allowed(admission: &Admission, rate: RouteRate, caller: &Caller) -> Result<Option<Allowed>, Problem> {
    let Some(rate) = rate.counted().filter(|_| caller.mode == Mode::Live) else {
        return Ok(None);
    };
    let plans = admission.plans.load();
    let plan = plans
        .get(&caller.plan)
        .ok_or_else(|| no_plan(&caller.plan, &caller.account))?;
    Ok(rate.limit(plan).map(|limit| Allowed { rate, limit }))
}

/// Returns whether this minute's use of a key was already recorded.
const fn is_noted(last_used_ms: Option<u64>, now_ms: u64) -> bool {
    match last_used_ms {
        Some(noted) => noted / NOTED_TO_MS == now_ms / NOTED_TO_MS,
        None => false,
    }
}

/// Returns the answer when all requests of the window are used up.
fn over(rate: RouteRate, window_state: &WindowState) -> Problem {
    let wait = later_s(window_state.left_ms);
    let window = rate.counted().map_or("window", |rate| rate.window_name());
    let message = format!(
        "This API key has used up the {} requests that its plan allows in a {window}. Wait {wait} seconds.",
        window_state.limit
    );
    Problem::new(Code::ApiKeyRateLimited, message).header(header::RETRY_AFTER, &wait.to_string())
}

/// Sets the rate limit headers of an answer.
pub(crate) fn set_headers(window_state: &WindowState, headers: &mut HeaderMap) {
    for (name, value) in [
        (LIMIT, window_state.limit),
        (REMAINING, window_state.remaining),
        (RESET, later_s(window_state.ends_at_ms)),
    ] {
        headers.insert(name, HeaderValue::from(value));
    }
}

/// Returns the first full second after this many milliseconds: the store ends a window only after its last millisecond.
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
        let window_state = WindowState {
            limit: 100,
            remaining: 0,
            left_ms: 41_999,
            ends_at_ms: 1_800_000_000_500,
        };
        let mut response = over(RouteRate::PerDay, &window_state).into_response();
        set_headers(&window_state, response.headers_mut());
        let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(header("retry-after"), "42");
        assert_eq!(
            ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map(header),
            ["100", "0", "1800000001"]
        );
    }
}
