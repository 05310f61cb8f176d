//! `tollgate-admin decision`: one decision of a call with everything that is recorded of it.

use super::context::CommandContext;
use super::value;
use crate::document::document;
use crate::failure::CommandFailure;
use crate::report::Report;
use crate::table::table;
use api::Decisions;
use archive::Archive;
use clap::Subcommand;
use domain::mode::Mode;
use domain::money::Nanos;
use serde_json::{Map, Value};
use store::account::Account;
use store::keys::Realm;

/// `decision …`
#[derive(Debug, Subcommand)]
pub(super) enum DecisionCommand {
    /// Show one decision: its checks, its estimate, its charge, and where its record is
    Show {
        /// The decision id, allow_… or deny_…
        #[arg(long, value_name = "ID", value_parser = value::decision_id)]
        id: String,
        /// Its account; without it all accounts are searched
        #[arg(long, value_name = "ID", value_parser = value::id)]
        account: Option<String>,
        /// live or test
        #[arg(long, default_value = "live", value_parser = value::mode())]
        mode: Mode,
    },
}

/// Place of the record of a decision.
#[derive(Debug, Clone, Copy)]
enum RecordLocation {
    /// There is no entry yet.
    Open,
    Store(u64),
    Archive(u64),
}

impl DecisionCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        let Self::Show { id, account, mode } = self;
        let accounts = match account {
            Some(account) => vec![context.account(&account).await?.id],
            None => Account::ids(&context.store).await?,
        };
        let archive = Archive::from_settings(&context.settings.audit)?;
        for account in accounts {
            let decisions = Decisions::new(&context.store, &archive, Realm::new(&account, mode));
            let Some(explained) = decisions.explained(&id).await? else {
                continue;
            };
            let place = match explained.audit_seq() {
                None => RecordLocation::Open,
                Some(seq) if decisions.is_archived(seq).await? => RecordLocation::Archive(seq),
                Some(seq) => RecordLocation::Store(seq),
            };
            let document = document! {
                "accountId": account, "mode": mode.as_str(), "record": place.as_str(), "decision": explained,
            };
            let shown = serde_json::to_value(&explained).unwrap_or_default();
            return Ok(Report::new(text(&account, mode, place, &shown), document));
        }
        let message = format!("there is no decision {id} in {mode} mode");
        Err(CommandFailure::refused("NOT_FOUND", message))
    }
}

impl RecordLocation {
    /// Returns the word for scripts; `None` if there is no record.
    const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Open => None,
            Self::Store(_) => Some("store"),
            Self::Archive(_) => Some("archive"),
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Open => "none yet: its call, or the minute that counts it, has not ended".to_owned(),
            Self::Store(seq) => format!("entry {seq} of the audit trail, in the store"),
            Self::Archive(seq) => format!("entry {seq} of the audit trail, in the archive"),
        }
    }
}

/// Returns the text for people: the explanation, the fields, the checks, and the steps of a charge that was corrected.
fn text(account: &str, mode: Mode, place: RecordLocation, decision: &Value) -> String {
    let mut blocks = vec![
        word(&decision["message"]),
        table(&["FIELD", "VALUE"], &fields(account, mode, place, decision)),
    ];
    let checks: Vec<Vec<String>> = items(&decision["checks"]).iter().map(check).collect();
    if !checks.is_empty() {
        blocks.push(table(
            &["CHECK", "PASSED", "LIMIT", "SPENT BEFORE", "OF IT HELD", "RESETS"],
            &checks,
        ));
    }
    let steps = items(&decision["history"]);
    if steps.len() > 1 {
        let steps: Vec<Vec<String>> = steps.iter().map(step).collect();
        blocks.push(table(&["ENTRY", "AT", "OUTCOME", "CHARGED USD"], &steps));
    }
    blocks.join("\n\n")
}

/// Returns the fields that are known, each with its name.
fn fields(account: &str, mode: Mode, place: RecordLocation, decision: &Value) -> Vec<Vec<String>> {
    let call = &decision["call"];
    let named = |name: &str| word(&decision[name]);
    let count = decision["count"].as_u64().filter(|count| *count > 1);
    let upstream = match (call.is_object(), &call["upstream"]) {
        (true, Value::Null) => "[upstream]".to_owned(),
        (_, upstream) => word(upstream),
    };
    let fields = [
        ("decision", named("id")),
        ("account", format!("{account} ({mode})")),
        ("decided", named("at")),
        ("ended", named("endedAt")),
        ("outcome", named("outcome")),
        ("reason", named("reason")),
        ("calls", count.map(|count| count.to_string()).unwrap_or_default()),
        ("agent", named("agentId")),
        ("virtual key", named("keyId")),
        ("run", named("runId")),
        ("model", named("model")),
        ("upstream", upstream),
        ("price table", named("priceVersion")),
        ("estimate USD", usd(decision, "estimateNanos")),
        ("charged USD", usd(decision, "chargedNanos")),
        ("real cost USD", usd(decision, "actualNanos")),
        ("tokens", tokens(call)),
        ("answer", answer(call)),
        (
            "billing",
            call["billing"].as_object().map(pairs).unwrap_or_default(),
        ),
        ("record", place.shown()),
    ];
    let known = fields.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// Returns the provider's tokens; empty for a call that is not measured.
fn tokens(call: &Value) -> String {
    let number = |name: &str| call[name].as_u64();
    match (number("inputTokens"), number("outputTokens")) {
        (Some(input), Some(output)) => {
            let cached = number("cachedTokens").unwrap_or_default();
            format!("{input} of input ({cached} cached), {output} of output")
        }
        _ if call.is_object() => "no usage that counts".to_owned(),
        _ => String::new(),
    }
}

/// Returns the endpoint, and how and when the provider's answer ended; empty for a call that is not measured.
fn answer(call: &Value) -> String {
    if !call.is_object() {
        return String::new();
    }
    let streamed = if call["stream"] == true { ", streamed" } else { "" };
    let after = call["latencyMs"]
        .as_u64()
        .map(|ms| format!(" after {ms} ms"))
        .unwrap_or_default();
    format!(
        "{}{streamed}: {}{after}",
        word(&call["endpoint"]),
        word(&call["end"])
    )
}

fn pairs(fields: &Map<String, Value>) -> String {
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", word(value)));
    pairs.collect::<Vec<_>>().join(", ")
}

fn check(check: &Value) -> Vec<String> {
    let amount = |name: &str| match usd(check, &format!("{name}Nanos")) {
        amount if !amount.is_empty() => format!("{amount} USD"),
        _ => word(&check[name]),
    };
    let passed = if check["passes"] == true { "yes" } else { "NO" };
    let limit = Some(amount("limit")).filter(|limit| !limit.is_empty());
    vec![
        word(&check["check"]),
        passed.to_owned(),
        limit.unwrap_or_else(|| "none".to_owned()),
        amount("spent"),
        amount("held"),
        word(&check["resetsAt"]),
    ]
}

fn step(step: &Value) -> Vec<String> {
    vec![
        word(&step["auditSeq"]),
        word(&step["at"]),
        word(&step["outcome"]),
        usd(step, "chargedNanos"),
    ]
}

/// Returns the exact amount of a field in nano-USD; empty if there is none.
fn usd(fields: &Value, name: &str) -> String {
    let nanos = fields[name].as_str().and_then(|nanos| nanos.parse().ok());
    nanos
        .map(|nanos| Nanos::from_stored(nanos).to_string())
        .unwrap_or_default()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a value without quotation marks; empty for null.
fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
