//! The edge from outside: real processes, a real Redis, a provider that answers as the test says.
//!
//! * [`fixture`], [`shape`]: the fixture, and the exact form of responses
//! * [`blocked`]: blocked clients
//! * [`denials`], [`refusals`], [`bodies`], [`order`]: responses without a forwarded call, and their precedence
//! * [`approved`], [`framing`]: the forwarded request and its response
//! * [`estimates`], [`costs`], [`ledger`], [`settlement`]: what a call is charged
//! * [`runs`], [`binding`], [`crowd`]: limits of a run, after a change, and under many calls at once
//! * [`round_trips`]: commands to the store
//! * [`upstreams`]: several providers by name; [`unreached`]: the log about one that cannot be reached
//! * [`http`], [`malformed`], [`chunks`], [`tls`], [`life`]: the edge as a server
#![cfg(test)]

mod approved;
mod binding;
mod blocked;
mod bodies;
mod chunks;
mod costs;
mod crowd;
mod denials;
mod estimates;
mod fixture;
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
mod tls;
mod unreached;
mod upstreams;
