//! Giving memory back. What a load took is kept by the allocator for a second after it was freed, in case it is needed
//! again, and then returned; but it only looks at the clock when it is asked for pages, which an idle edge does not do.
//! So it is asked for some, again and again: without that, bodies of 70 MB were still resident minutes later.

use std::time::Duration;
use tokio::time::interval;

/// Between two looks: the allocator's own delay.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes asked for: more than a page of small objects, so that whole pages are taken and freed. Nothing is written to them.
const ASKED_FOR: usize = 1 << 20;

/// Makes the allocator look at the clock, for ever.
pub async fn give_back() {
    let mut ticks = interval(EVERY);
    loop {
        ticks.tick().await;
        drop(std::hint::black_box(Vec::<u8>::with_capacity(ASKED_FOR)));
    }
}
