//! Rotation of the master key: every provider key is sealed again, none is lost.

use crate::{cli, refused};
use crypto::seal::{Keyring, SealedFor};
use harness::{Cli, Redis, Seed, SeedAgent, TEST_MASTER_KEY, assert_fields};
use secrecy::ExposeSecret;
use store::provider_key::reseal::ProviderKeyReseal;
use store::provider_key::sealed::SealedKey;

/// 32 bytes of 0x17.
const NEW_KEY: &str = "FxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxc=";

/// Commands with the new master key in front of the old one.
fn rotating(redis: &Redis) -> Cli {
    cli(redis).env(
        "TOLLGATE_SECRETS__MASTER_KEY",
        format!("{NEW_KEY},{TEST_MASTER_KEY}"),
    )
}

/// Opens the agent's provider key with the new master key alone.
async fn opened(redis: &Redis, agent: &SeedAgent) -> Result<String, String> {
    let store = redis.store();
    let keys = SealedKey::list_by_agent(&store, &agent.account.id, &agent.id)
        .await
        .unwrap();
    let key = keys.first().ok_or("no key")?;
    let owner = SealedFor {
        account: &agent.account.id,
        agent: &agent.id,
        provider: &key.provider,
        key_id: &key.key_id,
    };
    let keyring = Keyring::new(std::iter::once(NEW_KEY)).unwrap();
    let secret = keyring
        .open(&owner, &key.sealed)
        .map_err(|error| error.to_string())?;
    Ok(secret.expose_secret().to_owned())
}

#[tokio::test]
async fn every_key_of_every_account_opens_under_the_new_master_key_alone() {
    let redis = Redis::start();
    let seed = Seed::new(&redis.store()).await;
    let mut agents = Vec::new();
    for number in 0..3 {
        let account = seed.account("startup").await;
        for bot in ["a", "b"] {
            let agent = account.agent(bot);
            agent.provider_key(&format!("sk-{number}-{bot}")).await;
            agents.push((agent, format!("sk-{number}-{bot}")));
        }
    }
    let cli = rotating(&redis);
    let first = cli.json(&["keys", "rotate"]);
    assert_fields!(first, { "reencrypted": 6, "current": 0 });
    for (agent, secret) in &agents {
        assert_eq!(opened(&redis, agent).await.as_ref(), Ok(secret));
    }
    let second = cli.json(&["keys", "rotate"]);
    assert_fields!(second, { "reencrypted": 0, "current": 6 });
}

#[tokio::test]
async fn a_key_that_does_not_open_is_named_and_the_others_are_rotated() {
    let redis = Redis::start();
    let account = Seed::new(&redis.store()).await.account("startup").await;
    let (good, bad) = (account.agent("good"), account.agent("bad"));
    good.provider_key("sk-good").await;
    bad.provider_key_sealed("pk_bad", "v1.00000000.bm9uc2Vuc2U=")
        .await;
    let answer = {
        let output = rotating(&redis).run(&["keys", "rotate", "--json"]);
        assert_eq!(output.code, Some(1), "{output:?}");
        serde_json::from_str::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert_eq!(answer["reencrypted"], 1);
    let named = &answer["unopenable"][0];
    assert_fields!(named, { "agentId": "bad", "keyId": "pk_bad" });
    assert_eq!(named["accountId"], account.id.as_str());
    assert_eq!(opened(&redis, &good).await.as_deref(), Ok("sk-good"));
}

#[tokio::test]
async fn a_key_stored_meanwhile_is_not_overwritten() {
    let redis = Redis::start();
    let store = redis.store();
    let agent = Seed::new(&store).await.account("startup").await.agent("bot");
    agent.provider_key("sk-old").await;
    let stored = SealedKey::list_by_agent(&store, &agent.account.id, "bot")
        .await
        .unwrap()
        .remove(0);
    let newer = agent.provider_key("sk-newer").await;
    let reseal = ProviderKeyReseal {
        account: &agent.account.id,
        agent: "bot",
        provider: "openai",
        key_id: &stored.key_id,
        old: &stored.sealed,
        new: "v1.late",
        actor: "operator",
    };
    assert!(!reseal.execute(&store).await.unwrap());
    let now = SealedKey::list_by_agent(&store, &agent.account.id, "bot")
        .await
        .unwrap()
        .remove(0);
    assert!(now.key_id == newer && now.sealed != "v1.late");
    assert_eq!(rotating(&redis).json(&["keys", "rotate"])["reencrypted"], 1);
    assert_eq!(opened(&redis, &agent).await.as_deref(), Ok("sk-newer"));
}

#[tokio::test]
async fn without_a_master_key_nothing_is_touched() {
    let redis = Redis::start();
    let agent = Seed::new(&redis.store())
        .await
        .account("startup")
        .await
        .agent("bot");
    agent.provider_key("sk-old").await;
    let none = cli(&redis).env("TOLLGATE_SECRETS__MASTER_KEY", "");
    assert_fields!(refused(&none, &["keys", "rotate"], 2), { "code": "BAD_CONFIGURATION" });
    assert!(opened(&redis, &agent).await.is_err(), "still under the old key");
}
