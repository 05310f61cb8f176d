//! The cost of a call: the price table, its look-up by model name and service tier, the estimate before a call and the
//! real cost after it (specification §4.4 steps 4 and 7; decisions D4, D31 to D33, D65).
//!
//! Prices are integers of pico-USD per token (USD per million tokens × 10⁶). A call is summed in pico-USD and rounded
//! up to the nano once, at the end. An unpublished figure is replaced by the highest one that could apply, so a gap in
//! the table never makes a call cheaper.
//!
//! ```text
//! config/prices.toml ── text ──┐
//!                              ├─ table ── lookup ─── estimate (before the call)
//! LiteLLM file ── import ── overlay        └───────── cost (after it, from `usage`)
//! ```

mod cost;
mod decimal;
mod entry;
mod error;
mod estimate;
mod import;
mod lookup;
mod model;
mod overlay;
mod picos;
mod rates;
mod reported_cost;
mod streamed;
mod table;
mod text;
mod tier;
mod usage;

pub use cost::{ActualCost, ServedCall};
pub use entry::ModelEntry;
pub use error::PriceError;
pub use estimate::CallShape;
pub use import::{IgnoredCosts, Imported, OPENAI, Skipped, import_litellm};
pub use model::ModelPrice;
pub use overlay::PriceOverlay;
pub use picos::{CallPrice, TokenPrice};
pub use rates::{Published, Rates};
pub use reported_cost::{BadCost, CALL_COST_MAX, reported_cost};
pub use table::PriceTable;
pub use usage::{EmbeddingsUsage, ResponsesUsage, USAGE_TOKENS_MAX, Usage};

/// The table of `config/prices.toml`, compiled in for installations without a file.
pub const DEFAULT_PRICES: &str = include_str!("../../../config/prices.toml");

#[cfg(test)]
mod tests;
