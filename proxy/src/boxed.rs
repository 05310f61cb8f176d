//! Puts the future of a call on the heap where it is made. `Box::pin(future)` makes it on the stack first, and copies
//! all of its state, several KB that are not set yet: allocating could panic, and would then have to drop the future.

use std::pin::Pin;

/// Allocates, then makes the future in its place.
pub fn future<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let memory = Box::new_uninit();
    Box::into_pin(Box::write(memory, make()))
}
