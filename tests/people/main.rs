//! Users through the real `tollgate-admin serve` on a real Redis: accounts, roles, sessions.
//!
//! * [`fixture`]: a server with its store and users
//! * [`login`]: sign-in, rotation, fixation, and what responses reveal
//! * [`lockout`]: guesses, also concurrent ones
//! * [`sessions`]: ends, revocations, stolen and forged cookies
//! * [`forgery`]: cross-site requests
//! * [`held_bodies`]: requests whose caller loses the authority while they arrive
//! * [`factors`]: the second factor, recovery codes, the master key
//! * [`team`]: roles, removal, the last owner; [`invitations`]: invitations
//! * [`passwords`]: changes and resets
//! * [`api_keys`]: keys managed by people
//! * [`plan`]: the plan, and its features in the dashboard
//! * [`accounts`]: one person in several accounts
//! * [`emails`]: the look-ups of addresses, and removals that are cut off
//! * [`faults`]: a store that is down, fell back, or is full
//! * [`scripts`]: the scripts of sessions and users; their checks detect every mutant
//! * [`cli`]: the operator's commands
#![cfg(test)]

mod accounts;
mod api_keys;
mod cli;
mod emails;
mod factors;
mod faults;
#[path = "../management/fixture.rs"]
#[expect(dead_code, unused_imports, reason = "it is made for more than this")]
mod fixture;
mod forgery;
mod held_bodies;
mod invitations;
mod lockout;
mod login;
mod names;
mod passwords;
mod plan;
mod scripts;
mod sessions;
mod team;
