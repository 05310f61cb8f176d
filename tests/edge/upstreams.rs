//! Upstreams by name: the choice by model, the requests to each, and that no key reaches an upstream of another name.

use super::fixture::{Actor, Fixture, PRICES, PROVIDER_KEY, SOON, amounts, open_cap};
use super::shape::{approved, denied, refused};
use super::tls::{Certificate, Terminator};
use harness::{Answer, Recorded, Reply, Upstream, assert_fields, eventually};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

mod endpoints;
mod streams;

const ZETA_KEY: &str = "zeta-0123456789abcdefghijklmnop";
const ALPHA_KEY: &str = "gsk_ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Prices for upstreams by name beside those of the other tests: a completion token of zeta's `gpt-4` costs 3 nano-USD,
/// that of all others 5.
const MORE_PRICES: &str = r#"
[models."zeta/gpt-4"]
rates.standard = { input = "0", output = "0.003" }
[models."alpha/gpt-4"]
rates.standard = { input = "0", output = "0.005" }
[models."alpha/llama"]
rates.standard = { input = "0", output = "0.005" }
[models."alpha/llama-tiered"]
rates.standard = { input = "0", output = "0.004" }
rates.flex = { input = "0", output = "0.002" }
[models."zeta/gpt-embed"]
rates.standard = { input = "0.007", output = "0" }
[models."alpha/llama-embed"]
rates.standard = { input = "0.011", output = "0" }
"#;

/// A fixture with two more providers: `zeta` in the form of Azure for `gpt-*`, then `alpha` for `gpt-4`, `llama*` and
/// `secret-*`.
struct Three {
    fixture: Fixture,
    zeta: Upstream,
    alpha: Upstream,
    _dir: tempfile::TempDir,
}

impl Three {
    async fn start(more: &str) -> Self {
        let [zeta, alpha] = [(); 2].map(|()| Upstream::start(|_| Answer::chat(9, 12)));
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: String| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path.display().to_string()
        };
        let prices = std::fs::read_to_string(PRICES).expect("prices");
        let prices = file("prices.toml", format!("{prices}\n{MORE_PRICES}"));
        let settings = format!(
            r#"
[upstreams.zeta]
base_url = "http://{}"
auth = "api-key"
chat_path = "/openai/deployments/{{model}}/chat/completions"
responses_path = "/openai/responses"
embeddings_path = "/openai/deployments/{{model}}/embeddings"
query = "api-version=2024-10-21"
models = ["gpt-*"]
forward_headers = ["X-Team"]

[upstreams.alpha]
base_url = "http://{}/openai/v1/"
models = ["gpt-4", "llama*", "secret-*"]
{more}
"#,
            zeta.addr(),
            alpha.addr()
        );
        let settings = file("tollgate.toml", settings);
        let fixture = Fixture::with(|options| {
            let options = options.arg("--config").arg(&settings);
            let options = options.env("TOLLGATE_PRICES__FILE", &prices);
            let options = options.env("TOLLGATE_PROXY__STREAMING", "true");
            let options = options.env("TOLLGATE_PROXY__RESPONSES", "true");
            options.env("TOLLGATE_PROXY__EMBEDDINGS", "true")
        })
        .await;
        Self {
            fixture,
            zeta,
            alpha,
            _dir: dir,
        }
    }

    /// An actor with a key for each provider.
    async fn actor(&self) -> Actor {
        let actor = self.fixture.actor("enterprise", open_cap()).await;
        actor.agent.provider_key_for("zeta", ZETA_KEY).await;
        actor.agent.provider_key_for("alpha", ALPHA_KEY).await;
        actor
    }

    /// Requests at the default provider, at `zeta` and at `alpha`.
    fn arrived(&self) -> (usize, usize, usize) {
        let Self {
            fixture, zeta, alpha, ..
        } = self;
        (fixture.upstream.arrived(), zeta.arrived(), alpha.arrived())
    }

    /// The samples that are not zero, of metrics that begin with `start`.
    fn samples(&self, start: &str) -> Vec<String> {
        let (_, text) = self.fixture.edge.ops("/metrics").expect("metrics");
        let found = text
            .lines()
            .filter(|line| line.starts_with(start) && !line.ends_with(" 0"));
        found.map(str::to_owned).collect()
    }
}

