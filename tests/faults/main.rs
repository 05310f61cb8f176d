//! Faults around the edge. It must never fail open, never overspend, and never leak a hold.
//!
//! The real `tollgate-proxy` runs in each test, with a private Redis and a scripted provider.
//!
//! * [`sizes`], [`http`], [`keys`]: malformed requests
//! * [`store_down`], [`store_wrong`], [`cluster`], [`lost_replies`]: a store that is gone, frozen, full, read-only or
//!   wiped, or whose replies are lost
//! * [`store_clock`]: a store whose clock is wrong; [`store_closed`]: one that an edge cannot use at all;
//!   [`store_login`]: one that refuses a login for a while
//! * [`late_settlements`]: settlements that the store does not accept at once; [`removed_journal`]: their journal is
//!   removed or replaced; [`other_ledgers`]: settlements that reach another ledger
//! * [`provider`], [`provider_early`], [`provider_errors`], [`provider_reuse`]: a provider that misbehaves
//! * [`neighbours`], [`unread_answers`]: accounts that fill the memory for bodies, and for answers; [`connections`],
//!   [`heads`], [`floods_h2`]: callers with too many connections, headers or requests; [`shortages`]: a machine without
//!   free descriptors
//! * [`hang_ups`], [`hang_ups_h2`]: callers that disconnect; [`process`]: the edge is stopped or killed
//! * [`secrets`]: no key is written anywhere under any of these; [`memory`]: memory is returned after a load
//! * [`torture`]: all faults at once
#![cfg(test)]

mod cluster;
mod connections;
mod denial_windows;
mod fixture;
mod floods_h2;
mod hang_ups;
mod hang_ups_h2;
mod heads;
mod http;
mod keys;
mod late_settlements;
mod lost_replies;
mod memory;
mod neighbours;
mod other_ledgers;
mod process;
mod provider;
mod provider_early;
mod provider_errors;
mod provider_reuse;
mod removed_journal;
mod secrets;
mod shortages;
mod sizes;
mod standby;
mod store_clock;
mod store_closed;
mod store_down;
mod store_login;
mod store_wrong;
mod torture;
mod unread_answers;
