//! One change of money between accounts of its own, up to its last step.

use super::kind::ChangeKind::*;
use super::kind::{AGENT_FUNDS, Balances, ChangeKind, FUNDS, MOVED, SPENT, Victim};
use super::party::{Party, done};
use crate::fixture::{Fixture, MASTERS, SOON};
use harness::{Admin, Cli, eventually, until, words};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Pause between two attempts at the same change.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for rows in transit: several rounds of the transit worker.
const ARRIVED: Duration = Duration::from_secs(20);

/// Outcome of one attempt at the last step.
pub struct Sent {
    /// Status of the reply; of a command, 200 if it ended well, 503 if its outcome is unknown.
    pub status: u16,
    pub text: String,
    /// Whether the reply says that the change was done before.
    pub is_repetition: bool,
}

/// One kind of change between accounts of its own.
pub struct Row {
    pub kind: ChangeKind,
    pub victim: Victim,
    pub payer: Party,
    pub payee: Party,
    /// The request, and whether the payee sends it.
    path: String,
    body: Value,
    by_payee: bool,
    operator: Cli,
}

impl Row {
    /// Makes the accounts and takes all steps but the last. `operator` is the command line for the operator's steps.
    pub async fn prepare(
        (fixture, admin, operator): (&Fixture, &Admin, &Cli),
        (kind, victim): (ChangeKind, Victim),
        node: usize,
    ) -> Self {
        let other = (node + 1) % MASTERS;
        let nodes = match victim {
            Victim::Payer => [node, other],
            Victim::Payee => [other, node],
        };
        let threshold = if matches!(kind, Approval | Denial) {
            1
        } else {
            FUNDS
        };
        let payer = Party::new(fixture, admin, nodes[0])
            .await
            .with_agent(threshold)
            .await;
        let payee = Party::new(fixture, admin, nodes[1]).await;
        let mut row = Self {
            kind,
            victim,
            payer,
            payee,
            path: String::new(),
            body: Value::Null,
            by_payee: matches!(kind, ReleaseByPayee | DisputeByPayee),
            operator: operator.clone(),
        };
        (row.path, row.body) = row.last_step().await;
        row
    }

    async fn last_step(&self) -> (String, Value) {
        let (caller, to) = (&self.payer.caller, &self.payee.wallet);
        let deposit = json!({ "wallet": "user", "amount": MOVED, "reference": "more" });
        let spend = json!({ "agent": "bot", "amount": SPENT });
        let step = |path: &str, body| (path.to_owned(), body);
        match self.kind {
            Deposit => step("/v1/wallet/deposits", deposit),
            Confirm | Cancel => {
                let mut pending = deposit;
                pending["pending"] = json!(true);
                done(&caller.post("/v1/wallet/deposits", pending).await);
                step("/v1/wallet/deposits/confirm", json!({ "reference": "more" }))
            }
            Own => step(
                "/v1/wallet/transfer",
                json!({ "from": "user", "to": "bot", "amount": MOVED }),
            ),
            Transfer => step(
                "/v1/wallet/transfer",
                json!({ "from": "user", "to": to, "amount": MOVED }),
            ),
            Spend => step("/v1/spend", spend),
            Close => {
                let all = json!({ "from": "bot", "to": "user", "amount": AGENT_FUNDS });
                done(&caller.post("/v1/wallet/transfer", all).await);
                step("/v1/agents/bot", Value::Null)
            }
            Approval | Denial => {
                let waits = caller.post("/v1/spend", spend).await;
                assert_eq!(waits.status, 202, "{}", waits.text());
                let intent = waits.json()["intent_id"].as_str().expect("an id").to_owned();
                let verb = if self.kind == Approval { "approve" } else { "deny" };
                (format!("/v1/intents/{intent}/{verb}"), json!({}))
            }
            _ => self.escrow_step().await,
        }
    }

