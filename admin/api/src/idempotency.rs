//! Idempotent requests (decision D26): the id of a request's record, and that record if it exists.

use crate::state::Call;
use clock::now_ms;
use domain::id::IdKind;
use endpoint::{Answer, Code, Fields, IdempotencyKey, Problem};
use history::intents::{GENERATIONS_MAX, Intents};
use serde_json::Value;
use std::time::Duration;
use store::idempotency::RequestIdentity;
use store::intent::{IntentRecord, RequestLookup};
use store::server_clock;

/// The idempotency key of a request, resolved before the request itself is parsed (decision D75): the id of the record
/// that the request has or would have, the record with that id, and the time of the request. Without a key the id is a
/// new one.
#[derive(Debug)]
pub(super) struct ResolvedKey {
    id: String,
    /// A new id, for a refusal if the idempotency key belongs to another request.
    spare_id: String,
    /// The record with this id.
    found: RequestLookup,
    /// True if the body contains the id of an existing intent as its key.
    names_intent: bool,
    has_key: bool,
    /// In ms since 1970. From [`ResolvedKey::read`] by the store's clock: timelines are hashed with it, and servers'
    /// clocks differ.
    pub(super) at_ms: u64,
}

/// The identity of a request that was read.
pub(super) struct IdentifiedRequest {
    /// Id and fingerprint.
    pub(super) identity: RequestIdentity,
    /// The record, if the request was made before.
    pub(super) record: Option<IntentRecord>,
    /// Lifetime of the record of a transfer or deposit; `None` without a key.
    pub(super) record_life: Option<Duration>,
}

impl ResolvedKey {
    /// Reads the idempotency key, as [`ResolvedKey::from_key`] does, and the store's clock.
    ///
    /// # Errors
    /// 400 for a malformed key, 422 if all ids of the key are used up, 503.
    pub(super) async fn read(call: &Call, body: &Fields<'_>) -> Result<Self, Problem> {
        let spare_id = IdKind::Intent.mint(now_ms())?;
        let clock = async { Ok(server_clock::now_ms(&call.state.store).await?) };
        let read = Self::from_key(call, body, &spare_id, clock).await;
        read.map_err(|problem| problem.with("intent_id", spare_id))
    }

    /// Reads the idempotency key while `clock` reads the time of the request.
    ///
    /// # Errors
    /// Those of `clock`; 400 for a malformed key, 422 if all ids of the key are used up, 503.
    async fn from_key(
        call: &Call,
        body: &Fields<'_>,
        spare_id: &str,
        clock: impl Future<Output = Result<u64, Problem>>,
    ) -> Result<Self, Problem> {
        let key = IdempotencyKey::from_request(call.headers(), body)?;
        let ((id, found, names_intent), at_ms) = tokio::try_join!(resolve(call, key.as_ref()), clock)?;
        Ok(Self {
            id,
            spare_id: spare_id.to_owned(),
            found,
            names_intent,
            has_key: key.is_some(),
            at_ms,
        })
    }

    /// Returns the identity of the request. `request` contains every relevant field, with amounts as nano-USD in
    /// strings.
    ///
    /// # Errors
    /// Those of [`identity`](Self::identity) and [`earlier_record`](Self::earlier_record).
    pub(super) async fn identify(
        &self,
        call: &Call,
        route: &'static str,
        request: &Value,
    ) -> Result<IdentifiedRequest, Problem> {
        let identity = self.identity(route, request)?;
        let record = self.earlier_record(call, &identity).await?;
        Ok(IdentifiedRequest {
            identity,
            record,
            record_life: self.has_key.then_some(call.state.idempotency_life),
        })
    }

    /// Returns the id and the fingerprint of `request`.
    ///
    /// # Errors
    /// 422 `IDEMPOTENCY_KEY_REUSED` if the body names an intent of another request.
    fn identity(&self, route: &'static str, request: &Value) -> Result<RequestIdentity, Problem> {
        let identity = RequestIdentity::named(self.id.clone(), self.spare_id.clone(), (route, request));
        match &self.found {
            RequestLookup::Record(record) if record.fingerprint != identity.fingerprint => {
                Err(Code::IdempotencyKeyReused.into())
            }
            RequestLookup::Claimed { fingerprint } if *fingerprint != identity.fingerprint => {
                Err(Code::IdempotencyKeyReused.into())
            }
            _ => Ok(identity),
        }
    }

    /// Returns the record of this request, if it was made before, as read together with the key. Also returns an
    /// archived record, if the body named it.
    ///
    /// # Errors
    /// 503 if the record does not have the durability required for repeating an answer.
    async fn earlier_record(
        &self,
        call: &Call,
        identity: &RequestIdentity,
    ) -> Result<Option<IntentRecord>, Problem> {
        let RequestLookup::Record(record) = &self.found else {
            return Ok(None);
        };
        if self.names_intent {
            let live = earlier(call, identity).await?;
            return Ok(Some(live.unwrap_or_else(|| (**record).clone())));
        }
        require_safe(call, identity).await?;
        Ok(Some((**record).clone()))
    }

    /// Adds `intent_id` to a refusal without one, since it is not stored (decision D75): the id that the intent would
    /// have had. If the idempotency key has an intent, it is of another request, since the same one is answered with
    /// it: a new id is used instead.
    pub(super) fn add_intent_id(&self, answer: Answer) -> Answer {
        let has_intent = matches!(self.found, RequestLookup::Record(_));
        answer.map_err(|problem| {
            let code = problem.code();
            let is_of_another = has_intent && code.status().is_client_error();
            let id = match is_of_another || code == Code::IdempotencyKeyReused {
                true => &self.spare_id,
                false => &self.id,
            };
            problem.with_default("intent_id", id.as_str())
        })
    }
}

