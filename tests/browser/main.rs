//! The dashboard in headless Chromium, used as a person would: the journeys in `journeys/`, against real servers.
//!
//! A journey is a script of Playwright. It is given the servers' addresses and asks this side, line by line, for what a
//! browser cannot do: an account, an operator's command, a server that stops. What every journey must show beside its
//! own story is in `kit/journey.mjs`.
#![cfg(test)]

mod accounts;
mod asks;
mod chromium;
mod script;
mod stage;

use stage::Stage;

/// The fixture itself: on pages with known faults it has to find each of them.
#[test]
fn the_fixture_finds_every_fault_that_a_page_can_have() {
    Stage::start().play("fixture");
}
