//! One caller: sends one request after the other, each with a key of its own, and records the replies.

use crate::fixture::{AGENTS, Fixture};
use harness::{Caller, Reply, SeededRandom, http_client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Times that a request is repeated when no answer comes.
const REPEATS: u32 = 6;
/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(4);

/// State that all callers share.
pub struct SharedState {
    urls: [String; 2],
    keys: [String; 2],
    wallets: [Vec<u64>; 2],
    until: Duration,
    started: Instant,
    client: reqwest::Client,
    /// Escrows that were made or funded, for later calls.
    funded: Mutex<Vec<Value>>,
}

/// One request and the last conclusive answer to it.
#[derive(Debug, Clone)]
pub struct Made {
    pub key: String,
    pub who: usize,
    pub path: &'static str,
    pub body: Value,
    pub answer: Option<(u16, Value)>,
}

impl SharedState {
    pub fn new(fixture: &Fixture, urls: [String; 2], until: Duration) -> Self {
        Self {
            urls,
            keys: fixture.tenants.each_ref().map(|tenant| tenant.key.clone()),
            wallets: fixture.tenants.each_ref().map(|tenant| tenant.wallets.clone()),
            until,
            started: Instant::now(),
            client: http_client(),
            funded: Mutex::default(),
        }
    }

    fn caller(&self, who: usize, server: usize) -> Caller {
        Caller::new(&self.urls[server], &self.keys[who]).with_client(self.client.clone())
    }

    /// Sends a request once; `None` without a conclusive answer.
    pub async fn send(&self, made: &Made, server: usize) -> Option<Reply> {
        let caller = self.caller(made.who, server);
        let headers = [("idempotency-key", made.key.as_str())];
        let send = caller.try_send("POST", made.path, &headers, made.body.to_string());
        let sent = tokio::time::timeout(PATIENCE, send).await.ok()?;
        sent.ok().filter(|reply| reply.status < 500)
    }

    fn is_open(&self) -> bool {
        self.started.elapsed() < self.until
    }
}

/// Sends requests until the time is over.
pub async fn run(shared: Arc<SharedState>, at: u64, seed: u64) -> Vec<Made> {
    let mut dice = SeededRandom::new(seed ^ (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut all = Vec::new();
    while shared.is_open() {
        let number = all.len();
        let key = format!("{at}-{number}");
        let Some((who, path, body)) = choose(&shared, &mut dice, &key) else {
            continue;
        };
        let mut made = Made {
            key,
            who,
            path,
            body,
            answer: None,
        };
        // Some callers give up at once, some repeat the request.
        let tries = if dice.percent(30) { 1 } else { REPEATS };
        for _ in 0..tries {
            let server = usize::try_from(dice.below(2)).expect("an index");
            if let Some(reply) = shared.send(&made, server).await {
                made.answer = Some((reply.status, reply.json()));
                break;
            }
            tokio::time::sleep(Duration::from_millis(20 + dice.below(300))).await;
        }
        note_escrow(&shared, &made);
        all.push(made);
        tokio::time::sleep(Duration::from_millis(dice.below(30))).await;
    }
    all
}

/// Lists an escrow that was made, for funding, and one that was funded, for a release or dispute by any caller.
fn note_escrow(shared: &SharedState, made: &Made) {
    let Some((200, answer)) = &made.answer else {
        return;
    };
    let mut funded = shared.funded.lock();
    match made.path {
        "/v1/escrow/create" => funded.push(json!({ "payer": made.who, "id": answer["escrow"]["id"] })),
        "/v1/escrow/fund" => {
            funded.push(json!({ "payer": made.who, "id": answer["escrowId"], "funded": true }));
        }
        _ => {}
    }
}

fn choose(shared: &SharedState, dice: &mut SeededRandom, key: &str) -> Option<(usize, &'static str, Value)> {
    let who = usize::try_from(dice.below(2)).expect("an index");
    let nanos = 1 + dice.below(3_000_000_000);
    let amount = harness::Nanos::from_stored(nanos).to_string();
    let wallet = |dice: &mut SeededRandom, of: usize| dice.pick(&shared.wallets[of]);
    Some(match dice.below(10) {
        0 | 1 => {
            let (from, to) = (wallet(dice, who), wallet(dice, who));
            let body = json!({ "from": from, "to": to, "amount": amount, "memo": key });
            (who, "/v1/wallet/transfer", body)
        }
        2 | 3 => {
            let (from, to) = (wallet(dice, who), wallet(dice, 1 - who));
            let body = json!({ "from": from, "to": to, "amount": amount, "memo": key });
            (who, "/v1/wallet/transfer", body)
        }
        4 => {
            let body = json!({ "agent": dice.pick(&AGENTS), "amount": amount, "description": key });
            (who, "/v1/spend", body)
        }
        5 | 6 => {
            let payee = if dice.percent(50) { who } else { 1 - who };
            let body = json!({
                "fromWalletId": wallet(dice, who),
                "toWalletId": wallet(dice, payee),
                "amount": amount,
                "conditions": { "key": key },
            });
            (who, "/v1/escrow/create", body)
        }
        _ => {
            let mut open = shared.funded.lock();
            if open.is_empty() {
                return None;
            }
            let at = usize::try_from(dice.below(open.len() as u64)).expect("an index");
            // Most are taken off the list; some stay, so that several callers race for the same one.
            let escrow = if dice.percent(70) {
                open.swap_remove(at)
            } else {
                open[at].clone()
            };
            let payer = usize::try_from(escrow["payer"].as_u64().expect("a payer")).expect("an index");
            let body = json!({ "escrowId": escrow["id"] });
            if escrow["funded"] == json!(true) {
                let path = if dice.percent(60) {
                    "/v1/escrow/release"
                } else {
                    "/v1/escrow/dispute"
                };
                (if dice.percent(50) { payer } else { who }, path, body)
            } else {
                (payer, "/v1/escrow/fund", body)
            }
        }
    })
}
