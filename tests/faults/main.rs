//! Everything around the edge is broken, and the edge must never open, never overspend, never leak a hold.
//!
//! The real `tollgate-proxy` runs in each test, with a private Redis and a scripted provider.
//!
//! * [`bodies`], [`headers`], [`sizes`], [`http`], [`keys`]: callers who send what they should not
//! * [`standby`]: a store whose last changes are gone with its machine
//! * [`store_down`], [`store_wrong`], [`cluster`], [`lost_replies`]: a store that is gone, frozen, full, read-only, wiped,
//!   or unheard
//! * [`late`]: settlements that the store could not take at once; [`other_ledgers`]: and those that meet another ledger
//! * [`provider`], [`provider_unexpected`], [`provider_early`], [`provider_errors`], [`provider_reuse`]: a provider that misbehaves
//! * [`neighbours`]: accounts that fill the memory for bodies; [`connections`], [`heads`], [`floods_h2`]: callers who open, say or repeat too much; [`shortages`]: a machine that has no
//!   descriptor left
//! * [`hang_ups`], [`hang_ups_h2`]: callers who leave; [`process`]: the edge itself is stopped or killed
//! * [`secrets`]: nothing of all that writes a key anywhere; [`memory`]: what a load took is given back
//! * [`torture`]: all of it at once
#![cfg(test)]

mod bodies;
mod cluster;
mod connections;
mod floods_h2;
mod hang_ups;
mod hang_ups_h2;
mod headers;
mod heads;
mod http;
mod keys;
mod late;
mod lost_replies;
mod memory;
mod neighbours;
mod other_ledgers;
mod process;
mod provider;
mod provider_early;
mod provider_errors;
mod provider_reuse;
mod provider_unexpected;
mod secrets;
mod shortages;
mod sizes;
mod stage;
mod standby;
mod store_down;
mod store_wrong;
mod torture;
