//! The intent document of the specification: the full form for exports, and a brief form for lists.

use super::require_intact;
use crate::spend::StoredSpend;
use crate::state::Call;
use domain::intent::{IntentKind, IntentState, Reason, TimelineEntry};
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::problem::Problem;
use futures::{StreamExt, TryStreamExt, stream};
use history::intents::Intents;
use serde::Serialize;
use serde_json::Value;
use store::intent::IntentRecord;
use store::intent::links::{EscrowLink, SIBLINGS_MAX};
use store::keys::Realm;
use store::keys::USER;
use utoipa::ToSchema;

/// Maximum number of siblings that are read concurrently.
const AT_ONCE: usize = 16;

/// The document. Its brief form has no siblings, timeline or downstream record.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Intent)]
pub(super) struct IntentDocument<'a> {
    #[schema(value_type = is::IntentId)]
    pub(super) intent_id: &'a str,
    #[schema(value_type = is::IntentKind)]
    pub(super) kind: &'static str,
    #[schema(value_type = is::IntentState)]
    pub(super) state: &'static str,
    pub(super) amount: Nanos,
    #[schema(value_type = is::Currency)]
    pub(super) currency: &'a str,
    /// The paying agent; for an escrow call, the agent of the calling party. Null for the account wallet.
    #[serde(rename = "agentId")]
    #[schema(value_type = Option<is::AgentId>)]
    agent_id: Option<&'a str>,
    /// Recipient of a spend, as its caller named it. Not part of the hashed timeline.
    #[schema(example = "Books Ltd")]
    recipient: Option<String>,
    /// Description of a spend, or reason of a dispute.
    #[schema(example = "A book")]
    description: Option<&'a str>,
    /// Run of a spend, as its caller named it. Not part of the hashed timeline.
    #[serde(rename = "runId")]
    #[schema(value_type = Option<is::RunId>)]
    run_id: Option<String>,
    /// The caller's own data of a spend, with keys sorted. Not part of the hashed timeline.
    #[schema(value_type = Option<is::Free>)]
    metadata: Option<Value>,
    /// The person or rule that allowed it; null when it is blocked.
    #[schema(example = "policy")]
    pub(super) allowed_by: Option<&'a str>,
    /// Why it is blocked, for people.
    #[schema(example = json!(null))]
    pub(super) blocked_reason: Option<&'static str>,
    /// Why it is blocked, as a word.
    #[schema(value_type = Option<is::BlockedReason>)]
    reason: Option<&'static str>,
    /// Always null: money moves between wallets of Tollgate.
    #[schema(example = json!(null))]
    pub(super) rail_reference: Option<&'a str>,
    /// Common group of intents of which only one can settle: `escrow:<number>`.
    #[schema(example = "escrow:42")]
    xor_group: Option<String>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<SiblingView>, required = false)]
    xor_siblings: Option<&'a [SiblingView]>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<TimelineEntry>, required = false)]
    timeline: Option<Vec<TimelineEntry>>,
    /// The record that resulted from it. Absent from lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Downstream, required = false)]
    downstream: Option<Downstream<'a>>,
    #[schema(value_type = is::Time)]
    pub(super) created_at: String,
    #[schema(value_type = is::Time)]
    pub(super) updated_at: String,
}

/// An intent of a group of which only one can settle.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IntentSibling)]
struct SiblingView {
    #[schema(value_type = is::IntentId)]
    intent_id: String,
    #[schema(value_type = is::IntentKind)]
    kind: &'static str,
    #[schema(value_type = is::IntentState)]
    state: &'static str,
    #[schema(example = "The escrow was already released.")]
    blocked_reason: Option<&'static str>,
    /// Why it is blocked, as a word.
    #[schema(value_type = Option<is::BlockedReason>)]
    reason: Option<&'static str>,
}

/// The record that resulted from the intent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Downstream)]
enum Downstream<'a> {
    Escrow { escrow_agreement: EscrowAgreement<'a> },
    Transaction { transaction: DownstreamTransaction<'a> },
    Nothing {},
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DownstreamEscrow)]
struct EscrowAgreement<'a> {
    #[schema(value_type = is::EscrowNumber)]
    id: u64,
    #[schema(value_type = is::EscrowState)]
    status: &'a str,
    amount: Nanos,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DownstreamTransaction)]
