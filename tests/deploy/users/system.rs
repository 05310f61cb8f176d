//! The whole system runs under the store's users: calls, money, management, operator's commands, people, workers.

use super::refusals;
use crate::installation::{Installation, Tenant, body, ok};
use harness::{Admin, Edge, eventually, words};
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_system_runs_under_its_users() {
    runs_under_its_users(Installation::start()).await;
}

#[tokio::test]
async fn so_it_does_on_a_cluster() {
    runs_under_its_users(Installation::start_on_a_cluster()).await;
}

async fn runs_under_its_users(installation: Installation) {
    let (edge, admin) = (installation.edge(), installation.admin());
    let tenant = installation.settle(&edge, &admin).await;
    call(&tenant).await;
    let escrow = pay(&tenant, &installation).await;
    manage(&tenant, &installation).await;
    operate(&installation, &tenant.account, &escrow);
    people(&admin).await;
    workers_ran(&admin).await;
    health(&installation, &edge, &admin);
    assert_eq!(refusals(&installation), [""; 0]);
    for server in [&*edge, &*admin] {
        assert!(!server.logs().contains("NOPERM"), "{}", server.logs());
    }
}

async fn call(tenant: &Tenant) {
    let caller = &tenant.caller;
    assert_eq!(caller.chat(body()).await.status, 200);
    let run = [("x-service-run-id", "invoice-1")];
    assert_eq!(caller.chat_with(&run, body()).await.status, 200);
    assert_eq!(caller.chat_with(&run, body()).await.status, 200);
    let reply = tenant.manager.post("/v1/agents/bot/freeze", json!({})).await;
    ok(&reply, 200);
    assert_eq!(caller.chat(body()).await.error_code(), "frozen");
    let reply = tenant.manager.post("/v1/agents/bot/unfreeze", json!({})).await;
    ok(&reply, 200);
    assert_eq!(caller.get("/v1/models").await.status, 200);
}

/// Deposits, spends and holds money. Returns the number of the escrow.
async fn pay(tenant: &Tenant, installation: &Installation) -> String {
    let manager = &tenant.manager;
    let account = ["--account", tenant.account.as_str()];
    let deposit = words("deposit --wallet user --amount 50 --reference r1");
    assert!(installation.cli.json(&[&deposit[..], &account].concat())["transactionId"].is_string());
    let body = json!({ "botId": "payee" });
    let made = ok(&manager.post("/v1/wallets/create", body).await, 200);
    assert_eq!(made["success"], true);
    let transfer = json!({ "from": "user", "to": "bot", "amount": 20 });
    ok(&manager.post("/v1/wallet/transfer", transfer).await, 200);
    let spend = json!({ "agent": "bot", "amount": 0.5, "description": "a book" });
    ok(&manager.post("/v1/spend", spend).await, 200);
    let wallets = ok(&manager.get("/api/v1/wallet").await, 200);
    let number = |agent: &str| {
        let all = wallets["agent_wallets"].as_array().unwrap();
        all.iter().find(|wallet| wallet["agentId"] == agent).unwrap()["walletId"].clone()
    };
    let escrow = json!({ "fromWalletId": number("bot"), "toWalletId": number("payee"), "amount": 1.25 });
    let made = ok(&manager.post("/v1/escrow/create", escrow).await, 200);
    let named = json!({ "escrowId": made["escrow"]["id"] });
    ok(&manager.post("/v1/escrow/fund", named.clone()).await, 200);
    ok(&manager.post("/v1/escrow/release", named).await, 200);
    made["escrow"]["id"].to_string()
}

