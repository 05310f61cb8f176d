//! OpenAPI documentation of thresholds.

use super::ThresholdView;
use domain::threshold::Threshold;
use endpoint::doc::field::{is, words};
use endpoint::doc::{Doc, Section};

pub(crate) fn section() -> Section {
    let about = "Who is on the way to a limit: at 50, 80 and 95 % of it.";
    let list = Doc::new("GET /thresholds", "listThresholds", "List who has reached a threshold of a limit")
        .description("Computed from the counters that Cap and the plan check, calls under way included. The first server that detects a reached threshold records it, once for each agent, limit, threshold and period.")
        .query("threshold", words(Threshold::ALL.map(Threshold::as_str)).with("x-default", "50"), "Limits that have reached this percentage.")
        .query("cap", is("WatchedLimit"), "Those of this limit.")
        .lists::<ThresholdView<'_>>("thresholds", "A page of standings, the highest share first.")
        .partial("Whether there are more agents than the 5,000 that were read, or spends that are not sealed yet.");
    Section::new("Thresholds", about, vec![list])
}