struct DownstreamTransaction<'a> {
    #[schema(value_type = is::TransactionId)]
    id: &'a str,
    amount: Nanos,
}

/// Records that an intent refers to.
#[derive(Debug, Default)]
pub(super) struct Links {
    escrow: Option<EscrowLink>,
    siblings: Vec<SiblingView>,
}

impl Links {
    /// Reads the records that `record` refers to. An escrow may belong to another account, and so may siblings.
    ///
    /// # Errors
    /// 500 for a sibling that was changed manually, 503.
    pub(super) async fn read(call: &Call, record: &IntentRecord) -> Result<Self, Problem> {
        let (store, mode) = (&call.state.store, call.caller.mode);
        let Some(number) = record.escrow else {
            return Ok(Self::default());
        };
        let Some(mut escrow) = EscrowLink::read(store, mode, number).await? else {
            return Ok(Self::default());
        };
        let mut siblings = Vec::new();
        if excludes_others(record.kind) {
            let mut others = std::mem::take(&mut escrow.siblings);
            others.retain(|other| other.intent != record.id);
            others.truncate(SIBLINGS_MAX);
            let reads = others.into_iter().map(|other| async move {
                let intents = Intents::new(store, &call.state.archive, Realm::new(&other.account, mode));
                intents.read(&other.intent).await
            });
            let found: Vec<_> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
            // An intent in transit has not arrived yet. Any other record that another account has under this id, after
            // reusing a key, is not disclosed.
            let is_sibling =
                |found: &IntentRecord| excludes_others(found.kind) && found.escrow == Some(escrow.number);
            for found in found.into_iter().flatten().filter(is_sibling) {
                require_intact(&found)?;
                siblings.push(SiblingView::new(found));
            }
        }
        Ok(Self {
            escrow: Some(escrow),
            siblings,
        })
    }
}

impl SiblingView {
    fn new(record: IntentRecord) -> Self {
        Self {
            kind: record.kind.as_str(),
            state: record.state.as_str(),
            blocked_reason: blocked(&record).map(Reason::sentence),
            reason: blocked(&record).map(Reason::as_str),
            intent_id: record.id,
        }
    }
}

impl<'a> IntentDocument<'a> {
    pub(super) fn brief(record: &'a IntentRecord) -> Self {
        let group = record.escrow.filter(|_| excludes_others(record.kind));
        let StoredSpend {
            recipient,
            run_id,
            metadata,
            ..
        } = stored(record);
        Self {
            intent_id: &record.id,
            kind: record.kind.as_str(),
            state: record.state.as_str(),
            amount: record.amount,
            currency: &record.currency,
            agent_id: Some(record.agent.as_str()).filter(|agent| *agent != USER),
            recipient,
            description: record.note.as_deref(),
            run_id,
            metadata,
            allowed_by: record.allowed_by(),
            blocked_reason: blocked(record).map(Reason::sentence),
            reason: blocked(record).map(Reason::as_str),
            // No payment leaves Tollgate on a rail of its own: money moves between its wallets.
            rail_reference: None,
            xor_group: group.map(|number| format!("escrow:{number}")),
            xor_siblings: None,
            timeline: None,
            downstream: None,
            created_at: iso_from_ms(record.at_ms),
            updated_at: iso_from_ms(record.updated_at_ms()),
        }
    }

    pub(super) fn whole(record: &'a IntentRecord, links: &'a Links) -> Self {
        Self {
            xor_siblings: Some(&links.siblings),
            timeline: Some(record.timeline()),
            downstream: Some(Downstream::new(record, links)),
            ..Self::brief(record)
        }
    }
}

impl<'a> Downstream<'a> {
    fn new(record: &'a IntentRecord, links: &'a Links) -> Self {
        match (&links.escrow, &record.transaction) {
            (Some(escrow), _) => Self::Escrow {
                escrow_agreement: EscrowAgreement {
                    id: escrow.number,
                    status: &escrow.status,
                    amount: escrow.amount,
                },
            },
            (None, Some(id)) if record.kind == IntentKind::Spend => Self::Transaction {
                transaction: DownstreamTransaction {
                    id,
                    amount: record.amount,
                },
            },
            (None, _) => Self::Nothing {},
        }
    }
}

