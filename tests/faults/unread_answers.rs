//! Whole answers that their callers do not read: an account whose answers take more than its share of the memory makes
//! no further calls until they are sent; other accounts go on.

use crate::fixture::{ACTUAL, Fixture, SOON, body};
use crate::neighbours::neighbour;
use crate::sizes::with_room;
use harness::{Answer, PROVIDER_KEY, RawClient, open_cap, until};
use serde_json::json;

/// More than the sockets between edge and caller hold.
const LENGTH: usize = 24 << 20;
/// The memory for bodies, and as much again for answers. Less than one unread answer leaves of its account's quarter.
const ROOM: usize = 8 << 20;
const UNSENT: &str = "tollgate_proxy_unsent_answers_bytes";

fn large_answer() -> Answer {
    let answer = json!({
        "choices": [{ "message": { "role": "assistant", "content": "x".repeat(LENGTH) } }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21 }
    });
    Answer::bytes(200, answer.to_string().into_bytes()).header("Content-Type", "application/json")
}

async fn call(fixture: &Fixture, key: &str) -> RawClient {
    let mut raw = fixture.raw().await;
    assert!(raw.send_chat(key, "", body().to_string().as_bytes()).await);
    raw
}

async fn status(fixture: &Fixture, key: &str) -> u16 {
    let mut raw = call(fixture, key).await;
    raw.reply(SOON).await.expect("an answer").status
}

#[tokio::test]
async fn an_account_that_does_not_read_its_answers_makes_no_more_calls_and_others_do() {
    let fixture = with_room(ROOM, 1 << 20).await;
    let other = neighbour(&fixture).await;
    let sibling = fixture.bot.account.agent("sibling");
    sibling.provider_key(PROVIDER_KEY).await;
    let sibling = sibling.ready(open_cap()).await.1;
    fixture.upstream.set(|_| large_answer());
    let mut unread = call(&fixture, &fixture.key).await;
    until("an answer that is not sent", async || {
        fixture.metric(UNSENT) > 0 && fixture.charged()[0] == ACTUAL
    })
    .await;
    fixture.upstream.set(|_| Answer::chat(9, 12));
    for key in [&fixture.key, &sibling] {
        assert_eq!(status(&fixture, key).await, 503, "the account has its share");
    }
    assert_eq!(fixture.charged()[0], ACTUAL, "nothing more is charged");
    assert_eq!(status(&fixture, &other).await, 200);
    let read = unread.reply(SOON).await.expect("the whole answer");
    assert!(read.body.len() > LENGTH);
    fixture.at_rest().await;
    assert_eq!(fixture.metric(UNSENT), 0);
    assert_eq!(status(&fixture, &fixture.key).await, 200);
}
