//! Requests of a journey to the test, for actions outside the browser.

use crate::fixture::Fixture;
use crate::{accounts, provider};
use harness::Answer;
use serde_json::{Value, json};

impl Fixture {
    /// Answers one request of a script.
    pub fn answer(&self, ask: &str, with: &Value) -> Value {
        match ask {
            "account" => {
                let roles = words(&with["roles"]);
                let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
                accounts::account(self, word(&with["name"]), word(&with["plan"]), &roles)
            }
            "user" => accounts::user(
                self,
                word(&with["account"]),
                word(&with["email"]),
                word(&with["role"]),
            ),
            "cli" => self.operate(with),
            "redis" => self.store(&words(&with["words"])),
            "provider" => self.provide(with),
            "stop" => self.with_no_answer(Self::stop_admin),
            "start" => self.with_no_answer(Self::start_admin),
            _ => panic!("a journey asks for {ask}, which nobody knows"),
        }
    }

    fn with_no_answer(&self, act: impl FnOnce(&Self)) -> Value {
        act(self);
        Value::Null
    }

    /// Runs an operator's command.
    fn operate(&self, with: &Value) -> Value {
        let args = words(&with["args"]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let input = with["stdin"].as_str().unwrap_or_default();
        let output = self.cli().run_with_stdin(&args, input);
        json!({ "code": output.code, "stdout": output.stdout, "stderr": output.stderr })
    }

    /// Executes a command of the store. Returns its reply as text, or as a list of texts.
    fn store(&self, words: &[String]) -> Value {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let reply: redis::Value = self.redis.command(&words);
        match reply {
            redis::Value::Array(items) => items.into_iter().map(text).collect(),
            one => text(one),
        }
    }

    /// Sets the provider's answers from now on.
    fn provide(&self, with: &Value) -> Value {
        let status = with["status"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok());
        let status = status.expect("a status");
        let message = word(&with["message"]).to_owned();
        let usage = with["usage"].clone();
        self.upstream.set(move |request| match status {
            200 if !usage.is_null() => Answer::chat_with_usage(usage.clone()),
            200 => provider::answer(request),
            _ => Answer::error(status, "as_told", &message),
        });
        Value::Null
    }
}

fn text(value: redis::Value) -> Value {
    match value {
        redis::Value::Int(number) => json!(number),
        redis::Value::BulkString(bytes) => json!(String::from_utf8_lossy(&bytes)),
        redis::Value::SimpleString(text) => json!(text),
        redis::Value::Okay => json!("OK"),
        _ => Value::Null,
    }
}

#[track_caller]
fn word(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[track_caller]
fn words(value: &Value) -> Vec<String> {
    let items = value.as_array().expect("a list");
    items.iter().map(|item| word(item).to_owned()).collect()
}
