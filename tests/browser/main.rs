//! The dashboard in headless Chromium, used as a person would: the journeys in `journeys/`, against real servers.
//!
//! A journey is a Playwright script. It receives the servers' addresses and requests from this program, line by line,
//! what a browser cannot do: an account, an operator's command, a server that stops. `kit/journey.mjs` has the checks
//! that every journey makes.
#![cfg(test)]

mod accounts;
mod chromium;
mod fixture;
mod provider;
mod requests;
mod script;

use fixture::Fixture;

/// One test for each journey, which is a file of the same name in `journeys/`.
macro_rules! journeys {
    ($($(#[$attribute:meta])+ $name:ident;)+) => {
        $($(#[$attribute])+
        #[test]
        fn $name() {
            Fixture::start().play(stringify!($name));
        })+

        #[test]
        fn every_journey_is_played() {
            let mut names = vec![$(concat!(stringify!($name), ".mjs")),+];
            names.sort_unstable();
            assert_eq!(script::journeys(), names);
        }
    };
}

journeys! {
    /// The fixture itself: on pages with known faults it has to find each of them.
    #[ignore = "long: make verify runs it"]
    fixture;
    /// Every page, opened once.
    #[ignore = "long: make verify runs it"]
    gallery;
    /// The reference of the API, opened once.
    reference;
    /// The owner's first hour: agent, keys, spend, cap, denial, freeze.
    first_steps;
    /// From an agent to its first call: snippets, a key, the call as it arrives.
    connect;
    /// Long lists: the next page, Back and a reload.
    lists;
    /// Calls, their usage over time, and agents close to a limit.
    calls;
    /// Light, dark or as the system says.
    theme;
    /// Agreements between two accounts, and their proofs.
    escrow;
    /// Deposit, transfer, approval, API key.
    money;
    /// Answers that are lost, and requests that are sent again.
    lost_answers;
    /// A new password by a link, with and without a second factor.
    password_reset;
    /// A failing receiver, redelivery, and a plan without webhooks.
    webhooks;
    /// Permissions of each role, invitations, and changes of the team.
    roles;
    /// Names and texts that would do harm.
    hostile;
    /// The ids of another account.
    strangers;
    /// Cookies, sessions, addresses, the back button.
    sessions;
    /// One address and one password in several accounts.
    which_account;
    /// Removing a person, with or without the API keys that the person made.
    removal;
    /// Two people edit one policy.
    tabs;
    /// Everything works with the keyboard alone.
    keyboard;
    /// The audit trail: filters, verification, a changed entry.
    audit;
    /// Live and test mode.
    modes;
    /// Properties of all pages: size, requests, and the error that is shown while the server is away.
    facts;
}
