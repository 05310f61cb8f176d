//! The body of `POST /spend`, and the part of it that is stored with the intent.

use crate::spend::injection::SpendTexts;
use crate::state::Call;
use domain::cap::CapPlan;
use domain::mode::Mode;
use domain::money::Nanos;
use endpoint::{Code, Fields, Problem, TextForm, require_new_agent_id};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::spend::PlanCap;

/// Longest recipient.
pub(crate) const RECIPIENT_MAX: usize = 200;
/// Longest description.
pub(crate) const DESCRIPTION_MAX: usize = 2000;
const FIELDS: [&str; 7] = [
    "agent",
    "amount",
    "currency",
    "recipient",
    "description",
    "runId",
    "metadata",
];

#[derive(Debug)]
pub(crate) struct SpendRequest {
    pub(crate) agent: String,
    pub(crate) amount: Nanos,
    pub(super) currency: &'static str,
    pub(super) recipient: Option<String>,
    pub(super) description: Option<String>,
    pub(crate) run_id: Option<String>,
    pub(super) metadata: Option<Value>,
}

impl SpendRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// 400 with the field.
    pub(crate) fn read(body: &Fields<'_>) -> Result<Self, Problem> {
        body.require_only_with_key(&FIELDS)?;
        let agent = body.string("agent")?.required("agent")?;
        require_new_agent_id("agent", &agent)?;
        Ok(Self {
            agent,
            amount: body.amount("amount")?,
            currency: body.currency()?,
            recipient: body.text("recipient", TextForm::Line, RECIPIENT_MAX)?.value(),
            description: body
                .text("description", TextForm::Lines, DESCRIPTION_MAX)?
                .value(),
            run_id: body.run_id()?,
            metadata: body.object("metadata")?.value(),
        })
    }

    /// Returns the texts that are searched for attempts to instruct the agent.
    pub(crate) fn texts(&self) -> SpendTexts<'_> {
        SpendTexts {
            description: self.description.as_deref(),
            recipient: self.recipient.as_deref(),
            metadata: self.metadata.as_ref(),
        }
    }

    /// Returns the fields that distinguish requests, for the fingerprint.
    pub(super) fn canonical(&self) -> Value {
        json!({
            "agent": self.agent,
            "amountNanos": self.amount.get().to_string(),
            "currency": self.currency,
            "recipient": self.recipient,
            "description": self.description,
            "runId": self.run_id,
            "metadata": self.metadata,
        })
    }
}

/// The `request` field of the intent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredSpend {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recipient: Option<String>,
    /// Run id, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
    /// The caller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Value>,
    /// The plan at that time, so that a repeated denial has the same text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<SpendPlan>,
}

impl StoredSpend {
    pub(super) fn new(request: &SpendRequest, plan: Option<&SpendPlan>) -> Self {
        Self {
            recipient: request.recipient.clone(),
            run_id: request.run_id.clone(),
            metadata: request.metadata.clone(),
            plan: plan.cloned(),
        }
    }

    /// Returns the stored form.
    ///
    /// # Errors
    /// 500 if it cannot be written.
    pub(super) fn to_json(&self) -> Result<String, Problem> {
        serde_json::to_string(self).map_err(|error| {
            tracing::error!(%error, "a spend that is no JSON");
            Code::Internal.into()
        })
    }

    /// Parses the stored form.
    ///
    /// # Errors
    /// 500 for a malformed text.
    pub(crate) fn parse(json: &str) -> Result<Self, Problem> {
        serde_json::from_str(json).map_err(|error| {
            tracing::error!(%error, "the request of an intent cannot be parsed");
            Code::Internal.into()
        })
    }
}

/// The plan of a spend: the limits that are checked, and the upgrade that a denial names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpendPlan {
    pub(super) plan: String,
    /// Agents a month.
    pub(super) agents: Option<u64>,
    /// Tracked nano-USD a month.
    pub(super) tracked_nanos: Option<u64>,
    /// The next plan up.
    pub(super) upgrade_to: Option<String>,
    /// Absolute URL of the upgrade page.
    pub(super) upgrade_url: Option<String>,
}

impl SpendPlan {
    /// Returns the plan `name` with its limits; `None` in test mode, which counts against no plan (decision D53).
    ///
    /// # Errors
    /// 503 if there is no such plan.
    pub(crate) fn named(call: &Call, name: &str) -> Result<Option<Self>, Problem> {
        if call.caller.mode == Mode::Test {
            return Ok(None);
        }
        let plan = call.plan(name)?;
        Ok(Some(Self {
            plan: name.to_owned(),
            agents: plan.cap_agents_per_month,
            tracked_nanos: plan.tracked_usd_per_month.map(Nanos::get),
            upgrade_url: call.upgrade_url(&plan),
            upgrade_to: plan.upgrade_to,
        }))
    }

    /// Returns the limits that the script checks.
    pub(crate) fn cap(&self) -> PlanCap<'_> {
        PlanCap {
            name: &self.plan,
            cap: CapPlan {
                agents: self.agents,
                tracked: self.tracked_nanos.map(Nanos::from_stored),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repeated spend is answered from the stored form, and the intent shows it.
    #[test]
    fn the_stored_request_of_an_intent_is_read_back() {
        let request = SpendRequest {
            agent: "bot".to_owned(),
            amount: Nanos::from_stored(1),
            currency: "USD",
            recipient: Some("shop".to_owned()),
            description: Some("paper".to_owned()),
            run_id: Some("r".to_owned()),
            metadata: Some(json!({ "order": 7 })),
        };
        let plan = SpendPlan {
            plan: "free".to_owned(),
            agents: Some(3),
            tracked_nanos: Some(5),
            upgrade_to: Some("pro".to_owned()),
            upgrade_url: None,
        };
        let kept = StoredSpend::new(&request, Some(&plan));
        let StoredSpend {
            recipient,
            run_id,
            metadata,
            plan: named,
        } = kept.clone();
        assert_eq!((recipient, run_id), (request.recipient, request.run_id));
        assert_eq!((metadata, named), (request.metadata, Some(plan)));
        let json = kept.to_json().unwrap();
        assert_eq!(StoredSpend::parse(&json).unwrap(), kept);
        assert_eq!(StoredSpend::parse("{}").unwrap(), StoredSpend::default());
        assert!(StoredSpend::parse("[").is_err());
    }
}
