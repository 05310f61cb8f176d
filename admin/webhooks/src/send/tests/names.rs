//! Tests of names: each attempt resolves again, and connects only to the addresses judged for it.

use super::*;
use crate::dns::{Lookup, PendingLookup};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn strict(lookup: Scripted) -> Sender {
    Sender::with(Resolver::new(lookup, false), RootCertStore::empty(), PATIENT_MS).unwrap()
}

fn named(receiver: &Receiver) -> String {
    format!("http://hooks.example.com:{}/", receiver.addr.port())
}

#[tokio::test]
async fn a_name_that_turns_private_after_registration_is_not_sent_to() {
    let receiver = Receiver::start(answer(OK)).await;
    let lookup = Scripted::new(&[&["8.8.8.8"], &["127.0.0.1"]]);
    let sender = strict(lookup.clone());
    assert_eq!(sender.check("acct_1", &named(&receiver)).await, Ok(()));
    assert_failed(
        &send(&sender, &named(&receiver)).await,
        "the name resolves to a private address",
    );
    assert_eq!((receiver.hits(), lookup.looks()), (0, 2));
}

#[tokio::test]
async fn a_name_with_one_private_address_is_not_sent_to_at_all() {
    let receiver = Receiver::start(answer(OK)).await;
    for mixed in [["127.0.0.1", "8.8.8.8"], ["8.8.8.8", "127.0.0.1"]] {
        let sender = strict(Scripted::new(&[&mixed]));
        let complaint = sender
            .check("acct_1", &named(&receiver))
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(complaint, "url must name a host whose addresses are all public.");
        assert_failed(
            &send(&sender, &named(&receiver)).await,
            "the name resolves to a private address",
        );
    }
    assert_eq!(receiver.hits(), 0);
}

#[tokio::test]
async fn an_attempt_looks_once_and_connects_to_what_it_saw() {
    let first = Receiver::start(answer(OK)).await;
    let port = first.addr.port();
    let second = Receiver::listen(&format!("127.0.0.2:{port}"), answer(OK), None).await;
    let lookup = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let sender = sender(lookup.clone(), PATIENT_MS);
    // A second look-up during the first attempt would lead to the second receiver.
    assert!(send(&sender, &named(&first)).await.accepted());
    assert_eq!((first.hits(), second.hits(), lookup.looks()), (1, 0, 1));
    // The next attempt resolves again and reuses nothing of the last one, not even its connection.
    assert!(send(&sender, &named(&first)).await.accepted());
    assert_eq!((first.hits(), second.hits(), lookup.looks()), (1, 1, 2));
    let host = format!("host: hooks.example.com:{port}\r\n");
    assert!(second.requests()[0].contains(&host), "{:?}", second.requests());
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_take_the_connection() {
    let receiver = Receiver::start(answer(OK)).await;
    let lookup = Scripted::new(&[&["127.0.0.3", "127.0.0.4", "127.0.0.1"]]);
    assert!(
        send(&sender(lookup, PATIENT_MS), &named(&receiver))
            .await
            .accepted()
    );
    let lookup = Scripted::new(&[&["127.0.0.3", "127.0.0.4"]]);
    assert_failed(
        &send(&sender(lookup, PATIENT_MS), &named(&receiver)).await,
        "connection refused",
    );
    assert_eq!(receiver.hits(), 1);
}

#[tokio::test]
async fn a_delivery_is_never_sent_twice_in_one_attempt() {
    let receiver = Receiver::start(How::Close).await;
    let lookup = Scripted::new(&[&["127.0.0.1", "127.0.0.1", "127.0.0.1"]]);
    assert_failed(
        &send(&sender(lookup, PATIENT_MS), &named(&receiver)).await,
        "the connection was closed before an answer",
    );
    assert_eq!(receiver.hits(), 1);
}

#[tokio::test]
async fn a_name_without_addresses_is_said_to_be_one() {
    let attempted = send(&strict(no_names()), "https://hooks.example.com/").await;
    assert_failed(&attempted, "the name does not resolve");
}

/// A resolver that never answers.
struct Silent;

impl Lookup for Silent {
    fn lookup(&self, _account: &str, _name: &str) -> PendingLookup {
        PendingLookup::at_once(std::future::pending())
    }
}

#[tokio::test]
async fn the_deadline_is_over_the_look_up_too() {
    let silent = Resolver::new(Silent, true);
    let sender = Sender::with(silent, RootCertStore::empty(), SHORT_MS).unwrap();
    let attempted = send(&sender, "https://hooks.example.com/").await;
    assert_failed(&attempted, "timed out after 300 ms");
}
