//! The argument of a handler: a call with its parameters, its body and its caller.

use super::agent_id::{require_agent_id, require_new_agent_id};
use super::body::Fields;
use super::paging::{ListId, PAGING, Paging};
use super::query::QueryParams;
use crate::admission::Admission;
use crate::caller::Caller;
use crate::large_reads::LargeRead;
use crate::problem::{Code, Problem};
use axum::extract::RawPathParams;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use bytes::Bytes;
use domain::id::{IdKind, RANDOM_LEN};
use domain::plan::Plan;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use store::keys::{AccountKeys, Realm};
use store::script::change::Scope;
use telemetry::PacedLine;

/// The content coding without any encoding.
const IDENTITY: &str = "identity";

/// A call by the caller `C`, which is `()` on public routes. `S` is the state of the operation's crate.
pub struct Call<S, C = Caller> {
    /// The state of the operation's crate.
    pub state: Arc<S>,
    /// State with which the call was admitted.
    pub admission: Arc<Admission>,
    /// Authenticated caller; `()` on public routes.
    pub caller: C,
    /// The client address, if it is known.
    pub client: Option<IpAddr>,
    params: BTreeMap<String, String>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl<S> Call<S, ()> {
    pub(super) fn new(
        (admission, state): (Arc<Admission>, Arc<S>),
        client: Option<IpAddr>,
        params: &RawPathParams,
        head: Parts,
        body: Bytes,
    ) -> Self {
        let params = params
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            state,
            admission,
            caller: (),
            client,
            params: params.collect(),
            uri: head.uri,
            headers: head.headers,
            body,
        }
    }

    /// Returns the same call with its caller.
    pub(super) fn by(self, caller: Caller) -> Call<S> {
        Call {
            state: self.state,
            admission: self.admission,
            caller,
            client: self.client,
            params: self.params,
            uri: self.uri,
            headers: self.headers,
            body: self.body,
        }
    }
}

impl<S> Call<S> {
    /// Returns the keys of the caller's account.
    pub fn keys(&self) -> AccountKeys {
        AccountKeys::new(&self.caller.account)
    }

    /// Returns the caller's account and mode.
    pub fn realm(&self) -> Realm {
        Realm::new(&self.caller.account, self.caller.mode)
    }

    /// Returns the account, mode and actor of a change by this call.
    pub fn scope(&self) -> Scope<'_> {
        Scope {
            account: &self.caller.account,
            mode: self.caller.mode,
            actor: &self.caller.actor,
        }
    }

    /// Waits for a turn to read many records.
    ///
    /// # Errors
    /// 409 if none of the account's is free, 503 if none of the server's is.
    pub async fn large_read(&self) -> Result<LargeRead, Problem> {
        self.admission.large_reads.begin(&self.caller.account).await
    }

    /// Parses the query of a list with these filters.
    pub fn list_query(&self, filters: &[&str]) -> Result<QueryParams, Problem> {
        self.query(&[filters, &PAGING].concat())
    }

    /// Returns the requested part of the list whose records an answer names `plural`. Its cursors are valid for this
    /// path, these filters, this account and this mode.
    ///
    /// # Errors
    /// 400: see [`Paging::from_query`].
    pub fn paging(&self, query: &QueryParams, plural: &'static str) -> Result<Paging, Problem> {
        self.paging_of(query, plural, plural)
    }

    /// Like [`Call::paging`], for the one of several lists of the account that `list` names.
    ///
    /// # Errors
    /// 400: see [`Paging::from_query`].
    pub fn paging_of(
        &self,
        query: &QueryParams,
        plural: &'static str,
        list: &str,
    ) -> Result<Paging, Problem> {
        let caller = &self.caller;
        let mut words = vec![caller.account.as_str(), caller.mode.as_str(), list];
        let filters = query.iter().filter(|(name, _)| !PAGING.contains(&name.as_str()));
        for (name, value) in self.params.iter().chain(filters) {
            words.extend([name.as_str(), value.as_str()]);
        }
        Paging::from_query(query, plural, ListId::new(words))
    }

    /// Returns the plan with this name.
    ///
    /// # Errors
    /// 503 if there is none, since nothing can then be decided (decision D7).
    pub fn plan(&self, name: &str) -> Result<Plan, Problem> {
        let plans = self.admission.plans.load();
        plans
            .get(name)
            .cloned()
            .ok_or_else(|| no_plan(name, &self.caller.account))
    }

    /// Returns where to upgrade from `plan`: an absolute URL.
    pub fn upgrade_url(&self, plan: &Plan) -> Option<String> {
        plan.absolute_upgrade_url(&self.admission.public_url)
    }
}

