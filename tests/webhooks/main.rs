//! Webhooks end to end: the real admin server and edge, a real Redis, and receivers on this machine.
//!
//! * [`world`]: a server with an account, and receivers that note what they get
//! * [`register`]: the routes, bodies and errors to the letter
//! * [`attempts`]: when a failing receiver is tried again, and what is listed of it
//! * [`redeliver`]: a delivery that ended is asked for again
//! * [`receivers`]: receivers that hang, drip, redirect, send too much or leave
//! * [`events`]: each event by what really triggers it
//! * [`storm`]: ten thousand events for a dead receiver, and everybody else
//! * [`crashes`]: servers and stores killed in the middle, several servers at once
//! * [`cluster`]: a store of several nodes
//! * [`violations`]: violations of policies, many of them together; the archive and a dispatcher that is behind
//! * [`secrets`]: a new secret, a new master key, and what logs and the store hold
//! * [`verify`]: the Standard Webhooks library and the receiver of the documentation check our signatures
#![cfg(test)]

mod attempts;
mod cluster;
mod crashes;
mod events;
mod receivers;
mod redeliver;
mod register;
mod secrets;
mod storm;
mod verify;
mod violations;
mod world;
