//! Webhooks end to end: the real admin server and edge, a real Redis, and receivers on this machine.
//!
//! * [`fixture`]: a server with an account, and receivers that record their requests
//! * [`register`]: the routes, bodies and errors to the letter
//! * [`attempts`]: retries of failing receivers, and the list of attempts
//! * [`redeliver`]: redelivery of finished deliveries
//! * [`receivers`]: receivers that hang, answer slowly, redirect, send too much or disconnect
//! * [`events`]: each event by its real trigger
//! * [`storm`]: ten thousand events for a dead receiver, and the deliveries of others
//! * [`crashes`]: servers and stores killed midway; several servers at once
//! * [`cluster`]: a store of several nodes
//! * [`store_clock`]: a store whose clock is wrong
//! * [`violations`]: violations of policies, many of them together; the archive and a dispatcher that is behind
//! * [`secrets`]: a new secret, a new master key, and what logs and the store hold
//! * [`verify`]: the Standard Webhooks library and the receiver of the documentation verify our signatures
#![cfg(test)]

mod attempts;
mod cluster;
mod crashes;
mod events;
mod fixture;
mod receivers;
mod redeliver;
mod register;
mod secrets;
mod store_clock;
mod storm;
mod verify;
mod violations;
