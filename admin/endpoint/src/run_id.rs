//! Run ids in paths and bodies, with the rules of the edge's `X-Service-Run-Id` (specification §4.4).

use super::agent_id::require_no_dot_segment;
use super::body::Fields;
use crate::problem::Problem;
use crypto::virtual_key::WellFormed;
use domain::names::{RUN_ID_MAX, is_run_id};

/// Refuses an invalid run id. A virtual key is also refused, since run ids are stored and shown.
///
/// # Errors
/// 400 with a message that begins with `what`.
pub fn require_run_id(what: &str, id: &str) -> Result<(), Problem> {
    if is_run_id(id.as_bytes()) && WellFormed::parse(id.as_bytes()).is_none() {
        return Ok(());
    }
    require_no_dot_segment(what, id)?;
    let message =
        format!("{what} must be 1 to {RUN_ID_MAX} characters of A-Z a-z 0-9 . _ : - and no virtual key.");
    Err(Problem::validation(message))
}

impl Fields<'_> {
    /// Parses `runId`.
    ///
    /// # Errors
    /// 400 for an invalid run id.
    pub fn run_id(&self) -> Result<Option<String>, Problem> {
        let id = self.string("runId")?.value();
        if let Some(id) = &id {
            require_run_id("runId", id)?;
        }
        Ok(id)
    }
}
