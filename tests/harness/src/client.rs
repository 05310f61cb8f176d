//! An HTTP client for well-formed calls. For malformed ones see [`crate::RawClient`].

use crate::document;
use crate::reply::Reply;
use bytes::Bytes;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

/// Longer than any deadline of the product, so that a hang fails the test instead of blocking it.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(130);

/// A new client with connections of its own: HTTP/1.1 and HTTP/2 by negotiation, no proxies, no redirects.
pub fn http_client() -> reqwest::Client {
    static PROVIDER: LazyLock<()> = LazyLock::new(|| {
        // Fails if the test installed a provider already; that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    LazyLock::force(&PROVIDER);
    let builder = reqwest::Client::builder().no_proxy().timeout(CLIENT_TIMEOUT);
    let builder = builder
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_only([]);
    builder.build().expect("an HTTP client")
}

/// A minimal chat-completions body.
pub fn chat_body(model: &str, text: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": text }] })
}

/// The requests of a caller, by its own `send`.
macro_rules! verbs {
    () => {
        /// `GET path`.
        pub async fn get(&self, path: &str) -> Reply {
            self.send("GET", path, &[], Bytes::new()).await
        }

        /// `POST path` with a JSON body.
        pub async fn post(&self, path: &str, body: impl Into<Value>) -> Reply {
            self.send("POST", path, &[], body.into().to_string()).await
        }

        /// `PATCH path` with a JSON body.
        pub async fn patch(&self, path: &str, body: impl Into<Value>) -> Reply {
            self.send("PATCH", path, &[], body.into().to_string()).await
        }

        /// `DELETE path`.
        pub async fn delete(&self, path: &str) -> Reply {
            self.send("DELETE", path, &[], Bytes::new()).await
        }
    };
}
pub(crate) use verbs;

/// HTTP client of one server that sends one key.
#[derive(Debug, Clone)]
pub struct Caller {
    client: reqwest::Client,
    base: String,
    key: String,
    /// True for the management API, whose answers are compared with the OpenAPI document.
    is_documented: bool,
}

impl Caller {
    /// A caller of the server at `base` (`http://127.0.0.1:port`). Sends `key` as Bearer token unless it is empty.
    pub fn new(base: &str, key: &str) -> Self {
        Self {
            client: http_client(),
            base: base.to_owned(),
            key: key.to_owned(),
            is_documented: false,
        }
    }

    /// The same caller for an admin server: panics on an answer that the OpenAPI document does not allow.
    #[must_use]
    pub fn documented(mut self) -> Self {
        self.is_documented = true;
        self
    }

    /// The same caller with another client, such as one that trusts a test certificate or speaks HTTP/2 only.
    #[must_use]
    pub fn with_client(mut self, client: reqwest::Client) -> Self {
        self.client = client;
        self
    }

    /// The same caller, whose connections come from this address of the machine.
    ///
    /// # Panics
    /// If it is no address.
    #[must_use]
    pub fn at_address(self, address: &str) -> Self {
        let client = reqwest::Client::builder()
            .no_proxy()
            .local_address(address.parse::<IpAddr>().expect("an address"));
        self.with_client(client.build().expect("an HTTP client"))
    }

    /// `POST /v1/chat/completions`.
    pub async fn chat(&self, body: impl Into<Value>) -> Reply {
        self.chat_with(&[], body).await
    }

    /// Like [`Self::chat`], with more headers.
    pub async fn chat_with(&self, headers: &[(&str, &str)], body: impl Into<Value>) -> Reply {
        self.send("POST", "/v1/chat/completions", headers, body.into().to_string())
            .await
    }

    verbs!();

    /// `POST path` with a JSON body and an idempotency key, which is left out if it is empty.
    pub async fn post_once(&self, path: &str, key: &str, body: impl Into<Value>) -> Reply {
        let header = [("idempotency-key", key)];
        let headers = if key.is_empty() { &[][..] } else { &header };
        self.send("POST", path, headers, body.into().to_string()).await
    }

    /// Sends any request. A body that is not empty is JSON unless `headers` set another content type.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let sent = self.try_send(method, path, headers, body).await;
        sent.unwrap_or_else(|error| panic!("{method} {path}: {error:?}"))
    }

    /// Like [`Self::send`], for a call that may get no answer.
    ///
    /// # Errors
    /// The error of the HTTP client.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> reqwest::Result<Reply> {
        let verb = method.parse().expect("a method");
        let mut request = self.client.request(verb, format!("{}{path}", self.base));
        if !self.key.is_empty() {
            request = request.bearer_auth(&self.key);
        }
        let body = body.into();
        let named = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if !body.is_empty() && !named {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body).send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let reply = Reply {
            status,
            headers,
            body: response.bytes().await?,
        };
        if self.is_documented {
            document::check(method, path, &reply);
        }
        Ok(reply)
    }
}
