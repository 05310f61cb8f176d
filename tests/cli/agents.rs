//! The operator's freeze (decision D22).

use crate::{document, ready};
use domain::mode::Mode;
use harness::{Cli, Redis, Seed, SeedAgent, assert_fields, words};
use serde_json::Value;
use store::agent::freeze::{Freeze, Frozen, FrozenBy, set_frozen};
use store::script::change::Scope;

fn agent(cli: &Cli, word: &str, account: &str, agent: &str, mode: &str, code: i32) -> Value {
    let args = format!("agent {word} --account {account} --agent {agent} --mode {mode} --json");
    let args = words(&args);
    document(&cli.run(&args), code)
}

fn stored(redis: &Redis, agent: &SeedAgent, mode: Mode) -> Option<String> {
    redis.command(&[
        "HGET",
        &agent.account.keys.in_mode(mode).agent(&agent.id),
        "frozen",
    ])
}

/// The records that make an agent exist, and who may lift a freeze, are tested in `management/agents.rs` and
/// `money_model/directed/agents.rs`.
#[tokio::test]
async fn the_operator_freezes_and_unfreezes_an_agent() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let store = redis.store();
    let account = Seed::new(&store).await.account("startup").await;
    let bot = account.agent("-like-an-option");
    bot.virtual_key().await;
    let run = |word, changed, status| {
        assert_fields!(agent(&cli, word, &account.id, &bot.id, "live", 0), {
            "changed": changed, "status": status,
        });
    };
    run("freeze", true, "frozen");
    assert_eq!(stored(&redis, &bot, Mode::Live).as_deref(), Some("operator"));
    run("freeze", false, "frozen");
    run("unfreeze", true, "active");
    assert_eq!(stored(&redis, &bot, Mode::Live), None);
    run("unfreeze", false, "active");
    // The operator takes over a freeze by the account.
    let scope = Scope {
        account: &account.id,
        mode: Mode::Live,
        actor: "key_1",
    };
    let by_user = Freeze::By(FrozenBy::User);
    assert_eq!(
        set_frozen(&store, &scope, &bot.id, by_user).await.unwrap(),
        Frozen::Done
    );
    run("freeze", true, "frozen");
    assert_eq!(stored(&redis, &bot, Mode::Live).as_deref(), Some("operator"));
    // And lifts one.
    run("unfreeze", true, "active");
    assert_eq!(
        set_frozen(&store, &scope, &bot.id, by_user).await.unwrap(),
        Frozen::Done
    );
    run("unfreeze", true, "active");
    for word in ["freeze", "unfreeze"] {
        for (account, agent_id, mode) in [
            (account.id.as_str(), bot.id.as_str(), "test"),
            (&account.id, "nobody", "live"),
            ("acct_none", &bot.id, "live"),
        ] {
            assert_fields!(agent(&cli, word, account, agent_id, mode, 1), { "code": "NOT_FOUND" });
        }
    }
    assert_eq!(stored(&redis, &account.agent("nobody"), Mode::Live), None);
}
