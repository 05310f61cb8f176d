//! A management server, an edge and a provider on one store, and an account whose agents call and spend.

use crate::fixture::{Fixture, success, text};
use harness::{Answer, Caller, Edge, EdgeOptions, Reply, SeedAccount, SeedAgent, Upstream, chat_body};
use serde_json::{Value, json};

pub const MODEL: &str = "gpt-4o-mini";
const EDGE: &str = env!("CARGO_BIN_EXE_tollgate-proxy");

pub struct RecordFixture {
    pub management: Fixture,
    pub upstream: Upstream,
    pub edge: Edge,
}

/// An account, a caller with its key, and an agent that may call.
pub struct Client {
    pub account: SeedAccount,
    pub api: Caller,
    pub agent: SeedAgent,
    pub key_id: String,
    pub edge: Caller,
}

impl RecordFixture {
    /// The provider answers with `usage` 9 + 12.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts with these settings (such as `LIMITS__RUNS`) on both servers.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        let named = || {
            let each = settings.iter();
            each.map(|(name, value)| (format!("TOLLGATE_{name}"), *value))
        };
        let management =
            Fixture::start_with(|options| named().fold(options, |all, (name, value)| all.env(&name, value)))
                .await;
        let upstream = Upstream::start(|_| Answer::chat(9, 12));
        let options = EdgeOptions::new(EDGE, management.redis.url(), upstream.base_url());
        let options = named().fold(options, |all, (name, value)| all.env(&name, value));
        let edge = Edge::start(options);
        Self {
            management,
            upstream,
            edge,
        }
    }

    /// An account of its own, whose agent `bot` has this policy, a provider key and a virtual key.
    pub async fn client(&self, plan: &str, policy: Value) -> Client {
        let (account, api) = self.management.account(plan).await;
        let agent = account.agent("bot");
        success(&api.post("/v1/policies/bot", policy).await, 200);
        agent.provider_key("sk-test-provider-key").await;
        let (key_id, secret) = agent.virtual_key_with_id().await;
        Client {
            account,
            api,
            agent,
            key_id,
            edge: self.edge.caller(&secret),
        }
    }

    /// Writes fields of a hash.
    pub fn set(&self, key: &str, fields: &[(String, String)]) {
        let words = fields
            .iter()
            .flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        let words: Vec<&str> = ["HSET", key].into_iter().chain(words).collect();
        let _: u64 = self.management.redis.command(&words);
    }

    /// Everything that the store holds under keys of this pattern, as one hash, except what every request changes (use
    /// count and time of an API key) and what the watcher of thresholds records.
    pub fn dump(&self, pattern: &str) -> String {
        // The order of a hash's fields may change as they are read: Valkey 8 moves them between its tables.
        const ALL: &str = "local function whole(key)
              if redis.call('TYPE', key).ok ~= 'hash' then return redis.call('DUMP', key) end
              local list, fields = redis.call('HGETALL', key), {}
              for i = 1, #list, 2 do fields[#fields + 1] = #list[i] .. ':' .. list[i] .. list[i + 1] end
              table.sort(fields)
              return table.concat(fields, ',')
            end
            local keys, all = redis.call('KEYS', ARGV[1]), {} table.sort(keys)
            for _, key in ipairs(keys) do
              if not key:find('/rate%-') and not key:find('/ak/') and not key:find('/notices/') then
                all[#all + 1] = key .. whole(key) .. redis.call('PEXPIRETIME', key)
              end
            end
            return redis.sha1hex(table.concat(all, '|'))";
        self.management.redis.command(&["EVAL", ALL, "0", pattern])
    }

    /// The dump of the whole store, once the workers are idle.
    pub async fn quiet_dump(&self) -> String {
        let mut last = self.dump("*");
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            let now = self.dump("*");
            // The prices of the edge are on their way to the archive.
            let has_tables: bool = self
                .management
                .redis
                .command(&["EXISTS", "tollgate/price-tables"]);
            if now == last && !has_tables {
                return now;
            }
            last = now;
        }
    }
}

impl Client {
    pub async fn dry_run(&self, body: Value) -> Reply {
        self.api.post("/v1/decisions/dry-run", body).await
    }

    /// Makes a call. Returns its reply and the id of its decision.
    pub async fn call(&self, run: Option<&str>) -> (Reply, String) {
        let headers: Vec<(&str, &str)> = run.iter().map(|run| ("x-service-run-id", *run)).collect();
        let reply = self.edge.chat_with(&headers, chat_body(MODEL, "hello")).await;
        let id = match reply.header("x-service-allow-id") {
            Some(id) => id.to_owned(),
            None => text(&reply.json(), "/id").to_owned(),
        };
        (reply, id)
    }

    /// Returns the explanation of the decision `id`.
    pub async fn decision(&self, id: &str) -> Value {
        let reply = self.api.get(&format!("/v1/decisions/{id}")).await;
        success(&reply, 200)["decision"].clone()
    }

    /// The body of a dry run of [`Client::call`].
    pub fn call_body(&self, run: Option<&str>) -> Value {
        let mut body = chat_body(MODEL, "hello");
        body["agent"] = json!(self.agent.id);
        body["runId"] = json!(run);
        body["keyId"] = json!(self.key_id);
        body
    }
}

/// The check `name` in an answer.
#[track_caller]
pub fn check<'a>(body: &'a Value, name: &str) -> &'a Value {
    let checks = body["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {body}"))
}
