//! `/sessions`: the caller's sessions.

use super::person::Me;
use crate::state::{Call, PeopleState};
use domain::id::IdKind;
use domain::timestamp::iso_from_ms;
use endpoint::caller::session;
use endpoint::doc::is;
use endpoint::{Answer, Code, PAGING, Problem, Reply, operations};
use serde::Serialize;
use store::page::Order;
use store::script::change::Scope;
use store::session::script::{SessionEnd, end};
use utoipa::ToSchema;

operations! {
    /// Operations on sessions.
    ROUTES: PeopleState, User;

    GET    "/sessions",               session(Viewer), Both, Uncounted, list, Query, AlwaysAllowed;
    DELETE "/sessions/{id}",          session(Viewer), Both, Uncounted, revoke, AlwaysAllowed;
    POST   "/sessions/revoke-others", session(Viewer), Both, Uncounted, revoke_others, AlwaysAllowed;
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session)]
pub(super) struct SessionView<'a> {
    #[schema(value_type = is::SessionId)]
    id: &'a str,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = is::Time)]
    last_seen_at: String,
    /// Latest end of the session.
    #[schema(value_type = is::Time)]
    expires_at: String,
    /// Address from which it was opened.
    #[schema(example = "203.0.113.7")]
    ip: Option<&'a str>,
    /// `User-Agent` of the browser.
    #[schema(example = "Mozilla/5.0")]
    user_agent: &'a str,
    /// True if it is the session of this call.
    current: bool,
}

/// `GET /sessions`
pub async fn list(call: Call) -> Answer {
    let query = call.query(&PAGING)?;
    let me = Me::for_caller(&call)?;
    let paging = call.paging_of(&query, "sessions", &format!("sessions of {}", me.id))?;
    let sessions = me.sessions(&call).await?;
    let part = paging.page().of_all(sessions, Order::Descending, |session| {
        (session.created_at_ms, &session.id)
    })?;
    Reply::ok(&paging.listing(&part, |session| SessionView {
        id: &session.id,
        created_at: iso_from_ms(session.created_at_ms),
        last_seen_at: iso_from_ms(session.last_seen_ms),
        expires_at: iso_from_ms(session.expires_at_ms),
        ip: session.ip.as_deref(),
        user_agent: &session.user_agent,
        current: session.id == me.session,
    }))
}

/// `DELETE /sessions/{id}`
pub async fn revoke(call: Call) -> Answer {
    let id = call.record_id("id", IdKind::Session)?;
    let me = Me::for_caller(&call)?;
    let scope = Scope::live(&call.caller.account, me.id);
    if !end(
        &call.state.store,
        &scope,
        me.id,
        SessionEnd::One(id),
        "session.revoked",
    )
    .await?
    {
        return Err(Problem::new(Code::NotFound, "You have no such session."));
    }
    let answer = Reply::done()?;
    Ok(match id == me.session {
        true => answer.header("set-cookie", &session::no_cookie(&call.admission)),
        false => answer,
    })
}

/// `POST /sessions/revoke-others`
pub async fn revoke_others(call: Call) -> Answer {
    call.body()?.require_only(&[])?;
    let me = Me::for_caller(&call)?;
    let scope = Scope::live(&call.caller.account, me.id);
    let others = SessionEnd::AllBut(me.session);
    end(&call.state.store, &scope, me.id, others, "session.revoked").await?;
    Reply::done()
}
