//! Attempts against receivers of every kind, on this machine.

mod answers;
mod names;
mod receiver;
mod tls;

use super::*;
use crate::dns::tests::Scripted;
use receiver::{How, Receiver};
use serde_json::Value;

/// Long enough for every receiver that replies.
const PATIENT_MS: u64 = 20_000;
/// Short enough to wait for.
const SHORT_MS: u64 = 300;
const BODY: &[u8] = br#"{"type":"webhook.test","data":{"text":"\u00e9 \"quoted\""}}"#;

fn secrets() -> Secrets {
    Secrets {
        current: "0123456789abcdef".into(),
        old: None,
    }
}

/// Creates a sender that may connect to this machine.
fn sender(lookup: Scripted, timeout_ms: u64) -> Sender {
    Sender::with(Resolver::new(lookup, true), RootCertStore::empty(), timeout_ms).unwrap()
}

fn no_names() -> Scripted {
    Scripted::new(&[&[]])
}

async fn send_body(sender: &Sender, url: &str, body: &'static [u8]) -> Attempt {
    let message = OutgoingDelivery {
        account: "acct_1",
        id: "msg_1",
        body: &Bytes::from_static(body),
        secrets: &secrets(),
    };
    let begin_by = Instant::now() + Duration::from_millis(PATIENT_MS);
    let sent = sender.send(url, message, begin_by).await;
    sent.expect("a turn at the address")
}

async fn send(sender: &Sender, url: &str) -> Attempt {
    send_body(sender, url, BODY).await
}

/// Makes one attempt to deliver to a receiver with this behaviour.
async fn attempt(how: How, timeout_ms: u64) -> Attempt {
    let receiver = Receiver::start(how).await;
    send(&sender(no_names(), timeout_ms), &receiver.url("/hook")).await
}

fn answer(text: &str) -> How {
    How::Answer(text.as_bytes().to_vec())
}

#[track_caller]
fn assert_failed(attempted: &Attempt, error: &str) {
    assert_eq!(
        (attempted.code, attempted.error.as_deref(), attempted.accepted()),
        (None, Some(error), false)
    );
    assert_eq!(attempted.excerpt, None);
}

/// All webhooks of an account share the turns at an address, whatever names and paths lead there. The wait for one
/// counts neither as a failure nor against the deadline.
#[tokio::test]
async fn an_account_has_a_bounded_number_of_attempts_at_one_address() {
    let receiver = Receiver::start(How::Hang).await;
    let sender = sender(Scripted::new(&[&["127.0.0.1"]]), PATIENT_MS);
    let port = receiver.addr.port();
    let urls: Vec<String> = (0..=AT_ADDRESS_MAX)
        .map(|n| format!("http://n{n}.example.com:{port}/{n}"))
        .collect();
    let attempts: Vec<_> = urls[..AT_ADDRESS_MAX]
        .iter()
        .cloned()
        .map(|url| {
            let sender = sender.clone();
            tokio::spawn(async move { send(&sender, &url).await })
        })
        .collect();
    while receiver.hits() < AT_ADDRESS_MAX {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let one_more = async |account: &'static str, wait_ms: u64| {
        let message = OutgoingDelivery {
            account,
            id: "msg_1",
            body: &Bytes::from_static(BODY),
            secrets: &secrets(),
        };
        let short = Sender {
            timeout_ms: SHORT_MS,
            ..sender.clone()
        };
        let begin_by = Instant::now() + Duration::from_millis(wait_ms);
        short.send(&urls[AT_ADDRESS_MAX], message, begin_by).await
    };
    assert_eq!(one_more("acct_1", SHORT_MS / 3).await, None, "there is no turn");
    assert_eq!(receiver.hits(), AT_ADDRESS_MAX);
    let of_another = one_more("acct_2", PATIENT_MS).await.unwrap();
    assert_failed(&of_another, "timed out after 300 ms");
    // It waits for longer than its own deadline.
    let began = Instant::now();
    let waiting = one_more("acct_1", PATIENT_MS);
    let ending = async {
        tokio::time::sleep(Duration::from_millis(2 * SHORT_MS)).await;
        attempts.iter().for_each(tokio::task::JoinHandle::abort);
    };
    let (waited, ()) = tokio::join!(waiting, ending);
    let waited = waited.unwrap();
    assert_failed(&waited, "timed out after 300 ms");
    let elapsed_ms = began.elapsed().as_millis() as u64;
    assert!(
        waited.took_ms + 2 * SHORT_MS <= elapsed_ms,
        "{} of {elapsed_ms} ms, without the wait for a turn",
        waited.took_ms
    );
    assert_eq!(receiver.hits(), AT_ADDRESS_MAX + 2);
}

