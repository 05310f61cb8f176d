//! The operator's freeze (decision D22).

use crate::{document, ready};
use domain::mode::Mode;
use harness::{CapPolicy, Cli, Redis, Seed, SeedAgent, assert_fields, words};
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

#[tokio::test]
async fn an_agent_exists_by_any_one_of_four_things() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let account = Seed::new(&redis.store()).await.account("startup").await;
    account.agent("by-policy").cap(CapPolicy::default()).await;
    account.agent("by-provider-key").provider_key("sk-test").await;
    account.agent("by-virtual-key").virtual_key().await;
    account.agent("-like-an-option").virtual_key().await;
    let row = account.keys.live().agent("by-wallet");
    redis.command::<u64>(&["HSET", &row, "wallet", "wal_1", "wallet_number", "1"]);
    for id in [
        "by-policy",
        "by-provider-key",
        "by-virtual-key",
        "-like-an-option",
        "by-wallet",
    ] {
        assert_fields!(agent(&cli, "freeze", &account.id, id, "live", 0), { "status": "frozen" }, "{id}");
        assert_eq!(
            stored(&redis, &account.agent(id), Mode::Live).as_deref(),
            Some("operator"),
            "{id}"
        );
        assert_fields!(agent(&cli, "freeze", &account.id, id, "test", 1), {
            "code": "NOT_FOUND",
        }, "{id} is live");
        assert_fields!(agent(&cli, "unfreeze", &account.id, id, "live", 0), { "status": "active" }, "{id}");
        assert_eq!(stored(&redis, &account.agent(id), Mode::Live), None, "{id}");
    }
    for word in ["freeze", "unfreeze"] {
        assert_fields!(agent(&cli, word, &account.id, "nobody", "live", 1), { "code": "NOT_FOUND" });
        assert_fields!(agent(&cli, word, "acct_none", "by-policy", "live", 1), { "code": "NOT_FOUND" });
    }
    assert_eq!(stored(&redis, &account.agent("nobody"), Mode::Live), None);
}

#[tokio::test]
async fn an_operators_freeze_is_lifted_by_the_operator_only() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let store = redis.store();
    let account = Seed::new(&store).await.account("startup").await;
    let bot = account.agent("bot");
    bot.cap(CapPolicy::default()).await;
    let scope = Scope {
        account: &account.id,
        mode: Mode::Live,
        actor: "key_1",
    };
    let user = async |freeze| set_frozen(&store, &scope, "bot", freeze).await.unwrap();
    let by_user = Freeze::By(FrozenBy::User);
    let lift = Freeze::Lift(FrozenBy::User);

    assert_eq!(user(lift).await, Frozen::AlreadySo);
    assert_eq!(user(by_user).await, Frozen::Done);
    assert_eq!(user(by_user).await, Frozen::AlreadySo);
    assert_eq!(user(lift).await, Frozen::Done);

    assert_eq!(user(by_user).await, Frozen::Done);
    assert_fields!(agent(&cli, "freeze", &account.id, "bot", "live", 0), {
        "changed": true,
    }, "it takes the freeze over");
    assert_eq!(user(lift).await, Frozen::NotPermitted);
    assert_eq!(
        user(by_user).await,
        Frozen::AlreadySo,
        "a user cannot make it a user's freeze again"
    );
    assert_eq!(stored(&redis, &bot, Mode::Live).as_deref(), Some("operator"));
    assert_fields!(agent(&cli, "freeze", &account.id, "bot", "live", 0), { "changed": false });

    assert_fields!(agent(&cli, "unfreeze", &account.id, "bot", "live", 0), { "changed": true });
    assert_fields!(agent(&cli, "unfreeze", &account.id, "bot", "live", 0), { "changed": false });
    assert_eq!(user(by_user).await, Frozen::Done);
    assert_fields!(agent(&cli, "unfreeze", &account.id, "bot", "live", 0), {
        "changed": true,
    }, "a freeze by the account too");
    let entries: Vec<String> = redis.command(&["LRANGE", &account.keys.live().audit(), "0", "-1"]);
    assert_eq!(
        entries.len(),
        7,
        "one entry a change, none for a call that changed nothing: {entries:?}"
    );
}
