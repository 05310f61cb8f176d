//! Arrivals from other accounts count against the senders: the receiver's own calls continue, however much arrives
//! (decision D71).

use crate::fixture::{Fixture, PROVIDER_KEY, Setup};
use domain::mode::Mode;
use futures::{StreamExt, stream};
use harness::{Caller, SeedAccount, chat_body, eventually, open_cap, until};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
/// The budget of audit entries of each account.
const ENTRIES_MAX: u64 = 500;
/// Transfers of each attacker: one uses up its own budget, both together more than that of the receiver.
const TRANSFERS: [u64; 2] = [ENTRIES_MAX + 100, ENTRIES_MAX - 100];
/// Transfers of one attacker that are under way at the same time.
const AT_ONCE: usize = 12;

/// Test-mode transfers of one nano with long memos, nothing of which can be archived.
#[tokio::test(flavor = "multi_thread")]
async fn arriving_transfers_count_against_their_senders() {
    let setup = Setup {
        megabytes: 64,
        no_archive: true,
        settings: vec![("LIMITS__AUDIT_ENTRIES", ENTRIES_MAX.to_string())],
        ..Setup::default()
    };
    let fixture = setup.start().await;
    let victim = fixture.seed.account("unlimited").await;
    let agent = victim.agent("bot");
    agent.cap(open_cap()).await;
    agent.provider_key(PROVIDER_KEY).await;
    let calls = Caller::new(&fixture.edge.url(), &agent.virtual_key().await);
    let receiver = management(&fixture, &victim).await;
    let made = json!({ "botId": "purse" });
    assert_eq!(receiver.post("/v1/wallets/create", made).await.status, 200);
    let wallet = receiver.get("/v1/agents/purse/wallet").await.json()["walletId"].clone();

    let other = fixture.seed.account("unlimited").await;
    for (attacker, transfers) in [&fixture.attacker, &other].into_iter().zip(TRANSFERS) {
        send(&management(&fixture, attacker).await, &wallet, transfers).await;
    }
    let length = |key: String| fixture.redis.command::<u64>(&["LLEN", &key]);
    let arrived = length(victim.keys.in_mode(Mode::Test).audit());
    assert!(arrived > ENTRIES_MAX + 50, "{arrived}");
    let sealed = async || (length(victim.keys.in_mode(Mode::Test).audit_hashes()) == arrived).then_some(());
    eventually("the arrivals are sealed", SOON, sealed).await;

    // The same for the long texts in them.
    let text = |account: &SeedAccount| {
        let field = "test_audit_text";
        let text: Option<u64> = fixture.redis.command(&["HGET", &account.keys.record(), field]);
        text.unwrap_or(0)
    };
    assert_eq!(text(&victim), 0);
    assert!(
        text(&fixture.attacker) > 1_000 * ENTRIES_MAX,
        "{}",
        text(&fixture.attacker)
    );

    // Only the sender that exceeded its budget is refused, also two rounds of the guard later.
    let refused = || fixture.admin.metric("tollgate_admin_refused_accounts");
    until("an attacker is refused", async || refused() == Some(1)).await;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let called = calls.chat(chat_body("gpt-4o-mini", "hello")).await;
        assert_eq!(called.status, 200, "{called:?}");
        assert_eq!(refused(), Some(1));
    }
}

async fn management(fixture: &Fixture, account: &SeedAccount) -> Caller {
    Caller::new(&fixture.admin.url(), &account.api_key(Mode::Test).await)
}

/// Pays `count` times one nano to `wallet`.
async fn send(sender: &Caller, wallet: &Value, count: u64) {
    let deposit = json!({ "wallet": "user", "amount": 1, "reference": "start" });
    assert_eq!(sender.post("/v1/wallet/deposits", deposit).await.status, 200);
    let memo = "\u{1f600}".repeat(480);
    let sent = stream::iter(0..count).map(async |_| {
        let transfer = json!({ "from": "user", "to": wallet, "amount": "0.000000001", "memo": memo });
        let reply = sender.post("/v1/wallets/transfer", transfer).await;
        assert!([200, 429].contains(&reply.status), "{reply:?}");
    });
    sent.buffer_unordered(AT_ONCE).collect::<()>().await;
}
