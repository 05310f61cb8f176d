//! The Codex command line, set up as the dashboard's Connect page says: a text, a command that the model runs, a second
//! question, a denial, a stream that breaks off, a failure whose estimate stays charged, and a tool of the provider.
//! Codex only streams, and only calls the Responses API.

use crate::install::Sdk;
use crate::plan::{Api, Behaviour, Call, Reason, prove};

#[tokio::test]
#[ignore = "long: make verify runs it"]
async fn codex_works() {
    let mut calls = Vec::new();
    // Codex offers functions to models that it does not know, and a runner of scripts to the newest ones.
    for client in ["codex", "codex-scripts"] {
        let call = |behaviour| Call::new(client, Api::Responses, true, behaviour);
        let failing = |behaviour, text| call(behaviour).fails("turn.failed", None, Reason::Text(text));
        calls.extend([
            call(Behaviour::Answers),
            call(Behaviour::UsesTool),
            call(Behaviour::SecondTurn),
            call(Behaviour::Denied).fails("turn.failed", Some(402), Reason::Text("daily cap")),
            failing(Behaviour::FailsCharged, "high demand"),
            // Codex shows the reason, but not the text so far.
            failing(Behaviour::BreaksOff, "The provider broke off its answer").without_pieces(),
        ]);
    }
    let searching = Call::new("codex", Api::Responses, true, Behaviour::OffersHostedTool);
    calls.push(searching.fails("turn.failed", None, Reason::Text("unsupported_field")));
    // Codex's built-in provider, with the edge's address, requests a WebSocket first.
    for behaviour in [Behaviour::Answers, Behaviour::UsesTool, Behaviour::SecondTurn] {
        calls.push(Call::new("codex-builtin", Api::Responses, true, behaviour));
    }
    prove(Sdk::codex("codex.mjs"), calls).await;
}
