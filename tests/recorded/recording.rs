//! Recordings of calls: placeholders replace values that differ from run to run (ids, secrets, times, hashes, ports),
//! equal values by the same placeholder.

use harness::{Caller, REWRITE_DOCS, Reply, eventually, rewrites_docs};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// Silence of a log after which it counts as complete.
const QUIET: Duration = Duration::from_secs(1);
/// Headers that do not depend on the product.
const NOT_RECORDED: [&str; 2] = ["date", "content-length"];
/// Fields of log lines that differ from run to run.
const NOT_LOGGED: [&str; 3] = ["timestamp", "trace.id", "span.id"];

/// Patterns of values that differ, with their placeholders; `#` is replaced by a number for each value. If a pattern
/// has a group, only the group is replaced.
const DIFFERENT: [(&str, &str); 16] = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
    (r"\b\d{4}-(?:0\d|1[0-2])(?:-\d\d)?\b", "<day>"),
    (r"127\.0\.0\.1:\d+", "<address>"),
    (r"[a-z]+_[0-9A-HJKMNP-TV-Z]{26}", "<id #>"),
    (r"\b[0-9a-f]{64}\b", "<hex #>"),
    (r"\b[0-9a-f]{32}\b", "<hex #>"),
    (r"\b(?:[a-z]+_)?(?:live|test)_[0-9A-Za-z]{20,}\b", "<secret #>"),
    (r"\bwhsec_[0-9A-Za-z+/=_-]{20,}", "<secret #>"),
    (r"\b1[6-9]\d{11}\b", "<ms>"),
    (
        r#""(?:duration[._]us|own\.us|upstream\.ms)":([0-9]+)"#,
        "<duration>",
    ),
    (r"(?:overhead-ms|time): ([0-9.]+)", "<duration>"),
    (r"\+([0-9a-f]{8})\+", "<hex #>"),
    (r"[0-9A-Za-z+/]{42,}={0,2}", "<base64 #>"),
    (r#""latencyMs":([0-9.]+)"#, "<duration>"),
    (r"\b[1-9]\d{12,14}\b", "<number #>"),
    (r#""(?:cursor|nextCursor|next_cursor)":"([^"]+)""#, "<cursor #>"),
];

/// The calls of one server, in order.
pub struct Recording {
    calls: Vec<Call>,
}

struct Call {
    /// Title and request.
    head: String,
    trace: String,
    reply: Reply,
}

impl Recording {
    pub const fn new() -> Self {
        Self { calls: Vec::new() }
    }

    /// Sends a request and records the answer under `title`.
    pub async fn call(
        &mut self,
        title: &str,
        caller: &Caller,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        // Its log lines are found by the trace that the caller began.
        let trace = format!("{:032x}", self.calls.len() + 1);
        let parent = format!("00-{trace}-00000000000000ff-01");
        let headers = [headers, &[("traceparent", parent.as_str())]].concat();
        let reply = caller.send(method, path, &headers, body.to_owned()).await;
        let sent = if body.is_empty() {
            String::new()
        } else {
            format!("\n> {}", shortened(body))
        };
        let head = format!("## {title}\n{method} {path}{sent}");
        let recorded = Call {
            head,
            trace,
            reply: reply.clone(),
        };
        self.calls.push(recorded);
        reply
    }

    /// Waits for the log lines of all calls, and compares everything with the file `name` beside this one.
    pub async fn compare_with(self, name: &str, logs: impl Fn() -> String) {
        let mut known = 0;
        // The last lines come after the last answer.
        let logs = eventually("an end of the log", SOON, async || {
            tokio::time::sleep(QUIET).await;
            let logs = logs();
            (std::mem::replace(&mut known, logs.len()) == logs.len()).then_some(logs)
        })
        .await;
        let lines = by_trace(&logs);
        let calls: Vec<(String, String, String)> = self
            .calls
            .iter()
            .map(|call| call.written(lines.get(&call.trace).map_or(&[], Vec::as_slice)))
            .collect();
        let usual = calls.first().map_or("", |(_, headers, _)| headers.as_str());
        let mut text = format!("## the usual headers\n{usual}\n");
        for (head, headers, rest) in &calls {
            let headers = if headers == usual {
                "< the usual headers\n"
            } else {
                headers
            };
            writeln!(text, "{head}{headers}{rest}").unwrap();
        }
        compare(name, &text);
    }
}

impl Call {
    /// Returns request and status, headers, and the rest, as lines.
    fn written(&self, logged: &[String]) -> (String, String, String) {
        const PARTS: &str = "\u{1}";
        let reply = &self.reply;
        let headers = reply
            .headers
            .iter()
            .filter(|(name, _)| !NOT_RECORDED.contains(&name.as_str()))
            .map(|(name, value)| format!("< {name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
        let headers: BTreeSet<String> = headers.collect();
        let body = match std::str::from_utf8(&reply.body) {
            Ok("") => String::new(),
            Ok(body) => format!("< {}\n", shortened(body)),
            Err(_) => "< bytes that are no text\n".to_owned(),
        };
        let lines: String = logged.iter().map(|line| format!("log {line}\n")).collect();
        let (head, status) = (&self.head, reply.status);
        let headers: String = headers.into_iter().collect();
        // All parts together, so that a value has the same placeholder in each.
        let all = named(&format!(
            "{headers}{PARTS}{head}\n< {status}\n{PARTS}{body}{lines}"
        ));
        let mut parts = all.split(PARTS).map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        let (headers, head, rest) = (next(), next(), next());
        (head, headers, rest)
    }
}

/// The placeholder of a long body.
fn shortened(body: &str) -> String {
    const SHOWN: usize = 2_000;
    if body.len() <= SHOWN {
        return body.to_owned();
    }
    let start: String = body.chars().take(100).collect();
    format!("{start}… (shortened)")
}

/// The log lines of each trace, without the fields that differ from run to run.
fn by_trace(logs: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for line in logs.lines() {
        let Ok(Value::Object(mut line)) = serde_json::from_str(line) else {
            continue;
        };
        let Some(id) = line.get("trace.id").and_then(Value::as_str).map(str::to_owned) else {
            continue;
        };
        // The module that wrote a line may move (docs/reference/observability.md).
        line.remove("target");
        for field in NOT_LOGGED {
            line.remove(field);
        }
        found.entry(id).or_default().push(Value::Object(line).to_string());
    }
    found
}

/// The text with placeholders for differing values.
fn named(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, name) in DIFFERENT {
        let pattern = Regex::new(pattern).unwrap();
        let mut known = BTreeMap::<String, usize>::new();
        let replaced = pattern.replace_all(&text, |found: &regex::Captures<'_>| {
            let whole = &found[0];
            let value = found.get(1).map_or(whole, |group| group.as_str());
            let next = known.len() + 1;
            let number = *known.entry(value.to_owned()).or_insert(next);
            let prefix = value.split_once('_').map_or("", |(prefix, _)| prefix);
            let name = name.replace("id", prefix).replace('#', &number.to_string());
            whole.replace(value, &name)
        });
        text = replaced.into_owned();
    }
    text
}

fn compare(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recorded")
        .join(name);
    if rewrites_docs() {
        std::fs::write(&path, now).unwrap();
        return;
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    // A body can have empty lines.
    let calls = |text: &str| text.split("\n\n## ").map(str::to_owned).collect::<Vec<_>>();
    let (before, now) = (calls(&before), calls(now));
    let different: Vec<String> = before
        .iter()
        .zip(&now)
        .filter(|(before, now)| before != now)
        .map(|(before, now)| format!("--- before\n{before}\n--- now\n{now}\n"))
        .take(5)
        .collect();
    assert!(
        different.is_empty() && before.len() == now.len(),
        "{name}: {} calls were recorded and {} made; the first that differ ({REWRITE_DOCS}=1 records them anew):\n{}",
        before.len(),
        now.len(),
        different.join("\n")
    );
}

#[test]
fn the_same_value_has_the_same_name() {
    let text = "agt_01KAH3V9J80123456789ABCDEF key_01KAH3V9J80123456789ABCDEG agt_01KAH3V9J80123456789ABCDEF \
                2026-11-25T01:02:03.004Z 1795000000000 \"duration_us\":15";
    assert_eq!(
        named(text),
        "<agt 1> <key 2> <agt 1> <time> <ms> \"duration_us\":<duration>"
    );
}
