//! The lifetime that a call requests for its entries in the provider's cache. A longer lifetime than the default has
//! its own price. `ttl` is in an object for the whole call, or in an object of a content part or a message.

use super::error::Scan;
use super::key::folded;
use super::scan::{BodyValue, Scanner};

/// The top-level key.
pub(super) const OPTIONS: &str = "prompt_cache_options";
/// The key in a part.
pub(super) const BREAKPOINT: &str = "prompt_cache_breakpoint";
/// The key for Anthropic's models (at OpenRouter, LiteLLM and others), anywhere.
pub(super) const CONTROL: &str = "cache_control";
/// The key in each of these objects.
const LIFETIME: &str = "ttl";
/// The default lifetime. Its price is that of any write.
const DEFAULT: &str = "30m";
/// The default lifetime of [`CONTROL`].
const CONTROL_DEFAULT: &str = "5m";

/// Reads the value of `name`: of [`OPTIONS`], [`BREAKPOINT`] or [`CONTROL`]. Returns whether it requests another
/// lifetime than the default. An unknown lifetime or an unknown form counts as longer.
pub(super) fn is_long(scanner: &mut Scanner<'_>, name: &str) -> Scan<bool> {
    let default = match name {
        CONTROL => CONTROL_DEFAULT,
        _ => DEFAULT,
    };
    let mut is_long = false;
    if scanner.peek() == Some(b'{') {
        scanner.object(|scanner, key| {
            let is_lifetime = folded(key.decode()?) == LIFETIME;
            let value = scanner.value()?;
            is_long |= is_lifetime && !is_default(value, default)?;
            Ok(())
        })?;
        return Ok(is_long);
    }
    Ok(!matches!(scanner.value()?, BodyValue::Null))
}

fn is_default(value: BodyValue<'_>, default: &str) -> Scan<bool> {
    Ok(match value {
        BodyValue::Null => true,
        BodyValue::Text(text) => text.decode()? == default,
        _ => false,
    })
}
