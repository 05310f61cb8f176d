//! Drawing numbers: the place of the clock, the one after the last number or the lowest place, whichever is highest.

use super::fixture::DirectedFixture;
use crate::model::keys;
use crate::model_fixture::Checked;
use store::Store;
use store::keys::Series;
use store::number::DRAW;

/// An hour, in ms.
const HOUR: u64 = 3_600_000;

async fn draw(store: &Store, epoch: u64, lowest: u64) -> Result<u64, String> {
    let counter = keys(0).bucket().counter(Series::Wallet);
    let args = [epoch.to_string(), lowest.to_string()];
    let reply: Result<(u64,), _> = store.script(&DRAW, &[&counter], &args).await;
    reply.map(|(place,)| place).map_err(|error| format!("{error:?}"))
}

fn equal(found: u64, expected: u64, what: &str) -> Checked {
    (found == expected)
        .then_some(())
        .ok_or_else(|| format!("{what}: {found}, expected {expected}"))
}

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    let store = setup.store;
    let flushed: Result<(), _> = store.command(&redis::cmd("FLUSHDB")).await;
    flushed.map_err(|error| format!("{error:?}"))?;
    // The clock has not reached the lowest place: that place and those after it are drawn.
    let now = clock::now_ms();
    for expected in [HOUR, HOUR + 1, HOUR + 2] {
        equal(draw(store, now, HOUR).await?, expected, "the lowest")?;
    }
    // The clock is behind the last number.
    equal(draw(store, now, 1).await?, HOUR + 3, "the one after the last")?;
    // The clock is ahead of the last number.
    let from = clock::now_ms();
    let place = draw(store, from - 2 * HOUR, 1).await?;
    let to = clock::now_ms();
    if !(2 * HOUR..=2 * HOUR + to - from).contains(&place) {
        return Err(format!("by the clock: {place}"));
    }
    // A server that lost a drawn number does not draw it again.
    let counter = keys(0).bucket().counter(Series::Wallet);
    let back: Result<(), _> = store.command(redis::cmd("SET").arg(counter).arg(HOUR + 3)).await;
    back.map_err(|error| format!("{error:?}"))?;
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let again = draw(store, from - 2 * HOUR, 1).await?;
    match again > place {
        true => Ok(()),
        false => Err(format!("{again} was drawn before, or {place} is later")),
    }
}
