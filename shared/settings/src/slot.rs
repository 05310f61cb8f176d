//! The place of a setting, filled with its default, whose type determines that of every other value.

use crate::BadSettings;
use toml::Value;

/// Replaces the value of the setting `key` by one of the file.
///
/// # Errors
/// [`BadSettings`] for a value of another type.
pub(crate) fn fill(slot: &mut Value, key: &str, value: Value) -> Result<(), BadSettings> {
    if !slot.same_type(&value) {
        let (wanted, found) = (type_name(slot), type_name(&value));
        return Err(BadSettings(format!("`{key}` must be {wanted}, not {found}")));
    }
    *slot = value;
    Ok(())
}

/// Replaces the value by the text of an environment variable. `item` makes a value of an element of a list.
///
/// # Errors
/// [`BadSettings`] for a text that is no value of the default's type.
pub(crate) fn fill_from_env(
    slot: &mut Value,
    variable: &str,
    text: &str,
    item: fn(&str) -> Value,
) -> Result<(), BadSettings> {
    let bad = |what: &str| BadSettings(format!("{variable} must be {what}"));
    *slot = match slot {
        Value::Integer(_) => Value::Integer(text.parse().map_err(|_| bad("an integer"))?),
        Value::Float(_) => Value::Float(text.parse().map_err(|_| bad("a number"))?),
        Value::Boolean(_) => Value::Boolean(text.parse().map_err(|_| bad("true or false"))?),
        Value::Array(_) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            Value::Array(words.map(item).collect())
        }
        _ => Value::String(text.to_owned()),
    };
    Ok(())
}

/// Returns the type of a value with its article.
fn type_name(value: &Value) -> String {
    let name = value.type_str();
    let article = if name.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {name}")
}
