//! A caller of the measured calls.

use harness::{CapPolicy, SeedAgent};
use store::call::authorize::AccountView;

/// Name of the plan, whose limits come with each call.
pub const PLAN: &str = "bench";

/// A caller: an agent with a virtual key.
#[derive(Debug, Clone)]
pub struct Actor {
    pub account: String,
    pub agent: String,
    pub key_id: String,
    /// Its run; empty if its calls name none.
    pub run: String,
    /// Its view of the account.
    pub view: AccountView,
}

impl Actor {
    /// Seeds an agent with a virtual key, under this Cap.
    pub async fn seed(agent: &SeedAgent, cap: CapPolicy) -> Self {
        agent.cap(cap).await;
        agent.provider_key("sk-bench-provider-key").await;
        Self {
            account: agent.account.id.clone(),
            agent: agent.id.clone(),
            key_id: agent.virtual_key_with_id().await.0,
            run: format!("run-of-{}", agent.id),
            view: AccountView {
                generation: 1,
                version: 1,
                plan: PLAN.to_owned(),
            },
        }
    }
}
