//! The schemas of what has a form of its own: money, moments, ids by their kind, and the words of the domain's own
//! lists. Structs that hold such a value as a text say in `value_type` which of these it is.

use crypto::{api_key, virtual_key};
use domain::check::CheckName;
use domain::denial::Denial;
use domain::entry::How;
use domain::event::EventName;
use domain::id::Kind;
use domain::intent;
use domain::mode::Mode;
use domain::names::{AGENT_ID_MAX, RUN_ID_MAX};
use domain::number;
use domain::permission::Permission;
use domain::role::Role;
use domain::schema::{EXAMPLE_HEX, EXAMPLE_TIME, text, words};
use domain::threshold::Watched;
use serde_json::json;
use store::deposit::DepositState;
use store::escrow::EscrowStatus;
use store::run::RunStatus;
use store::transaction::TransactionType;
use store::wallet::WalletStatus;
use store::webhook;
use store::webhook::delivery;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};

pub use domain::intent::IntentEvent;
pub use domain::schema::{NanoUsd, PreviousHash, Sha256, Time, Usd};

/// The random part of an id in examples.
const EXAMPLE_ULID: &str = "01KAJ4M7Q8R5T6V9W0X1Y2Z3A4";

domain::schema_types! {
    /// An amount that can be below zero: money that leaves a wallet.
    SignedUsd = ObjectBuilder::new().schema_type(Type::Number).examples([json!(12.5)]);
    /// A day of the UTC calendar.
    Day = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Date))).examples([&EXAMPLE_TIME[..10]]);
    /// The id of an agent: one that Tollgate made (`agent_…`) or any other that the caller chose.
    AgentId = text().pattern(Some(format!("^[A-Za-z0-9._:-]{{1,{AGENT_ID_MAX}}}$"))).examples(["research-bot"]);
    /// The id of a run: 1 to 200 characters that the caller chose.
    RunId = text().pattern(Some(format!("^[A-Za-z0-9._:-]{{1,{RUN_ID_MAX}}}$"))).examples(["nightly-42"]);
    /// The id of an account.
    AccountId = id(&[Kind::Account]);
    /// The id of a user of the dashboard.
    UserId = id(&[Kind::User]);
    /// The id of a session.
    SessionId = id(&[Kind::Session]);
    /// The id of an invitation.
    InvitationId = id(&[Kind::Invitation]);
    /// What a page sends with every change, so that no other site can make a browser ask for one.
    CsrfToken = text().pattern(Some("^[0-9a-f]{64}$")).examples([EXAMPLE_HEX]);
    /// The id of a management API key.
    ApiKeyId = id(&[Kind::ApiKey]);
    /// The id of a wallet. Its number names it as well.
    WalletId = id(&[Kind::Wallet]);
    /// The number of a wallet, unique in the whole installation: the specification's bot_wallet id.
    WalletNumber = record_number().examples([json!(28_997_222_400_417_u64)]);
    /// The number of an escrow.
    EscrowNumber = record_number().examples([json!(28_997_222_401_441_u64)]);
    /// The id of a policy.
    PolicyId = id(&[Kind::Policy]);
    /// The id of a stored provider key.
    ProviderKeyId = id(&[Kind::ProviderKey]);
    /// The id of a virtual key. It is not the secret.
    VirtualKeyId = id(&[Kind::VirtualKey]);
    /// The id of a decision on a proxied call: `allow_…` when Cap decided, `deny_…` for a refusal before Cap ran.
    DecisionId = id(&[Kind::Allow, Kind::Deny]);
    /// The id of a payout intent.
    IntentId = id(&[Kind::Intent]);
    /// The id of a transaction.
    TransactionId = id(&[Kind::Transaction]);
    /// The id of an entry of the audit trail: that of the decision where it is one.
    AuditEntryId = id(&[Kind::Audit, Kind::Allow, Kind::Deny]);
    /// The id of a webhook.
    WebhookId = id(&[Kind::Webhook]);
    /// The id of a delivery; receivers drop duplicates by it.
    DeliveryId = id(&[Kind::Delivery]);
    /// Who did it: an API key, a user of the dashboard, the operator or Tollgate itself.
    Actor = text().min_length(Some(1)).examples([format!("{}{EXAMPLE_ULID}", Kind::ApiKey.prefix())]);
    /// The secret of a virtual key: what an agent calls the proxy with.
    VirtualKeySecret = text().pattern(Some(format!("^{}[0-9a-f]{{64}}$", virtual_key::PREFIX)))
        .examples([format!("{}{EXAMPLE_HEX}", virtual_key::PREFIX)]);
    /// The secret of a management API key.
    ApiKeySecret = text().pattern(Some("^(svc|sk_service)_(live|test)_[0-9a-f]{64}$"))
        .examples([format!("{}{EXAMPLE_HEX}", api_key::Family::Svc.prefix(Mode::Live))]);
    /// `live` or `test`. Records of the one never mix with those of the other.
    ModeName = words(Mode::ALL.map(Mode::as_str));
    /// What an API key may do.
    PermissionName = words(Permission::ALL.map(Permission::as_str));
    /// The role of a user, the strongest first.
    RoleName = words(Role::ALL.into_iter().rev().map(Role::as_str));
    /// What kind of request an intent belongs to.
    IntentKind = words(intent::Kind::ALL.iter().map(|kind| kind.as_str()).filter(|kind| !["transfer", "deposit"].contains(kind)));
    /// Where an intent stands. `settled` and `blocked` are final.
    IntentState = words(intent::State::ALL.iter().map(|state| state.as_str()));
    /// It was carried out.
    Settled = words([intent::State::Settled.as_str()]);
    /// It waits for somebody to approve or deny it.
    PendingApproval = words([intent::State::PendingApproval.as_str()]);
    /// It was refused.
    Blocked = words([intent::State::Blocked.as_str()]);
    /// Why a spend or a call on an escrow was refused.
    BlockedReason = words(intent::Reason::ALL.iter().map(|reason| reason.as_str()));
    /// Where an escrow stands.
    EscrowState = words(EscrowStatus::ALL.iter().map(|status| status.as_str()));
    /// It was made, and no money moved yet.
    EscrowPending = words([EscrowStatus::Pending.as_str()]);
    /// The payer's money is in it.
    EscrowFundedWord = words([EscrowStatus::Funded.as_str()]);
    /// How it was resolved.
    EscrowResolution = words([EscrowStatus::Released.as_str(), EscrowStatus::Disputed.as_str()]);
    /// What moved a wallet.
    TransactionKind = words(TransactionType::ALL.iter().map(|kind| kind.as_str()));
    /// A check that decides on a call or a spend, in order of precedence.
    CheckWord = words(CheckName::ALL.iter().map(|check| check.as_str()));
    /// Why the proxy denies a call, in order of precedence.
    DenialReason = words(Denial::ALL.iter().map(|denial| denial.reason()));
    /// How an approved call ended; `open` while it is under way.
    Outcome = words(How::ALL.map(How::as_str).into_iter().chain(["open", "denied"]));
    /// Where an agent comes from.
    AgentSource = words(["custom", "marketplace"]);
    /// Whether an agent may spend.
    AgentState = words(["active", "frozen"]);
    /// Whether a key works.
    KeyState = words(["active", "revoked"]);
    /// Whether an API key works.
    ApiKeyState = words(["active", "expired", "revoked"]);
    /// Why something waits for somebody.
    AttentionKind = words(["frozen_agent", "approval_waiting", "failing_webhook", "kept_hold", "low_balance", "near_limit"]);
    /// A limit whose thresholds are noticed.
    WatchedLimit = words(Watched::ALL.map(Watched::as_str));
    /// Where a wallet stands: frozen while its agent is, closed when its agent was deleted.
    WalletState = words([WalletStatus::Active, WalletStatus::Frozen, WalletStatus::Closed].map(WalletStatus::as_str));
    /// Whether a deposit counts already, or was taken back before it arrived.
    DepositWord = words(DepositState::ALL.iter().map(|state| state.as_str()));
    /// Where a run stands.
    RunState = words([RunStatus::Running, RunStatus::Completed, RunStatus::Failed].map(RunStatus::as_str));
    /// Whether a webhook is delivered to.
    WebhookState = words([webhook::Status::Active, webhook::Status::Disabled].map(webhook::Status::as_str));
    /// Where a delivery stands.
    DeliveryState = words([delivery::State::Pending, delivery::State::Delivered, delivery::State::Failed].map(delivery::State::as_str));
    /// An event that webhooks subscribe to.
    WebhookEvent = words(EventName::ALL.iter().map(|event| event.as_str()));
    /// An event as it is delivered: one that webhooks subscribe to, or the test.
    DeliveredEvent = words(EventName::ALL.iter().chain(&[EventName::WebhookTest]).map(|event| event.as_str()));
    /// An object of any fields.
    Free = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true))).examples([json!({ "deliver": "report.pdf" })]);
    /// The currency: one unit of account at par.
    Currency = words(["USD", "USDC"]);
}

/// The number of a wallet or an escrow.
fn record_number() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(number::LAST))
}

/// An id of one of these kinds.
fn id(kinds: &[Kind]) -> ObjectBuilder {
    let prefixes: Vec<&str> = kinds.iter().map(|kind| kind.prefix()).collect();
    let example = format!("{}{EXAMPLE_ULID}", prefixes.first().unwrap_or(&""));
    let prefixes = match prefixes[..] {
        [one] => one.to_owned(),
        _ => format!("({})", prefixes.join("|")),
    };
    text()
        .pattern(Some(format!("^{prefixes}[0-9A-Za-z]{{26}}$")))
        .examples([example])
}
