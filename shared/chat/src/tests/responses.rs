//! Tests of bodies of `POST /v1/responses`: the fields that are refused, and the counts.

mod deciding;
mod reading;
mod unseen;

use super::super::responses::parse;
use super::super::{BodyError, COMPLETION_TOKENS_DEFAULT, RequestBody};

/// Returns a body with an input of two characters, and `members` before the closing brace.
fn with(members: &str) -> String {
    format!(r#"{{"model":"m","input":"hi"{members}}}"#)
}

/// Returns a body with only this item.
fn item(item: &str) -> String {
    format!(r#"{{"model":"m","input":[{item}]}}"#)
}

#[track_caller]
fn read(body: &str) -> RequestBody<'_> {
    parse(body.as_bytes()).expect(body)
}

#[track_caller]
fn refused(body: &str, code: &str, fragment: &str, param: Option<&str>) {
    let shown = &body[..body.floor_char_boundary(300)];
    let error = parse(body.as_bytes()).expect_err(shown);
    assert_eq!((error.code(), error.param()), (code, param), "{shown}: {error}");
    assert!(error.to_string().contains(fragment), "{shown}: {error}");
}

#[test]
fn the_plain_call() {
    let body = with("");
    let plain = read(&body);
    assert_eq!(&*plain.model, "m");
    assert_eq!(
        (
            plain.shape.prompt_bytes,
            plain.shape.framed,
            plain.shape.content_parts
        ),
        (2, 1, 0)
    );
    assert_eq!(
        (plain.shape.completion_tokens, plain.shape.unlimited),
        (COMPLETION_TOKENS_DEFAULT, true)
    );
    assert_eq!(
        (
            plain.shape.n,
            plain.stream,
            plain.shape.web_search,
            plain.shape.audio_output
        ),
        (1, false, false, false)
    );
    assert_eq!(plain.usage_splice(), None);
    let error = plain.check_token_limit(true).unwrap_err();
    assert_eq!(
        (error.code(), error.param()),
        ("missing_token_limit", Some("max_output_tokens"))
    );
    assert!(
        error
            .to_string()
            .starts_with("`max_output_tokens` is required here"),
        "{error}"
    );
    let nulls = [
        "instructions",
        "stream",
        "max_output_tokens",
        "service_tier",
        "background",
        "previous_response_id",
        "conversation",
        "prompt",
        "context_management",
        "tools",
        "tool_choice",
        "text",
        "reasoning",
        "store",
        "stream_options",
        "modalities",
        "audio",
    ];
    let nulls: String = nulls.iter().map(|key| format!(",\"{key}\":null")).collect();
    assert_eq!(read(&with(&nulls)), plain, "null means absent");
    for free in [
        ",\"store\":true",
        ",\"store\":false,\"include\":[\"reasoning.encrypted_content\"]",
        ",\"metadata\":{\"a\":\"b\"},\"truncation\":\"auto\",\"user\":\"u\",\"top_p\":1,\"temperature\":0",
        ",\"parallel_tool_calls\":true,\"max_tool_calls\":3,\"prompt_cache_key\":\"k\",\"safety_identifier\":\"s\"",
        ",\"reasoning\":{\"effort\":\"high\",\"summary\":\"auto\"},\"text\":{\"verbosity\":\"low\"}",
        ",\"stream_options\":{\"include_obfuscation\":false},\"background\":false",
    ] {
        assert_eq!(read(&with(free)), plain, "{free}");
    }
}

#[test]
fn values_and_their_order() {
    let body = with(
        ",\"stream\":true,\"max_output_tokens\":16,\"service_tier\":\"flex\",\"modalities\":[\"audio\"]",
    );
    let streamed = read(&body);
    assert_eq!(
        (
            streamed.stream,
            streamed.shape.completion_tokens,
            streamed.shape.unlimited
        ),
        (true, 16, false)
    );
    assert_eq!(
        (streamed.service_tier.as_deref(), streamed.shape.audio_output),
        (Some("flex"), true)
    );
    assert_eq!(streamed.check_token_limit(true), Ok(()));
    assert_eq!(streamed.check_stream(false), Err(BodyError::StreamNotSupported));
    assert_eq!(streamed.check_stream(true), Ok(()));
    for input in [
        "",
        ",\"input\":null",
        ",\"input\":\"\"",
        ",\"input\":[]",
        ",\"input\":{}",
        ",\"input\":7",
    ] {
        let body = format!("{{\"model\":\"m\"{input}}}");
        refused(&body, "missing_input", "`input` is required", Some("input"));
    }
    // Each member has another fault, listed in the order of precedence; the body has them in reverse order.
    let wrong: [(&str, &str); 16] = [
        (",\"a\":01", "malformed number"),
        (",\"x\":0,\"x\":0", "appears twice"),
        (",\"model\":null", "`model` is required"),
        (",\"input\":null", "`input` is required"),
        (",\"background\":true", "`background` is not supported"),
        (",\"previous_response_id\":\"r\"", "`previous_response_id` is not"),
        (",\"conversation\":\"c\"", "`conversation` is not"),
        (",\"prompt\":{}", "`prompt` is not"),
        (",\"context_management\":[]", "`context_management` is not"),
        (",\"tools\":[{\"type\":\"mcp\"}]", "`tools[0].type` is not"),
        (
            ",\"input\":[1,{\"type\":\"item_reference\",\"id\":\"x\"}]",
            "`input[1].type` is not",
        ),
        (",\"stream\":1", "`stream` must be a boolean"),
        (",\"instructions\":[]", "`instructions` must be a string"),
        (",\"input\":[1]", "`input[0]` must be an object"),
        (",\"max_output_tokens\":0", "`max_output_tokens` must be"),
        (",\"service_tier\":0", "`service_tier` must be"),
    ];
    for first in 0..wrong.len() {
        let mut members: Vec<&str> = wrong[first..].iter().rev().map(|(member, _)| *member).collect();
        // Of several faulty inputs, only the one to be reported.
        let due = members
            .iter()
            .rposition(|member| member.starts_with(",\"input\""));
        let mut place = 0..members.len();
        members.retain(|member| {
            let at = place.next();
            !member.starts_with(",\"input\"") || at == due
        });
        if first > 2 {
            members.push(",\"model\":\"m\"");
        }
        if due.is_none() {
            members.push(",\"input\":\"x\"");
        }
        let body = format!("{{\"z\":0{}}}", members.concat());
        let error = parse(body.as_bytes()).expect_err(&body).to_string();
        assert!(error.contains(wrong[first].1), "{body}: {error}");
    }
    refused(
        &with(",\"background\":1"),
        "invalid_json",
        "`background` must be a boolean",
        Some("background"),
    );
    for (key, wanted) in [
        ("Background", "background"),
        ("previousResponseId", "previous_response_id"),
        ("Tools", "tools"),
        ("maxOutputTokens", "max_output_tokens"),
        ("Prompt", "prompt"),
    ] {
        let fragment = format!("must be written `{wanted}`");
        refused(
            &with(&format!(",\"{key}\":1")),
            "invalid_json",
            &fragment,
            Some(key),
        );
    }
}

/// Bodies in the form that Codex and the Agents SDK send.
#[test]
fn stateless_clients_are_served() {
    let body = r#"{
        "model": "gpt-5.3-codex", "instructions": "You are a coding agent.", "store": false, "stream": true,
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0199", "parallel_tool_calls": false,
        "reasoning": {"effort": "medium", "summary": "auto"}, "text": {"verbosity": "low"}, "tool_choice": "auto",
        "tools": [
            {"type": "function", "name": "shell", "description": "Runs a command", "strict": false,
             "parameters": {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}}},
            {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "s"}},
            {"type": "local_shell"}, {"type": "apply_patch"}, {"type": "shell", "environment": {"type": "local"}},
            {"type": "namespace", "name": "crm", "description": "d", "tools": [{"type": "function", "name": "f"}]},
            {"type": "tool_search", "execution": "client", "description": "d", "parameters": {}}
        ],
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            {"role": "user", "content": "fix it"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
             "encrypted_content": "ENCRYPTED"},
            {"type": "reasoning", "summary": [], "encrypted_content": null},
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "shell", "arguments": "{}", "status": "completed"},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
            {"type": "function_call_output", "call_id": "c",
             "output": [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "data:,x", "detail": "high"}]},
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
            {"type": "local_shell_call", "id": "l", "call_id": "c", "status": "completed",
             "action": {"type": "exec", "command": ["ls"], "env": {}}},
            {"type": "local_shell_call_output", "id": "l", "output": "files"},
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "environment": {"type": "local"}},
            {"type": "shell_call_output", "call_id": "c",
             "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
            {"type": "apply_patch_call", "call_id": "c", "status": "completed",
             "operation": {"type": "delete_file", "path": "p"}},
            {"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "ok"},
            {"type": "tool_search_call", "call_id": "c", "arguments": {"query": "q"}, "execution": "client"},
            {"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function", "name": "g"}]},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "final_answer",
             "content": [{"type": "output_text", "text": "Done.", "annotations": [], "logprobs": []}]}
        ]
    }"#;
    let body = &body.replace("ENCRYPTED", &"g".repeat(100));
    let read = read(body);
    assert!(read.stream && read.shape.unlimited);
    assert_eq!(
        (
            read.shape.framed,
            read.shape.image_parts,
            read.shape.file_parts,
            read.shape.reasoning_items
        ),
        (19, 1, 0, 0)
    );
    // Content parts: those of two messages, one summary, two of an output, one of a shell output.
    assert_eq!(read.shape.content_parts, 6);
}
