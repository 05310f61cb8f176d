//! Requests that are made at most once (decision D26): whose record a request leads to, and whether it is there already.

use crate::problem::{Code, Problem};
use crate::routes::{Call, Fields};
use serde_json::Value;
use shared::clock::now_ms;
use shared::store::intent::{Found, IntentRecord};
use shared::store::once::Once;
use std::time::Duration;

/// The identity of a request: what its idempotency key leads to, and the fingerprint of `request`, which holds every
/// field that matters, amounts as nano-USD in strings.
///
/// # Errors
/// 400 for a malformed key, 503.
pub(super) fn identify(
    call: &Call,
    body: &Fields<'_>,
    route: &'static str,
    request: &Value,
) -> Result<Once, Problem> {
    let key = call.idempotency_key(body)?;
    let scope = (call.caller.account.as_str(), call.caller.mode);
    let secret = &call.caller.check_secret;
    Ok(Once::new(
        secret,
        scope,
        key.as_deref(),
        (route, request),
        now_ms(),
    )?)
}

/// How long the record of a transfer or deposit is kept: not at all without a key.
///
/// # Errors
/// 400 for a malformed key.
pub(super) fn record_life(call: &Call, body: &Fields<'_>) -> Result<Option<Duration>, Problem> {
    let key = call.idempotency_key(body)?;
    Ok(key.map(|_| call.app.idempotency_life))
}

/// The record of this request, if it was made before.
///
/// # Errors
/// 422 `IDEMPOTENCY_KEY_REUSED` when the record is one of another request, 503.
pub(super) async fn earlier(call: &Call, once: &Once) -> Result<Option<IntentRecord>, Problem> {
    let (keys, mode) = (call.keys(), call.caller.mode);
    let (fingerprint, record) = match IntentRecord::find(&call.app.store, &keys, mode, &once.id).await? {
        Found::Nothing => return Ok(None),
        Found::Claimed { fingerprint } => (fingerprint, None),
        Found::Record(record) => (record.fingerprint.clone(), Some(*record)),
    };
    if fingerprint != once.fingerprint {
        return Err(Code::IdempotencyKeyReused.into());
    }
    if record.is_some() {
        // What is told again must be as safe as what is told first.
        let key = keys.intent(mode, &once.id);
        if !call.app.store.is_safely_there(&key, None).await? {
            return Err(Code::ServiceUnavailable.into());
        }
    }
    Ok(record)
}
