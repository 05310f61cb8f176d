//! OpenAPI documentation of the installation.

use super::Installation;
use endpoint::doc::{Doc, Section};

pub(crate) fn section() -> Section {
    let about = "What a program has to know of this installation before it calls.";
    let get = Doc::new(
        "GET /installation",
        "getInstallation",
        "Show where the edge is and which providers there are",
    )
    .response::<Installation<'_>>(200, "The installation.");
    Section::new("Installation", about, vec![get])
}
