//! Twin of `number.lua`: draws the numbers of wallets and escrows.

use crate::keys::{Bucket, Series};
use crate::script::script;
use crate::{Store, StoreError};
use domain::number::{EPOCH_MS, LOWEST_COUNT, Number};

script! {
    /// Draws a number.
    pub static DRAW = "number_draw",
    kind: Timed,
    source: [include_str!("number/number.lua")],
    when_full: Refuse,
    keys: struct DrawKeys<'a>: &'a str { counter },
    /// `epoch` is in ms.
    args: struct DrawArgs: String { epoch, lowest_count },
}

/// Draws the next number of a series for a record that will be in `bucket`.
///
/// The draw is not confirmed: its record is written later to the same slot, so the confirmation of the record covers
/// the draw, and a server that lost the draw also lost the record.
///
/// # Errors
/// [`StoreError`]; safe to retry. Also if the series has no number left, after 278 years.
pub async fn draw(store: &Store, bucket: Bucket, series: Series) -> Result<Number, StoreError> {
    let counter = bucket.counter(series);
    let keys = DrawKeys { counter: &counter };
    let args = DrawArgs {
        epoch: EPOCH_MS.to_string(),
        lowest_count: LOWEST_COUNT.to_string(),
    };
    let mut reply = store.reply(&DRAW, keys, args).await?;
    reply.parsed(|count| Number::new(count.parse().ok()?, bucket.number()))
}
