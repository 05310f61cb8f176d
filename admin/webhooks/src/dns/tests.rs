//! Tests of names with mixed, no, or too many addresses, or with other addresses at the second look-up.

use super::*;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A resolver that returns the next answer at each look-up, and the last one repeatedly.
#[derive(Clone)]
pub(crate) struct Scripted {
    answers: Arc<Vec<Vec<IpAddr>>>,
    looks: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub(crate) fn new(answers: &[&[&str]]) -> Self {
        let parsed = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Self {
            answers: Arc::new(answers.iter().map(parsed).collect()),
            looks: Arc::default(),
            asked: Arc::default(),
        }
    }

    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }
}

impl Lookup for Scripted {
    fn lookup(&self, _account: &str, name: &str) -> PendingLookup {
        self.asked.lock().push(name.to_owned());
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers[look.min(self.answers.len() - 1)].clone();
        PendingLookup::at_once(std::future::ready(Ok(answer)))
    }
}

async fn looked_up(addresses: &[&str], allow_private: bool) -> Result<Vec<SocketAddr>, Unresolved> {
    let resolver = Resolver::new(Scripted::new(&[addresses]), allow_private);
    let target = resolver.target("https://hooks.example.com/x").unwrap();
    resolver.addresses("acct_1", &target).await
}

#[tokio::test]
async fn public_addresses_keep_their_order_and_get_the_port() {
    let found = looked_up(&["8.8.8.8", "2606:4700:4700::1111"], false)
        .await
        .unwrap();
    let expected = ["8.8.8.8:443", "[2606:4700:4700::1111]:443"].map(|text| text.parse().unwrap());
    assert_eq!(found, expected);
}

#[tokio::test]
async fn one_private_address_refuses_the_name() {
    for mixed in [
        &["8.8.8.8", "127.0.0.1"][..],
        &["10.0.0.1", "8.8.8.8"],
        &["8.8.8.8", "1.1.1.1", "::ffff:8.8.8.8"],
        &["8.8.8.8", "fe80::1"],
        &["64:ff9b::a00:1"],
        &["0.0.0.0"],
    ] {
        assert_eq!(
            looked_up(mixed, false).await,
            Err(Unresolved::PrivateName),
            "{mixed:?}"
        );
        assert!(looked_up(mixed, true).await.is_ok(), "{mixed:?}");
    }
}

#[tokio::test]
async fn addresses_beyond_the_bound_are_judged_but_not_tried() {
    let mut many: Vec<String> = (1..=40).map(|n| format!("8.8.8.{n}")).collect();
    let texts: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(looked_up(&texts, false).await.unwrap().len(), ADDRESSES_MAX);
    many.push("192.168.0.1".to_owned());
    let texts: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(looked_up(&texts, false).await, Err(Unresolved::PrivateName));
}

#[tokio::test]
async fn no_address_is_a_refusal_too() {
    for allow_private in [false, true] {
        assert_eq!(looked_up(&[], allow_private).await, Err(Unresolved::NoAddress));
    }
}

#[tokio::test]
async fn addresses_in_the_url_are_judged_without_a_look() {
    let lookup = Scripted::new(&[&["127.0.0.1"]]);
    // Parsed while private addresses were allowed, and judged when they are not any more.
    let target = DeliveryTarget::parse("http://127.1:81/", true).unwrap();
    let strict = Resolver::new(lookup.clone(), false);
    assert_eq!(
        strict.addresses("acct_1", &target).await,
        Err(Unresolved::PrivateAddress)
    );
    let target = DeliveryTarget::parse("http://8.8.8.8/", false).unwrap();
    let found = strict.addresses("acct_1", &target).await.unwrap();
    assert_eq!(found, ["8.8.8.8:80".parse().unwrap()]);
    assert_eq!(lookup.looks(), 0);
}

#[tokio::test]
async fn registration_says_what_the_url_must_be() {
    let sentence = async |url: &str, answers: &[&str]| {
        let resolver = Resolver::new(Scripted::new(&[answers]), false);
        resolver.check("acct_1", url).await.map_err(|bad| bad.to_string())
    };
    let url = "https://hooks.example.com/x";
    assert_eq!(sentence(url, &["8.8.8.8"]).await, Ok(()));
    for (url, answers, complaint) in [
        (
            url,
            &["10.0.0.1"][..],
            "url must name a host whose addresses are all public.",
        ),
        (
            url,
            &[],
            "url must name a host that can be looked up; this one has no address.",
        ),
        (
            "https://10.1/x",
            &["8.8.8.8"],
            "url must not be a private address.",
        ),
        (
            "https://localhost./x",
            &["8.8.8.8"],
            "url must not name this machine.",
        ),
        (
            "10.0.0.1",
            &["8.8.8.8"],
            "url must begin with https:// or http://.",
        ),
    ] {
        assert_eq!(sentence(url, answers).await, Err(complaint.to_owned()), "{url}");
    }
}

/// A resolver that never replies; the field is true once its turn has come.
struct Silent(bool);

impl Lookup for Silent {
    fn lookup(&self, _account: &str, _name: &str) -> PendingLookup {
        let pending = PendingLookup::at_once(std::future::pending());
        pending.begun.store(self.0, Ordering::SeqCst);
        pending
    }
}

#[tokio::test]
async fn a_look_up_without_a_turn_does_not_count_as_a_failure() {
    let url = "https://hooks.example.com/x";
    let [slow, busy] = [true, false].map(|begun| Resolver::new(Silent(begun), false));
    let (slow, busy) = tokio::join!(slow.check("acct_1", url), busy.check("acct_1", url));
    let sentence = "url must name a host that can be looked up; this one does not answer in time.";
    assert_eq!(slow.unwrap_err().to_string(), sentence);
    assert_eq!(busy, Err(Refused::Busy));
}

#[tokio::test]
async fn every_look_is_a_new_one() {
    let lookup = Scripted::new(&[&["8.8.8.8"], &["127.0.0.1"]]);
    let resolver = Resolver::new(lookup.clone(), false);
    let url = "https://rebinding.example.com./";
    assert_eq!(resolver.check("acct_1", url).await, Ok(()));
    let target = resolver.target(url).unwrap();
    assert_eq!(
        resolver.addresses("acct_1", &target).await,
        Err(Unresolved::PrivateName)
    );
    assert_eq!(lookup.looks(), 2);
    assert_eq!(*lookup.asked.lock(), ["rebinding.example.com"; 2]);
}
