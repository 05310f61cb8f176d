//! LangChain, the OpenAI Agents SDK, LiteLLM, Pydantic AI, LlamaIndex and the Vercel AI SDK, streamed and not: texts,
//! tools, reasoning, second questions, denials, streams that break off, and failures whose estimate stays charged.

use crate::install::Sdk;
use crate::plan::{Api, Behaviour, Call, Reason, UNSTORED, prove};

const DENIED: Reason = Reason::Code("daily_limit");
const BROKEN: Reason = Reason::Code("upstream_unreachable");
const FAILED: Reason = Reason::Code("provider_500");

/// A failure as a client shows it: its exception, the status, the reason.
type Shown = (&'static str, Option<u16>, Reason);

/// The exceptions of a client, for one API.
struct Failures {
    denied: Shown,
    broken: Shown,
    failed: Shown,
}

/// A text of one API, streamed and not, with each failure.
fn texts(client: &'static str, api: Api, failures: &Failures) -> Vec<Call> {
    let mut calls = Vec::new();
    for streamed in [false, true] {
        let call = |behaviour| Call::new(client, api, streamed, behaviour);
        let failing =
            |behaviour, (class, status, reason): Shown| call(behaviour).fails(class, status, reason);
        calls.push(call(Behaviour::Answers));
        calls.push(failing(Behaviour::Denied, failures.denied));
        calls.push(failing(Behaviour::FailsCharged, failures.failed));
        if streamed {
            calls.push(failing(Behaviour::BreaksOff, failures.broken));
        }
    }
    calls
}

/// Calls that send the model's earlier output back: with a tool's result, with a second question, or with its
/// reasoning.
fn turns(client: &'static str, api: Api) -> Vec<Call> {
    let mut calls = Vec::new();
    for behaviour in [Behaviour::UsesTool, Behaviour::SecondTurn] {
        calls.extend([false, true].map(|streamed| Call::new(client, api, streamed, behaviour)));
    }
    if api == Api::Responses {
        calls.extend(reasoning(client));
    }
    calls
}

/// Calls of a tool by a model that reasons, whose reasoning the client sends back.
fn reasoning(client: &'static str) -> [Call; 2] {
    [false, true].map(|streamed| Call::new(client, Api::Responses, streamed, Behaviour::Reasons))
}

fn embeddings(client: &'static str, (class, status, reason): Shown) -> [Call; 2] {
    let call = |behaviour| Call::new(client, Api::Embeddings, false, behaviour);
    [
        call(Behaviour::Answers),
        call(Behaviour::Denied).fails(class, status, reason),
    ]
}

/// Removes the usage of streamed chat completions, for clients that show it only on request.
fn hide_streamed_chat_usage(calls: Vec<Call>) -> Vec<Call> {
    let hide = |call: Call| {
        if call.api == Api::Chat && call.streamed {
            call.without_usage()
        } else {
            call
        }
    };
    calls.into_iter().map(hide).collect()
}

#[tokio::test]
#[ignore = "long: make verify runs it"]
async fn langchain_works() {
    let failures = Failures {
        denied: ("APIStatusError", Some(402), DENIED),
        broken: ("APIError", None, BROKEN),
        failed: ("OpenAIAPIError", Some(500), FAILED),
    };
    let mut calls = Vec::new();
    for api in [Api::Chat, Api::Responses] {
        calls.extend(texts("langchain", api, &failures));
        calls.extend(turns("langchain", api));
    }
    let mut calls = hide_streamed_chat_usage(calls);
    let [answers, denied] = embeddings("langchain", failures.denied);
    calls.extend([answers.without_usage(), denied]);
    prove(Sdk::python_frameworks(), calls).await;
}

#[tokio::test]
#[ignore = "long: make verify runs it"]
async fn the_agents_sdk_works() {
    let failures = Failures {
        denied: ("APIStatusError", Some(402), DENIED),
        broken: ("APIError", None, BROKEN),
        failed: ("InternalServerError", Some(500), FAILED),
    };
    let mut calls = Vec::new();
    for api in [Api::Chat, Api::Responses] {
        calls.extend(texts("agents", api, &failures));
        calls.extend(turns("agents", api));
    }
    // As one calls the Responses API without the provider's storage: `ModelSettings(store=False)`.
    calls.extend(texts(UNSTORED, Api::Responses, &failures));
    calls.extend(turns(UNSTORED, Api::Responses));
    prove(Sdk::python_frameworks(), hide_streamed_chat_usage(calls)).await;
}

/// LiteLLM's exceptions show the status and the sentence, and mostly no code.
#[tokio::test]
#[ignore = "long: make verify runs it"]
async fn litellm_works() {
    let failures = |failed| Failures {
        denied: ("APIError", Some(402), Reason::Text("daily cap")),
        broken: (
            "MidStreamFallbackError",
            Some(500),
            Reason::Text("provider broke off"),
        ),
        failed: ("InternalServerError", Some(500), failed),
    };
    let mut calls = texts("litellm", Api::Chat, &failures(FAILED));
    let responses = failures(Reason::Text("provider_500"));
    calls.extend(texts("litellm", Api::Responses, &responses));
    calls.extend(reasoning("litellm"));
    calls.extend(embeddings("litellm", responses.denied));
    prove(Sdk::python_frameworks(), calls).await;
}

#[tokio::test]
#[ignore = "long: make verify runs it"]
async fn pydantic_ai_works() {
    let failures = Failures {
        denied: ("ModelQuotaExceededError", Some(402), DENIED),
        broken: ("ModelAPIError", None, BROKEN),
        failed: ("ModelServerError", Some(500), FAILED),
    };
    let mut calls = Vec::new();
    for api in [Api::Chat, Api::Responses] {
        calls.extend(texts("pydantic-ai", api, &failures));
        calls.extend(turns("pydantic-ai", api));
    }
    calls.extend(embeddings("pydantic-ai", failures.denied));
    prove(Sdk::python_frameworks(), calls).await;
}

#[tokio::test]
#[ignore = "long: make verify runs it"]
async fn llamaindex_works() {
    let failures = Failures {
        denied: ("APIStatusError", Some(402), DENIED),
        broken: ("APIError", None, BROKEN),
        failed: ("InternalServerError", Some(500), FAILED),
    };
    let (class, status, reason) = failures.failed;
    let mut calls = Vec::new();
    for api in [Api::Chat, Api::Responses] {
        calls.extend(texts("llamaindex", api, &failures));
        calls.extend(turns("llamaindex", api));
        // The default behaviour, without settings for retries.
        let repeated = Call::new("llamaindex", api, false, Behaviour::FailsRepeated);
        calls.push(repeated.fails(class, status, reason));
    }
    let [answers, denied] = embeddings("llamaindex", failures.denied);
    calls.extend([answers, denied]);
    // LlamaIndex shows no usage of streams and embeddings.
    let hide = |call: Call| {
        if call.streamed || call.api == Api::Embeddings {
            call.without_usage()
        } else {
            call
        }
    };
    let calls = calls.into_iter().map(hide).collect();
    prove(Sdk::llamaindex("llamaindex.py"), calls).await;
}

#[tokio::test]
#[ignore = "long: make verify runs it"]
async fn the_vercel_ai_sdk_works() {
    let failures = |status| Failures {
        denied: ("AI_APICallError", Some(402), DENIED),
        broken: ("object", status, BROKEN),
        failed: ("AI_APICallError", Some(500), FAILED),
    };
    let chat = failures(None);
    let mut calls = texts("vercel", Api::Chat, &chat);
    // The Vercel AI SDK shows an error event of a response as a 500.
    calls.extend(texts("vercel", Api::Responses, &failures(Some(500))));
    for api in [Api::Chat, Api::Responses] {
        calls.extend(turns("vercel", api));
        // The default behaviour, without settings for retries and for storage at the provider.
        let repeated = Call::new("vercel", api, false, Behaviour::FailsRepeated);
        calls.push(repeated.fails("AI_RetryError", None, Reason::Text("as told")));
    }
    for streamed in [false, true] {
        let stored = Call::new("vercel", Api::Responses, streamed, Behaviour::SecondTurnStored);
        calls.push(stored.fails("AI_APICallError", Some(400), Reason::Code("unsupported_field")));
    }
    calls.extend(embeddings("vercel", chat.denied));
    prove(Sdk::node_frameworks("frameworks.mjs"), calls).await;
}
