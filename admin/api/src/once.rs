//! Idempotent requests (decision D26): the id of the record that a request leads to, and that record if it exists.

use crate::state::Call;
use axum::http::HeaderMap;
use clock::now_ms;
use domain::id::Kind;
use endpoint::{Answer, Code, Fields, IdempotencyKey, Problem};
use history::intents::Intents;
use serde_json::Value;
use std::time::Duration;
use store::intent::{Found, IntentRecord};
use store::once::Once;

/// The id of the record that a request has or would have, before the request itself is read (decision D75).
#[derive(Debug)]
pub(super) struct IntentId {
    id: String,
    /// A fresh id, for a refusal whose idempotency key belongs to another request.
    spare_id: String,
    /// The intent that the body named by its own id.
    known: Option<Box<IntentRecord>>,
}

impl IntentId {
    /// Reads the idempotency key. One in the body that is the id of an intent of the account and mode leads to that
    /// intent; every other one leads to an id by a keyed hash.
    ///
    /// # Errors
    /// 400 for a malformed key, 503.
    pub(super) async fn of(call: &Call, body: &Fields<'_>) -> Result<Self, Problem> {
        let spare_id = Kind::Intent.mint(now_ms())?;
        let named = Self::read(call, body, &spare_id).await;
        named.map_err(|problem| problem.with("intent_id", spare_id))
    }

    async fn read(call: &Call, body: &Fields<'_>, spare_id: &str) -> Result<Self, Problem> {
        let key = call.idempotency_key(body)?;
        let (account, mode) = (call.caller.account.as_str(), call.caller.mode);
        if let Some(IdempotencyKey::Body(id)) = &key
            && Kind::Intent.has_form(id)
        {
            let intents = Intents::of(&call.state.store, &call.state.archive, account, mode);
            if let Some(record) = intents.read(id).await? {
                return Ok(Self {
                    id: id.clone(),
                    spare_id: spare_id.to_owned(),
                    known: Some(Box::new(record)),
                });
            }
        }
        let key = key.as_ref().map(IdempotencyKey::as_str);
        let id = Once::id_of(&call.caller.check_secret, (account, mode), key, now_ms())?;
        Ok(Self {
            id,
            spare_id: spare_id.to_owned(),
            known: None,
        })
    }

    /// The identity of the request: the id, and the fingerprint of `request`, which holds every field that matters,
    /// amounts as nano-USD in strings.
    ///
    /// # Errors
    /// 422 `IDEMPOTENCY_KEY_REUSED` when the body names an intent of another request.
    pub(super) fn once(&self, route: &'static str, request: &Value) -> Result<Once, Problem> {
        let once = Once::named(self.id.clone(), self.spare_id.clone(), (route, request));
        match &self.known {
            Some(known) if known.fingerprint != once.fingerprint => Err(Code::IdempotencyKeyReused.into()),
            _ => Ok(once),
        }
    }

    /// Whether the body named an intent by its own id, so that nothing new is to be done.
    pub(super) const fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// The record of this request, if it was made before; also one that was archived, where the body named it.
    pub(super) async fn earlier(&self, call: &Call, once: &Once) -> Result<Option<IntentRecord>, Problem> {
        let live = earlier(call, once).await?;
        Ok(live.or_else(|| self.known.as_deref().cloned()))
    }

    /// Adds `intent_id` to a refusal that names none, since it is not stored (decision D75): the id that the intent
    /// would have had. An idempotency key of another request has that request's id, so a fresh one is given instead.
    pub(super) fn add_to(&self, answer: Answer) -> Answer {
        answer.map_err(|problem| {
            let id = match problem.code() {
                Code::IdempotencyKeyReused => &self.spare_id,
                _ => &self.id,
            };
            problem.with_default("intent_id", id.as_str())
        })
    }
}

/// The identity of a request whose refusals name no intent.
pub(super) async fn identify(
    call: &Call,
    body: &Fields<'_>,
    route: &'static str,
    request: &Value,
) -> Result<Once, Problem> {
    let spare_id = Kind::Intent.mint(now_ms())?;
    IntentId::read(call, body, &spare_id).await?.once(route, request)
}

/// How long the record of a transfer or deposit is kept: not at all without a key.
///
/// # Errors
/// 400 for a malformed key.
pub(super) fn record_life<C>(call: &Call<C>, body: &Fields<'_>) -> Result<Option<Duration>, Problem> {
    life_of(call.headers(), body, call.state.idempotency_life)
}

/// `life` where there is an idempotency key.
fn life_of(headers: &HeaderMap, body: &Fields<'_>, life: Duration) -> Result<Option<Duration>, Problem> {
    Ok(IdempotencyKey::of(headers, body)?.map(|_| life))
}

/// The record of this request, if it was made before.
///
/// # Errors
/// 422 `IDEMPOTENCY_KEY_REUSED` when the record is one of another request, 503.
pub(super) async fn earlier(call: &Call, once: &Once) -> Result<Option<IntentRecord>, Problem> {
    let (keys, mode) = (call.keys(), call.caller.mode);
    let (fingerprint, record) = match IntentRecord::find(&call.state.store, &keys, mode, &once.id).await? {
        Found::Nothing => return Ok(None),
        Found::Claimed { fingerprint } => (fingerprint, None),
        Found::Record(record) => (record.fingerprint.clone(), Some(*record)),
    };
    if fingerprint != once.fingerprint {
        return Err(Code::IdempotencyKeyReused.into());
    }
    if record.is_some() {
        // A repeated answer must be as durable as the first.
        let key = keys.intent(mode, &once.id);
        if !call.state.store.is_safely_there(&key, None).await? {
            return Err(Code::ServiceUnavailable.into());
        }
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn with_key(key: Option<&'static str>) -> HeaderMap {
        let key = key.map(|key| ("idempotency-key".parse(), HeaderValue::from_static(key)));
        key.map(|(name, key)| (name.unwrap(), key)).into_iter().collect()
    }

    #[test]
    fn a_record_is_kept_as_long_as_configured_when_there_is_a_key() {
        let days = ("TOLLGATE_IDEMPOTENCY__RETENTION_DAYS".to_owned(), "31".to_owned());
        let configured = settings::load_from(None, [days].into_iter())
            .unwrap()
            .idempotency_life();
        let kept = Some(Duration::from_secs(31 * 24 * 3600));
        for (header, body, life) in [
            (None, "{}", None),
            (None, r#"{"idempotency_key":null}"#, None),
            (Some("k"), "{}", kept),
            (None, r#"{"idempotency_key":"k"}"#, kept),
            (None, r#"{"intent_id":"k"}"#, kept),
        ] {
            let fields = Fields::parse(body.as_bytes()).unwrap();
            let found = life_of(&with_key(header), &fields, configured).unwrap();
            assert_eq!(found, life, "{header:?} {body}");
        }
    }

    #[test]
    fn a_malformed_key_keeps_nothing() {
        for (header, body) in [(Some(""), "{}"), (None, r#"{"idempotency_key":""}"#)] {
            let fields = Fields::parse(body.as_bytes()).unwrap();
            let problem = life_of(&with_key(header), &fields, Duration::MAX).unwrap_err();
            assert_eq!(problem.code(), Code::Validation, "{header:?} {body}");
        }
    }
}