/// Returns whether at most one intent of this kind can settle for an escrow.
const fn excludes_others(kind: IntentKind) -> bool {
    matches!(kind, IntentKind::EscrowRelease | IntentKind::EscrowDispute)
}

/// Why the intent is blocked, if it is.
fn blocked(record: &IntentRecord) -> Option<Reason> {
    record.reason.filter(|_| record.state == IntentState::Blocked)
}

/// Returns the stored parts of a spend's request; empty for other kinds and for a malformed record.
fn stored(record: &IntentRecord) -> StoredSpend {
    let stored = (record.kind == IntentKind::Spend).then(|| StoredSpend::parse(&record.request));
    stored.and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the brief document of a record with these fields in addition to the required ones.
    fn brief(more: &[(&str, &str)]) -> Value {
        let required = [
            ("id", "int_1"),
            ("kind", "spend"),
            ("fp", ""),
            ("state", "settled"),
            ("first", "settled"),
            ("amount", "1000000000"),
            ("currency", "USD"),
            ("actor", "key_1"),
            ("agent", "buyer"),
            ("at", "0"),
            ("request", "{}"),
            ("head", ""),
        ];
        let fields = required.iter().chain(more);
        let fields = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let record = IntentRecord::from_fields(&fields.collect()).unwrap();
        serde_json::to_value(IntentDocument::brief(&record)).unwrap()
    }

    fn payer_recipient_and_purpose(document: &Value) -> [&Value; 3] {
        ["agentId", "recipient", "description"].map(|name| &document[name])
    }

    #[test]
    fn a_document_names_payer_recipient_and_purpose() {
        let spend = brief(&[("request", r#"{"recipient":"Books Ltd"}"#), ("note", "A book")]);
        assert_eq!(
            payer_recipient_and_purpose(&spend),
            [&json!("buyer"), &json!("Books Ltd"), &json!("A book")]
        );
        assert_eq!(
            payer_recipient_and_purpose(&brief(&[])),
            [&json!("buyer"), &Value::Null, &Value::Null]
        );
    }

    #[test]
    fn only_spends_have_a_recipient_and_the_account_wallet_is_no_agent() {
        let request = r#"{"recipient":"Books Ltd"}"#;
        let dispute = [
            ("kind", "escrow_dispute"),
            ("agent", "user"),
            ("note", "Broken"),
            ("request", request),
        ];
        let dispute = brief(&dispute);
        assert_eq!(
            payer_recipient_and_purpose(&dispute),
            [&Value::Null, &Value::Null, &json!("Broken")]
        );
        let unreadable = brief(&[("request", "nonsense")]);
        assert_eq!(unreadable["recipient"], Value::Null);
    }

    #[test]
    fn a_spend_gives_back_what_its_caller_named_and_why_it_is_blocked() {
        let request = r#"{"runId":"run:1","metadata":{"n":9007199254740993,"order":{"id":7}}}"#;
        let blocked = [
            ("request", request),
            ("state", "blocked"),
            ("reason", "daily_limit"),
        ];
        let found = brief(&blocked);
        let metadata = json!({ "n": 9_007_199_254_740_993_u64, "order": { "id": 7 } });
        assert_eq!(
            (&found["runId"], &found["metadata"]),
            (&json!("run:1"), &metadata)
        );
        assert_eq!(found["reason"], json!("daily_limit"));
        assert_eq!(found["blocked_reason"], json!(Reason::DailyLimit.sentence()));

        let bare = brief(&[]);
        for name in ["runId", "metadata", "reason", "blocked_reason"] {
            assert_eq!(bare.get(name), Some(&Value::Null), "{name}");
        }
        let escrow = brief(&[("kind", "escrow_fund"), ("request", request)]);
        assert_eq!(
            (&escrow["runId"], &escrow["metadata"]),
            (&Value::Null, &Value::Null)
        );
    }
}