fn body(model: &str) -> Value {
    json!({ "model": model, "max_tokens": 100, "messages": [{ "role": "user", "content": "hello" }] })
}

fn last(upstream: &Upstream) -> Recorded {
    upstream.requests().pop().expect("a request")
}

/// OpenRouter and LiteLLM bill the model that served a call; these keys name other models than the priced one.
#[tokio::test]
async fn a_caller_chooses_no_other_model_beside_the_priced_one() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    for (key, value) in [
        ("models", json!(["gpt-4", "dearer"])),
        ("fallbacks", json!([{ "model": "dearer" }])),
        ("plugins", json!([{ "id": "web" }])),
    ] {
        // The last goes to `[upstream]`, behind which may be any provider.
        for model in ["gpt-4", "llama", "plain"] {
            let mut call = body(model);
            call[key] = value.clone();
            let reply = actor.caller.chat(call.clone()).await;
            refused(&reply, 400, "unsupported_field");
            assert_eq!(reply.json()["error"]["param"], key);
            call[key] = json!([]);
            approved(&actor.caller.chat(call).await);
        }
    }
}

/// What a tool of the provider costs is neither in the body nor in the price table, whatever the provider.
#[tokio::test]
async fn a_caller_gives_the_provider_no_tool_to_run() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    let own = json!({ "type": "function", "function": { "name": "f" } });
    for tool in ["web_search", "code_interpreter", "mcp", "browser_search"] {
        for model in ["gpt-4", "llama", "plain"] {
            let mut call = body(model);
            call["tools"] = json!([own, { "type": tool }]);
            let reply = actor.caller.chat(call.clone()).await;
            refused(&reply, 400, "unsupported_field");
            assert_eq!(reply.json()["error"]["param"], "tools[1].type");
            call["tools"] = json!([own]);
            approved(&actor.caller.chat(call).await);
        }
    }
}

/// A cost that the provider reports, where that counts and is above the price table.
#[tokio::test]
async fn a_reported_cost_above_the_table_is_charged() {
    let three = Three::start("reported_cost = true\n").await;
    let actor = three.actor().await;
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21, "cost": 0.2 });
    for upstream in [&three.zeta, &three.alpha] {
        let answer = Answer::chat_with_usage(usage.clone());
        upstream.set(move |_| answer.clone());
    }
    for (model, nanos) in [("llama", 200_000_000), ("gpt-4", 36)] {
        let reply = actor.caller.chat(body(model)).await;
        approved(&reply);
        assert_eq!(amounts(&reply).1, Some(nanos), "{model}");
    }
}

