//! For how long a call asks the provider's cache to keep what it writes: a longer lifetime than the default is billed
//! at a price of its own. `ttl` stands in an object for the whole call, or in one at a part of a content.

use super::error::Scan;
use super::key::folded;
use super::scan::{Scanner, Value};

/// The top-level key.
pub(super) const OPTIONS: &str = "prompt_cache_options";
/// The key in a part.
pub(super) const BREAKPOINT: &str = "prompt_cache_breakpoint";
/// The key in either.
const LIFETIME: &str = "ttl";
/// The default lifetime, whose price is that of any write.
const DEFAULT: &str = "30m";

/// Reads the value of [`OPTIONS`] or [`BREAKPOINT`]. Whether it asks for another lifetime than the default: one that is
/// not known here counts as longer, and so does a value of an unknown form.
pub(super) fn is_long(scanner: &mut Scanner<'_>) -> Scan<bool> {
    let mut is_long = false;
    if scanner.peek() == Some(b'{') {
        scanner.object(|scanner, key| {
            let is_lifetime = folded(key.decode()?) == LIFETIME;
            let value = scanner.value()?;
            is_long |= is_lifetime && !is_default(value)?;
            Ok(())
        })?;
        return Ok(is_long);
    }
    Ok(!matches!(scanner.value()?, Value::Null))
}

/// Whether this lifetime is the default.
fn is_default(value: Value<'_>) -> Scan<bool> {
    Ok(match value {
        Value::Null => true,
        Value::Text(text) => text.decode()? == DEFAULT,
        _ => false,
    })
}
