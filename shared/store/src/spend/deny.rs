//! Twin of `spend/deny.lua`: denies a waiting spend (decision D23).

use super::intent_args::fields_of;
use crate::intent::{ApproverDecision, IntentLists, IntentRecord};
use crate::script::change::{AuditEvent, INTENT, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use domain::intent::Reason;
use serde_json::json;

script! {
    /// Denies a waiting spend.
    pub static DENY = "spend_deny",
    kind: Change,
    source: [INTENT, include_str!("deny.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct DenyKeys: String { intent, intent_index[5], pending_intents },
    args: struct DenyArgs<'a>: &'a str { intent, head, heads, fields[..] },
}

/// Denies the waiting spend of `record`. Returns false if it does not wait as it did when it was read.
///
/// # Errors
/// [`StoreError`]; if the script may have run, the record contains the outcome.
pub async fn deny(
    store: &Store,
    scope: &Scope<'_>,
    record: &IntentRecord,
    decision: &ApproverDecision,
    why: Option<&str>,
) -> Result<bool, StoreError> {
    let realm = scope.realm();
    let lists = IntentLists {
        kind: record.kind.as_str(),
        agent: &record.agent,
    };
    let [intent_index @ .., pending_intents] = lists.keys(&realm);
    let keys = DenyKeys {
        intent: realm.intent(&record.id),
        intent_index,
        pending_intents,
    };
    let heads = record.heads_of(decision, &[Reason::ApprovalDenied]);
    let fields = fields_of(decision);
    let args = DenyArgs {
        intent: &record.id,
        head: &record.head,
        heads: &heads,
        fields: fields.iter().map(String::as_str).collect(),
    };
    let data = json!({
        "intentId": record.id,
        "amount": record.amount,
        "amountNanos": record.amount.get().to_string(),
        "currency": record.currency,
        "why": why,
    });
    let event = AuditEvent::new("spend.denied", data).with_agent(record.agent.as_str());
    let reply = scope.execute(store, &DENY, event, keys, args).await?;
    reply.is("denied", &["changed"])
}
