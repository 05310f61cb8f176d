//! Schemas of values with their own format: money, times, ids by their kind, and the word lists of the domain. A struct
//! that holds such a value as text names its schema in `value_type`.

use crypto::{api_key, virtual_key};
use domain::check::CheckName;
use domain::denial::Denial;
use domain::entry::HoldOutcome;
use domain::event::EventName;
use domain::id::IdKind;
use domain::intent;
use domain::mode::Mode;
use domain::names::{AGENT_ID_MAX, NAME_PATTERN, RUN_ID_MAX};
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
use store::webhook::{WebhookStatus, delivery};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};

pub use domain::intent::IntentEvent;
pub use domain::schema::{NanoUsd, PreviousHash, Sha256, Time, Usd};

/// The random part of an id in examples.
const EXAMPLE_ULID: &str = "01KAJ4M7Q8R5T6V9W0X1Y2Z3A4";

domain::schema_types! {
    /// An amount that can be negative: money that leaves a wallet.
    SignedUsd = ObjectBuilder::new().schema_type(Type::Number).examples([json!(12.5)]);
    /// A day of the UTC calendar.
    Day = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Date))).examples([&EXAMPLE_TIME[..10]]);
    /// The id of an agent: created by Tollgate (`agent_…`) or chosen by the caller.
    AgentId = text().max_length(Some(AGENT_ID_MAX)).pattern(Some(NAME_PATTERN)).examples(["research-bot"]);
    /// The id of a run: 1 to 200 characters that the caller chose.
    RunId = text().max_length(Some(RUN_ID_MAX)).pattern(Some(NAME_PATTERN)).examples(["nightly-42"]);
    /// The id of an account.
    AccountId = id(&[IdKind::Account]);
    /// The id of a user of the dashboard.
    UserId = id(&[IdKind::User]);
    /// The id of a session.
    SessionId = id(&[IdKind::Session]);
    /// The id of an invitation.
    InvitationId = id(&[IdKind::Invitation]);
    /// The token that a page sends with every change, so that no other site can make a browser request one.
    CsrfToken = text().pattern(Some("^[0-9a-f]{64}$")).examples([EXAMPLE_HEX]);
    /// The id of a management API key.
    ApiKeyId = id(&[IdKind::ApiKey]);
    /// The id of a wallet. Its number identifies it too.
    WalletId = id(&[IdKind::Wallet]);
    /// The number of a wallet, unique in the whole installation: the specification's bot_wallet id.
    WalletNumber = record_number().examples([json!(28_997_222_400_417_u64)]);
    /// The number of an escrow.
    EscrowNumber = record_number().examples([json!(28_997_222_401_441_u64)]);
    /// The id of a policy.
    PolicyId = id(&[IdKind::Policy]);
    /// The id of a stored provider key.
    ProviderKeyId = id(&[IdKind::ProviderKey]);
    /// The id of a virtual key. This is not the secret.
    VirtualKeyId = id(&[IdKind::VirtualKey]);
    /// The id of a decision on a proxied call: `allow_…` when Cap decided, `deny_…` for a refusal before Cap ran.
    DecisionId = id(&[IdKind::Allow, IdKind::Deny]);
    /// The id of a payout intent.
    IntentId = id(&[IdKind::Intent]);
    /// The id of a transaction.
    TransactionId = id(&[IdKind::Transaction]);
    /// The id of an entry of the audit trail: the decision's id if the entry is about a decision.
    AuditEntryId = id(&[IdKind::Audit, IdKind::Allow, IdKind::Deny]);
    /// The id of a webhook.
    WebhookId = id(&[IdKind::Webhook]);
    /// The id of a delivery. Receivers use it to drop duplicates.
    DeliveryId = id(&[IdKind::Delivery]);
    /// The actor: an API key, a virtual key, a user of the dashboard, the operator or Tollgate itself. `payer`, `payee`
    /// or `another account` is a party of another account.
    Actor = text().min_length(Some(1)).examples([format!("{}{EXAMPLE_ULID}", IdKind::ApiKey.prefix())]);
    /// The secret of a virtual key, with which an agent calls the proxy.
    VirtualKeySecret = text().pattern(Some(format!("^{}[0-9a-f]{{64}}$", virtual_key::PREFIX)))
        .examples([format!("{}{EXAMPLE_HEX}", virtual_key::PREFIX)]);
    /// The secret of a management API key.
    ApiKeySecret = text().pattern(Some("^(svc|sk_service)_(live|test)_[0-9a-f]{64}$"))
        .examples([format!("{}{EXAMPLE_HEX}", api_key::Family::Svc.prefix(Mode::Live))]);
    /// `live` or `test`. Records of the two modes never mix.
    ModeName = words(Mode::ALL.map(Mode::as_str));
    /// A permission of an API key.
    PermissionName = words(Permission::ALL.map(Permission::as_str));
    /// The role of a user, the strongest first.
    RoleName = words(Role::ALL.into_iter().rev().map(Role::as_str));
    /// Kind of the request that an intent belongs to.
    IntentKind = words(intent::IntentKind::ALL.iter().map(|kind| kind.as_str()).filter(|kind| !["transfer", "deposit"].contains(kind)));
    /// State of an intent. `settled` and `blocked` are final.
    IntentState = words(intent::IntentState::ALL.iter().map(|state| state.as_str()));
    /// It was carried out.
    Settled = words([intent::IntentState::Settled.as_str()]);
    /// It waits for somebody to approve or deny it.
    PendingApproval = words([intent::IntentState::PendingApproval.as_str()]);
    /// It was refused.
    Blocked = words([intent::IntentState::Blocked.as_str()]);
    /// Why a spend or a call on an escrow was refused.
    BlockedReason = words(intent::Reason::ALL.iter().map(|reason| reason.as_str()));
    /// State of an escrow.
    EscrowState = words(EscrowStatus::ALL.iter().map(|status| status.as_str()));
    /// It was created, and no money has moved yet.
    EscrowPending = words([EscrowStatus::Pending.as_str()]);
    /// The payer's money is in it.
    EscrowFundedWord = words([EscrowStatus::Funded.as_str()]);
    /// Resolution of the escrow.
    EscrowResolution = words([EscrowStatus::Released.as_str(), EscrowStatus::Disputed.as_str()]);
    /// Type of a transaction.
    TransactionKind = words(TransactionType::ALL.iter().map(|kind| kind.as_str()));
    /// A check that decides on a call or a spend, in order of precedence.
    CheckWord = words(CheckName::ALL.iter().map(|check| check.as_str()));
    /// Why the proxy denies a call, in order of precedence.
    DenialReason = words(Denial::ALL.iter().map(|denial| denial.reason()));
    /// Outcome of an approved call; `open` while it is in flight.
    Outcome = words(HoldOutcome::ALL.map(HoldOutcome::as_str).into_iter().chain(["open", "denied"]));
    /// Origin of an agent.
    AgentSource = words(["custom", "marketplace"]);
    /// State of an agent: it may spend unless it is frozen.
    AgentState = words(["active", "frozen"]);
    /// State of a virtual key.
    KeyState = words(["active", "revoked"]);
    /// State of an API key.
    ApiKeyState = words(["active", "expired", "revoked"]);
    /// Why something needs attention.
    AttentionKind = words(["frozen_agent", "approval_waiting", "failing_webhook", "kept_hold", "low_balance", "near_limit"]);
    /// A limit with thresholds.
    WatchedLimit = words(Watched::ALL.map(Watched::as_str));
    /// State of a wallet: frozen while its agent is frozen, closed if its agent was deleted.
    WalletState = words([WalletStatus::Active, WalletStatus::Frozen, WalletStatus::Closed].map(WalletStatus::as_str));
    /// State of a deposit: expected, credited, or taken back before it arrived.
    DepositWord = words(DepositState::ALL.iter().map(|state| state.as_str()));
    /// State of a run.
    RunState = words([RunStatus::Running, RunStatus::Completed, RunStatus::Failed].map(RunStatus::as_str));
    /// State of a webhook.
    WebhookState = words([WebhookStatus::Active, WebhookStatus::Disabled].map(WebhookStatus::as_str));
    /// State of a delivery.
    DeliveryState = words([delivery::DeliveryState::Pending, delivery::DeliveryState::Delivered, delivery::DeliveryState::Failed].map(delivery::DeliveryState::as_str));
    /// An event that webhooks subscribe to.
    WebhookEvent = words(EventName::ALL.iter().map(|event| event.as_str()));
    /// A delivered event: one that webhooks subscribe to, or the test event.
    DeliveredEvent = words(EventName::ALL.iter().chain(&[EventName::WebhookTest]).map(|event| event.as_str()));
    /// An object of any fields.
    Free = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true))).examples([json!({ "deliver": "report.pdf" })]);
    /// The currency. Both have the same value in the ledger.
    Currency = words(["USD", "USDC"]);
}

/// Returns the number of a wallet or an escrow.
fn record_number() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(number::LAST))
}

/// Builds the schema of an id of one of these kinds.
fn id(kinds: &[IdKind]) -> ObjectBuilder {
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