#[tokio::test]
async fn the_first_upstream_whose_pattern_matches_gets_the_call_with_its_own_key() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    let team = [("x-team", "red"), ("openai-beta", "x"), ("api-key", "caller's")];
    let call = async |model: &str| {
        let reply = actor.caller.chat_with(&team, body(model)).await;
        approved(&reply);
        reply
    };

    // Both match `gpt-4`: the order of the file decides, not that of the names.
    let reply = call("gpt-4").await;
    assert_eq!(three.arrived(), (0, 1, 0));
    assert_eq!(amounts(&reply), (300, Some(36)), "by the prices of zeta");
    let sent = last(&three.zeta);
    assert_eq!(
        sent.path,
        "/openai/deployments/gpt-4/chat/completions?api-version=2024-10-21"
    );
    assert_eq!(sent.json(), body("gpt-4"));
    assert_eq!(sent.header("api-key"), Some(ZETA_KEY));
    assert_eq!(
        (sent.header("authorization"), sent.header("openai-beta")),
        (None, None)
    );
    assert_eq!(sent.header("x-team"), Some("red"));
    assert_eq!(sent.header("host"), Some(three.zeta.addr().to_string().as_str()));

    let reply = call("llama").await;
    assert_eq!(three.arrived(), (0, 1, 1));
    assert_eq!(amounts(&reply), (500, Some(60)));
    let sent = last(&three.alpha);
    assert_eq!(sent.path, "/openai/v1/chat/completions");
    assert_eq!(
        sent.header("authorization"),
        Some(format!("Bearer {ALPHA_KEY}").as_str())
    );
    assert_eq!((sent.header("api-key"), sent.header("x-team")), (None, None));

    let reply = call("nano").await;
    assert_eq!(three.arrived(), (1, 1, 1));
    assert_eq!(amounts(&reply), (100, Some(12)));
    let sent = last(&three.fixture.upstream);
    assert_eq!(
        sent.header("authorization"),
        Some(format!("Bearer {PROVIDER_KEY}").as_str())
    );

    let answers = three.samples("tollgate_proxy_upstream_answers_total");
    let sample =
        |name| format!("tollgate_proxy_upstream_answers_total{{result=\"2xx\",upstream=\"{name}\"}} 1");
    assert_eq!(answers, ["alpha", "openai", "zeta"].map(sample));
    let logged = eventually("the log lines", SOON, async || {
        let logs = three.fixture.edge.logs();
        let lines = logs
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let settled = lines.filter(|line| line["message"] == "call settled");
        let names: Vec<Value> = settled.map(|mut line| line["upstream.name"].take()).collect();
        (names.len() == 3).then_some(names)
    })
    .await;
    assert_eq!(logged, ["zeta", "alpha", "openai"]);
    // `/v1/health` names the default provider, and `/v1/models` the upstream of each priced model.
    let health = actor.caller.get("/v1/health").await.json();
    assert_eq!(health["upstream"], "127.0.0.1");
    let models = actor.caller.get("/v1/models").await.json();
    let owner = |id: &str| {
        let models = models["data"].as_array().expect("models");
        let found = models.iter().find(|model| model["id"] == id);
        found.map(|model| model["owned_by"].as_str().expect("an owner").to_owned())
    };
    assert_eq!(owner("gpt-4").as_deref(), Some("zeta"));
    assert_eq!(owner("llama").as_deref(), Some("alpha"));
    assert_eq!(owner("nano").as_deref(), Some("openai"));
    assert_eq!((owner("zeta/gpt-4"), owner("alpha/gpt-4")), (None, None));
    assert_fields!(actor.caller.get("/v1/models/gpt-4").await.json(), { "owned_by": "zeta" });
    for unlisted in ["llama-3", "zeta/gpt-4", "alpha/gpt-4", "zeta%2Fgpt-4"] {
        let reply = actor.caller.get(&format!("/v1/models/{unlisted}")).await;
        refused(&reply, 404, "model_not_found");
    }
}

/// A model without a price for its upstream costs the dearest of the table, also where another upstream has one.
#[tokio::test]
async fn a_model_without_a_price_of_its_upstream_takes_the_dearest() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    let estimate = async |model: &str| amounts(&actor.caller.chat(body(model)).await).0;
    let unknown = estimate("who-knows").await;
    assert_eq!(estimate("gpt-nano").await, unknown);
    assert_eq!(estimate("llama-4").await, unknown);
    assert!(estimate("nano").await < unknown);
    let plain = Three::start("price_prefix = \"\"").await;
    let actor = plain.actor().await;
    let reply = actor.caller.chat(body("secret-nano")).await;
    assert_eq!(amounts(&reply).0, unknown);
}

/// A caller cannot make a call cheaper by naming a tier of which the upstream says nothing.
#[tokio::test]
async fn a_requested_tier_is_charged_only_where_the_upstream_reports_it() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    let call = async |tier: Option<&str>| {
        let mut body = body("llama-tiered");
        body["service_tier"] = json!(tier);
        amounts(&actor.caller.chat(body).await)
    };
    assert_eq!(call(None).await, (400, Some(48)));
    assert_eq!(call(Some("flex")).await, (400, Some(48)));
    three.alpha.set(|_| {
        let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21 });
        Answer::json(200, json!({ "service_tier": "flex", "usage": usage }))
    });
    assert_eq!(call(Some("flex")).await, (400, Some(24)));
}

