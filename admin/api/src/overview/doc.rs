//! OpenAPI documentation of the overview.

use super::{DAYS_DEFAULT, DAYS_MAX, Overview};
use endpoint::doc::field::count;
use endpoint::doc::{Doc, Section};

pub(crate) fn section() -> Section {
    let about = "What an owner wants to know at a glance.";
    let get = Doc::new("GET /overview", "getOverview", "Show what is spent, what was refused, and what waits for somebody")
        .description("Today, this month and what is held are exact, calls under way included; where `partial` is true and there are more than 5,000 agents, today and what is held (and in test mode this month) are sums of those that were looked at. Days and refusals follow as the audit trail is sealed.")
        .query("days", count(1).with("maximum", DAYS_MAX).with("x-default", DAYS_DEFAULT), "How many days, today included.")
        .response::<Overview<'_>>(200, "The overview.");
    Section::new("Overview", about, vec![get])
}
