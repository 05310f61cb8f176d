//! HTTP/2 and TLS on the side of the callers, TLS on the side of the provider.

use super::fixture::{Fixture, SOON, amounts, cap, estimated_body, open_cap};
use super::shape::{approved, denied, refused};
use harness::{EdgeOptions, Reply, free_port, http_client};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// A certificate for some names, as files and in memory.
pub(super) struct Certificate {
    dir: tempfile::TempDir,
    pem: String,
    made: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Certificate {
    pub(super) fn for_names(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let dir = tempfile::tempdir().expect("a directory");
        let pem = made.cert.pem();
        std::fs::write(dir.path().join("cert.pem"), &pem).expect("a file");
        std::fs::write(dir.path().join("key.pem"), made.signing_key.serialize_pem()).expect("a file");
        Self { dir, pem, made }
    }

    pub(super) fn file(&self, name: &str) -> String {
        let path: PathBuf = self.dir.path().join(name);
        path.display().to_string()
    }

    /// The settings of an edge that presents this certificate to its callers.
    fn presented_by(&self, options: EdgeOptions) -> EdgeOptions {
        options
            .env("TOLLGATE_PROXY__TLS_CERT", self.file("cert.pem"))
            .env("TOLLGATE_PROXY__TLS_KEY", self.file("key.pem"))
    }

    /// A client that trusts this certificate and nothing else.
    fn client(
        &self,
        change: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> reqwest::Client {
        drop(http_client()); // installs the cryptography provider
        let trusted = reqwest::Certificate::from_pem(self.pem.as_bytes()).expect("a certificate");
        let builder = reqwest::Client::builder().no_proxy().tls_certs_only([trusted]);
        change(builder).build().expect("a client")
    }
}

/// Posts a chat call. Returns the HTTP version and the answer.
async fn post(client: &reqwest::Client, url: &str, key: &str, body: String) -> (http::Version, Reply) {
    let request = client
        .post(format!("{url}/v1/chat/completions"))
        .bearer_auth(key)
        .header("content-type", "application/json")
        .body(body);
    let response = request.send().await.expect("an answer");
    let (version, status, headers) = (
        response.version(),
        response.status().as_u16(),
        response.headers().clone(),
    );
    let body = response.bytes().await.expect("a body");
    (
        version,
        Reply {
            status,
            headers,
            body,
        },
    )
}

#[tokio::test]
async fn callers_may_speak_http_2_without_tls() {
    let fixture = Fixture::new().await;
    let client = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .build()
        .expect("a client");
    let actor = fixture.actor("enterprise", open_cap()).await;
    let (version, reply) = post(
        &client,
        &fixture.edge.url(),
        &actor.key,
        estimated_body(100).to_string(),
    )
    .await;
    assert_eq!((version, reply.status), (http::Version::HTTP_2, 200), "{reply:?}");
    approved(&reply);
    for name in ["connection", "keep-alive", "transfer-encoding"] {
        assert_eq!(reply.header(name), None, "{name} is no header of HTTP/2");
    }
    // A body beyond every window, unchanged.
    let mut long = estimated_body(100);
    long["messages"][0]["content"] = "0123456789".repeat(300_000).into();
    let long = long.to_string();
    let (_, reply) = post(&client, &fixture.edge.url(), &actor.key, long.clone()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(fixture.upstream.requests().pop().expect("a request").body == long.as_bytes());

    // Many streams of one connection, with answers of every kind, and exactly as many approvals as there is room for.
    fixture.estimates_stay();
    let capped = fixture.actor("enterprise", cap(None, Some(1000), None)).await;
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let (client, url, key) = (client.clone(), fixture.edge.url(), capped.key.clone());
            tokio::spawn(async move { post(&client, &url, &key, estimated_body(100).to_string()).await.1 })
        })
        .collect();
    let mut passed = 0;
    for call in calls {
        let reply = call.await.expect("an answer");
        if reply.status == 200 {
            passed += 1;
        } else {
            denied(&reply, "daily_limit");
        }
    }
    assert_eq!(passed, 10);
    let (_, reply) = post(
        &client,
        &fixture.edge.url(),
        "vk_live_x",
        estimated_body(1).to_string(),
    )
    .await;
    refused(&reply, 401, "invalid_api_key");
}

/// A caller who sends nothing after the connection, or after the handshake, is disconnected, over every protocol.
#[tokio::test]
async fn a_caller_who_stays_silent_is_let_go() {
    let certificate = Certificate::for_names(&["localhost", "127.0.0.1"]);
    let fixture = Fixture::with(|options| {
        certificate
            .presented_by(options)
            .env("TOLLGATE_PROXY__CLIENT_TIMEOUT_MS", "700")
    })
    .await;
    drop(http_client()); // installs the cryptography provider
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.made.cert.der().clone()).expect("a root");
    let connect = async || {
        TcpStream::connect(fixture.edge.addr())
            .await
            .expect("a connection")
    };
    let settings = [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        &[0, 0, 0, 4, 0, 0, 0, 0, 0],
    ]
    .concat();
    for said in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        let mut silent = connect().await;
        silent.write_all(said).await.expect("a connection");
        assert!(ends(&mut silent).await, "no handshake after {said:?}");
    }
    for (protocol, said) in [
        ("h2", &b""[..]),
        ("h2", &settings),
        ("http/1.1", b""),
        ("http/1.1", b"POST /v1"),
    ] {
        let config = rustls::ClientConfig::builder().with_root_certificates(roots.clone());
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = "localhost".try_into().expect("a name");
        let mut silent = connector
            .connect(name, connect().await)
            .await
            .expect("a handshake");
        silent.write_all(said).await.expect("a connection");
        silent.flush().await.expect("a connection");
        assert!(ends(&mut silent).await, "{protocol}, after {said:?}");
    }
}

