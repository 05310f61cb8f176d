//! OpenAPI documentation of decisions.

use super::DecisionAnswer;
use endpoint::doc::field::is;
use endpoint::doc::{Doc, Section};
use endpoint::problem::Code;

pub(crate) fn section() -> Section {
    let about = "Why a proxied call was approved or denied, and what became of it.";
    let get = Doc::new("GET /decisions/{id}", "getDecision", "Explain a decision")
        .response::<DecisionAnswer>(200, "The decision with every check that was made.")
        .errors(&[Code::NotFound]);
    Section::new("Decisions", about, vec![get]).param(
        "id",
        is("DecisionId"),
        "The decision: `X-Service-Allow-Id`, or `X-Service-Decision-Id` of a denial.",
    )
}
