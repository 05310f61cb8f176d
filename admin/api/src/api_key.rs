//! `/api-keys`: the keys of the management API. Only users can manage them (decision D8). A secret is shown once.

mod doc;

pub(crate) use doc::section;

use crate::state::{ApiState, Call};
use clock::now_ms;
use crypto::api_key::Family;
use domain::blocked::parse_range;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::timestamp::{LAST_MS, iso_from_ms, ms_from_iso};
use endpoint::doc::is;
use endpoint::{Answer, Code, Fields, Problem, Reply, TextForm, operations};
use ipnet::IpNet;
use secrecy::ExposeSecret;
use serde::Serialize;
use store::api_key::script as api_key;
use store::api_key::script::{ApiKeyCreated, NewApiKey};
use store::api_key::{API_KEYS_MAX, ApiKey};
use store::page::Order;
use store::script::change::Scope;
use utoipa::ToSchema;

operations! {
    /// Operations on API keys.
    ROUTES: ApiState, Management;

    POST   "/api-keys",      session(Admin), Both, Uncounted, create, Confirmed, Budgeted;
    GET    "/api-keys",      session(Admin), Both, Uncounted, list, Query, AlwaysAllowed;
    DELETE "/api-keys/{id}", session(Admin), Both, Uncounted, revoke, AlwaysAllowed;
}

/// Longest name.
const NAME_MAX: usize = 200;
/// Maximum number of addresses and ranges in a key's list.
const ALLOW_IPS_MAX: usize = 100;
/// Note for the caller about the secret.
const NOTE: &str = "Store this key now: it is shown only once and cannot be recovered.";

#[expect(
    missing_docs,
    reason = "a comment here would be the description of the schema in the OpenAPI document"
)]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKey)]
pub struct ApiKeyView<'a> {
    #[schema(value_type = is::ApiKeyId)]
    key_id: &'a str,
    #[schema(example = "CI")]
    name: &'a str,
    #[schema(value_type = is::ModeName)]
    mode: &'static str,
    #[schema(value_type = is::ApiKeyState)]
    status: &'static str,
    #[schema(value_type = Vec<is::PermissionName>)]
    permissions: Vec<&'static str>,
    /// Addresses and ranges from which it can be used; empty for any.
    #[schema(example = json!(["10.0.0.0/8"]))]
    allow_ips: Vec<String>,
    /// The first characters of the secret, to identify the key.
    #[schema(example = "svc_live_9f86")]
    prefix: &'a str,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = Option<is::Time>)]
    expires_at: Option<String>,
    #[schema(value_type = Option<is::Time>)]
    revoked_at: Option<String>,
    /// To the minute.
    #[schema(value_type = Option<is::Time>)]
    last_used_at: Option<String>,
    /// The user who created it, or `operator`.
    #[schema(example = "usr_01KAH3V9J80123456789ABCDEF")]
    created_by: &'a str,
}

impl<'a> ApiKeyView<'a> {
    /// Returns the record as of `now_ms`.
    pub fn new(key: &'a ApiKey, now_ms: u64) -> Self {
        Self {
            key_id: &key.id,
            name: &key.name,
            mode: key.mode.as_str(),
            status: key.status(now_ms),
            permissions: Permission::words(&key.permissions),
            allow_ips: key.allow_ips.iter().map(IpNet::to_string).collect(),
            prefix: &key.shown,
            created_at: iso_from_ms(key.created_at_ms),
            expires_at: key.expires_at_ms.map(iso_from_ms),
            revoked_at: key.revoked_at_ms.map(iso_from_ms),
            last_used_at: key.last_used_ms.map(iso_from_ms),
            created_by: &key.created_by,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKeyIssued)]
struct ApiKeyIssued<'a> {
    success: bool,
    api_key: ApiKeyView<'a>,
    /// The secret, shown only in this answer.
    #[schema(value_type = is::ApiKeySecret)]
    key: &'a str,
    #[schema(example = "Store this key now: it is shown only once and cannot be recovered.")]
    note: &'static str,
}

struct ApiKeyRequest {
    name: String,
    mode: Mode,
    permissions: Vec<Permission>,
    allow_ips: Vec<IpNet>,
    expires_at_ms: Option<u64>,
    family: Family,
}