async fn manage(tenant: &Tenant, installation: &Installation) {
    let manager = &tenant.manager;
    let hook = json!({ "url": format!("{}/hook", installation.upstream.base_url()), "events": ["agent.frozen"],
        "secret": "a secret of the tests" });
    ok(&manager.post("/v1/webhooks", hook).await, 201);
    for path in ["freeze", "unfreeze"] {
        let reply = manager.post(&format!("/v1/agents/bot/{path}"), json!({})).await;
        ok(&reply, 200);
    }
    let run = json!({ "status": "completed" });
    ok(&manager.post("/v1/agents/bot/runs/invoice-1", run).await, 200);
    for path in [
        "/agents",
        "/agents/bot",
        "/agents/bot/usage",
        "/agents/bot/runs",
        "/overview",
        "/account",
        "/names?ids=bot",
        "/policies",
        "/wallet",
        "/transactions",
        "/escrow",
        "/audit",
        "/audit/export",
        "/audit/verify",
        "/audit/checkpoint",
        "/intents",
        "/webhooks",
        "/agents/bot/provider-keys",
        "/agents/bot/virtual-keys",
    ] {
        let reply = manager.get(&format!("/api/v1{path}")).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
    let dry = json!({ "agent": "bot", "model": "gpt-4o-mini" });
    ok(&manager.post("/api/v1/decisions/dry-run", dry).await, 200);
}

/// Operator's commands that must succeed.
fn operate(installation: &Installation, account: &str, escrow: &str) {
    for line in [
        "store check",
        "account list",
        "account show --account A",
        "account set-plan --account A --plan builder",
        "user create --account A --email ann@example.com --role owner --password-stdin",
        "user list --account A",
        "api-key list --account A",
        "agent freeze --account A --agent bot",
        "agent unfreeze --account A --agent bot",
        "ip block 10.1.2.3/32",
        "ip list",
        "ip unblock 10.1.2.3/32",
        "prices show gpt-4o",
        "prices versions",
        "holds list",
        "escrow show --escrow E",
        "keys rotate",
        "audit key",
        "audit verify --account A",
        "audit recompute --account A",
        "ledger check",
        "store accept",
        "user unlock --email ann@example.com",
    ] {
        let words: Vec<&str> = line
            .split(' ')
            .map(|word| match word {
                "A" => account,
                "E" => escrow,
                word => word,
            })
            .chain(["--json"])
            .collect();
        let done = installation.cli.run_with_stdin(&words, "a-long-password\n");
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
    }
}

/// Signing in uses keys that nothing else uses.
async fn people(admin: &Admin) {
    let login = json!({ "email": "ann@example.com", "password": "a-long-password" });
    let session = admin.session(&admin.login(&login).await);
    for path in [
        "/api/user/me",
        "/api/user/sessions",
        "/api/user/team",
        "/api/user/invitations",
    ] {
        ok(&session.get(path).await, 200);
    }
    let invited = json!({ "email": "bo@example.com", "role": "viewer" });
    assert!(session.post("/api/user/invitations", invited).await.status < 300);
    ok(&session.post("/api/user/logout", json!({})).await, 200);
}

/// Asserts that the workers sealed, signed and swept holds without a refusal.
async fn workers_ran(admin: &Admin) {
    eventually("sealed entries and a checkpoint", SOON, async || {
        let value = |name: &str| admin.metric::<u64>(&format!("tollgate_admin_audit_{name}_total"));
        let ran = value("checkpoints")? > 0;
        let failed = ["seals_failed", "checkpoints_failed"].map(value);
        assert_eq!(failed, [Some(0); 2]);
        ran.then_some(())
    })
    .await;
}

/// The container's health check, on these servers.
fn health(installation: &Installation, edge: &Edge, admin: &Admin) {
    let cli = |section: &str, ops: std::net::SocketAddr| {
        installation
            .cli
            .clone()
            .env(&format!("TOLLGATE_{section}__OPS_LISTEN"), ops.to_string())
    };
    for (name, cli) in [
        ("edge", cli("PROXY", edge.ops_addr())),
        ("admin", cli("ADMIN", admin.ops_addr())),
    ] {
        assert_eq!(cli.json(&["health", name])["ok"], true);
        assert_eq!(cli.json(&["health", name, "--live"])["ok"], true);
    }
}
