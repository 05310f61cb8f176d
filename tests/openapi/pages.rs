//! The documents and the pages made of them, as the admin server serves them to anyone.

use crate::fixture::Fixture;

#[tokio::test]
async fn documents_and_pages_are_public_and_guarded() {
    let fixture = Fixture::start().await;
    let anyone = fixture.installation.admin.caller("");
    for (path, kind, holds) in [
        ("/openapi.json", "application/json", "\"createAgent\""),
        (
            "/openapi-proxy.json",
            "application/json",
            "\"createChatCompletion\"",
        ),
        (
            "/reference",
            "text/html; charset=utf-8",
            "Make an agent with its wallet",
        ),
        (
            "/reference/proxy",
            "text/html; charset=utf-8",
            "Make a metered call",
        ),
    ] {
        let reply = anyone.get(path).await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some(kind)),
            "{path}"
        );
        assert!(reply.text().contains(holds), "{path}");
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{policy}"
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert!(reply.header("x-request-id").is_some());
        let tag = reply.header("etag").expect("a tag").to_owned();
        let again = anyone.send("GET", path, &[("if-none-match", &tag)], "").await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        assert_eq!(anyone.send("POST", path, &[], "").await.status, 405, "{path}");
    }
    let page = anyone.get("/reference").await.text();
    let style = page
        .split("rel=\"stylesheet\" href=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a stylesheet");
    let style = anyone.get(style).await;
    assert_eq!(
        (style.status, style.header("content-type")),
        (200, Some("text/css; charset=utf-8"))
    );
}

#[tokio::test]
async fn the_served_document_is_the_checked_in_one() {
    let fixture = Fixture::start().await;
    for (path, file) in [
        ("/openapi.json", "management.json"),
        ("/openapi-proxy.json", "edge.json"),
    ] {
        let served = fixture.installation.admin.caller("").get(path).await;
        let kept = std::fs::read_to_string(format!("{}/docs/reference/openapi/{file}", harness::REPOSITORY))
            .expect("a file");
        assert_eq!(served.text(), kept, "{path}");
    }
}