impl ApiKeyRequest {
    fn read(body: &Fields<'_>) -> Result<Self, Problem> {
        body.require_only(&["name", "mode", "permissions", "allowIps", "expiresAt", "prefix"])?;
        let bad = |message: &'static str| Problem::validation(message);
        let mode = match body.string("mode")?.value() {
            None => Mode::Live,
            Some(word) => parse_mode(&word)?,
        };
        let family = match body.string("prefix")?.value().as_deref() {
            None | Some("svc") => Family::Svc,
            Some("sk_service") => Family::SkService,
            Some(_) => return Err(bad("prefix must be svc or sk_service.")),
        };
        let expires_at_ms = match body.string("expiresAt")?.value() {
            None => None,
            Some(text) => match ms_from_iso(&text) {
                Some(LAST_MS..) => {
                    return Err(bad(
                        "expiresAt must lie before 9999-12-30T22:00:00Z; leave it out for a key that does not expire.",
                    ));
                }
                Some(ms) if ms > now_ms() => Some(ms),
                Some(_) => return Err(bad("expiresAt must lie in the future.")),
                None => {
                    return Err(bad(
                        "expiresAt must be an ISO 8601 timestamp such as 2027-01-31T00:00:00Z.",
                    ));
                }
            },
        };
        let name = body.text("name", TextForm::Line, NAME_MAX)?;
        Ok(Self {
            name: name.value().unwrap_or_default(),
            mode,
            permissions: permissions(body)?,
            allow_ips: allow_ips(body)?,
            expires_at_ms,
            family,
        })
    }
}

fn parse_mode(word: &str) -> Result<Mode, Problem> {
    Mode::parse(word).ok_or_else(|| Problem::validation("mode must be live or test."))
}

fn permissions(body: &Fields<'_>) -> Result<Vec<Permission>, Problem> {
    let Some(words) = body.strings("permissions", Permission::ALL.len())?.value() else {
        return Ok(vec![Permission::Read, Permission::Write]);
    };
    let permissions: Option<Vec<Permission>> = words.iter().map(|word| Permission::parse(word)).collect();
    let mut permissions = permissions
        .filter(|list| !list.is_empty())
        .ok_or_else(|| Problem::validation("permissions must be some of read, write and approve."))?;
    permissions.sort_unstable();
    permissions.dedup();
    Ok(permissions)
}

fn allow_ips(body: &Fields<'_>) -> Result<Vec<IpNet>, Problem> {
    let texts = body
        .strings("allowIps", ALLOW_IPS_MAX)?
        .value()
        .unwrap_or_default();
    let networks: Option<Vec<IpNet>> = texts.iter().map(|text| parse_range(text)).collect();
    networks
        .ok_or_else(|| Problem::validation("allowIps must be addresses or CIDR ranges such as 10.0.0.0/8."))
}

/// `POST /api-keys`
pub async fn create(call: Call) -> Answer {
    let request = ApiKeyRequest::read(&call.body()?)?;
    let secret = request.family.mint(request.mode)?;
    let key_id = IdKind::ApiKey.mint(now_ms())?;
    let new = NewApiKey {
        account: &call.caller.account,
        key_id: &key_id,
        name: &request.name,
        mode: request.mode,
        secret: &secret,
        permissions: &request.permissions,
        allow_ips: &request.allow_ips,
        expires_at_ms: request.expires_at_ms,
        actor: &call.caller.actor,
    };
    match new.create(&call.state.store).await? {
        ApiKeyCreated::Done => {}
        ApiKeyCreated::NoAccount => return Err(Code::ServiceUnavailable.into()),
        ApiKeyCreated::TooMany => {
            let message =
                format!("The account has {API_KEYS_MAX} API keys that are not revoked: it can have no more.");
            return Err(Problem::new(Code::Conflict, message));
        }
    }
    let key = ApiKey::read(&call.state.store, &call.keys(), &key_id).await?;
    let key = key.ok_or(Code::Internal)?;
    Reply::ok(&ApiKeyIssued {
        success: true,
        api_key: ApiKeyView::new(&key, now_ms()),
        key: secret.expose_secret(),
        note: NOTE,
    })
}

/// `GET /api-keys`
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&["mode"])?;
    let paging = call.paging(&query, "apiKeys")?;
    let mode = query.get("mode").map(parse_mode).transpose()?;
    let mut keys = ApiKey::numbered(&call.state.store, &call.keys()).await?;
    keys.retain(|(_, key)| mode.is_none_or(|mode| key.mode == mode));
    let part = paging
        .page()
        .of_all(keys, Order::Descending, |(number, _)| (*number, ""))?;
    let now = now_ms();
    Reply::ok(&paging.listing(&part, |(_, key)| ApiKeyView::new(key, now)))
}

/// `DELETE /api-keys/{id}`
pub async fn revoke(call: Call) -> Answer {
    let id = call.record_id("id", IdKind::ApiKey)?;
    let missing = || {
        let message = format!("There is no API key `{id}`, or it was revoked before.");
        Problem::new(Code::NotFound, message)
    };
    let key = ApiKey::read(&call.state.store, &call.keys(), id).await?;
    // A key's own mode counts, whatever the mode of the session.
    let scope = Scope {
        account: &call.caller.account,
        mode: key.ok_or_else(missing)?.mode,
        actor: &call.caller.actor,
    };
    match api_key::revoke(&call.state.store, &scope, id).await? {
        true => Reply::done(),
        false => Err(missing()),
    }
}