    async fn escrow_step(&self) -> (String, Value) {
        let caller = &self.payer.caller;
        let to = match self.kind {
            OwnCreate | OwnFund | OwnRelease | OwnDispute => json!("bot"),
            _ => self.payee.wallet.clone(),
        };
        let escrow = json!({ "fromWalletId": "user", "toWalletId": to, "amount": MOVED });
        if matches!(self.kind, OwnCreate | Create) {
            return ("/v1/escrow/create".to_owned(), escrow);
        }
        let made = caller.post("/v1/escrow/create", escrow).await;
        done(&made);
        let number = json!({ "escrowId": made.json()["escrow"]["id"] });
        let last = match self.kind {
            OwnFund | Fund => return ("/v1/escrow/fund".to_owned(), number),
            OwnRelease | Release | ReleaseByPayee => "/v1/escrow/release",
            _ => "/v1/escrow/dispute",
        };
        done(&caller.post("/v1/escrow/fund", number.clone()).await);
        if matches!(self.kind, Refund | Award) {
            done(&caller.post(last, number.clone()).await);
        }
        (last.to_owned(), number)
    }

    /// Opens new connections: the server may close one that was idle while a request is sent on it.
    pub fn reconnect(&mut self, admin: &Admin) {
        for party in [&mut self.payer, &mut self.payee] {
            party.caller = admin.caller(&party.key);
        }
    }

    pub fn name(&self) -> String {
        format!("{:?}, {:?}", self.kind, self.victim)
    }

    /// The account whose master is lost.
    pub fn lost(&self) -> &Party {
        match self.victim {
            Victim::Payer => &self.payer,
            Victim::Payee => &self.payee,
        }
    }

    /// Takes the last step once.
    pub async fn send(&self) -> Sent {
        let resolve = |to| format!("escrow resolve --escrow {} --to {to}", self.body["escrowId"]);
        match self.kind {
            Refund => self.send_as_operator(&resolve("payer")),
            Award => self.send_as_operator(&resolve("payee")),
            Cancel => {
                let account = &self.payer.account.id;
                self.send_as_operator(&format!(
                    "deposit cancel --reference more --mode test --account {account}"
                ))
            }
            _ => self.send_as_party().await,
        }
    }

    async fn send_as_party(&self) -> Sent {
        let asks = if self.by_payee { &self.payee } else { &self.payer };
        let header = [("idempotency-key", "the last step")];
        let (method, body) = match &self.body {
            Value::Null => ("DELETE", String::new()),
            body => ("POST", body.to_string()),
        };
        let reply = asks.caller.send(method, &self.path, &header, body).await;
        let (status, text, body) = (reply.status, reply.text(), reply.json());
        let is_repetition = match self.kind {
            // These have no idempotency key: the state refuses the second one.
            Approval | Denial => status == 409 && body["code"] == json!("INTENT_NOT_PENDING"),
            Close => status == 404,
            _ => body["replayed"] == json!(true),
        };
        Sent {
            status,
            text,
            is_repetition,
        }
    }

    fn send_as_operator(&self, line: &str) -> Sent {
        let arguments = [&words(line)[..], &["--json"]].concat();
        let output = tokio::task::block_in_place(|| self.operator.run(&arguments));
        let document: Value = serde_json::from_str(&output.stdout).expect("a document");
        let status = match (output.code, document["code"].as_str()) {
            (Some(0), _) => 200,
            (_, Some("NOT_CONFIRMED" | "STORE" | "LOST_WRITES")) => 503,
            _ => 409,
        };
        // The dispute had ended, or the deposit was cancelled.
        let is_repetition =
            document["code"] == json!("ESCROW_WRONG_STATE") || document["replayed"] == json!(true);
        Sent {
            status,
            text: output.stdout,
            is_repetition,
        }
    }

    /// Makes a wallet for another agent of the payer. `None` if it is not acknowledged.
    pub async fn make_wallet(&self) -> Option<Value> {
        let wallet = json!({ "botId": "another" });
        let reply = self.payer.caller.post("/v1/wallets/create", wallet).await;
        assert!(
            [200, 503].contains(&reply.status),
            "{}: {}",
            self.name(),
            reply.text()
        );
        (reply.status == 200).then(|| reply.json()["wallet"].clone())
    }

    /// Asserts that a wallet that was acknowledged is found by its number and by its id.
    pub async fn finds(&self, wallet: &Value) {
        for name in [
            wallet["walletId"].to_string(),
            wallet["id"].as_str().expect("an id").to_owned(),
        ] {
            let reply = self.payer.caller.get(&format!("/v1/wallets/{name}")).await;
            assert_eq!(
                reply.json()["wallet"]["botId"],
                "another",
                "{}: {}",
                self.name(),
                reply.text()
            );
        }
    }

