//! The precedence of refusals (specification "Authentication", decisions D10, D11, D63): a request with several flaws
//! is refused for the first of the documented order. Tests all sets of flaws.

use crate::fixture::{FULL, Fixture};
use domain::mode::Mode;
use domain::permission::Permission;
use domain::rate::Rate;
use harness::{AdminOptions, Cli, RawClient, SeedAccount, until};
use serde_json::Value;
use std::time::Duration;
use store::api_key;
use store::script::change::Scope;

/// Flaws of a request, in the order in which it is answered.
const FLAWS: [(&str, u16, &str); 11] = [
    ("blocked address", 403, "IP_BLOCKED"),
    ("no key", 401, "API_KEY_REQUIRED"),
    ("malformed key", 401, "INVALID_API_KEY"),
    ("revoked key", 401, "INVALID_API_KEY"),
    ("expired key", 401, "INVALID_API_KEY"),
    ("not from here", 403, "IP_BLOCKED"),
    ("over the rate", 429, "API_KEY_RATE_LIMITED"),
    ("reads only", 403, "INSUFFICIENT_API_KEY_PERMISSIONS"),
    ("test mode", 400, "LIVE_MODE_REQUIRED"),
    ("too large", 413, "PAYLOAD_TOO_LARGE"),
    ("no JSON", 415, "UNSUPPORTED_MEDIA_TYPE"),
];
const PLANS: &str = "[free]\nmanagement_requests_per_minute = 1\n";
const SOON: Duration = Duration::from_secs(20);
const BLOCKED: &str = "192.0.2.1";
const LISTED: &str = "203.0.113.1";
const PATH: &str = "/v1/agents/bot/virtual-keys";

#[derive(Clone, Copy)]
struct FlawSet(usize);

impl FlawSet {
    fn has(self, name: &str) -> bool {
        let at = FLAWS.iter().position(|(flaw, ..)| *flaw == name);
        self.0 & (1 << at.unwrap_or_else(|| panic!("no such flaw: {name}"))) != 0
    }

    /// Returns the expected error. Test mode has no rate that could be exceeded.
    fn first(self) -> Option<(&'static str, u16, &'static str)> {
        let reported = |name: &str| self.has(name) && !(name == "over the rate" && self.has("test mode"));
        FLAWS.into_iter().find(|(name, ..)| reported(name))
    }
}

/// A request with these flaws and no others.
async fn request(fixture: &Fixture, account: &SeedAccount, flawed: FlawSet) -> ReplyHead {
    let mode = if flawed.has("test mode") {
        Mode::Test
    } else {
        Mode::Live
    };
    let permissions = if flawed.has("reads only") {
        &[Permission::Read]
    } else {
        FULL
    };
    let expiry = flawed.has("expired key").then(|| clock::now_ms() - 1);
    let ranges: &[&str] = if flawed.has("not from here") {
        &["198.51.100.0/24"]
    } else {
        &["203.0.113.0/24", "192.0.2.0/24"]
    };
    let key = account.issue(mode, permissions, ranges, expiry).await;
    if flawed.has("over the rate") {
        let name = account.keys.management_rate(Rate::PerMinute, &key.id);
        let _: String = fixture.redis.command(&["SET", &name, "1", "PX", "60000"]);
    }
    if flawed.has("revoked key") {
        let scope = Scope {
            account: &account.id,
            mode,
            actor: "test",
        };
        api_key::script::revoke(&fixture.store, &scope, &key.id)
            .await
            .unwrap();
    }
    let secret = match (flawed.has("no key"), flawed.has("malformed key")) {
        (true, _) => String::new(),
        (false, true) => key.secret.to_uppercase(),
        (false, false) => key.secret,
    };
    let from = if flawed.has("blocked address") {
        BLOCKED
    } else {
        LISTED
    };
    let kind = if flawed.has("no JSON") {
        "text/plain"
    } else {
        "application/json"
    };
    // An oversized body is refused by the head alone.
    let (length, body) = match flawed.has("too large") {
        true => ((1 << 20) + 1, ""),
        false => (2, "{}"),
    };
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nx-api-key: {secret}\r\nx-forwarded-for: {from}\r\n\
         content-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut client = RawClient::connect(fixture.admin.addr()).await;
    client.send(head).await;
    let reply = client.reply(SOON).await.expect("an answer");
    ReplyHead {
        status: reply.status,
        body: serde_json::from_slice(&reply.body).expect("JSON"),
        head: reply.head.to_lowercase(),
    }
}

/// An answer: its head in lower case.
struct ReplyHead {
    status: u16,
    body: Value,
    head: String,
}

impl ReplyHead {
    fn has(&self, header: &str) -> bool {
        self.head.contains(&format!("\r\n{header}: "))
    }
}

/// A server behind a proxy, with one blocked address.
async fn start() -> (Fixture, tempfile::NamedTempFile) {
    let options = |options: AdminOptions| options.env("TOLLGATE_NETWORK__TRUSTED_PROXIES", "127.0.0.0/8");
    let (fixture, plans) = Fixture::with_plans(PLANS, options).await;
    let _ = Cli::new(crate::fixture::BINARY, fixture.redis.url()).json(&["ip", "block", BLOCKED]);
    until("the list in force", async || {
        let headers = [("x-forwarded-for", BLOCKED)];
        let reply = fixture.admin.caller("").send("GET", "/", &headers, "").await;
        reply.status == 403
    })
    .await;
    (fixture, plans)
}

#[tokio::test]
async fn the_first_flaw_in_the_documented_order_answers() {
    let (fixture, _plans) = start().await;
    let mut account = fixture.seed.account("free").await;
    for set in 1..1 << FLAWS.len() {
        // An account can have 1,000 keys.
        if set % 500 == 0 {
            account = fixture.seed.account("free").await;
        }
        let flawed = FlawSet(set);
        let (name, status, code) = flawed.first().unwrap_or(("nothing", 0, ""));
        if status == 0 {
            continue;
        }
        let reply = request(&fixture, &account, flawed).await;
        assert_eq!(
            (reply.status, reply.body["code"].as_str()),
            (status, Some(code)),
            "{name}, {set:011b}: {}",
            reply.body
        );
        let counted = FLAWS.iter().position(|(flaw, ..)| *flaw == name).unwrap() >= 6;
        let counted = counted && !flawed.has("test mode");
        assert_eq!(reply.has("x-ratelimit-limit"), counted, "{name}, {set:011b}");
        assert_eq!(reply.has("retry-after"), status == 429, "{name}");
        assert_eq!(reply.has("www-authenticate"), status == 401, "{name}");
    }
    let fine = request(&fixture, &account, FlawSet(0)).await;
    assert_eq!(fine.status, 201, "{}", fine.body);
}