#[tokio::test]
async fn a_model_stays_in_its_segment_of_the_path() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    for (model, segment) in [
        ("gpt-4/../../x?y#z", None),
        ("gpt-4\\..\\x", None),
        ("gpt-a/b", Some("gpt-a%2Fb")),
        ("gpt-a?b=c&d#e", Some("gpt-a%3Fb%3Dc%26d%23e")),
        ("gpt-%2e%2e é", Some("gpt-%252e%252e%20%C3%A9")),
    ] {
        let (default, zeta, _) = three.arrived();
        approved(&actor.caller.chat(body(model)).await);
        match segment {
            Some(segment) => {
                let path = format!("/openai/deployments/{segment}/chat/completions?api-version=2024-10-21");
                assert_eq!((last(&three.zeta).path, three.arrived().1), (path, zeta + 1));
            }
            // Not a segment: the default provider is called, whose path does not name the model.
            None => assert_eq!(three.arrived(), (default + 1, zeta, 0), "{model}"),
        }
    }
}

#[tokio::test]
async fn a_missing_key_is_denied_by_name_and_no_other_key_is_used() {
    let three = Three::start("").await;
    let actor = three.fixture.actor("enterprise", open_cap()).await;
    let reply = actor.caller.chat(body("gpt-4")).await;
    denied(&reply, "no_provider_key");
    assert!(
        reply.json()["message"]
            .as_str()
            .expect("a message")
            .contains("`zeta`")
    );
    assert_eq!(reply.json()["message"], reply.json()["error"]["message"]);
    actor.agent.provider_key_for("zeta", ZETA_KEY).await;
    approved(&actor.caller.chat(body("gpt-4")).await);
    let reply = actor.caller.chat(body("llama")).await;
    denied(&reply, "no_provider_key");
    assert!(reply.text().contains("`alpha`") && !reply.text().contains("zeta"));

    let other = three.fixture.seed.account("enterprise").await.agent("bot");
    other.cap(open_cap()).await;
    other.provider_key_for("zeta", ZETA_KEY).await;
    let caller = three.fixture.edge.caller(&other.virtual_key().await);
    let reply = caller.chat(body("nano")).await;
    denied(&reply, "no_provider_key");
    assert_fields!(reply.json(), {
        "message": "No provider key is stored for this agent.",
    }, "as without upstreams by name");
    assert_eq!(three.arrived(), (0, 1, 0));
}

/// A sealed key opens for its tenant, agent and provider only, also after it was opened and cached.
#[tokio::test]
async fn a_key_that_was_moved_to_another_name_or_tenant_is_not_sent() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    approved(&actor.caller.chat(body("gpt-4")).await);
    let fields: HashMap<String, String> = {
        let key = actor.agent.account.keys.live().agent("bot");
        three.fixture.redis.command(&["HGETALL", &key])
    };
    let (id, sealed) = (&fields["pk_id:zeta"], &fields["pk_sealed:zeta"]);
    actor.agent.provider_key_sealed_for("alpha", id, sealed).await;
    denied(&actor.caller.chat(body("llama")).await, "service_unavailable");
    actor.agent.provider_key_sealed_for("openai", id, sealed).await;
    denied(&actor.caller.chat(body("nano")).await, "service_unavailable");

    let thief = three.fixture.actor("enterprise", open_cap()).await;
    thief.agent.provider_key_sealed_for("zeta", id, sealed).await;
    denied(&thief.caller.chat(body("gpt-4")).await, "service_unavailable");
    assert_eq!(three.arrived(), (0, 1, 0), "only the first call was sent");
    let counters = thief.agent.counters().await;
    assert_eq!(counters.day_nanos, 0, "nothing stays charged");
    approved(&actor.caller.chat(body("gpt-4")).await);
}

