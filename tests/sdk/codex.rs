//! The Codex command line, set up as the dashboard's Connect page says: a text, a command that the model has run, a
//! second question, a denial, a stream that breaks off, a failure whose estimate stays charged, and a tool of the
//! provider. Codex only streams, and only calls the Responses API.

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
            // It shows neither what had come nor the reason.
            failing(Behaviour::BreaksOff, "stream disconnected").without_pieces(),
        ]);
    }
    let searching = Call::new("codex", Api::Responses, true, Behaviour::OffersHostedTool);
    calls.push(searching.fails("turn.failed", None, Reason::Text("unsupported_field")));
    prove(Sdk::codex("codex.mjs"), calls).await;
}
