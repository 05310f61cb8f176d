//! OpenAPI documentation of the installation.

use super::Installation;
use endpoint::doc::{Doc, Section};

pub(crate) fn section() -> Section {
    let about = "Facts about this installation that a program needs before its first call.";
    let get = Doc::new(
        "GET /installation",
        "getInstallation",
        "Show where the edge is and which providers there are",
    )
    .response::<Installation<'_>>(200, "The installation.");
    Section::new("Installation", about, vec![get])
}
