//! Streams of agents that are frozen and of keys that are revoked while they run.

use crate::fixture::{Fixture, HELD, SOON, chunk, failed_with, finish, open_cap, response_delta};
use harness::{Feed, Script, until};
use serde_json::json;

/// Pieces of a megabyte, in all more than the kernel buffers for a caller.
const MUCH: usize = 64;

#[tokio::test]
async fn by_default_a_stream_goes_on() {
    let fixture = Fixture::new().await;
    let (actor, feed, mut stream) = fixture.open_fed().await;
    actor.agent.frozen(true).await;
    actor.agent.account.revoke(&actor.key_id).await;
    feed.send(chunk("one"));
    stream.until("one").await;
    finish(&feed, 12);
    assert!(stream.rest().await.ends_with("[DONE]\n\n"));
    assert_eq!(actor.settled().await, 12);
}

#[tokio::test]
async fn with_the_switch_a_freeze_or_a_revocation_ends_them() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__STOP_FROZEN_STREAMS", "true")).await;
    for revoked in [false, true] {
        let (actor, bystander) = (
            fixture.actor("enterprise", open_cap()).await,
            fixture.actor("enterprise", open_cap()).await,
        );
        let (feed, other_feed) = (Feed::new(), Feed::new());
        fixture.provider_streams(Script::new().feed(&feed));
        let mut stream = fixture.open(&actor, json!({})).await;
        fixture.provider_streams(Script::new().feed(&other_feed));
        let mut other = fixture.open(&bystander, json!({})).await;
        feed.send(chunk("one"));
        stream.until("one").await;
        match revoked {
            true => actor.agent.account.revoke(&actor.key_id).await,
            false => actor.agent.frozen(true).await,
        }
        assert!(
            stream.rest().await.contains("\"code\":\"stream_stopped\""),
            "{}",
            stream.body
        );
        feed.wait_for_peer_gone(SOON).await;
        assert_eq!(actor.settled().await, HELD);
        finish(&other_feed, 12);
        assert!(other.rest().await.ends_with("[DONE]\n\n"));
        assert_eq!(bystander.settled().await, 12);
    }
}

/// A response that is stopped ends as one that failed.
#[tokio::test]
async fn with_the_switch_a_freeze_ends_a_response() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__STOP_FROZEN_STREAMS", "true")).await;
    let (actor, feed) = fixture.fed_actor().await;
    let mut stream = fixture.open_response(&actor).await;
    feed.send(response_delta("one"));
    stream.until("one").await;
    actor.agent.frozen(true).await;
    failed_with(stream.rest().await, "stream_stopped");
    feed.wait_for_peer_gone(SOON).await;
    assert_eq!(actor.settled().await, HELD);
}

/// Counts checks, since a clock would measure how busy the machine is. The product asserts that the interval between
/// checks is within the documented second.
#[tokio::test]
async fn the_first_look_after_a_freeze_ends_the_stream_and_is_the_last() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__STOP_FROZEN_STREAMS", "true")).await;
    let (actor, _feed, mut stream) = fixture.open_fed().await;
    // Among the commands of an edge with one stream, only the check for a freeze is this one.
    let looks = || fixture.redis.calls("hexists");
    let begun = looks();
    until("looks", async || looks() > begun + 1).await;
    actor.agent.frozen(true).await;
    let before = looks();
    assert!(stream.rest().await.contains("\"code\":\"stream_stopped\""));
    // A check between the freeze and the count has ended the stream already.
    assert!(looks() <= before + 1, "{before} and {}", looks());
}

/// A caller who does not read does not keep the provider at work.
#[tokio::test]
async fn a_stopped_stream_leaves_its_provider_whatever_its_caller_takes() {
    let fixture = Fixture::with(|options| {
        options
            .env("TOLLGATE_PROXY__STOP_FROZEN_STREAMS", "true")
            .env("TOLLGATE_PROXY__CLIENT_TIMEOUT_MS", "3600000")
    })
    .await;
    let (actor, feed, mut stream) = fixture.open_fed().await;
    for _ in 0..MUCH {
        feed.send(chunk(&"x".repeat(1 << 20)));
    }
    actor.agent.frozen(true).await;
    feed.wait_for_peer_gone(SOON).await;
    assert!(actor.settled().await >= HELD);
    assert!(stream.rest().await.contains("\"code\":\"stream_stopped\""));
}
