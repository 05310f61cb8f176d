//! Escrows as they are returned (specification "Escrow").

use crate::problem::{Code, Problem};
use serde::Serialize;
use serde_json::value::RawValue;
use shared::clock::iso_from_ms;
use shared::domain::money::Nanos;
use shared::store::escrow::{Escrow, EscrowStatus};

/// The record.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record<'a> {
    id: u64,
    from_wallet_id: u64,
    to_wallet_id: u64,
    amount: Nanos,
    currency: &'a str,
    status: &'static str,
    conditions: Box<RawValue>,
    #[serde(rename = "dispute_reason")]
    dispute_reason: Option<&'a str>,
    created_at: String,
    updated_at: String,
}

/// The record as it was when it was made.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct New<'a> {
    pub(super) id: u64,
    pub(super) from_wallet_id: u64,
    pub(super) to_wallet_id: u64,
    pub(super) amount: Nanos,
    pub(super) currency: &'a str,
    pub(super) status: &'static str,
    pub(super) conditions: Box<RawValue>,
    pub(super) created_at: String,
}

/// The record of an escrow.
pub(super) fn record(escrow: &Escrow) -> Result<Record<'_>, Problem> {
    Ok(Record {
        id: escrow.number,
        from_wallet_id: escrow.payer.wallet,
        to_wallet_id: escrow.payee.wallet,
        amount: escrow.amount,
        currency: &escrow.currency,
        status: escrow.status.as_str(),
        conditions: object(&escrow.conditions)?,
        dispute_reason: escrow.dispute_reason.as_deref(),
        created_at: iso_from_ms(escrow.created_at_ms),
        updated_at: iso_from_ms(escrow.updated_at_ms),
    })
}

/// What the answer to its making said, whatever became of it since.
pub(super) fn as_made(escrow: &Escrow) -> Result<New<'_>, Problem> {
    Ok(New {
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

/// JSON text as it stands.
pub(super) fn object(text: &str) -> Result<Box<RawValue>, Problem> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(%error, "an escrow's conditions are no JSON");
        Code::Internal.into()
    })
}
