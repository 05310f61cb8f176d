//! Provider keys: sealed in the store; answers show four characters only.

use crate::fixture::{Fixture, fresh, minted, problem, success, text};
use crypto::seal::SealedFor;
use domain::mode::Mode;
use harness::{assert_fields, test_keyring};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

#[tokio::test]
async fn a_key_is_sealed_for_its_record_and_replaced_in_one_step() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let store = async |provider: &str, key: &str| {
        let body = json!({ "provider": provider, "apiKey": key });
        success(&caller.post("/api/v1/agents/bot/provider-keys", body).await, 201)
    };
    let first = store("OpenAI", "sk-first-secret-1111").await;
    let id = text(&first, "/providerKey/keyId").to_owned();
    minted(&id, "pk_");
    fresh(text(&first, "/providerKey/createdAt"));
    let expected = json!({ "success": true, "providerKey": {
        "keyId": id, "provider": "openai", "last4": "1111", "createdAt": first["providerKey"]["createdAt"] }});
    assert_eq!(first, expected);
    let second = store("openai", "sk-second-secret-2222").await;
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    let other = store("azure", "sk-third-secret-3333").await;
    let warning =
        "No upstream uses keys of `azure`, so no call is sent with this one. Those that do: openai.";
    assert_eq!(other["warning"], json!(warning));

    let reply = caller.get("/v1/agents/bot/provider-keys").await;
    let expected = json!({ "success": true, "providerKeys": [second["providerKey"], other["providerKey"]],
        "total": 2, "limit": 50, "offset": 0, "nextCursor": null });
    assert_eq!(success(&reply, 200), expected);
    let reply = caller.get("/v1/agents/bot/provider-keys?limit=1&offset=1").await;
    let page = success(&reply, 200);
    assert_eq!(page["providerKeys"], json!([other["providerKey"]]));

    let fields = fixture.fields(&account.keys.live().agent("bot")).await;
    let key_id = text(&second, "/providerKey/keyId");
    let owner = SealedFor {
        account: &account.id,
        agent: "bot",
        provider: "openai",
        key_id,
    };
    assert_eq!(fields["pk_id:openai"], key_id);
    let opened = test_keyring().open(&owner, &fields["pk_sealed:openai"]).unwrap();
    assert_eq!(opened.expose_secret(), "sk-second-secret-2222");
    let sealed = account.sealed_agents().await;
    assert_eq!(sealed, ["bot"], "the rotation of the master key finds it");
    let kinds = account.audit_types(Mode::Live).await;
    assert_eq!(&kinds[1..], ["provider_key.stored"; 3]);
    assert!(
        !fixture.admin.logs().contains("-secret-"),
        "no log line holds a key"
    );
}

#[tokio::test]
async fn an_invalid_upstream_key_is_refused() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let version = account.version().await;
    let path = "/v1/agents/bot/provider-keys";
    let virtual_key = format!("vk_live_{}", "0a".repeat(32));
    for key in ["sk-abc defgh", &virtual_key] {
        let body = json!({ "provider": "openai", "apiKey": key });
        let sentence = problem(&caller.post(path, body).await, 400, "INVALID_PROVIDER_KEY");
        assert!(!sentence.contains(key), "the answer repeats no key");
    }
    for (body, named) in [
        (json!({ "apiKey": "sk-abcdefgh" }), "provider is required."),
        (
            json!({ "provider": "openai", "apiKey": Value::Null }),
            "apiKey is required.",
        ),
        (
            json!({ "provider": "open ai", "apiKey": "sk-abcdefgh" }),
            "provider must be 1 to 40",
        ),
        (
            json!({ "provider": "openai", "apiKey": "sk-abcdefgh", "api_key": "x" }),
            "\"api_key\" is not a field",
        ),
    ] {
        let sentence = problem(&caller.post(path, body).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{sentence}");
    }
    let reply = caller.post("/v1/agents/user/provider-keys", json!({})).await;
    problem(&reply, 400, "VALIDATION");
    problem(&caller.get(path).await, 404, "NOT_FOUND");
    assert_eq!(account.version().await, version, "nothing was changed");
}

#[tokio::test]
async fn the_providers_of_an_agent_are_bounded() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    let store = async |provider: String| {
        let body = json!({ "provider": provider, "apiKey": "sk-abcdefgh" });
        caller.post("/v1/agents/bot/provider-keys", body).await
    };
    for n in 0..32 {
        success(&store(format!("p{n}")).await, 201);
    }
    problem(&store("p32".to_owned()).await, 409, "CONFLICT");
    success(&store("p31".to_owned()).await, 201);
}

/// The key of a named upstream has the prefix of its configuration, all others that of the specification.
#[tokio::test]
async fn keys_of_upstreams_by_name_have_their_own_form() {
    let fixture = Fixture::start_with(|options| {
        options
            .env("TOLLGATE_UPSTREAMS__AZURE__BASE_URL", "https://azure.example")
            .env("TOLLGATE_UPSTREAMS__AZURE__MODELS", "gpt-*")
            .env("TOLLGATE_UPSTREAMS__GROQ__BASE_URL", "https://groq.example")
            .env("TOLLGATE_UPSTREAMS__GROQ__MODELS", "llama*")
            .env("TOLLGATE_UPSTREAMS__GROQ__KEY_PREFIX", "gsk_")
    })
    .await;
    let (account, caller) = fixture.account("builder").await;
    let store = async |provider: &str, key: &str| {
        let body = json!({ "provider": provider, "apiKey": key });
        caller.post("/v1/agents/bot/provider-keys", body).await
    };
    let azure = success(&store("Azure", "0123456789abcdef").await, 201);
    assert_fields!(azure["providerKey"], { "provider": "azure", "last4": "cdef" });
    success(&store("groq", "gsk_0123456789").await, 201);
    let short = success(&store("openai", "sk-test").await, 201);
    assert_eq!(
        short["providerKey"]["last4"], "st",
        "half of what is behind the prefix"
    );
    success(&store("openai", "sk-0123456789").await, 201);
    success(&store("another", "sk-0123456789").await, 201);

    let fields = fixture.fields(&account.keys.live().agent("bot")).await;
    let owner = |provider: &'static str| SealedFor {
        account: &account.id,
        agent: "bot",
        provider,
        key_id: &fields["pk_id:azure"],
    };
    let sealed = &fields["pk_sealed:azure"];
    let opened = test_keyring().open(&owner("azure"), sealed).unwrap();
    assert_eq!(opened.expose_secret(), "0123456789abcdef");
    assert!(
        test_keyring().open(&owner("groq"), sealed).is_err(),
        "sealed for its name"
    );

    for (provider, key) in [
        ("azure", "0123 4567"),
        ("groq", "sk-0123456789"),
        ("openai", "gsk_0123456789"),
        ("another", "0123456789abcdef"),
    ] {
        let sentence = problem(&store(provider, key).await, 400, "INVALID_PROVIDER_KEY");
        assert!(!sentence.contains(key), "{sentence}");
        assert_eq!(
            sentence.contains(provider),
            matches!(provider, "azure" | "groq"),
            "{sentence}"
        );
    }
    let installation = caller.get("/v1/installation").await.json();
    assert_eq!(installation["provider"], "openai");
    assert!(installation["edgeUrl"].as_str().unwrap().starts_with("http"));
    assert_eq!(
        installation["providers"],
        json!([
            { "name": "openai", "keyPrefix": "sk-" },
            { "name": "azure", "keyPrefix": "" },
            { "name": "groq", "keyPrefix": "gsk_" },
        ])
    );
}
