//! A store that an edge cannot use at all: a wrong password, missing rights, nobody listening, an untrusted
//! certificate.

use crate::fixture::{PROXY, SOON, Setup, metric};
use harness::{Edge, EdgeOptions, eventually, until};

/// An edge that may not use its store says why on `/readyz` and once in its log, with the address, without a secret.
#[tokio::test]
async fn an_edge_says_why_it_cannot_use_its_store() {
    let fixture = Setup::default().start().await;
    let _: String = fixture
        .redis
        .command(&["ACL", "SETUSER", "weak", "on", ">secret-word", "+@connection"]);
    let (port, closed) = (fixture.redis.port(), harness::ClosedPort::take());
    let nobody = closed.address().port();
    let (untrusted, _) = fixture.redis.open_tls_port();
    for (scheme, user, port, why, kind) in [
        (
            "redis",
            "stranger:secret-word@",
            port,
            "rejected the credentials",
            "refused",
        ),
        ("redis", "weak:secret-word@", port, "NOPERM", "refused"),
        ("redis", "", nobody, "refused", "unreachable"),
        (
            "rediss",
            "default:secret-word@",
            untrusted,
            "certificate is not trusted",
            "unreachable",
        ),
    ] {
        let url = format!("{scheme}://{user}127.0.0.1:{port}");
        let options = EdgeOptions::new(PROXY, url, fixture.upstream.base_url());
        let edge = Edge::start(options.until_alive());
        let (reason, shown) = (
            || edge.ops("/readyz").unwrap_or_default().1,
            format!("the store's address is {scheme}://127.0.0.1:{port}"),
        );
        until(why, async || reason().contains(why)).await;
        assert!(reason().contains(&shown), "{}", reason());
        assert!(
            metric(
                &edge,
                &format!("tollgate_proxy_store_errors_total{{kind=\"{kind}\"}}")
            ) > 0
        );
        let nonsense = "tollgate_proxy_store_errors_total{kind=\"nonsense\"}";
        assert_eq!(metric(&edge, nonsense), 0, "{why}");
        let lines = |part: &str| {
            let logs = edge.logs();
            logs.lines().filter(|line| line.contains(part)).count()
        };
        until("a line", async || lines("every call is denied") > 0).await;
        assert_eq!((lines(&shown), lines("secret-word")), (1, 0), "{}", edge.logs());
        if why == "NOPERM" {
            let _: String = fixture
                .redis
                .command(&["ACL", "SETUSER", "weak", "allkeys", "+@all"]);
            until("readiness", async || reason() == "ok\n").await;
            let ended = async || (lines("the store may be used again") == 1).then_some(());
            eventually("a line", SOON, ended).await;
        }
    }
}
