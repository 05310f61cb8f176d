//! Escrows as returned (specification "Escrow").

use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::problem::{Code, Problem};
use serde::Serialize;
use serde_json::value::RawValue;
use store::escrow::{Escrow, EscrowStatus};
use utoipa::ToSchema;

/// An escrow as its parties see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Escrow)]
pub(super) struct EscrowView<'a> {
    #[schema(value_type = is::EscrowNumber)]
    id: u64,
    /// The payer's wallet.
    #[schema(value_type = is::WalletNumber)]
    from_wallet_id: u64,
    /// The payee's wallet.
    #[schema(value_type = is::WalletNumber)]
    to_wallet_id: u64,
    amount: Nanos,
    #[schema(value_type = is::Currency)]
    currency: &'a str,
    #[schema(value_type = is::EscrowState)]
    status: &'static str,
    /// Conditions as given; not enforced.
    #[schema(value_type = is::Free)]
    conditions: Box<RawValue>,
    #[serde(rename = "dispute_reason")]
    #[schema(example = "Nothing was delivered.")]
    dispute_reason: Option<&'a str>,
    /// The payer's intent that created it.
    #[serde(rename = "intent_id")]
    #[schema(value_type = is::IntentId)]
    intent_id: &'a str,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = is::Time)]
    updated_at: String,
}

/// The record as of its creation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EscrowAsMade)]
pub(super) struct CreatedEscrowView<'a> {
    #[schema(value_type = is::EscrowNumber)]
    pub(super) id: u64,
    /// The payer's wallet.
    #[schema(value_type = is::WalletNumber)]
    pub(super) from_wallet_id: u64,
    /// The payee's wallet.
    #[schema(value_type = is::WalletNumber)]
    pub(super) to_wallet_id: u64,
    pub(super) amount: Nanos,
    #[schema(value_type = is::Currency)]
    pub(super) currency: &'a str,
    /// `pending`, whatever its current status.
    #[schema(value_type = is::EscrowPending)]
    pub(super) status: &'static str,
    /// Conditions as given; not enforced.
    #[schema(value_type = is::Free)]
    pub(super) conditions: Box<RawValue>,
    #[schema(value_type = is::Time)]
    pub(super) created_at: String,
}

pub(super) fn record(escrow: &Escrow) -> Result<EscrowView<'_>, Problem> {
    Ok(EscrowView {
        id: escrow.number,
        from_wallet_id: escrow.payer.wallet,
        to_wallet_id: escrow.payee.wallet,
        amount: escrow.amount,
        currency: &escrow.currency,
        status: escrow.status.as_str(),
        conditions: object(&escrow.conditions)?,
        dispute_reason: escrow.dispute_reason.as_deref(),
        intent_id: &escrow.intent,
        created_at: iso_from_ms(escrow.created_at_ms),
        updated_at: iso_from_ms(escrow.updated_at_ms),
    })
}

/// Returns the answer to its creation, whatever its current status.
pub(super) fn as_created(escrow: &Escrow) -> Result<CreatedEscrowView<'_>, Problem> {
    Ok(CreatedEscrowView {
        id: escrow.number,
        from_wallet_id: escrow.payer.wallet,
        to_wallet_id: escrow.payee.wallet,
        amount: escrow.amount,
        currency: &escrow.currency,
        status: EscrowStatus::Pending.as_str(),
        conditions: object(&escrow.conditions)?,
        created_at: iso_from_ms(escrow.created_at_ms),
    })
}

/// Returns JSON text unchanged.
pub(super) fn object(text: &str) -> Result<Box<RawValue>, Problem> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(%error, "an escrow's conditions are no JSON");
        Code::Internal.into()
    })
}
