//! Tests of unsupported fields, item by item and tool by tool.

use super::{item, read, refused, with};

#[track_caller]
fn unsupported(body: &str, param: &str) {
    let fragment = format!("`{param}` is not supported: ");
    refused(body, "unsupported_field", &fragment, Some(param));
}

#[test]
fn state_of_the_provider() {
    for (members, param) in [
        (",\"previous_response_id\":\"resp_1\"", "previous_response_id"),
        (",\"previous_response_id\":\"\"", "previous_response_id"),
        (",\"conversation\":\"conv_1\"", "conversation"),
        (",\"conversation\":{\"id\":\"conv_1\"}", "conversation"),
        (",\"prompt\":{\"id\":\"pmpt_1\"}", "prompt"),
        (",\"prompt\":false", "prompt"),
        (
            ",\"context_management\":[{\"type\":\"compaction\"}]",
            "context_management",
        ),
        (",\"background\":true", "background"),
        (",\"\\u0062ackground\":true", "background"),
    ] {
        unsupported(&with(members), param);
    }
}

/// Clients send these without their developers' knowledge, who then read nothing but the message.
#[test]
fn a_refused_field_says_what_to_send_instead() {
    let part = |part: &str| item(&format!(r#"{{"role":"user","content":[{part}]}}"#));
    for (body, param, instead) in [
        (
            with(",\"previous_response_id\":\"r\""),
            "previous_response_id",
            "send the earlier items in `input`",
        ),
        (
            with(",\"conversation\":\"c\""),
            "conversation",
            "send the earlier items in `input`",
        ),
        (
            with(",\"prompt\":{\"id\":\"p\"}"),
            "prompt",
            "send its text in `instructions` and `input`",
        ),
        (with(",\"background\":true"), "background", "set it to false"),
        (
            with(",\"context_management\":[]"),
            "context_management",
            "leave it out",
        ),
        (
            item(r#"{"type":"item_reference","id":"i"}"#),
            "input[0].type",
            "send the item itself",
        ),
        (item(r#"{"id":"i"}"#), "input[0].type", "send the item itself"),
        (
            part(r#"{"type":"input_image","file_id":"f"}"#),
            "input[0].content[0].file_id",
            "send the data itself",
        ),
        (
            part(r#"{"type":"input_file","file_url":"u"}"#),
            "input[0].content[0].file_url",
            "send the data itself",
        ),
        (
            item(r#"{"type":"web_search_call","id":"i"}"#),
            "input[0].type",
            "leave it out",
        ),
    ] {
        refused(&body, "unsupported_field", instead, Some(param));
    }
}

/// The caller runs a computer, too: that the provider runs it is no reason against it.
#[test]
fn a_refused_tool_says_which_form_is_accepted() {
    for (tool, param, says) in [
        (
            r#"{"type":"shell"}"#,
            "tools[0].environment",
            "set it to `{\"type\":\"local\"}`",
        ),
        (
            r#"{"type":"tool_search"}"#,
            "tools[0].execution",
            "set it to `client`",
        ),
        (
            r#"{"type":"computer"}"#,
            "tools[0].type",
            "costs is not known here: leave it out",
        ),
        (
            r#"{"type":"computer_use_preview"}"#,
            "tools[0].type",
            "costs is not known here: leave it out",
        ),
        (
            r#"{"type":"web_search"}"#,
            "tools[0].type",
            "only tools that the caller runs are",
        ),
    ] {
        let body = with(&format!(",\"tools\":[{tool}]"));
        refused(&body, "unsupported_field", says, Some(param));
    }
}

#[test]
fn tools_of_the_provider() {
    for (tool, fault) in [
        (r#"{"type":"web_search"}"#, ".type"),
        (r#"{"type":"web_search_preview"}"#, ".type"),
        (r#"{"type":"file_search","vector_store_ids":["v"]}"#, ".type"),
        (
            r#"{"type":"code_interpreter","container":{"type":"auto"}}"#,
            ".type",
        ),
        (r#"{"type":"computer"}"#, ".type"),
        (r#"{"type":"computer_use_preview"}"#, ".type"),
        (r#"{"type":"mcp","server_label":"s","server_url":"u"}"#, ".type"),
        (r#"{"type":"image_generation"}"#, ".type"),
        (r#"{"type":"programmatic_tool_calling"}"#, ".type"),
        (r#"{"type":"tomorrow's"}"#, ".type"),
        (r#"{"type":"Function"}"#, ".type"),
        (r#"{"type":["function"]}"#, ".type"),
        (r#"{"type":null}"#, ".type"),
        (r#"{"name":"f"}"#, ".type"),
        (r#"{"type":"function","type":"mcp"}"#, ".type"),
        (r#"{"type":"mcp","type":"function"}"#, ".type"),
        (r#"{"type":"function","Type":"mcp"}"#, ".type"),
        (r#"{"type":"shell"}"#, ".environment"),
        (r#"{"type":"shell","environment":null}"#, ".environment"),
        (r#"{"type":"shell","environment":"local"}"#, ".environment"),
        (
            r#"{"type":"shell","environment":{"type":"container_auto"}}"#,
            ".environment",
        ),
        (
            r#"{"type":"shell","environment":{"type":"container_reference","container_id":"c"}}"#,
            ".environment",
        ),
        (
            r#"{"type":"shell","environment":{"type":"local"},"environment":{"type":"container_auto"}}"#,
            ".environment",
        ),
        (
            r#"{"type":"shell","environment":{"type":"container_auto"},"environment":{"type":"local"}}"#,
            ".environment",
        ),
        (
            r#"{"type":"shell","environment":{"type":"local","type":"container_auto"}}"#,
            ".environment",
        ),
        (r#"{"type":"tool_search"}"#, ".execution"),
        (r#"{"type":"tool_search","execution":"server"}"#, ".execution"),
        (
            r#"{"type":"tool_search","execution":"client","execution":"server"}"#,
            ".execution",
        ),
        (
            r#"{"type":"namespace","tools":[{"type":"function"},{"type":"mcp"}]}"#,
            ".tools[1].type",
        ),
        (r#"{"type":"namespace","tools":{"type":"mcp"}}"#, ".tools.type"),
        (
            r#"{"type":"namespace","tools":[],"tools":[{"type":"mcp"}]}"#,
            ".tools[0].type",
        ),
        (r#""web_search""#, ""),
        ("7", ""),
    ] {
        for before in ["", r#"{"type":"function","name":"f"},"#] {
            let index = usize::from(!before.is_empty());
            let param = format!("tools[{index}]{fault}");
            unsupported(&with(&format!(",\"tools\":[{before}{tool}]")), &param);
            let loaded = format!(r#"{{"type":"tool_search_output","tools":[{before}{tool}]}}"#);
            unsupported(&item(&loaded), &format!("input[0].{param}"));
            let added =
                format!(r#"{{"type":"additional_tools","role":"developer","tools":[{before}{tool}]}}"#);
            unsupported(&item(&added), &format!("input[0].{param}"));
        }
    }
    unsupported(&with(",\"tools\":{\"type\":\"mcp\"}"), "tools.type");
    unsupported(&with(",\"tools\":\"web_search\""), "tools");
    read(&with(",\"tools\":{\"type\":\"function\"}"));
    read(&with(",\"tools\":[]"));
    read(&with(
        ",\"tools\":[{\"type\":\"function\",\"parameters\":{\"type\":\"mcp\"}},null]",
    ));
}

#[test]
fn items_that_refer_to_something() {
    for (one, fault) in [
        (r#"{"type":"item_reference","id":"msg_1"}"#, ".type"),
        (r#"{"id":"msg_1"}"#, ".type"),
        (r#"{"id":"msg_1","role":"user"}"#, ".type"),
        (r#"{"id":"msg_1","role":"user","content":null}"#, ".type"),
        (r#"{"content":"x"}"#, ".type"),
        (r#"{}"#, ".type"),
        (r#"{"type":null,"id":"msg_1"}"#, ".type"),
        (
            r#"{"type":"message","type":"item_reference","role":"user","content":""}"#,
            ".type",
        ),
        (
            r#"{"type":"item_reference","Type":"message","role":"user","content":""}"#,
            ".type",
        ),
        (r#"{"type":"message","id":"msg_1"}"#, ".type"),
        (r#"{"type":"message","id":"msg_1","role":"user"}"#, ".type"),
        (r#"{"type":"message","id":"msg_1","content":"x"}"#, ".type"),
        (
            r#"{"type":"message","id":"msg_1","role":null,"content":"x"}"#,
            ".type",
        ),
        (
            r#"{"type":"message","id":"msg_1","role":"user","content":null}"#,
            ".type",
        ),
        (
            r#"{"type":"reasoning","ID":"rs_1","content":[{"type":"reasoning_text","text":"x"}]}"#,
            ".id",
        ),
        (
            r#"{"type":"reasoning","id":"rs_1","content":[{"type":"input_file","file_id":"file_1"}]}"#,
            ".content[0].file_id",
        ),
        (r#"{"type":"reasoning","type":null,"id":"rs_1"}"#, ".type"),
        (r#"{"type":"Reasoning","id":"rs_1"}"#, ".type"),
        (r#"{"type":"image_generation_call","id":"ig_1"}"#, ".type"),
        (
            r#"{"type":"code_interpreter_call","id":"ci_1","container_id":"c"}"#,
            ".type",
        ),
        (r#"{"type":"file_search_call","id":"fs_1"}"#, ".type"),
        (r#"{"type":"web_search_call","id":"ws_1"}"#, ".type"),
        (
            r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"f"}}"#,
            ".type",
        ),
        (r#"{"type":"mcp_call","id":"m"}"#, ".type"),
        (
            r#"{"type":"mcp_approval_response","approval_request_id":"m","approve":true}"#,
            ".type",
        ),
        (r#"{"type":"compaction","encrypted_content":"x"}"#, ".type"),
        (r#"{"type":"compaction_trigger"}"#, ".type"),
        (r#"{"type":"program","id":"p","code":"x"}"#, ".type"),
        (r#"{"type":"tomorrow"}"#, ".type"),
        (
            r#"{"type":"shell_call","call_id":"c","environment":{"type":"container_reference","container_id":"k"}}"#,
            ".environment",
        ),
    ] {
        unsupported(&item(one), &format!("input[0]{fault}"));
        let second = format!(r#"{{"role":"user","content":"x"}},{one}"#);
        unsupported(&item(&second), &format!("input[1]{fault}"));
    }
}

/// An element without a type is a reference or a message; one whose type is not a string is neither.
#[test]
fn a_type_that_is_no_text_is_not_known() {
    for (one, why) in [
        (
            r#"{"type":7,"id":"msg_1"}"#,
            "what an element of this type costs is not known",
        ),
        (r#"{"id":"msg_1"}"#, "it brings in what the provider keeps"),
    ] {
        refused(&item(one), "unsupported_field", why, Some("input[0].type"));
    }
}

/// Such an update changes the effort and the format of later answers. The request contains all of it, and its bytes
/// count.
#[test]
fn a_configuration_update_is_whole_by_itself() {
    let asked = r#"{"role":"user","content":"hello"}"#;
    let plain = read(&item(asked)).shape.prompt_bytes;
    for (id, members) in [
        ("", r#""reasoning":{"effort":"high"}"#),
        ("", r#""text":{"format":{"type":"text"}}"#),
        (r#","id":"cu_1""#, r#""reasoning":{"effort":"high"}"#),
        (r#","id":null"#, r#""reasoning":null"#),
    ] {
        let body = item(&format!(
            r#"{{"type":"configuration_update"{id},{members}}},{asked}"#
        ));
        let shape = read(&body).shape;
        let id_bytes = if id.contains("cu_1") { 4 } else { 0 };
        let bytes = plain + id_bytes + members.len() as u64;
        assert_eq!((shape.prompt_bytes, shape.framed), (bytes, 2), "{body}");
    }
    for members in [
        "",
        r#","reasoning":null"#,
        r#","text":null"#,
        r#","effort":"high""#,
    ] {
        let update = format!(r#"{{"type":"configuration_update","id":"cu_1"{members}}}"#);
        unsupported(&item(&update), "input[0].id");
    }
    unsupported(
        &item(r#"{"type":"configuration_update","id":"cu_1","Reasoning":{}}"#),
        "input[0].reasoning",
    );
}

#[test]
fn parts_that_refer_to_something() {
    for (part, fault) in [
        (r#"{"type":"input_file","file_id":"file_1"}"#, ".file_id"),
        (
            r#"{"type":"input_file","file_url":"https://a/b.pdf"}"#,
            ".file_url",
        ),
        (
            r#"{"type":"input_file","file_data":"x","File_ID":"file_1"}"#,
            ".file_id",
        ),
        (
            r#"{"type":"input_file","file_data":"x","fileUrl":"file_1"}"#,
            ".file_url",
        ),
        (
            r#"{"type":"input_image","file_id":"file_1","detail":"low"}"#,
            ".file_id",
        ),
        (
            r#"{"type":"input_text","text":"x","file_id":"file_1"}"#,
            ".file_id",
        ),
        (r#"{"text":"x","file_id":"file_1"}"#, ".file_id"),
        (r#"{"type":"computer_screenshot","image_url":"x"}"#, ".type"),
        (r#"{"type":"image_url","image_url":{"url":"x"}}"#, ".type"),
        (r#"{"type":"input_text","type":"input_file","text":"x"}"#, ".type"),
        (r#"{"type":null,"text":"x"}"#, ".type"),
        (
            r#"{"type":"input_image","image_url":0,"image_url":0}"#,
            ".image_url",
        ),
        (
            r#"{"type":"input_file","file_data":0,"file_data":null}"#,
            ".file_data",
        ),
        (
            r#"{"type":"input_audio","input_audio":0,"Input_Audio":0}"#,
            ".input_audio",
        ),
    ] {
        for (kind, key) in [
            (r#""role":"user""#, "content"),
            (r#""type":"function_call_output","call_id":"c""#, "output"),
            (r#""type":"custom_tool_call_output","call_id":"c""#, "output"),
        ] {
            let one = format!(r#"{{{kind},"{key}":[{part}]}}"#);
            unsupported(&item(&one), &format!("input[0].{key}[0]{fault}"));
            let later = format!(r#"{{{kind},"{key}":["x",{{"type":"input_text","text":"x"}},{part}]}}"#);
            unsupported(&item(&later), &format!("input[0].{key}[2]{fault}"));
            let alone = format!(r#"{{{kind},"{key}":{part}}}"#);
            unsupported(&item(&alone), &format!("input[0].{key}{fault}"));
        }
    }
    read(&item(
        r#"{"role":"user","content":[{"type":"input_file","file_data":"x","file_id":null,"file_url":null}]}"#,
    ));
    read(&item(
        r#"{"role":"user","content":[{"type":"input_image","image_url":"x","file_id":null}]}"#,
    ));
}
