//! The edge from outside: real processes, a real Redis, a provider that answers as the test says.
//!
//! * [`stage`], [`shape`]: what the tests stand on, and the exact shapes of answers
//! * [`blocked`]: who is not answered at all
//! * [`denials`], [`refusals`], [`bodies`], [`order`]: what is answered when no call is forwarded, and which of several
//!   reasons
//! * [`approved`], [`framing`]: what is forwarded, and what comes back
//! * [`estimates`], [`costs`], [`ledger`], [`settlement`]: what a call is charged, and what stays charged
//! * [`caps`], [`runs`], [`binding`], [`crowd`]: limits at their boundary, after a change, and under many calls at once
//! * [`round_trips`]: what the store is asked
//! * [`http`], [`malformed`], [`tls`], [`life`]: the edge as a server
#![cfg(test)]

mod approved;
mod binding;
mod blocked;
mod bodies;
mod caps;
mod costs;
mod crowd;
mod denials;
mod estimates;
mod framing;
mod http;
mod ledger;
mod life;
mod malformed;
mod order;
mod refusals;
mod round_trips;
mod runs;
mod settlement;
mod shape;
mod stage;
mod tls;
