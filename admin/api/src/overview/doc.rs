//! OpenAPI documentation of the overview.

use super::{DAYS_DEFAULT, DAYS_MAX, Overview};
use endpoint::doc::field::count;
use endpoint::doc::{Doc, Section};

pub(crate) fn section() -> Section {
    let about = "Key figures of the account.";
    let get = Doc::new("GET /overview", "getOverview", "Show spend, denials and open tasks")
        .description("The amounts of today, of this month and on hold are exact and include calls in flight. If `partial` is true, there are more than 5,000 agents, and the amounts of today and on hold (in test mode also of this month) are sums of the newest agents. Days and denials are updated as the audit trail is sealed.")
        .query("days", count(1).with("maximum", DAYS_MAX).with("x-default", DAYS_DEFAULT), "How many days, today included.")
        .response::<Overview<'_>>(200, "The overview.");
    Section::new("Overview", about, vec![get])
}
