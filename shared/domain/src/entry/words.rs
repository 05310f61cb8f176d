//! Data of a change that only the script knows: words `name=value` after the JSON of its twin, merged into `data`.

use crate::money::Nanos;
use serde_json::{Map, Value};

/// Marks an amount in nano-USD: `spent_nanos=5` becomes `spentNanos: "5"` and `spentUsd: 5e-9`.
const NANOS: &str = "_nanos";

/// Merges ` name=value name=value`. A word replaces the twin's value. `None` if the text is malformed.
pub(super) fn merge(data: &mut Map<String, Value>, text: &str) -> Option<()> {
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let (name, value) = word.split_once('=')?;
        if let Some(amount) = name.strip_suffix(NANOS) {
            let nanos = Nanos::from_stored(value.parse().ok()?);
            let amount = camel(amount);
            data.insert(format!("{amount}Usd"), nanos.as_double().into());
            data.insert(format!("{amount}Nanos"), value.into());
        } else {
            data.insert(camel(name), value.into());
        }
    }
    Some(())
}

/// Converts a name to JSON's form: `low_owner` becomes `lowOwner`.
fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}