/// Returns the identity of a request whose refusals name no intent.
///
/// # Errors
/// Those of [`ResolvedKey::from_key`] and [`ResolvedKey::identify`].
pub(super) async fn identify(
    call: &Call,
    body: &Fields<'_>,
    route: &'static str,
    request: &Value,
) -> Result<IdentifiedRequest, Problem> {
    let spare_id = IdKind::Intent.mint(now_ms())?;
    let key = ResolvedKey::from_key(call, body, &spare_id, async { Ok(now_ms()) }).await?;
    key.identify(call, route, request).await
}

/// Reads the record of this request, if it was made before.
///
/// # Errors
/// 422 `IDEMPOTENCY_KEY_REUSED` if the record belongs to another request, 503.
pub(super) async fn earlier(
    call: &Call,
    identity: &RequestIdentity,
) -> Result<Option<IntentRecord>, Problem> {
    let realm = call.realm();
    let (fingerprint, record) = match IntentRecord::find(&call.state.store, &realm, &identity.id).await? {
        RequestLookup::Nothing => return Ok(None),
        RequestLookup::Claimed { fingerprint } => (fingerprint, None),
        RequestLookup::Record(record) => (record.fingerprint.clone(), Some(*record)),
    };
    if fingerprint != identity.fingerprint {
        return Err(Code::IdempotencyKeyReused.into());
    }
    if record.is_some() {
        require_safe(call, identity).await?;
    }
    Ok(record)
}

/// Reads the record of a request that the store has just found to be made before.
///
/// # Errors
/// Those of [`earlier`]; 503 if there is no record any more.
pub(super) async fn require_earlier(
    call: &Call,
    identity: &RequestIdentity,
) -> Result<IntentRecord, Problem> {
    let record = earlier(call, identity).await?;
    record.ok_or_else(|| Code::ServiceUnavailable.into())
}

/// Refuses to repeat an answer whose record lacks the durability of a first answer.
async fn require_safe(call: &Call, identity: &RequestIdentity) -> Result<(), Problem> {
    let key = call.realm().intent(&identity.id);
    match call.state.store.is_safely_there(&key, None).await? {
        true => Ok(()),
        false => Err(Code::ServiceUnavailable.into()),
    }
}

/// Returns the id for a key, the record with this id, and whether the key is the intent's own id. A key in the body
/// that is the id of an intent of the account and mode refers to that intent. Any other key is mapped to an id by a
/// keyed hash, never to that of an archived intent.
async fn resolve(
    call: &Call,
    key: Option<&IdempotencyKey>,
) -> Result<(String, RequestLookup, bool), Problem> {
    let realm = &call.realm();
    let intents = Intents::new(&call.state.store, &call.state.archive, realm.clone());
    if let Some(IdempotencyKey::Body(id)) = key
        && IdKind::Intent.has_form(id)
        && let Some(record) = intents.read(id).await?
    {
        return Ok((id.clone(), RequestLookup::Record(Box::new(record)), true));
    }
    let Some(key) = key.map(IdempotencyKey::as_str) else {
        return Ok((IdKind::Intent.mint(now_ms())?, RequestLookup::Nothing, false));
    };
    let id_of = |generation| RequestIdentity::id_of(&call.caller.check_secret, realm, key, generation);
    let (id, found) = intents.find_by_key(id_of).await?.ok_or_else(used_up)?;
    Ok((id, found, false))
}

/// Returns the 422 for a key whose ids all belong to archived intents.
fn used_up() -> Problem {
    let message = format!(
        "This idempotency key was used for {GENERATIONS_MAX} requests, one after the other. Use another one."
    );
    Problem::new(Code::IdempotencyKeyReused, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::HashMap;

    /// Returns the record of a request with this fingerprint.
    fn record(fingerprint: &str) -> RequestLookup {
        let fields = [
            ("id", "int_1"),
            ("kind", "spend"),
            ("fp", fingerprint),
            ("state", "settled"),
            ("first", "settled"),
            ("amount", "1"),
            ("currency", "USD"),
            ("actor", "key_1"),
            ("agent", "bot"),
            ("at", "1"),
            ("request", "{}"),
            ("head", "00"),
        ];
        let fields: HashMap<_, _> = fields
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        RequestLookup::Record(Box::new(IntentRecord::from_fields(&fields).unwrap()))
    }

    #[test]
    fn a_key_belongs_to_the_request_that_used_it() {
        let claimed = |fingerprint: &str| RequestLookup::Claimed {
            fingerprint: fingerprint.to_owned(),
        };
        let identity = |found: RequestLookup| {
            let key = ResolvedKey {
                id: "int_1".to_owned(),
                spare_id: "int_2".to_owned(),
                found,
                names_intent: false,
                has_key: true,
                at_ms: 1,
            };
            key.identity("spend", &json!({ "amount": "1" }))
        };
        let own = identity(RequestLookup::Nothing).unwrap();
        for found in [claimed(&own.fingerprint), record(&own.fingerprint)] {
            assert_eq!(identity(found).unwrap(), own);
        }
        for found in [claimed("other"), record("other")] {
            assert_eq!(identity(found).unwrap_err().code(), Code::IdempotencyKeyReused);
        }
    }
}
