//! A transfer between accounts on two nodes: the second account is credited only when the first one's debit is safe.

use crate::deposits::Depositor;
use crate::disk::code;
use crate::fixture::{ADMIN, Fixture, MASTERS, SOON, accept};
use harness::{Cli, eventually};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_a_failover_can_undo_does_not_arrive() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let replica = fixture.cluster.replica_of(node);
    let admin = fixture.admin("replicas(1)");
    let payer = Depositor::new(&fixture.account_on(node).await, &admin).await;
    let payee = Depositor::new(&fixture.account_on((node + 1) % MASTERS).await, &admin).await;
    payer.must_deposit("payer").await;
    payee.must_deposit("payee").await;
    let wallet = payee.caller.get("/v1/wallet").await.json()["user_wallet"]["walletId"].clone();
    let transfer = json!({ "from": "user", "to": wallet, "amount": "1", "idempotency_key": "transfer" });
    let nodes = fixture.cluster.nodes();

    fixture.cluster.cut_off(replica);
    let reply = payer.caller.post("/v1/wallet/transfer", transfer.clone()).await;
    assert_eq!(
        (reply.status, code(&reply)),
        (503, "NOT_CONFIRMED".to_owned()),
        "{}",
        reply.text()
    );
    let rows = payer.account.keys.bucket().transit();
    assert_eq!(nodes[node].command::<u64>(&["HLEN", &rows]), 1, "in transit");
    // The transit worker finds the row and does not deliver it.
    eventually("a postponed delivery", SOON, async || {
        let failed: u64 = admin.metric("tollgate_admin_transits_failed_total")?;
        (failed > 0).then_some(())
    })
    .await;
    assert_eq!(payee.balance().await, json!(1), "nothing arrived");

    fixture.cluster.lose(node, &rows);
    nodes[node].restart();
    fixture.cluster.wait_for_replica(node);
    assert_eq!(
        nodes[replica].command::<u64>(&["HLEN", &rows]),
        0,
        "the row is lost"
    );
    let cli = Cli::new(ADMIN, fixture.cluster.url());
    accept(&fixture, &payer.account);
    assert_eq!(payer.balance().await, json!(1));
    assert_eq!(payee.balance().await, json!(1));
    let check = cli.json(&["ledger", "check"]);
    assert_eq!(check["ok"], json!(true), "{check}");

    // Repeated, the request is done once.
    for _ in 0..2 {
        let reply = payer.caller.post("/v1/wallet/transfer", transfer.clone()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(
        (payer.balance().await, payee.balance().await),
        (json!(0), json!(2))
    );
    assert_eq!(cli.json(&["ledger", "check"])["ok"], json!(true));
}
