//! `GET /decisions/{id}`: why a call was approved or denied, and its outcome (decisions D40, D48, D56).

mod doc;

pub(crate) use doc::section;
pub use explain::Explained;
pub(crate) use measured::BillingView;
pub use read::Decisions;

mod explain;
mod measured;
mod read;
mod recorded;

use crate::state::{ApiState, Call};
use endpoint::{Answer, Code, Problem, Reply, operations};

operations! {
    /// Operations on decisions.
    ROUTES: ApiState, Management;

    GET "/decisions/{id}", key(Read, Viewer), Both, PerMinute, get;
}

endpoint::answer! { DecisionAnswer, decision: Explained }

/// `GET /decisions/{id}`
pub async fn get(call: Call) -> Answer {
    let decisions = Decisions::new(&call.state.store, &call.state.archive, call.realm());
    let decision = decisions.explained(call.param("id")).await?;
    let missing = || Problem::new(Code::NotFound, "There is no decision of this id.");
    Reply::ok(&DecisionAnswer::new(decision.ok_or_else(missing)?))
}
