//! Bodies of one account do not affect other accounts: each has its part of the memory for them, and a
//! key that the store refuses is denied before a large body of it is read.

use crate::fixture::{Fixture, SOON, Setup};
use crate::sizes::{body_of, head, with_room};
use harness::{RawClient, open_cap, until};

/// A second account that may call, and its key.
pub async fn neighbour(fixture: &Fixture) -> String {
    let bot = fixture.seed.account("enterprise").await.agent("neighbour");
    bot.ready(open_cap()).await.1
}

/// Sends a body of which the last byte is missing.
async fn unfinished(fixture: &Fixture, body: &[u8]) -> RawClient {
    let mut raw = fixture.raw().await;
    assert!(
        raw.send(head(fixture, &format!("Content-Length: {}", body.len())))
            .await
    );
    assert!(raw.send(&body[..body.len() - 1]).await);
    raw
}

const RESERVED: &str = "tollgate_proxy_body_memory_bytes";

#[tokio::test]
async fn large_bodies_of_one_account_leave_room_for_those_of_another() {
    let fixture = with_room(8 << 20, 1 << 20).await;
    let other = neighbour(&fixture).await;
    let body = body_of(1 << 20);
    let mut slow = Vec::new();
    for _ in 0..24 {
        slow.push(unfinished(&fixture, &body).await);
    }
    until("the slow callers in flight", async || {
        fixture.metric("tollgate_proxy_in_flight") == 24
    })
    .await;
    for _ in 0..3 {
        let mut raw = fixture.raw().await;
        assert!(raw.send_chat(&other, "", &body).await);
        let reply = raw
            .reply(SOON)
            .await
            .expect("the neighbour does not wait for others");
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    assert!(
        fixture.metric(RESERVED) < 4 << 20,
        "one account's quarter, and the reserve"
    );
    drop(slow);
    fixture.at_rest().await;
    assert_eq!(fixture.metric(RESERVED), 0);
}

#[tokio::test]
async fn small_bodies_are_counted_and_have_their_part_for_each_account() {
    const CALLERS: usize = 48;
    const LENGTH: usize = 40_000;
    let fixture = with_room(8 << 20, 1 << 20).await;
    let other = neighbour(&fixture).await;
    let body = body_of(LENGTH);
    let mut slow = Vec::new();
    for _ in 0..CALLERS {
        slow.push(unfinished(&fixture, &body).await);
    }
    until("the bodies counted", async || {
        fixture.metric(RESERVED) >= (CALLERS * (LENGTH - 1)) as u64
    })
    .await;
    let mut raw = fixture.raw().await;
    assert!(raw.send_chat(&other, "", &body).await);
    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    for raw in &mut slow {
        assert!(raw.send(&body[LENGTH - 1..]).await);
        assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    }
    fixture.at_rest().await;
    assert_eq!(fixture.metric(RESERVED), 0);
}

/// Announces a large body and sends nothing of it.
async fn announced(fixture: &Fixture, framing: &str) -> u16 {
    let mut raw = fixture.raw().await;
    assert!(raw.send(head(fixture, framing)).await);
    let reply = raw.reply(SOON).await;
    reply.expect("an answer before the body").status
}

const LARGE: &str = "Content-Length: 1000000";

#[tokio::test]
async fn a_key_over_its_rate_is_rejected_before_its_large_body_is_read() {
    let fixture = Setup::default().start().await;
    fixture.bot.account.set_plan("free").await;
    for count in 1..=11 {
        let status = if count <= 10 { 200 } else { 429 };
        assert_eq!(fixture.call().await.status, status, "call {count}");
    }
    for count in [12, 13] {
        assert_eq!(announced(&fixture, LARGE).await, 429);
        assert_eq!(fixture.rate(), count, "each request counts once");
    }
    assert_eq!(announced(&fixture, "Transfer-Encoding: chunked").await, 429);
    assert_eq!(fixture.rate(), 14);
    // The key's window ends: the large body is read, and counts once.
    let window = fixture.bot.account.keys.rate(&fixture.key_id);
    let _: u64 = fixture.redis.command(&["DEL", &window]);
    let mut raw = fixture.raw().await;
    assert!(raw.send_chat(&fixture.key, "", &body_of(1_000_000)).await);
    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    assert_eq!(fixture.rate(), 1);
}

#[tokio::test]
async fn a_revoked_key_is_rejected_before_its_large_body_is_read() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    fixture.bot.account.revoke(&fixture.key_id).await;
    assert_eq!(fixture.call().await.status, 401);
    assert_eq!(announced(&fixture, LARGE).await, 401);
    assert_eq!(fixture.rate(), 1);
}

/// Decision D30: every request with a known key counts, also one whose announced body is too long.
#[tokio::test]
async fn a_body_that_says_it_is_too_long_counts_against_the_rate() {
    let fixture = Setup::default().start().await;
    fixture.bot.account.set_plan("free").await;
    for count in 1..=12 {
        assert_eq!(announced(&fixture, "Content-Length: 99999999999").await, 413);
        assert_eq!(fixture.rate(), count);
    }
    assert_eq!(fixture.call().await.status, 429);
    assert_eq!(fixture.upstream.arrived(), 0);
}
