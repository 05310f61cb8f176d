//! Having little memory, and giving it back.
//!
//! The kernel gives a program pages of 2 MB where it asks for one of 4 KB, and of what an idle edge had resident four fifths were the
//! zeros of such pages: a block that the allocator had returned became resident as a whole with the next byte written into it. So
//! the edge has small ones.
//!
//! What a load took is kept by the allocator for a while after it was freed, in case it is needed again, and then returned; but
//! it only looks at the clock when it is asked for pages, and at the pages that it kept once in some thousand requests, which an
//! idle edge does not make. So it is asked, again and again: without that, bodies of 70 MB were still resident minutes later.

use std::hint::black_box;
use std::time::Duration;
use tokio::time::interval;

/// Between two looks: the allocator's own delay.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes asked for: more than a page of small objects, so that whole pages are taken and freed. Nothing is written to them.
const PAGES: usize = 1 << 20;
/// Requests at each look, and the bytes of one: more than the allocator hands out in its shortest way, which it does not count.
const REQUESTS: usize = 4_000;
const REQUEST: usize = 2 << 10;

/// Turns huge pages off for this process; those that it has stay, so it comes first. A kernel that has none refuses that, and
/// there is nothing to turn off.
pub fn small_pages() {
    let _refused = nix::sys::prctl::set_thp_disable(true);
}

/// Makes the allocator look, for ever.
pub async fn give_back() {
    let mut ticks = interval(EVERY);
    loop {
        ticks.tick().await;
        for _ in 0..REQUESTS {
            drop(black_box(Vec::<u8>::with_capacity(REQUEST)));
        }
        drop(black_box(Vec::<u8>::with_capacity(PAGES)));
    }
}
