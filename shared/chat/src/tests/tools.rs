//! Tests of tools in chat completions: those that the caller runs pass, and count.

use super::{parse, refused, with};

#[test]
fn tools_of_the_provider() {
    for (tool, fault) in [
        (r#"{"type":"web_search"}"#, ".type"),
        (r#"{"type":"web_search","web_search":{"enable":true}}"#, ".type"),
        (r#"{"type":"browser_search"}"#, ".type"),
        (
            r#"{"type":"code_interpreter","container":{"type":"auto"}}"#,
            ".type",
        ),
        (r#"{"type":"mcp","server_label":"s","server_url":"u"}"#, ".type"),
        (
            r#"{"type":"builtin_function","function":{"name":"$web_search"}}"#,
            ".type",
        ),
        (r#"{"type":"openrouter:web_search"}"#, ".type"),
        (r#"{"type":"file_search"}"#, ".type"),
        // A caller runs these, but no chat completion of OpenAI has them.
        (r#"{"type":"local_shell"}"#, ".type"),
        (r#"{"type":"namespace","tools":[{"type":"function"}]}"#, ".type"),
        (r#"{"type":"tomorrow's"}"#, ".type"),
        (r#"{"type":"Function","function":{"name":"f"}}"#, ".type"),
        (r#"{"type":["function"]}"#, ".type"),
        (r#"{"type":null}"#, ".type"),
        (r#"{"googleSearch":{}}"#, ".type"),
        (r#"{"function":{"name":"f"}}"#, ".type"),
        (r#"{"type":"function","type":"mcp"}"#, ".type"),
        (r#"{"type":"mcp","type":"function"}"#, ".type"),
        (r#"{"type":"function","Type":"mcp"}"#, ".type"),
        (r#"{"type":"function","t\u0079pe":"mcp"}"#, ".type"),
        (r#""web_search""#, ""),
        ("7", ""),
    ] {
        for before in ["", r#"{"type":"function","function":{"name":"f"}},"#] {
            let index = usize::from(!before.is_empty());
            let param = format!("tools[{index}]{fault}");
            let body = with(&format!(",\"tools\":[{before}{tool}]"));
            let said = format!("`{param}` is not supported: ");
            refused(body, "unsupported_field", &said, Some(&param));
        }
        // Some parsers read a lone element as a list of it.
        let param = format!("tools{fault}");
        let body = with(&format!(",\"tools\":{tool}"));
        refused(body, "unsupported_field", "is not supported: ", Some(&param));
    }
    for key in ["Tools", "tools_", "t-ools"] {
        let body = with(&format!(",\"{key}\":[]"));
        refused(body, "invalid_json", "must be written `tools`", Some(key));
    }
}

#[test]
fn tools_of_the_caller() {
    let without = parse(with("").as_bytes()).unwrap().shape.prompt_bytes;
    for tools in [
        r#"[]"#,
        r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object","Type":1}}}]"#,
        r#"[ {"type":"custom","custom":{"name":"c","format":{"type":"text"}}} ]"#,
        r#"[{"type":"function","function":{"name":"f"},"cache_control":{"type":"ephemeral"}},{"type":"custom","custom":{"name":"c"}}]"#,
        r#"{"type":"function","function":{"name":"f"}}"#,
    ] {
        let body = with(&format!(",\"tools\":{tools}"));
        let read = parse(body.as_bytes()).expect(tools);
        assert_eq!(read.shape.prompt_bytes, without + tools.len() as u64, "{tools}");
    }
    let body = with(",\"tools\":null");
    assert_eq!(parse(body.as_bytes()).unwrap().shape.prompt_bytes, without);
}

#[test]
fn what_is_missing_or_mistyped_is_told_in_its_order() {
    let tools = ",\"tools\":[{\"type\":\"mcp\"}]";
    let body = format!(r#"{{"model":"m","messages":[]{tools}}}"#);
    refused(body, "missing_messages", "`messages`", Some("messages"));
    let body = with(&format!("{tools},\"stream\":true"));
    refused(body, "stream_not_supported", "streaming", Some("stream"));
    let body = with(&format!("{tools},\"n\":0"));
    refused(
        body,
        "unsupported_field",
        "`tools[0].type`",
        Some("tools[0].type"),
    );
}