impl<S, C> Call<S, C> {
    /// Returns the agent id in the path.
    ///
    /// # Errors
    /// 400 if it is invalid (decision D6).
    pub fn agent(&self) -> Result<&str, Problem> {
        let id = self.param("id");
        require_agent_id("The agent id", id)?;
        Ok(id)
    }

    /// Returns the agent id in the path of an operation that can create the agent.
    ///
    /// # Errors
    /// 400 if it is invalid, or not allowed for a new agent (decision D6).
    pub fn new_agent(&self) -> Result<&str, Problem> {
        let id = self.param("id");
        require_new_agent_id("The agent id", id)?;
        Ok(id)
    }

    /// Returns the id of one of our records in the path.
    ///
    /// # Errors
    /// 404 if it does not have the form of such an id, so that no record can exist. The text is not repeated, since it
    /// may be a key.
    pub fn record_id(&self, param: &str, kind: IdKind) -> Result<&str, Problem> {
        let id = self.param(param);
        kind.has_form(id)
            .then_some(id)
            .ok_or_else(|| malformed_id(param, kind))
    }

    /// Returns the value of a path parameter; empty if the route has no parameter with this name.
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// Parses the fields of the JSON body; empty if there is no body.
    ///
    /// # Errors
    /// 415 for a content type other than JSON or an encoded body, 400 for anything but a JSON object.
    pub fn body(&self) -> Result<Fields<'_>, Problem> {
        if self.body.is_empty() {
            return Ok(Fields::default());
        }
        if let Some(kind) = self.headers.get(header::CONTENT_TYPE)
            && !is_json(kind)
        {
            return Err(Code::UnsupportedMediaType.into());
        }
        if !self
            .headers
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .all(is_identity)
        {
            let message = "Content-Encoding is not supported: send the body as plain JSON.";
            let problem = Problem::new(Code::UnsupportedMediaType, message);
            return Err(problem.header(header::ACCEPT_ENCODING, IDENTITY));
        }
        Fields::parse(&self.body)
    }

    /// Returns the headers of the request.
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Parses the parameters of the query, which must all be `known`.
    ///
    /// # Errors
    /// 400 for a query that is not UTF-8, or with an unknown or duplicate parameter.
    pub fn query(&self, known: &[&str]) -> Result<QueryParams, Problem> {
        QueryParams::from_uri(&self.uri, known)
    }
}

fn malformed_id(param: &str, kind: IdKind) -> Problem {
    let message = format!(
        "There is no record of this id: {param} must be `{}` and {RANDOM_LEN} letters and digits.",
        kind.prefix()
    );
    Problem::new(Code::NotFound, message)
}

/// Returns the error for an account whose plan is not in the table, so that nothing can be decided (decision D7).
pub(crate) fn no_plan(name: &str, account: &str) -> Problem {
    // No rate is counted without a plan, so nothing else bounds these lines.
    static LINE: PacedLine = PacedLine::new();
    if let Some(left_out) = LINE.due() {
        tracing::error!(
            plan = name,
            account,
            left_out,
            "the account's plan is not in plans.file"
        );
    }
    let message = format!(
        "The account's plan `{name}` is not in this installation's table of plans, so nothing can be decided until its operator has corrected the table."
    );
    Problem::new(Code::ServiceUnavailable, message)
}

/// Returns whether this is `application/json` or another type with JSON syntax, with any parameters.
pub(super) fn is_json(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Returns whether the value means no content coding.
fn is_identity(coding: &HeaderValue) -> bool {
    coding
        .as_bytes()
        .trim_ascii()
        .eq_ignore_ascii_case(IDENTITY.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_id_is_answered_with_the_form_of_one() {
        let problem = malformed_id("keyId", IdKind::VirtualKey);
        assert_eq!(problem.code(), Code::NotFound);
        assert_eq!(
            problem.message(),
            "There is no record of this id: keyId must be `vk_` and 26 letters and digits."
        );
    }

    #[test]
    fn json_types_are_recognised() {
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/merge-patch+json",
        ] {
            assert!(is_json(&HeaderValue::from_static(good)), "{good}");
        }
        for bad in ["text/plain", "application/x-www-form-urlencoded", "", "json"] {
            assert!(!is_json(&HeaderValue::from_static(bad)), "{bad}");
        }
    }
}
