//! The official SDKs, streamed and not. Denials and streams that break off are the SDK's exceptions, and a caller who
//! closes a stream pays the real cost.

use crate::install::Sdk;
use crate::plan::{Api, Behaviour, Call, Reason, prove};

/// The calls. `denied` and `broken` are the SDK's classes for 402 and for an error in a stream.
fn calls(denied: &'static str, broken: &'static str) -> Vec<Call> {
    let call = |api, streamed, behaviour| Call::new("openai", api, streamed, behaviour);
    let mut calls = vec![
        call(Api::Chat, false, Behaviour::Answers),
        call(Api::Chat, true, Behaviour::Answers).without_usage(),
        call(Api::Chat, true, Behaviour::AnswersWithUsage),
        call(Api::Chat, true, Behaviour::AnswersWithCost).without_usage(),
        call(Api::Responses, false, Behaviour::Answers),
        call(Api::Responses, true, Behaviour::AnswersWithCost),
        call(Api::Responses, true, Behaviour::Answers),
        call(Api::Responses, false, Behaviour::Reasons),
        call(Api::Responses, true, Behaviour::Reasons),
        call(Api::Embeddings, false, Behaviour::Answers),
    ];
    for (api, streamed) in [
        (Api::Chat, true),
        (Api::Responses, false),
        (Api::Responses, true),
        (Api::Embeddings, false),
    ] {
        let denial = call(api, streamed, Behaviour::Denied);
        calls.push(denial.fails(denied, Some(402), Reason::Code("daily_limit")));
    }
    for api in [Api::Chat, Api::Responses] {
        let break_off = call(api, true, Behaviour::BreaksOff);
        calls.push(break_off.fails(broken, None, Reason::Code("upstream_unreachable")));
        calls.push(call(api, true, Behaviour::Leaves));
    }
    calls
}

#[tokio::test]
async fn the_python_sdk_streams() {
    prove(Sdk::python("streams.py"), calls("APIStatusError", "APIError")).await;
}

#[tokio::test]
async fn the_node_sdk_streams() {
    prove(Sdk::node("streams.mjs"), calls("APIError", "APIError")).await;
}
