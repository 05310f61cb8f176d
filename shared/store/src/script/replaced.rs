//! The values that a change of fields replaces, for its audit entry. They are read before the change, and its script
//! compares what was read, so that an entry is true also while others change the same fields. Where they do so all the
//! time, the change is made in the end, and its entry does not name what it replaced.

use super::change::FieldChange;
use crate::{Store, StoreError};

/// Maximum number of attempts in which the script compares. Each concurrent change of the same fields can cost one.
/// After them it does not compare: otherwise callers who change the same fields together would have each of their
/// changes tried as often as there are callers, and some of them refused.
pub(crate) const COMPARED_ATTEMPTS: usize = 8;

/// Reads fields of a record.
pub(crate) async fn read(
    store: &Store,
    record: &str,
    fields: &[&'static str],
) -> Result<Vec<FieldChange>, StoreError> {
    let values: Vec<Option<String>> = store.command(redis::cmd("HMGET").arg(record).arg(fields)).await?;
    Ok(fields.iter().copied().zip(values).collect())
}

/// Returns the names of the changed fields.
pub(crate) fn names(changes: &[FieldChange]) -> Vec<&'static str> {
    changes.iter().map(|(field, _)| *field).collect()
}

/// Returns those of the values read of the changed fields that the changes replace by another value.
pub(crate) fn replaced(changes: &[FieldChange], read: &[FieldChange]) -> Vec<FieldChange> {
    read.iter()
        .filter(|old| !changes.contains(old))
        .cloned()
        .collect()
}
