//! Answers that are streams of events, from outside: real processes, a real Redis, a provider that follows the test's
//! script.
//!
//! * [`fixture`]: the fixture
//! * [`switches`]: what is off by default, and plans without streams
//! * [`passing`]: which bytes reach the caller, and when
//! * [`ends`]: what is charged, however a stream ends
//! * [`callers`]: callers who leave, or do not read
//! * [`disconnects`]: callers who leave at the edges of a stream
//! * [`growth`]: holds that grow, and streams that end at them
//! * [`stops`]: streams of frozen agents
//! * [`endpoints`]: responses and embeddings
//! * [`slow`]: thousands of callers who read slowly
//! * [`crowd`]: exact sums of many streams, with cuts and a killed edge among them
#![cfg(test)]

mod callers;
mod crowd;
mod disconnects;
mod endpoints;
mod ends;
mod fixture;
mod greedy;
mod growth;
mod passing;
mod slow;
mod stops;
mod switches;
