//! Twin of `number.lua`: draws the numbers of wallets and escrows.

use crate::keys::{Bucket, Series};
use crate::script::change::{CLOCK, unexpected_reply};
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use domain::number::{EPOCH_MS, LOWEST_PLACE, Number};
use std::sync::LazyLock;

/// Draws a number.
pub static DRAW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "number_draw",
        WhenFull::Refuse,
        &[CLOCK, include_str!("number/number.lua")],
    )
});

/// Draws the next number of a series for something that will live in `bucket`.
///
/// The draw is not confirmed: its record is written later to the same slot, so whatever confirms the record confirms
/// the draw, and a server that lost the draw lost the record.
///
/// # Errors
/// [`StoreError`]; safe to retry. Also if the series has no number left, after 278 years.
pub async fn draw(store: &Store, bucket: Bucket, series: Series) -> Result<Number, StoreError> {
    let counter = bucket.counter(series);
    let args = [EPOCH_MS.to_string(), LOWEST_PLACE.to_string()];
    let reply: Vec<String> = store.script(&DRAW, &[&counter], &args).await?;
    let place = reply.first().and_then(|place| place.parse().ok());
    let number = place.and_then(|place| Number::new(place, bucket.number()));
    number.map_or_else(|| unexpected_reply(&DRAW), Ok)
}