#[tokio::test]
async fn an_echoed_key_is_removed_whatever_its_prefix() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    let masked = format!("{}****{}", &ZETA_KEY[..16], &ZETA_KEY[ZETA_KEY.len() - 4..]);
    let message = format!("{ZETA_KEY} or {masked} is no key");
    let answer = Answer::error(401, "invalid_api_key", &message).header("x-debug", ZETA_KEY);
    for gzip in [false, true] {
        let answer = if gzip {
            answer.clone().gzip()
        } else {
            answer.clone()
        };
        three.zeta.set(move |_| answer.clone());
        let reply: Reply = actor.caller.chat(body("gpt-4")).await;
        assert_eq!(reply.status, 401);
        assert_fields!(reply.json()["error"], { "message": "[redacted] or [redacted] is no key" });
        assert_eq!(reply.header("x-debug"), Some("[redacted]"));
        assert_eq!(reply.header("content-encoding"), None);
    }
}

#[tokio::test]
async fn each_upstream_has_its_own_deadline() {
    let three = Three::start("timeout_ms = 300").await;
    let actor = three.actor().await;
    three.alpha.set(|_| Answer::hang());
    let reply = actor.caller.chat(body("llama")).await;
    refused(&reply, 504, "upstream_timeout");
    let sample = "tollgate_proxy_upstream_answers_total{result=\"timeout\",upstream=\"alpha\"} 1";
    assert_eq!(three.samples("tollgate_proxy_upstream_answers_total"), [sample]);
    // The others have the deadline of `[upstream]`, which is far above the pause.
    let late = |_: &Recorded| Answer::chat(9, 12).delay(Duration::from_millis(600));
    three.zeta.set(late);
    three.fixture.upstream.set(late);
    approved(&actor.caller.chat(body("gpt-4")).await);
    approved(&actor.caller.chat(body("nano")).await);
}

#[tokio::test]
async fn each_upstream_has_its_own_certificates() {
    let provider = Upstream::start(|_| Answer::chat(9, 12));
    let (trusted, other) = (
        Certificate::for_names(&["127.0.0.1"]),
        Certificate::for_names(&["127.0.0.1"]),
    );
    let front = Terminator::start(&trusted, provider.addr()).await;
    let url = format!("https://{}/v1", front.addr);
    let fixture = Fixture::with(|options| {
        options
            .env("TOLLGATE_UPSTREAM__CA_FILE", other.file("cert.pem"))
            .env("TOLLGATE_UPSTREAMS__GOOD__BASE_URL", &url)
            .env("TOLLGATE_UPSTREAMS__GOOD__MODELS", "nano")
            .env("TOLLGATE_UPSTREAMS__GOOD__PRICE_PREFIX", "")
            .env("TOLLGATE_UPSTREAMS__GOOD__CA_FILE", trusted.file("cert.pem"))
            .env("TOLLGATE_UPSTREAMS__SYSTEM__BASE_URL", &url)
            .env("TOLLGATE_UPSTREAMS__SYSTEM__MODELS", "plain")
    })
    .await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    actor.agent.provider_key_for("good", ALPHA_KEY).await;
    actor.agent.provider_key_for("system", ALPHA_KEY).await;
    approved(&actor.caller.chat(body("nano")).await);
    let reply = actor.caller.chat(body("plain")).await;
    refused(&reply, 502, "upstream_unreachable");
    assert_eq!(provider.arrived(), 1);
}

/// Calls of one upstream go on while another one's hang.
#[tokio::test]
async fn a_hanging_upstream_leaves_connections_to_the_others() {
    let three = Three::start("").await;
    let actor = three.actor().await;
    let gate = Arc::new(Notify::new());
    let answer = Answer::chat(9, 12).wait_for(&gate);
    three.alpha.set(move |_| answer.clone());
    let slow = async { actor.caller.chat(body("llama")).await };
    let others = async {
        three.alpha.wait_for(1, SOON).await;
        approved(&actor.caller.chat(body("nano")).await);
        approved(&actor.caller.chat(body("gpt-4")).await);
        gate.notify_one();
    };
    let (slow, ()) = tokio::join!(slow, others);
    approved(&slow);
}
