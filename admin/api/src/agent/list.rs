//! `GET /agents`: the agents that have a wallet, all or those that match a search.

use super::{AgentView, NAME_MAX};
use crate::state::Call;
use endpoint::{Answer, Problem, QueryParams, Reply};
use store::agent::AgentRecord;
use store::agent::search::AgentFilter;

/// `GET /agents`
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&["q", "status"])?;
    let paging = call.paging(&query, "agents")?;
    let page = paging.page();
    let (store, realm) = (&call.state.store, call.realm());
    let (part, partial) = match search(&query)? {
        None => (AgentRecord::list(store, &realm, page).await?, None),
        Some(wanted) => {
            let found = AgentRecord::search(store, &realm, &wanted, page).await?;
            (found.part, Some(found.is_partial))
        }
    };
    Reply::ok(&paging.listing(&part, AgentView::new).partial(partial))
}

/// Parses the search; `None` if the query has none.
fn search(query: &QueryParams) -> Result<Option<AgentFilter>, Problem> {
    let text = query.get("q").filter(|text| !text.is_empty());
    if text.is_some_and(|text| text.chars().count() > NAME_MAX) {
        return Err(Problem::validation(format!(
            "q must have at most {NAME_MAX} characters."
        )));
    }
    let frozen = match query.get("status") {
        None => None,
        Some("active") => Some(false),
        Some("frozen") => Some(true),
        Some(_) => return Err(Problem::validation("status must be active or frozen.")),
    };
    let wanted = AgentFilter {
        text: text.map(str::to_lowercase),
        frozen,
    };
    Ok((wanted != AgentFilter::default()).then_some(wanted))
}