    /// Makes one more wallet and one more escrow for the payer. Returns the numbers of all its wallets and escrows.
    pub async fn numbers_after_more(&self) -> [Vec<u64>; 2] {
        let escrow = json!({ "fromWalletId": "user", "toWalletId": "last", "amount": 1 });
        for (path, body) in [
            ("/v1/wallets/create", json!({ "botId": "last" })),
            ("/v1/escrow/create", escrow),
        ] {
            until("a change that is done", async || {
                let reply = self.payer.caller.post(path, body.clone()).await;
                // A wallet that was made but not acknowledged answers 409 the second time.
                [200, 409].contains(&reply.status)
            })
            .await;
        }
        let wallets = self.payer.caller.get("/v1/wallet").await.json();
        let escrows = self.payer.caller.get("/v1/escrow").await.json();
        let numbers = |list: &Value, field: &str| {
            let all = list.as_array().expect("a list").iter();
            all.map(|one| one[field].as_u64().expect("a number")).collect()
        };
        let mut of_wallets: Vec<u64> = numbers(&wallets["agent_wallets"], "walletId");
        of_wallets.extend(wallets["user_wallet"]["walletId"].as_u64());
        [of_wallets, numbers(&escrows["escrows"], "id")]
    }

    /// Repeats the request until it is acknowledged.
    pub async fn repeat_until_acknowledged(&self) -> Sent {
        let end = Instant::now() + SOON;
        loop {
            let sent = self.send().await;
            if sent.status != 503 {
                return sent;
            }
            assert!(Instant::now() < end, "{}: {}", self.name(), sent.text);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Balances after money in transit has had the time to arrive.
    pub async fn settled(&self) -> Balances {
        let end = Instant::now() + ARRIVED;
        loop {
            let balances = self.balances().await;
            if balances == self.kind.done_once() || Instant::now() > end {
                return balances;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The last step again if the account that lost writes takes it or the operator, and else a read by that account.
    pub async fn send_as_payer_or_payee(&self, lost: &Party) -> Sent {
        let asks = if self.by_payee { &self.payee } else { &self.payer };
        if asks.account.id == lost.account.id {
            return self.send().await;
        }
        let reply = lost.caller.get("/v1/wallet").await;
        Sent {
            status: reply.status,
            text: reply.text(),
            is_repetition: false,
        }
    }

    /// Returns true if an acknowledged change that was not confirmed is there, or if its loss is noticed by `admin`.
    pub async fn stands_or_is_missed(&self, admin: &Admin) -> bool {
        let account = &self.payer.account.id;
        eventually("an answer of the new master", SOON, async || {
            let status = self.payer.caller.get("/v1/agents/bot/wallet").await.status;
            let is_missed = status == 503 && admin.logs().contains(account);
            (status != 503 || is_missed).then_some(status == 404 || is_missed)
        })
        .await
    }

    async fn balances(&self) -> Balances {
        let escrows = self.payer.caller.get("/v1/escrow").await;
        done(&escrows);
        let body = escrows.json();
        let escrows = body["escrows"].as_array().expect("escrows");
        assert!(escrows.len() <= 1, "{}: {body}", self.name());
        let state = match self.kind {
            Denial => {
                let intent = self.path.strip_suffix("/deny").expect("the path of a denial");
                let reply = self.payer.caller.get(intent).await;
                reply.json().pointer("/intent/state").cloned()
            }
            Cancel => {
                let deposits = self.payer.caller.get("/v1/wallet/deposits?limit=1").await;
                deposits.json().pointer("/deposits/0/state").cloned()
            }
            _ => escrows.first().map(|escrow| escrow["status"].clone()),
        };
        let known = [
            "pending",
            "funded",
            "released",
            "disputed",
            "refunded",
            "blocked",
            "cancelled",
        ];
        let agent = match self.payer.caller.get("/v1/agents/bot/wallet").await.status {
            404 => None,
            _ => Some(self.payer.holds("/v1/agents/bot/wallet", "/usdc").await),
        };
        Balances {
            user: self.payer.holds("/v1/wallet", "/user_wallet/usdc").await,
            agent,
            payee: self.payee.holds("/v1/wallet", "/user_wallet/usdc").await,
            state: known
                .into_iter()
                .find(|word| state.as_ref().and_then(Value::as_str) == Some(*word))
                .unwrap_or_default(),
        }
    }
}
