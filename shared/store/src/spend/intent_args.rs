//! The arguments of the scripts about a spend's intent.

use super::{Injection, OTHER_WALLET, REASONS, Scope, Spend, SpendStep};
use crate::intent::{ApproverDecision, NewIntent};
use domain::intent::IntentKind;

/// Arguments about the intent.
pub(crate) struct IntentArgs<'a> {
    pub(crate) id: &'a str,
    pub(crate) spare_id: &'a str,
    pub(crate) head: &'a str,
    pub(crate) heads: String,
    pub(crate) fields: Vec<String>,
    pub(crate) event: &'static str,
    pub(crate) why: Option<&'a str>,
    pub(crate) injection: Option<Injection<'a>>,
}

impl<'a> IntentArgs<'a> {
    pub(crate) fn new(spend: &Spend<'_>, scope: &Scope<'_>, step: SpendStep<'a>) -> Self {
        match step {
            SpendStep::Request {
                identity,
                at_ms,
                request,
                injection,
            } => {
                let new = NewIntent {
                    kind: IntentKind::Spend,
                    fingerprint: &identity.fingerprint,
                    amount: spend.amount,
                    currency: spend.currency,
                    actor: scope.actor,
                    agent: spend.agent,
                    at_ms,
                    note: spend.description,
                    request,
                    // The script adds it if a wallet changes.
                    transaction: None,
                    escrow: None,
                };
                Self {
                    id: &identity.id,
                    spare_id: &identity.spare_id,
                    head: "",
                    heads: new.heads(true, &REASONS),
                    // For filters, which leave the rest of the request in the store.
                    fields: [
                        new.fields(),
                        ["run", spend.run.unwrap_or_default()].map(str::to_owned).to_vec(),
                    ]
                    .concat(),
                    event: "spend.requested",
                    why: None,
                    injection,
                }
            }
            SpendStep::Approval {
                record,
                decision,
                why,
            } => Self {
                id: &record.id,
                spare_id: &record.id,
                head: &record.head,
                heads: record.heads_of(decision, &[&[OTHER_WALLET], REASONS.as_slice()].concat()),
                fields: fields_of(decision),
                event: "spend.approved",
                why,
                injection: None,
            },
        }
    }
}

/// Returns the fields of a decision, with their values.
pub(crate) fn fields_of(decision: &ApproverDecision) -> Vec<String> {
    let word = if decision.granted { "granted" } else { "denied" };
    let at = decision.at_ms.to_string();
    ["decision", word, "decided_by", &decision.by, "decided_at", &at]
        .map(str::to_owned)
        .to_vec()
}
