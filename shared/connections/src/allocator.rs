//! Keeps the resident memory of both servers small, also after load. The programs use mimalloc: with the C library's
//! allocator the admin server did not return the memory of 32 bodies of 1 MiB.
//!
//! With transparent huge pages the kernel maps 2 MB where a program needs 4 KB. In an idle edge four fifths of the
//! resident memory were zeros of such pages: when the next byte was written to a block that the allocator had returned,
//! the whole block became resident again. So both programs turn huge pages off.
//!
//! The allocator returns freed pages after a delay. But it checks the delay only when a page is requested, and its
//! retained pages only once in some thousand requests, which an idle server does not make. So a task makes such
//! requests: without it, bodies of 70 MB were still resident minutes later.

use std::hint::black_box;
use std::time::Duration;
use tokio::time::interval;

/// Interval of the requests, equal to the allocator's own delay.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes of a large request: more than a page of small objects, so that whole pages are taken and freed. Never written
/// to.
const PAGES: usize = 1 << 20;
/// Number of small requests in each interval, and the bytes of each. The number exceeds the allocator's fast path,
/// whose requests do not count.
const REQUESTS: usize = 4_000;
const REQUEST: usize = 2 << 10;

/// Turns huge pages off for this process. Must run first, since existing huge pages stay. Fails without effect on a
/// kernel without huge pages.
pub fn small_pages() {
    let _refused = nix::sys::prctl::set_thp_disable(true);
}

/// Makes the allocator return freed pages, forever.
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
