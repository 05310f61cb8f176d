//! Tests of keys with which a caller could have another model billed than `model`.

use crate::{BodyError, parse_call};
use domain::measured::Endpoint;

/// Returns the refusal of a body with this member.
#[track_caller]
fn refused(endpoint: Endpoint, member: &str) -> Option<BodyError> {
    let rest = match endpoint {
        Endpoint::Chat => r#""messages":[{"role":"user","content":"hi"}]"#,
        Endpoint::Responses | Endpoint::Embeddings => r#""input":"hi""#,
    };
    let body = format!(r#"{{"model":"m",{member},{rest}}}"#);
    let read = parse_call(endpoint, true, body.as_bytes()).expect(&body);
    read.check_choice().err()
}

#[test]
fn fields_that_choose_models_or_services_are_refused() {
    for endpoint in Endpoint::ALL {
        for (member, key) in [
            (r#""models":["m","dear"]"#, "models"),
            (r#""models": [ "m" ]"#, "models"),
            (r#""models":"dear""#, "models"),
            (r#""fallbacks":[{"model":"dear"}]"#, "fallbacks"),
            (r#""fallbacks":{}"#, "fallbacks"),
            (r#""plugins":[{"id":"web"}]"#, "plugins"),
            (r#""plugins":true"#, "plugins"),
            (r#""data_sources":[{"type":"azure_search"}]"#, "data_sources"),
            (r#""dataSources":[{}]"#, "data_sources"),
            (r#""enhancements":{"ocr":{"enabled":true}}"#, "enhancements"),
            (r#""enable_search":true"#, "enable_search"),
            (r#""mcp_servers":[{"url":"https://example.com"}]"#, "mcp_servers"),
            (r#""cached_content":"cachedContents/1""#, "cached_content"),
            (r#""speed":"fast""#, "speed"),
            (r#""inference_geo":"us""#, "inference_geo"),
            (r#""enable_code_interpreter":true"#, "enable_code_interpreter"),
            (r#""compound_custom":{"tools":{}}"#, "compound_custom"),
            (r#""search_options":{"search_strategy":"pro"}"#, "search_options"),
            (r#""vector_store_ids":["vs_1"]"#, "vector_store_ids"),
            (
                r#""router_settings_override":{"fallbacks":[{"m":["dear"]}]}"#,
                "router_settings_override",
            ),
            (r#""deployment_id":"dear""#, "deployment_id"),
            (r#""custom_llm_provider":"azure""#, "custom_llm_provider"),
            (
                r#""additional_drop_params":["max_tokens"]"#,
                "additional_drop_params",
            ),
            (r#""extra_headers":{"OpenAI-Organization":"o"}"#, "extra_headers"),
            (r#""deferred":true"#, "deferred"),
            // What a proxy puts over the parameters that were checked.
            (r#""extra_body":{"model":"dear"}"#, "extra_body"),
            (r#""extra_body":{"max_tokens":99999}"#, "extra_body"),
            (r#""extra_body":{"google":{},"tools":[{}]}"#, "extra_body"),
            (r#""extra_body":{"extra_body":{"model":"dear"}}"#, "extra_body"),
            (r#""extra_body":{"Google":{}}"#, "extra_body"),
            (r#""extra_body":{"Models":["dear"]}"#, "models"),
            (r#""google":{"google":{"cached_content":"x"}}"#, "google"),
            (r#""google":{"google":{"model":"dear"}}"#, "google"),
            (r#""google":{"tools":[{"google_search":{}}]}"#, "google"),
            (
                r#""extra_body":{"google":{"cached_content":"cachedContents/1"}}"#,
                "cached_content",
            ),
            (r#""extraBody":{"models":["dear"]}"#, "models"),
            (
                r#""google":{"thinking_config":{},"cachedContent":"cachedContents/1"}"#,
                "cached_content",
            ),
            (r#""x":1,"plugins":[{}],"models":["m"]"#, "plugins"),
            (
                r#""context_window_fallbacks":[{"m":["dear"]}]"#,
                "context_window_fallbacks",
            ),
            (
                r#""context_window_fallback_dict":{"m":"dear"}"#,
                "context_window_fallback_dict",
            ),
            (
                r#""content_policy_fallbacks":[{"m":["dear"]}]"#,
                "content_policy_fallbacks",
            ),
            (r#""preset":"dear""#, "preset"),
            (r#""search_parameters":{"mode":"on"}"#, "search_parameters"),
            (r#""user_config":{"model_list":[]}"#, "user_config"),
            (r#""api_base":"https://example.com""#, "api_base"),
            (r#""base_url":"https://example.com""#, "base_url"),
            // Keys that a lenient parser would take for one of them.
            (r#""Models":["dear"]"#, "models"),
            (r#""fall_backs":["dear"]"#, "fallbacks"),
            (r#""\u0070lugins":[1]"#, "plugins"),
            (r#""models":[],"Models":["dear"]"#, "models"),
        ] {
            let error = refused(endpoint, member).expect(member);
            assert_eq!(
                (error.code(), error.param()),
                ("unsupported_field", Some(key)),
                "{member}"
            );
        }
        for member in [
            r#""models":null"#,
            r#""models":[]"#,
            "\"models\":[ \n\t\r ]",
            r#""fallbacks":[],"plugins":null"#,
            r#""enable_search":false,"plugins":false"#,
            r#""model_group":["dear"]"#,
            r#""metadata":{"models":["dear"]}"#,
            r#""extra_body":{"google":{"thinking_config":{"thinking_budget":800}},"models":[]}"#,
            r#""extra_body":"models","google":["cached_content"]"#,
            r#""extra_body":{"extra_body":null,"google":{"models":[],"google":false}}"#,
            r#""google":{"safety_settings":[{"models":["x"]}]},"extra_headers":null,"deferred":false"#,
        ] {
            assert_eq!(refused(endpoint, member), None, "{member}");
        }
    }
}
