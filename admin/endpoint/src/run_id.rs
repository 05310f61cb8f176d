//! Run ids in paths and bodies: the rules are those of the edge's `X-Service-Run-Id` (specification §4.4).

use super::body::{Fields, Given};
use super::call::require_no_dot_segment;
use crate::problem::Problem;
use crypto::virtual_key::WellFormed;
use domain::names::{RUN_ID_MAX, is_run_id};

/// Refuses what may not name a run. A virtual key may not: it would be stored and shown.
///
/// # Errors
/// 400 that begins with `what`.
pub fn require_run_id(what: &str, id: &str) -> Result<(), Problem> {
    if is_run_id(id.as_bytes()) && WellFormed::parse(id.as_bytes()).is_none() {
        return Ok(());
    }
    let message =
        format!("{what} must be 1 to {RUN_ID_MAX} characters of A-Z a-z 0-9 . _ : - and no virtual key.");
    Err(Problem::validation(message))
}

/// Refuses what no new run can be called. Operations that only read take the ids of runs that have such a name.
///
/// # Errors
/// 400 that begins with `what`.
pub fn require_new_run_id(what: &str, id: &str) -> Result<(), Problem> {
    require_run_id(what, id)?;
    require_no_dot_segment(what, id)
}

impl Fields<'_> {
    /// The run that `runId` names.
    ///
    /// # Errors
    /// 400 for what may not name a run.
    pub fn run_id(&self) -> Result<Option<String>, Problem> {
        match self.string("runId")? {
            Given::Absent | Given::Null => Ok(None),
            Given::Value(id) => require_new_run_id("runId", &id).map(|()| Some(id)),
        }
    }
}
