//! OpenAPI documentation of the account.

use super::AccountStanding;
use endpoint::doc::field::line;
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::problem::Code;

pub(crate) fn section() -> Section {
    let about = "The plan of the account, its limits, and how much of them is used. Null means unlimited.";
    Section::new("Account", about, vec![get(), choose_plan()])
}

fn get() -> Doc {
    Doc::new(
        "GET /account",
        "getAccount",
        "Show the account, its plan and its usage",
    )
    .response::<AccountStanding<'_>>(200, "The account.")
}

fn choose_plan() -> Doc {
    let body =
        BodyDoc::new("PlanChoice").required("plan", line(64).example("startup"), "The name of a plan.");
    Doc::new("POST /account/plan", "choosePlan", "Change the plan")
        .description("Binds the next call. Where the operator keeps plans to themselves it is refused.")
        .request_body(body)
        .response::<AccountStanding<'_>>(200, "The account as it now is.")
        .errors(&[Code::PlanByOperator])
}
