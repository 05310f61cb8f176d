//! Money and escrows between the account and another one, in both directions: each side's script runs where its records
//! are.

use super::Person;
use crate::fill::Tenant;
use harness::{Reply, until, words};
use serde_json::{Value, json};

async fn send(tenant: &Tenant, path: &str, body: Value) -> Reply {
    let reply = tenant.caller.post(&format!("/v1{path}"), body).await;
    assert!(
        [200, 201, 409].contains(&reply.status),
        "{path}: {}",
        reply.text()
    );
    reply
}

async fn done(tenant: &Tenant, path: &str, body: Value) -> Value {
    let reply = send(tenant, path, body).await;
    assert_ne!(reply.status, 409, "{path}: {}", reply.text());
    reply.json()
}

fn number(tenant: &Tenant) -> u64 {
    tenant.wallet.parse().expect("a number")
}

impl Person {
    pub(super) async fn deal(&self, round: usize) {
        let (mine, other) = (&self.tenant, &self.other);
        for tenant in [mine, other] {
            let account = &tenant.account.id;
            let line = format!(
                "deposit --account {account} --wallet {} --amount 50 --reference deal-{round}-{account}",
                tenant.wallet
            );
            let _deposit = self.cli.json(&words(&line));
        }
        for (payer, payee) in [(mine, other), (other, mine)] {
            let transfer = json!({ "from": number(payer), "to": number(payee), "amount": 1 });
            done(payer, "/wallet/transfer", transfer).await;
            let agreed = json!({ "fromWalletId": number(payer), "toWalletId": number(payee), "amount": 1 });
            let made = done(payer, "/escrow/create", agreed).await;
            let escrow = json!({ "escrowId": made["escrow"]["id"] });
            done(payer, "/escrow/fund", escrow.clone()).await;
            // The payee's key is claimed in its own account; its release wins, and its dispute is refused.
            done(payee, "/escrow/release", escrow.clone()).await;
            until("a refusal", async || {
                let reply = send(payee, "/escrow/dispute", escrow.clone()).await;
                reply.status == 409
            })
            .await;
        }
    }
}