#[tokio::test]
async fn a_delivery_is_one_signed_post_and_nothing_more() {
    let receiver = Receiver::start(answer("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nreceived")).await;
    let sender = sender(no_names(), PATIENT_MS);
    let before = now_ms();
    let attempted = send(&sender, &receiver.url("/a%20b?x=1")).await;
    assert!(attempted.accepted());
    assert_eq!(
        (attempted.code, attempted.excerpt.as_deref()),
        (Some(200), Some("received"))
    );
    assert!((before..=now_ms()).contains(&attempted.at_ms));

    let requests = receiver.requests();
    let [request] = &requests[..] else {
        panic!("{requests:?}");
    };
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.as_bytes(), BODY, "the bytes are those that were signed");
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some("POST /a%20b?x=1 HTTP/1.1"));
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_unstable();
    let signed = sign::headers(&secrets(), "msg_1", attempted.at_ms, BODY).unwrap();
    let mut expected: Vec<String> = signed
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    expected.extend([
        format!("host: 127.0.0.1:{}", receiver.addr.port()),
        "accept: */*".to_owned(),
        "connection: close".to_owned(),
        format!("content-length: {}", BODY.len()),
    ]);
    expected.sort_unstable();
    assert_eq!(lines, expected);
    let parsed: Value = serde_json::from_str(body).unwrap();
    assert_eq!(parsed["type"], "webhook.test");
}

#[tokio::test]
async fn nothing_of_an_answer_comes_back_with_the_next_attempt() {
    let receiver = Receiver::start(answer(
        "HTTP/1.1 200 OK\r\nset-cookie: session=1; Path=/\r\nwww-authenticate: Basic\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n",
    ))
    .await;
    let sender = sender(no_names(), PATIENT_MS);
    for _ in 0..2 {
        let attempted = send(&sender, &receiver.url("/")).await;
        assert_eq!((attempted.accepted(), attempted.excerpt), (true, None));
    }
    assert_eq!(receiver.hits(), 2, "each attempt has a connection of its own");
    for request in receiver.requests() {
        assert!(
            !request.contains("cookie") && !request.contains("authorization"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_url_that_is_not_allowed_any_more_is_not_sent_to() {
    let receiver = Receiver::start(answer("HTTP/1.1 200 OK\r\n\r\n")).await;
    let strict = Resolver::new(no_names(), false);
    let strict = Sender::with(strict, RootCertStore::empty(), PATIENT_MS).unwrap();
    assert_failed(
        &send(&strict, &receiver.url("/")).await,
        "not sent: url must not be a private address.",
    );
    let by_name = format!("http://localhost:{}/", receiver.addr.port());
    assert_failed(
        &send(&strict, &by_name).await,
        "not sent: url must not name this machine.",
    );
    assert_eq!(receiver.hits(), 0);
}

#[tokio::test]
async fn the_settings_make_a_sender() {
    let settings = settings::load_from(None, std::iter::empty());
    let webhooks = settings.map(|settings| settings.webhooks).unwrap();
    let receiver = Receiver::start(answer("HTTP/1.1 200 OK\r\n\r\n")).await;
    let sender = Sender::new(&webhooks).unwrap();
    assert_eq!(
        sender
            .check("acct_1", &receiver.url("/"))
            .await
            .unwrap_err()
            .to_string(),
        "url must not be a private address."
    );
    let lax = WebhookSettings {
        allow_private: true,
        ..webhooks
    };
    let sender = Sender::new(&lax).unwrap();
    let by_name = format!("http://localhost:{}/", receiver.addr.port());
    assert_eq!(sender.check("acct_1", &by_name).await, Ok(()));
    assert!(send(&sender, &by_name).await.accepted());
    assert_eq!(receiver.hits(), 1);
}
