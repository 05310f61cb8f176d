//! Tests of deciding keys: repeating or misspelling them never makes the parser accept an element that it refuses
//! otherwise.

use super::super::super::responses::parse;
use super::{item, read, refused, with};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// Deciding keys of an item, a part, a tool and the environment of a tool.
const DECIDING: &[&str] = &[
    "type",
    "id",
    "role",
    "content",
    "encrypted_content",
    "environment",
    "execution",
    "reasoning",
    "text",
    "image_url",
    "input_audio",
    "file_data",
];

#[track_caller]
fn ambiguous(body: &str, param: &str) {
    let fragment = format!("`{param}` is not supported: it must stand there once, in exactly this spelling");
    refused(body, "unsupported_field", &fragment, Some(param));
}

#[test]
fn a_key_that_decides_stands_there_once_and_as_it_is_written() {
    for (one, fault) in [
        (r#"{"Type":"message","id":"msg_1"}"#, ".type"),
        (
            r#"{"Type":"message","id":"msg_1","role":"user","content":"x"}"#,
            ".type",
        ),
        (
            r#"{"type":"message","ty\u0070e\u0000":"x","role":"user","content":"x"}"#,
            ".type",
        ),
        (r#"{"Role":"user","content":"x","id":"msg_1"}"#, ".role"),
        (r#"{"role":"user","Content":"x","id":"msg_1"}"#, ".content"),
        (
            r#"{"role":"user","content":"x","content":null,"id":"msg_1"}"#,
            ".content",
        ),
        (
            r#"{"role":"user","content":"x","id":"msg_1","ID":"msg_2"}"#,
            ".id",
        ),
        (
            r#"{"type":"reasoning","id":"rs_1","encrypted_content":"x","encrypted_content":null}"#,
            ".encrypted_content",
        ),
        (
            r#"{"type":"reasoning","id":"rs_1","summary":[],"Encrypted_Content":"x"}"#,
            ".encrypted_content",
        ),
        (
            r#"{"type":"reasoning","id":"rs_1","encryptedContent":"x"}"#,
            ".encrypted_content",
        ),
        (
            r#"{"type":"shell_call","call_id":"c","Environment":{"type":"local"}}"#,
            ".environment",
        ),
        (
            r#"{"role":"user","content":[{"Type":"input_text","text":"x"}]}"#,
            ".content[0].type",
        ),
    ] {
        ambiguous(&item(one), &format!("input[0]{fault}"));
    }
    for (tool, fault) in [
        (r#"{"Type":"function","name":"f"}"#, ".type"),
        (
            r#"{"type":"shell","Environment":{"type":"local"}}"#,
            ".environment",
        ),
        (r#"{"type":"tool_search","Execution":"client"}"#, ".execution"),
        (
            r#"{"type":"namespace","tools":[{"type":"function"},{"Type":"function"}]}"#,
            ".tools[1].type",
        ),
    ] {
        ambiguous(
            &with(&format!(",\"tools\":[{tool}]")),
            &format!("tools[0]{fault}"),
        );
    }
    for environment in [r#"{"Type":"local"}"#, r#"{"type":"local","type":"local"}"#] {
        let tool = format!(r#"{{"type":"shell","environment":{environment}}}"#);
        let param = Some("tools[0].environment");
        refused(
            &with(&format!(",\"tools\":[{tool}]")),
            "unsupported_field",
            "the provider would run the shell",
            param,
        );
        let call = format!(r#"{{"type":"shell_call","call_id":"c","environment":{environment}}}"#);
        let param = Some("input[0].environment");
        refused(
            &item(&call),
            "unsupported_field",
            "only tools that the caller runs are",
            param,
        );
    }
    // Keys that decide nothing there, and names in tool definitions, may be spelled like deciding keys.
    read(&with(
        r#","tools":[{"type":"function","parameters":{"Type":1,"type":2,"type":3}}]"#,
    ));
    read(&item(
        r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}","Execution":"x"}"#,
    ));
}

/// Generates items that are mostly refused, and that differ little from accepted ones.
fn items() -> impl Strategy<Value = Value> {
    let file = json!({ "type": "input_file", "file_id": "file_1" });
    select(vec![
        json!({ "type": "message", "id": "msg_1", "role": "user", "content": "x", "status": "completed" }),
        json!({ "type": "message", "id": "msg_1" }),
        json!({ "id": "msg_1", "role": "user", "content": null }),
        json!({ "id": "msg_1" }),
        json!({ "type": "item_reference", "id": "msg_1" }),
        json!({ "type": "reasoning", "id": "rs_1", "summary": [] }),
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null }),
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA" }),
        json!({ "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": [file.clone()] }),
        json!({ "role": "user", "content": [{ "type": "input_text", "text": "x" }, file] }),
        json!({ "role": "user", "content": [{ "type": "novel", "text": "x" }] }),
        json!({ "type": "shell_call", "call_id": "c", "environment": { "type": "container_reference" } }),
        json!({ "type": "shell_call", "call_id": "c", "environment": { "type": "local" } }),
        json!({ "type": "web_search_call", "id": "ws_1" }),
        json!({ "type": "tool_search_output", "call_id": "c", "tools": [{ "type": "shell" }] }),
    ])
}

fn tools() -> impl Strategy<Value = Value> {
    select(vec![
        json!({ "type": "function", "name": "f", "parameters": {} }),
        json!({ "type": "shell" }),
        json!({ "type": "shell", "environment": null }),
        json!({ "type": "shell", "environment": {} }),
        json!({ "type": "shell", "environment": { "type": "container_auto" } }),
        json!({ "type": "shell", "environment": { "type": "local" } }),
        json!({ "type": "tool_search" }),
        json!({ "type": "tool_search", "execution": "server" }),
        json!({ "type": "tool_search", "execution": "client" }),
        json!({ "type": "namespace", "name": "n", "tools": [{ "type": "mcp" }] }),
        json!({ "type": "namespace", "name": "n", "tools": [{ "type": "shell" }] }),
        json!({ "name": "f" }),
        json!({ "type": "web_search" }),
    ])
}

/// Generates the element, sometimes without one of its members.
fn perhaps_without(element: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (element, prop::option::of(any::<Index>())).prop_map(|(mut element, removed)| {
        let members = element.as_object_mut().unwrap();
        if let Some(removed) = removed {
            let key = members.keys().nth(removed.index(members.len())).unwrap().clone();
            members.remove(&key);
        }
        element
    })
}

/// Generates a value of a deciding key.
fn value() -> impl Strategy<Value = Value> {
    select(vec![
        json!("message"),
        json!("function"),
        json!("reasoning"),
        json!("input_text"),
        json!("local"),
        json!("client"),
        json!("user"),
        json!("gAAAA"),
        json!({ "type": "local" }),
        json!([{ "type": "input_text", "text": "x" }]),
        json!([]),
        Value::Null,
    ])
}

/// Returns spellings that a lenient parser could take for this key.
fn spellings(key: &str) -> Vec<String> {
    let mut first = key[..1].to_uppercase();
    first += &key[1..];
    let words: Vec<&str> = key.split('_').collect();
    let camel = words.iter().enumerate().map(|(at, word)| match at {
        0 => (*word).to_owned(),
        _ => word[..1].to_uppercase() + &word[1..],
    });
    vec![
        key.to_owned(),
        key.to_owned(),
        key.to_uppercase(),
        first,
        camel.collect(),
        words.join("-"),
        format!("{key}\0"),
        format!("{key}\0x"),
    ]
}

/// Collects the objects in `value`, outermost first.
fn objects<'a>(value: &'a Value, found: &mut Vec<&'a Map<String, Value>>) {
    match value {
        Value::Object(members) => {
            found.push(members);
            members.values().for_each(|value| objects(value, found));
        }
        Value::Array(elements) => elements.iter().for_each(|value| objects(value, found)),
        _ => {}
    }
}

/// Writes `value` as JSON with an additional member in one of its [`objects`], before or after the object's own
/// members.
struct Writer<'a> {
    /// Number of objects before that one.
    left: usize,
    member: &'a str,
    is_first: bool,
}

impl Writer<'_> {
    fn write(&mut self, value: &Value) -> String {
        match value {
            Value::Object(members) => {
                let is_it = self.left == 0;
                self.left = self.left.wrapping_sub(1);
                let own = members.iter();
                let own = own.map(|(key, value)| format!("{}:{}", json!(key), self.write(value)));
                let mut written: Vec<String> = own.collect();
                if is_it {
                    let at = if self.is_first { 0 } else { written.len() };
                    written.insert(at, self.member.to_owned());
                }
                format!("{{{}}}", written.join(","))
            }
            Value::Array(elements) => {
                let written: Vec<String> = elements.iter().map(|value| self.write(value)).collect();
                format!("[{}]", written.join(","))
            }
            _ => value.to_string(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    /// For any body, a look-alike or a repetition of a deciding key never turns a refusal into an approval, and never
    /// avoids an allowance.
    #[test]
    fn nothing_passes_by_a_second_or_misspelled_key(
        items in prop::collection::vec(perhaps_without(items()), 1..3),
        tools in prop::collection::vec(perhaps_without(tools()), 0..2),
        (place, spelling, is_first) in any::<(Index, Index, bool)>(),
        key in select(DECIDING), value in value(),
    ) {
        let rest = json!({ "input": items, "tools": tools });
        let body = |rest: &str| format!("{{\"model\":\"m\",{}", &rest[1..]);
        let mut found = Vec::new();
        objects(&rest, &mut found);
        // The first one is the body, whose keys follow other rules.
        let at = 1 + place.index(found.len() - 1);
        let spellings = spellings(key);
        let spelled = match spelling.get(&spellings) {
            // A single occurrence is not a repetition.
            spelled if spelled == key && !found[at].contains_key(key) => key.to_uppercase(),
            spelled => spelled.clone(),
        };
        let member = format!("{}:{value}", json!(spelled));
        let changed = Writer { left: at, member: &member, is_first }.write(&rest);
        let (rest, with_member) = (body(&rest.to_string()), body(&changed));
        match (parse(rest.as_bytes()), parse(with_member.as_bytes())) {
            (Err(error), Ok(_)) => prop_assert!(false, "{} passes, but {}", changed, error),
            (Ok(held), Ok(changed)) => {
                prop_assert!(changed.shape.reasoning_items >= held.shape.reasoning_items, "{}", with_member);
            }
            (_, Err(_)) => {}
        }
    }
}
