//! OpenAPI documentation of predictions.

use super::Prediction;
use crate::spend::fields;
use endpoint::doc::field::{amount, is, list, new_agent_id, string};
use endpoint::doc::{BodyDoc, Doc, Section, nullable};
use endpoint::problem::Code;
use openapi::{Json, object};
use serde_json::json;

/// Fields of a spend, which the example of a call does not have.
const OF_SPENDS: [&str; 4] = ["currency", "recipient", "description", "metadata"];

pub(crate) fn section() -> Section {
    let about = "Why a call was approved or denied, and what would be decided now.";
    Section::new("Predictions", about, vec![predict()])
}

fn predict() -> Doc {
    let message = object([("type", "object".into()), ("additionalProperties", true.into())]);
    let messages = list(message, 100_000).example(Json::from_serialize(
        &json!([{ "role": "user", "content": "Hello" }]),
    ));
    let body = BodyDoc::new("Question")
        .required("agent", new_agent_id(), "Agent of the predicted call or spend.")
        .optional_or_null(
            "model",
            string().example("gpt-4o-mini"),
            "Predicts a call: the model, beside any other field of a chat-completions body.",
        )
        .optional(
            "messages",
            messages,
            "The messages of the call; an empty prompt without them.",
        )
        .optional_or_null(
            "endpoint",
            string().example("chat.completions"),
            "The API of the call: `chat.completions` (without it), `responses` or `embeddings`, whose bodies have `input` in place of `messages`.",
        )
        .optional_or_null(
            "keyId",
            is("VirtualKeyId"),
            "The virtual key whose own checks are made as well.",
        )
        .optional(
            "amount",
            nullable(amount()),
            "Predicts a spend instead: give `amount` and the fields of a spend, and no `model`.",
        );
    Doc::new("POST /decisions/dry-run", "predict", "Predict a decision")
        .description("Gives either `model`, with the other fields of the body of its `endpoint`, or `amount`, with those of a spend. Nothing is charged and nothing is written.")
        .request_body(fields(body)
                .omit_from_example(&["amount"])
                .omit_from_example(&OF_SPENDS).with_other_fields())
        .response::<Prediction<'_>>(200, "The predicted decision, with every check.")
        .errors(&[Code::NotFound, Code::LiveModeRequired])
}
