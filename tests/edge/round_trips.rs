//! Commands that one call costs the store: one script before it and one after it, or one for a denial, whatever the
//! number of accounts. Counted at the server, with its `MONITOR`.

use super::fixture::{Actor, Fixture, SOON, cap, estimated_body, open_cap};
use harness::{Redis, eventually};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Accounts in the steady state.
const ACCOUNTS: usize = 200;

/// Counts the commands that clients send.
struct Monitor {
    scripts: Arc<AtomicU64>,
    others: Arc<parking_lot::Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

/// Periodic reads of the store's health, the user's rights, blocked addresses, refused accounts and imported prices:
/// they depend on time, not on calls.
fn is_background(command: &str) -> bool {
    let lower = command.to_ascii_lowercase();
    [
        "\"info\"",
        "\"hgetall\" \"tollgate/store\"",
        "\"get\" \"tollgate/prices\"",
        "\"get\" \"tollgate/refused\"",
        "\"hget\" \"tollgate/blocked\"",
        "\"hgetall\" \"tollgate/blocked\"",
        "\"get\" \"tollgate/refused\"",
        "\"ping\"",
        "\"client\"",
        "\"hello\"",
    ]
    .iter()
    .any(|name| lower.starts_with(name))
        || lower.contains("redis.acl_check_cmd")
}

impl Monitor {
    async fn start(redis: &Redis) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", redis.port()))
            .await
            .expect("a connection");
        stream.write_all(b"MONITOR\r\n").await.expect("MONITOR");
        let mut lines = BufReader::new(stream).lines();
        lines.next_line().await.expect("+OK");
        let (scripts, others) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(parking_lot::Mutex::new(Vec::new())),
        );
        let (count, list) = (scripts.clone(), others.clone());
        let task = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // +1763676000.123456 [0 127.0.0.1:4242] "EVALSHA" … ; commands of scripts are marked `[0 lua]`.
                let Some((head, command)) = line.split_once("] ") else {
                    continue;
                };
                if head.ends_with(" lua") || is_background(command) {
                    continue;
                }
                if command.to_ascii_lowercase().starts_with("\"evalsha\"") {
                    count.fetch_add(1, Ordering::SeqCst);
                } else {
                    list.lock().push(command.to_owned());
                }
            }
        });
        Self {
            scripts,
            others,
            task,
        }
    }

    /// Waits until every command sent so far was seen. Returns the count of scripts, and the other commands.
    async fn take(&self, redis: &Redis) -> (u64, Vec<String>) {
        static MARK: AtomicU64 = AtomicU64::new(0);
        let mark = format!("mark-{}", MARK.fetch_add(1, Ordering::SeqCst));
        let _: String = redis.command(&["ECHO", &mark]);
        let others = eventually("the mark", SOON, async || {
            let mut others = self.others.lock();
            let is_observed = others.iter().any(|command| command.contains(&mark));
            is_observed.then(|| std::mem::take(&mut *others))
        })
        .await;
        let others = others
            .into_iter()
            .filter(|command| !command.contains(&mark))
            .collect();
        (self.scripts.swap(0, Ordering::SeqCst), others)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Makes `count` calls of each actor, spread over both callers, and returns the store's commands meanwhile.
async fn measure(
    fixture: &Fixture,
    monitor: &Monitor,
    actors: &[Actor],
    count: usize,
    status: u16,
) -> (u64, Vec<String>) {
    monitor.take(&fixture.redis).await;
    for _ in 0..count {
        for actor in actors {
            let reply = actor
                .caller
                .chat_with(&[("x-service-run-id", "r")], estimated_body(100))
                .await;
            assert_eq!(reply.status, status, "{reply:?}");
        }
    }
    monitor.take(&fixture.redis).await
}

#[tokio::test]
async fn two_scripts_for_an_approved_call_and_one_for_a_denied_one() {
    let fixture = Fixture::alone().await;
    let approved = [fixture.actor("enterprise", open_cap()).await];
    let denied = [fixture.actor("enterprise", cap(None, Some(0), None)).await];
    let monitor = Monitor::start(&fixture.redis).await;
    // The first call of all loads the scripts.
    let first = [fixture.actor("enterprise", open_cap()).await];
    measure(&fixture, &monitor, &first, 1, 200).await;
    // The first call of a key looks up its owner and reads the account's plan.
    let (scripts, others) = measure(&fixture, &monitor, &approved, 1, 200).await;
    assert_eq!((scripts, others.len()), (3, 1), "{others:?}");
    measure(&fixture, &monitor, &denied, 1, 402).await;
    assert_eq!(
        measure(&fixture, &monitor, &approved, 50, 200).await,
        (100, vec![])
    );
    assert_eq!(measure(&fixture, &monitor, &denied, 50, 402).await, (50, vec![]));

    // A malformed call costs one script, which counts the request; an invented key costs nothing.
    for _ in 0..10 {
        assert_eq!(approved[0].caller.chat(serde_json::json!({})).await.status, 400);
    }
    assert_eq!(monitor.take(&fixture.redis).await, (10, vec![]));
    for number in 0..50 {
        let invented = format!("vk_live_{number:064x}");
        for key in [invented.as_str(), "vk_live_short", "sk-x", ""] {
            assert_eq!(fixture.edge.caller(key).chat(estimated_body(1)).await.status, 401);
        }
    }
    assert_eq!(
        monitor.take(&fixture.redis).await,
        (0, vec![]),
        "a flood of invented keys does not reach the store"
    );
    approved[0].agent.account.revoke(&approved[0].key_id).await;
    monitor.take(&fixture.redis).await;
    for _ in 0..10 {
        assert_eq!(approved[0].caller.chat(estimated_body(1)).await.status, 401);
    }
    assert_eq!(
        monitor.take(&fixture.redis).await,
        (10, vec![]),
        "a revoked key costs one script"
    );
}

#[tokio::test]
async fn the_number_of_accounts_changes_nothing() {
    let fixture = Fixture::alone().await;
    let client = harness::http_client();
    let mut actors = Vec::with_capacity(ACCOUNTS);
    for _ in 0..ACCOUNTS {
        let mut actor = fixture.actor("enterprise", open_cap()).await;
        actor.caller = actor.caller.with_client(client.clone());
        actors.push(actor);
    }
    let monitor = Monitor::start(&fixture.redis).await;
    measure(&fixture, &monitor, &actors, 1, 200).await;
    let calls = (3 * ACCOUNTS) as u64;
    assert_eq!(
        measure(&fixture, &monitor, &actors, 3, 200).await,
        (2 * calls, vec![])
    );
    for actor in &actors {
        actor.agent.cap(cap(Some(0), None, None)).await;
    }
    assert_eq!(
        measure(&fixture, &monitor, &actors, 3, 402).await,
        (calls, vec![])
    );
}

/// An edge that may remember one key decides the calls of many like any other, and looks up each key's owner.
#[tokio::test]
async fn a_key_that_is_not_remembered_is_looked_up_again() {
    let store = Arc::new(Redis::start());
    let fixture = Fixture::on(store, |options| {
        options.env("TOLLGATE_PROXY__MAX_REMEMBERED_KEYS", "1")
    })
    .await;
    let mut actors = Vec::new();
    for _ in 0..5 {
        actors.push(fixture.actor("enterprise", open_cap()).await);
    }
    let monitor = Monitor::start(&fixture.redis).await;
    measure(&fixture, &monitor, &actors, 1, 200).await;
    let (scripts, others) = measure(&fixture, &monitor, &actors, 2, 200).await;
    assert_eq!(scripts, 20);
    // Nine at least: the remembered key may be the first of the round.
    assert!((9..=10).contains(&others.len()), "{others:?}");
    let is_look_up = |command: &String| command.starts_with(r#""GET" "tollgate/vk/"#);
    assert!(others.iter().all(is_look_up), "{others:?}");
    let remembered = fixture
        .edge
        .metric(r#"tollgate_proxy_cache_entries{cache="owners"}"#);
    assert!(matches!(remembered, Some(0 | 1)), "{remembered:?}");
    for actor in &actors {
        assert_eq!(actor.agent.counters().await.day_nanos, 3 * 12);
    }
}
