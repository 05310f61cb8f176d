//! A signed-in dashboard user.

use crate::client::{Caller, verbs};
use crate::daemon::Admin;
use crate::reply::Reply;
use bytes::Bytes;
use domain::mode::Mode;
use serde_json::{Value, json};

/// HTTP client of the admin server with a session: sends the session's cookie, and its CSRF token with every change.
#[derive(Debug, Clone)]
pub struct SessionCaller {
    caller: Caller,
    cookie: String,
    csrf: String,
    mode: Option<Mode>,
}

impl Admin {
    /// Signs in; panics if that fails.
    #[track_caller]
    pub fn sign_in<'a>(
        &'a self,
        email: &'a str,
        password: &'a str,
    ) -> impl Future<Output = SessionCaller> + 'a {
        let at = std::panic::Location::caller();
        async move {
            let reply = self.login(&json!({ "email": email, "password": password })).await;
            assert_eq!(reply.status, 200, "{at}: {}", reply.text());
            self.session(&reply)
        }
    }

    /// `POST /api/user/login` with this body.
    pub async fn login(&self, body: &Value) -> Reply {
        self.caller("").post("/api/user/login", body.clone()).await
    }

    /// The session that an answer opened.
    #[track_caller]
    pub fn session(&self, reply: &Reply) -> SessionCaller {
        SessionCaller {
            caller: self.caller(""),
            cookie: cookie_of(reply).expect("a cookie"),
            csrf: reply.json()["csrfToken"].as_str().expect("csrfToken").to_owned(),
            mode: None,
        }
    }
}

/// `name=value` of the session cookie that an answer sets; `None` if it sets none or deletes it.
pub fn cookie_of(reply: &Reply) -> Option<String> {
    let cookies = reply.headers.get_all("set-cookie").iter();
    let pairs = cookies.map(|cookie| {
        cookie
            .to_str()
            .expect("visible ASCII")
            .split(';')
            .next()
            .unwrap_or("")
    });
    let session = pairs.rev().find(|pair| pair.starts_with("tollgate_session="))?;
    (session != "tollgate_session=").then(|| session.to_owned())
}

impl SessionCaller {
    /// The same session in another mode.
    pub fn in_mode(&self, mode: Mode) -> Self {
        Self {
            mode: Some(mode),
            ..self.clone()
        }
    }

    /// The `Cookie` header: `tollgate_session=…`.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// The CSRF token that every change sends.
    pub fn csrf(&self) -> &str {
        &self.csrf
    }

    /// The same session with the new cookie and token of an answer.
    #[track_caller]
    pub fn renewed(&self, reply: &Reply) -> Self {
        Self {
            cookie: cookie_of(reply).expect("a cookie"),
            csrf: reply.json()["csrfToken"].as_str().expect("csrfToken").to_owned(),
            ..self.clone()
        }
    }

    verbs!();

    /// Sends any request as a page of the dashboard does, with more headers.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let mut all = vec![("cookie", self.cookie.as_str())];
        if method != "GET" {
            all.push(("x-csrf-token", &self.csrf));
        }
        if let Some(mode) = self.mode {
            all.push(("x-tollgate-mode", mode.as_str()));
        }
        all.extend(headers);
        self.caller.send(method, path, &all, body).await
    }

    /// Like [`Self::send`], with the cookie and these headers only.
    pub async fn send_bare(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let mut all = vec![("cookie", self.cookie.as_str())];
        all.extend(headers);
        self.caller.send(method, path, &all, body).await
    }
}
