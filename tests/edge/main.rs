//! The edge from outside: real processes, a real Redis, a provider that answers as the test says.
//!
//! * [`stage`], [`shape`]: what the tests stand on, and the exact shapes of answers
//! * [`denials`], [`refusals`], [`order`]: what is answered when no call is forwarded, and which of several reasons
//! * [`approved`], [`money`]: what is forwarded, what comes back, and what it costs
#![cfg(test)]

mod approved;
mod binding;
mod caps;
mod crowd;
mod denials;
mod http;
mod ledger;
mod life;
mod money;
mod order;
mod refusals;
mod round_trips;
mod runs;
mod shape;
mod stage;
mod tls;
