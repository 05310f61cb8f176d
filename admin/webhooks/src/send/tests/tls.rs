//! Receivers over TLS: the certificate must be trusted, in time, and for the host of the URL.

use super::*;
use rcgen::{CertificateParams, CertifiedKey, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

struct Certified {
    certificate: CertificateDer<'static>,
    acceptor: TlsAcceptor,
}

impl Certified {
    fn new(names: &[&str], last_year: i32) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = rcgen::date_time_ymd(last_year, 1, 1);
        let signing_key = KeyPair::generate().unwrap();
        let cert = params.self_signed(&signing_key).unwrap();
        let made = CertifiedKey { cert, signing_key };
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        // The receiver prefers HTTP/2, which the sender does not offer.
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self {
            certificate,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        }
    }

    async fn receiver(&self) -> Receiver {
        Receiver::listen("127.0.0.1:0", answer(OK), Some(self.acceptor.clone())).await
    }
}

/// A sender that trusts these certificates and finds every name here.
fn trusting(trusted: &[&Certified]) -> Sender {
    let mut roots = RootCertStore::empty();
    for certified in trusted {
        roots.add(certified.certificate.clone()).unwrap();
    }
    let resolver = Resolver::new(Scripted::new(&[&["127.0.0.1"]]), true);
    Sender::with(resolver, roots, PATIENT_MS).unwrap()
}

fn url(host: &str, receiver: &Receiver) -> String {
    format!("https://{host}:{}/hook", receiver.addr.port())
}

#[tokio::test]
async fn a_trusted_receiver_gets_the_delivery() {
    let certified = Certified::new(&["hooks.example.com", "127.0.0.1"], 4000);
    let receiver = certified.receiver().await;
    let sender = trusting(&[&certified]);
    for host in ["hooks.example.com", "HOOKS.example.com.", "127.0.0.1", "127.1"] {
        let attempted = send(&sender, &url(host, &receiver)).await;
        assert_eq!(
            (attempted.code, attempted.excerpt.as_deref()),
            (Some(200), Some("ok")),
            "{host}: {attempted:?}"
        );
    }
    assert_eq!(receiver.requests().len(), 4);
}

#[tokio::test]
async fn a_receiver_with_a_certificate_of_its_own_gets_nothing() {
    let (unknown, trusted) = (
        Certified::new(&["hooks.example.com"], 4000),
        Certified::new(&["hooks.example.com"], 4000),
    );
    let receiver = unknown.receiver().await;
    for sender in [trusting(&[]), trusting(&[&trusted])] {
        let attempted = send(&sender, &url("hooks.example.com", &receiver)).await;
        assert_failed(&attempted, "certificate not trusted");
    }
    assert_eq!(receiver.requests(), [""; 0]);
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_enough() {
    let certified = Certified::new(&["hooks.example.com", "*.wild.example.com"], 4000);
    let receiver = certified.receiver().await;
    let sender = trusting(&[&certified]);
    for host in [
        "other.example.com",
        "a.hooks.example.com",
        "127.0.0.1",
        "wild.example.com",
    ] {
        let attempted = send(&sender, &url(host, &receiver)).await;
        assert_failed(&attempted, "the certificate is for another name");
    }
    assert_eq!(receiver.requests(), [""; 0]);
}

#[tokio::test]
async fn an_expired_certificate_is_said_to_be() {
    let certified = Certified::new(&["hooks.example.com"], 2001);
    let receiver = certified.receiver().await;
    let attempted = send(&trusting(&[&certified]), &url("hooks.example.com", &receiver)).await;
    assert_failed(&attempted, "the certificate is expired or not valid yet");
}

#[tokio::test]
async fn a_receiver_without_tls_gets_no_plain_text() {
    let receiver = Receiver::start(How::Greet(b"220 mail.example.com ESMTP\r\n")).await;
    let attempted = send(&trusting(&[]), &url("hooks.example.com", &receiver)).await;
    assert_failed(&attempted, "the TLS handshake failed");
    receiver.cut().await;
    let heard = receiver.requests().concat();
    assert!(heard.starts_with('\u{16}'), "a handshake: {heard:?}");
    assert!(
        !heard.contains("POST") && !heard.contains("webhook.test"),
        "{heard}"
    );
    assert_eq!(receiver.hits(), 1, "there is no second try without TLS");
}

#[tokio::test]
async fn the_deadline_is_over_the_handshake_too() {
    let receiver = Receiver::start(How::Ignore).await;
    let resolver = Resolver::new(Scripted::new(&[&["127.0.0.1"]]), true);
    let sender = Sender::with(resolver, RootCertStore::empty(), SHORT_MS).unwrap();
    let attempted = send(&sender, &url("hooks.example.com", &receiver)).await;
    assert_failed(&attempted, "timed out after 300 ms");
}
