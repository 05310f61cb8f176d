//! Every error of the management API, declared once: code, status and meaning (specification "Management errors",
//! decision D5). Bodies are `{ "error": "<sentence>", "code": "<CODE>" }`.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use domain::budget::Budget;
use serde_json::{Map, Value};
use std::borrow::Cow;
use store::StoreError;
use store::authority::Lack;
use store::sanity::UntrustedStore;
use store_health::{NotSealed, NotTrusted};
use telemetry::error_chain;

/// The field of a `TIER_LIMIT` that names the kind of record.
const BUDGET: &str = "budget";

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $status:ident, $message:literal;)+) => {
        /// Code of an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[doc = $doc])+ $name,)+ }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the value of `code`.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $code,)+ } }

            /// Returns the HTTP status.
            pub const fn status(self) -> StatusCode { match self { $(Self::$name => StatusCode::$status,)+ } }

            /// Returns when it is sent, for the documentation.
            pub fn meaning(self) -> &'static str { match self { $(Self::$name => concat!($($doc),+).trim(),)+ } }

            /// Returns the default message.
            pub const fn message(self) -> &'static str { match self { $(Self::$name => $message,)+ } }
        }
    };
}

codes! {
    /// The request has no key.
    ApiKeyRequired = "API_KEY_REQUIRED", UNAUTHORIZED,
        "Send an API key as `Authorization: Bearer <API_KEY>` or `x-api-key: <API_KEY>`.";
    /// The key is malformed, unknown, revoked or expired, or two different keys were sent.
    InvalidApiKey = "INVALID_API_KEY", UNAUTHORIZED,
        "The API key is invalid or expired.";
    /// The key lacks the permission.
    InsufficientPermissions = "INSUFFICIENT_API_KEY_PERMISSIONS", FORBIDDEN,
        "The API key lacks the permission that this operation needs.";
    /// The route requires a session; the request has none, or one that has ended.
    SessionRequired = "SESSION_REQUIRED", UNAUTHORIZED,
        "Sign in: this needs a session of the dashboard.";
    /// The user's role is too low for this (decision D9).
    InsufficientRole = "INSUFFICIENT_ROLE", FORBIDDEN,
        "Your role does not allow this.";
    /// The e-mail address, the password or the second factor is wrong.
    InvalidCredentials = "INVALID_CREDENTIALS", UNAUTHORIZED,
        "The e-mail, the password or the code is wrong.";
    /// The password is correct for users of several accounts; the answer names the accounts (decision D74).
    AccountRequired = "ACCOUNT_REQUIRED", BAD_REQUEST,
        "Users of several accounts have this e-mail and password: send one of accounts as account.";
    /// The password is correct, and the user has a second factor.
    TotpRequired = "TOTP_REQUIRED", UNAUTHORIZED,
        "This user has a second factor: send its code as totp.";
    /// Too many attempts (decision D9).
    LoginLocked = "LOGIN_LOCKED", TOO_MANY_REQUESTS,
        "Too many attempts. Wait as long as Retry-After says.";
    /// A change by a session without proof that one of our pages sent it.
    CsrfFailed = "CSRF_FAILED", FORBIDDEN,
        "This request does not prove that it comes from a page of ours.";
    /// The account would have no owner left.
    LastOwner = "LAST_OWNER", CONFLICT,
        "The account needs an owner: assign another owner first.";
    /// The client's address is blocked, or may not use this key (decision D11).
    IpBlocked = "IP_BLOCKED", FORBIDDEN,
        "This API key may not be used from your address.";
    /// The plan's limit of requests in this window (decisions D10, D53), or a technical limit (decision D71), is
    /// reached.
    ApiKeyRateLimited = "API_KEY_RATE_LIMITED", TOO_MANY_REQUESTS,
        "All requests that are allowed in this window are used up.";
    /// The plan's limit of custom agents is reached, or a budget of records is used up, which `budget` and `limit` then
    /// name (decision D71).
    TierLimit = "TIER_LIMIT", FORBIDDEN,
        "The account can have no more of these.";
    /// The account has the maximum number of webhooks (decision D59).
    WebhookLimit = "WEBHOOK_LIMIT", FORBIDDEN,
        "The account can have no more webhooks.";
    /// The plan does not have this in the dashboard (decision D42).
    PlanFeature = "PLAN_FEATURE", FORBIDDEN,
        "Your plan does not have this in the dashboard.";
    /// The plan is larger than the present one, and only the operator can upgrade accounts here.
    PlanByOperator = "PLAN_BY_OPERATOR", FORBIDDEN,
        "Only the operator of this installation moves an account to a larger plan.";
    /// The precondition of `If-Match` or `If-None-Match` failed.
    PreconditionFailed = "PRECONDITION_FAILED", PRECONDITION_FAILED,
        "The record is not as If-Match or If-None-Match requires: somebody else changed, created or deleted it. Read it again and retry.";
    /// The operator froze the agent, and only the operator can lift that freeze (decision D22).
    OperatorFreeze = "OPERATOR_FREEZE", FORBIDDEN,
        "This agent was frozen by the operator of this installation, who alone can unfreeze it.";
    /// Not a key of an upstream provider.
    InvalidProviderKey = "INVALID_PROVIDER_KEY", BAD_REQUEST,
        "apiKey must be the upstream provider's key: sk- and at least 4 characters behind it, at most 512 characters in all, without spaces, and not a virtual key.";
    /// The route works with live keys only.
    LiveModeRequired = "LIVE_MODE_REQUIRED", BAD_REQUEST,
        "Provider keys and virtual keys exist in live mode only.";
    /// The plan allows no more active virtual keys.
    PlanVirtualKeyLimit = "PLAN_VIRTUAL_KEY_LIMIT", PAYMENT_REQUIRED,
        "All active virtual keys that the plan allows are in use.";
    /// A field or parameter is missing or invalid; the message names it.
    Validation = "VALIDATION", BAD_REQUEST,
        "The request is not valid.";
    /// The body has another content type than JSON, or a content coding.
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", UNSUPPORTED_MEDIA_TYPE,
        "Send the body as JSON, with `Content-Type: application/json`.";
    /// The body is too long.
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", PAYLOAD_TOO_LARGE,
        "The request body is too large.";
    /// The body did not arrive in time.
    RequestTimeout = "REQUEST_TIMEOUT", REQUEST_TIMEOUT,
        "The request did not arrive in time.";
    /// No such path, or no such record in this account and mode.
    NotFound = "NOT_FOUND", NOT_FOUND,
        "There is nothing here.";
    /// The path exists without this method; `Allow` lists its methods.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", METHOD_NOT_ALLOWED,
        "This path has no such method.";
    /// The record's state does not allow it.
    Conflict = "CONFLICT", CONFLICT,
        "The present state does not allow this.";
    /// The wallet does not cover the amount.
    InsufficientBalance = "INSUFFICIENT_BALANCE", BAD_REQUEST,
        "The wallet's balance does not cover the amount.";
    /// A frozen agent's wallet cannot be debited (decision D67).
    Frozen = "FROZEN", FORBIDDEN,
        "The agent is frozen: nothing leaves its wallet.";
    /// The wallet's agent was deleted.
    WalletClosed = "WALLET_CLOSED", CONFLICT,
        "This wallet is closed.";
    /// The wallet cannot hold that much.
    BalanceLimit = "BALANCE_LIMIT", CONFLICT,
        "The receiving wallet cannot hold that much.";
    /// A text for another account tries to instruct an AI agent there.
    InjectionDetected = "INJECTION_DETECTED", PAYMENT_REQUIRED,
        "The text reads like an attempt to instruct an AI agent.";
    /// The caller's account has no part in it (decision D54).
    NotAParty = "NOT_A_PARTY", FORBIDDEN,
        "Your account is no party to this.";
    /// The escrow's state does not allow this call.
    EscrowWrongState = "ESCROW_WRONG_STATE", BAD_REQUEST,
        "The escrow is not in the state that this call needs.";
    /// The escrow was released or disputed before.
    EscrowResolved = "ESCROW_RESOLVED", CONFLICT,
        "The escrow is already resolved.";
    /// An idempotency key or deposit reference was used for another request (decisions D26, D59).
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", UNPROCESSABLE_ENTITY,
        "This idempotency key was used with a different request.";
    /// The intent does not wait for a decision.
    IntentNotPending = "INTENT_NOT_PENDING", CONFLICT,
        "This intent does not wait for approval.";
    /// A live deposit by an API key (decision D17).
    OwnerRequired = "OWNER_REQUIRED", FORBIDDEN,
        "Live deposits are made by an owner of the account in the dashboard, or by the operator.";
    /// The store does not reply, or cannot be trusted (decisions D47, D52).
    ServiceUnavailable = "SERVICE_UNAVAILABLE", SERVICE_UNAVAILABLE,
        "Tollgate cannot reach its store or cannot trust it, so nothing can be done now. Try again shortly.";
    /// It may have been executed, but does not have the durability of `store.durability` yet: repeat the request with
    /// the same key.
    NotConfirmed = "NOT_CONFIRMED", SERVICE_UNAVAILABLE,
        "The store did not confirm in time that this is safe; it may be done. Repeat the same request with the same idempotency key to learn what became of it; where there is none, look first.";
    /// Changes of money, and of objects with a name or a secret, are refused: the store cannot provide the durability
    /// of `store.durability`.
    NotDurable = "NOT_DURABLE", SERVICE_UNAVAILABLE,
        "The store cannot keep this as safely as this installation wants it, so nothing was done. Its operator can see why.";
    /// A fault of ours.
    Internal = "INTERNAL", INTERNAL_SERVER_ERROR,
        "Something went wrong inside Tollgate. The request id finds it in the log.";
}

