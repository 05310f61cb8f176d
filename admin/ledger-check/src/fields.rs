//! The fields of a record in the store.

use std::collections::HashMap;

/// The values, by the names of their fields.
pub(super) type FieldValues = HashMap<String, String>;