/// Returns true if the edge closes the connection soon.
async fn ends(connection: &mut (impl tokio::io::AsyncRead + Unpin)) -> bool {
    let mut room = [0; 4096];
    let closed = async { while matches!(connection.read(&mut room).await, Ok(1..)) {} };
    tokio::time::timeout(SOON, closed).await.is_ok()
}

#[tokio::test]
async fn callers_may_speak_tls_with_either_version() {
    let certificate = Certificate::for_names(&["localhost", "127.0.0.1"]);
    let fixture = Fixture::with(|options| certificate.presented_by(options)).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let url = format!("https://{}", fixture.edge.addr());
    for (client, version) in [
        (certificate.client(|builder| builder), http::Version::HTTP_2),
        (
            certificate.client(reqwest::ClientBuilder::http1_only),
            http::Version::HTTP_11,
        ),
    ] {
        for _ in 0..3 {
            let (spoken, reply) = post(&client, &url, &actor.key, estimated_body(100).to_string()).await;
            assert_eq!((spoken, reply.status), (version, 200), "{reply:?}");
            approved(&reply);
        }
    }
    // Without TLS the port gives no answer.
    assert!(actor.caller.try_send("GET", "/v1/health", &[], "").await.is_err());
    let stranger = Certificate::for_names(&["127.0.0.1"]).client(|builder| builder);
    assert!(
        stranger.get(format!("{url}/v1/health")).send().await.is_err(),
        "the certificate is the edge's own"
    );
}

/// Takes TLS off in front of a plain server.
pub(super) struct Terminator {
    pub(super) addr: SocketAddr,
    task: AbortHandle,
}

impl Terminator {
    pub(super) async fn start(certificate: &Certificate, behind: SocketAddr) -> Self {
        let key = rustls::pki_types::PrivateKeyDer::try_from(certificate.made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.made.cert.der().clone()], key.expect("a key"))
            .expect("a certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(("127.0.0.1", free_port()))
            .await
            .expect("a port");
        let addr = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut outer) = acceptor.accept(stream).await else {
                        return;
                    };
                    let Ok(mut inner) = TcpStream::connect(behind).await else {
                        return;
                    };
                    let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
                });
            }
        });
        let task = task.abort_handle();
        Self { addr, task }
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One call of an edge whose provider is at `base_url`. Returns the answer and the remaining charge.
async fn through(base_url: String, ca_file: Option<String>) -> (Reply, u64) {
    let fixture = Fixture::with(|mut options| {
        options = options.env("TOLLGATE_UPSTREAM__BASE_URL", base_url);
        match ca_file {
            Some(file) => options.env("TOLLGATE_UPSTREAM__CA_FILE", file),
            None => options,
        }
    })
    .await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let reply = actor.caller.chat(estimated_body(100)).await;
    (reply, actor.agent.counters().await.day_nanos)
}

#[tokio::test]
async fn the_provider_is_called_over_tls_and_must_prove_its_name() {
    let provider = harness::Upstream::start(|_| harness::Answer::chat(9, 12));
    let good = Certificate::for_names(&["127.0.0.1"]);
    let front = Terminator::start(&good, provider.addr()).await;
    let url = |front: &Terminator| format!("https://{}/v1", front.addr);

    let (reply, charged) = through(url(&front), Some(good.file("cert.pem"))).await;
    assert_eq!((reply.status, charged), (200, 12), "{reply:?}");
    assert_eq!(amounts(&reply), (100, Some(12)));
    assert_eq!(
        provider.requests()[0].header("host"),
        Some(front.addr.to_string().as_str())
    );

    // Answers in plain text at once, without reading.
    let listener = TcpListener::bind(("127.0.0.1", free_port()))
        .await
        .expect("a port");
    let plain = listener.local_addr().expect("an address");
    let plain_server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                .await;
        }
    });
    let other = Certificate::for_names(&["127.0.0.1"]);
    let wrong_name = Certificate::for_names(&["api.example.test"]);
    let impostor = Terminator::start(&wrong_name, provider.addr()).await;
    for (what, base_url, ca_file) in [
        ("unknown to the system", url(&front), None),
        ("of another authority", url(&front), Some(other.file("cert.pem"))),
        (
            "for another name",
            url(&impostor),
            Some(wrong_name.file("cert.pem")),
        ),
        (
            "no TLS at all",
            format!("https://{plain}/v1"),
            Some(good.file("cert.pem")),
        ),
    ] {
        let (reply, charged) = through(base_url, ca_file).await;
        refused(&reply, 502, "upstream_unreachable");
        assert_eq!(
            (charged, reply.header("x-should-retry")),
            (100, Some("false")),
            "{what}"
        );
    }
    plain_server.abort();
    assert_eq!(
        provider.arrived(),
        1,
        "nothing was sent to a server that did not prove its name"
    );
}