/// An error answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    code: Code,
    message: Cow<'static, str>,
    more: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A problem with the standard sentence.
impl From<Code> for Problem {
    fn from(code: Code) -> Self {
        Self {
            code,
            message: Cow::Borrowed(code.message()),
            more: Map::new(),
            headers: Vec::new(),
        }
    }
}

impl Problem {
    /// Creates an error with its own message.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            more: Map::new(),
            headers: Vec::new(),
        }
    }

    /// Returns 400 `VALIDATION`; the message names the field.
    pub fn validation(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Validation, message)
    }

    /// Returns the refusal of a cursor of another list.
    pub(crate) fn other_list() -> Self {
        Self::validation(
            "cursor must be the nextCursor of a page of this list, with the same filters and by the same account and mode.",
        )
    }

    /// Returns the budget that refused the request, if any.
    pub fn budget(&self) -> Option<Budget> {
        self.more.get(BUDGET)?.as_str().and_then(Budget::parse)
    }

    /// Adds a field to the body.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a field to the body, unless it is there.
    #[must_use]
    pub fn with_default(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.entry(name).or_insert_with(|| value.into());
        self
    }

    /// Adds to a 404 that its caller, `who`, is in test mode. The sentence is the same whether or not live mode has the
    /// record.
    #[must_use]
    pub(crate) fn in_test_mode(mut self, who: &str) -> Self {
        if self.code == Code::NotFound {
            let message = format!(
                "{} {who} in test mode, which has records of its own.",
                self.message
            );
            self.message = message.into();
        }
        self
    }

    /// Adds a header. A value that is invalid in a header is ignored.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        let value = HeaderValue::from_str(value).ok();
        self.headers.extend(value.map(|value| (name, value)));
        self
    }

    /// Returns the code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns the sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the whole answer.
    pub fn into_response(self) -> Response<Body> {
        let mut body = Map::new();
        body.insert("error".to_owned(), self.message.into_owned().into());
        body.insert("code".to_owned(), self.code.as_str().into());
        body.extend(self.more);
        let mut response = Response::new(Body::from(Value::Object(body).to_string()));
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if matches!(self.code, Code::ApiKeyRequired | Code::InvalidApiKey) {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        headers.extend(self.headers);
        response
    }
}

/// Message about a command that was sent: it may have run, and a second one can pay twice.
const UNANSWERED: &str = "The store did not answer in time. If this was a change, it may have been made: repeat the same request with the same idempotency key; where there is none, look first.";
/// Message about entries that are in the archive.
const ARCHIVE_UNREADABLE: &str = "The archive of older entries cannot be read, so what you asked for cannot be shown now. Try again later.";

/// The store failed: the caller learns that, the log learns why.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if let StoreError::OverBudget { budget, most } = error {
            let problem = Problem::new(Code::TierLimit, over_budget_message(budget, most));
            return problem.with(BUDGET, budget.as_str()).with("limit", most);
        }
        if matches!(error, StoreError::BadPosition) {
            return Self::other_list();
        }
        if let StoreError::NotPermitted(lack) = error {
            return Self::from(match lack {
                Lack::Key => Code::InvalidApiKey,
                Lack::Session => Code::SessionRequired,
                Lack::Role => Code::InsufficientRole,
            });
        }
        tracing::error!(error = %error_chain(&error), "store failure");
        match error {
            StoreError::NotDurable { ran: true, .. } => Code::NotConfirmed.into(),
            StoreError::NotDurable { ran: false, .. } => Code::NotDurable.into(),
            StoreError::Archive(_) | StoreError::ArchiveUnavailable(_) => {
                Self::new(Code::ServiceUnavailable, ARCHIVE_UNREADABLE)
            }
            StoreError::NoAnswer(_) => Self::new(Code::ServiceUnavailable, UNANSWERED),
            _ => Code::ServiceUnavailable.into(),
        }
    }
}

/// Returns the message of `TIER_LIMIT` for an account whose budget of records of a kind is used up (decision D71).
pub fn over_budget_message(budget: Budget, most: u64) -> String {
    format!(
        "Your account has used up its budget of {most} {}. The operator of this installation can raise it.",
        budget.noun()
    )
}

impl From<UntrustedStore> for Problem {
    fn from(error: UntrustedStore) -> Self {
        if let UntrustedStore::Store(error) = error {
            return error.into();
        }
        tracing::error!(error = %error_chain(&error), "store not to be trusted");
        Code::ServiceUnavailable.into()
    }
}

impl From<NotTrusted> for Problem {
    fn from(error: NotTrusted) -> Self {
        match error {
            NotTrusted::Known => Code::ServiceUnavailable.into(),
            NotTrusted::Found(error) => error.into(),
        }
    }
}

impl From<NotSealed> for Problem {
    fn from(error: NotSealed) -> Self {
        tracing::error!(error = %error_chain(&error), "a secret is not sealed");
        Code::ServiceUnavailable.into()
    }
}

impl From<entropy::NoEntropy> for Problem {
    fn from(error: entropy::NoEntropy) -> Self {
        tracing::error!(error = %error_chain(&error), "no randomness");
        Code::ServiceUnavailable.into()
    }
}

#[cfg(test)]
mod tests;
