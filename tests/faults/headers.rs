//! Malformed headers of a call (decisions D34, D63), and odd requests that are no fault.

use crate::bodies::{JSON, nested, refused, untouched, with};
use crate::stage::{SOON, Setup};
use harness::RawReply;

/// Headers, the code of their refusal, and a part of its message.
type Refused<'a> = (&'a [(&'a str, &'a str)], &'static str, &'static str);

#[tokio::test]
async fn every_malformed_header_is_a_400_that_names_it() {
    let stage = Setup::default().start().await;
    let caller = stage.edge.caller(&stage.key);
    let long = "r".repeat(201);
    let cases: [Refused; 12] = [
        (
            &[("content-encoding", "gzip")],
            "invalid_json",
            "Content-Encoding",
        ),
        (
            &[("content-encoding", "identity")],
            "invalid_json",
            "Content-Encoding",
        ),
        (&[("content-encoding", "")], "invalid_json", "Content-Encoding"),
        (&[("content-type", "text/plain")], "invalid_json", "Content-Type"),
        (
            &[("content-type", "application/jsonx")],
            "invalid_json",
            "Content-Type",
        ),
        (
            &[("content-type", JSON), ("content-type", JSON)],
            "invalid_json",
            "Content-Type",
        ),
        (&[("x-service-run-id", "")], "invalid_run_id", "X-Service-Run-Id"),
        (
            &[("x-service-run-id", "a b")],
            "invalid_run_id",
            "X-Service-Run-Id",
        ),
        (
            &[("x-service-run-id", "a/b")],
            "invalid_run_id",
            "X-Service-Run-Id",
        ),
        (&[("x-service-run-id", "ü")], "invalid_run_id", "X-Service-Run-Id"),
        (
            &[("x-service-run-id", &long)],
            "invalid_run_id",
            "X-Service-Run-Id",
        ),
        (
            &[("x-service-run-id", "a"), ("x-service-run-id", "a")],
            "invalid_run_id",
            "X-Service-Run-Id",
        ),
    ];
    for (headers, code, names) in cases {
        let reply = caller
            .send("POST", "/v1/chat/completions", headers, with(""))
            .await;
        refused(&reply, code, names, &format!("{headers:?}"));
    }
    let mut raw = stage.raw().await;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: e\r\nx-api-key: {}\r\n",
        stage.key
    );
    let length = with("").len();
    assert!(raw.send(format!("{head}Content-Length: {length}\r\n\r\n")).await && raw.send(with("")).await);
    let untyped: RawReply = raw.reply(SOON).await.expect("an answer");
    assert!(
        untyped.status == 400 && untyped.text().contains("Content-Type"),
        "{untyped:?}"
    );
    untouched(&stage, cases.len() + 1).await;
}

#[tokio::test]
async fn what_is_only_unusual_is_forwarded_as_it_is() {
    let stage = Setup::default().start().await;
    let caller = stage.edge.caller(&stage.key);
    let unusual = [
        nested(128),
        with(r#","n":null,"stream":null,"max_tokens":null,"max_completion_tokens":null"#),
        with(r#","stream":false,"n":128,"max_tokens":1"#),
        with(r#","x":1e-400,"y":-0.0,"z":123456789012345678901234567890"#),
        [b" \n", &with("")[..], b" \r\n\t "].concat(),
        br#"{"messages":[{"a":1,"a":2}],"model":"\u0067pt-4o-mini"}"#.to_vec(),
    ];
    for (at, body) in unusual.iter().enumerate() {
        let headers = [("content-type", "application/json; charset=utf-8")];
        let reply = caller
            .send("POST", "/v1/chat/completions", &headers, body.clone())
            .await;
        assert_eq!(reply.status, 200, "{}: {reply:?}", String::from_utf8_lossy(body));
        assert_eq!(stage.upstream.requests()[at].body, *body, "byte for byte");
    }
    assert_eq!(stage.upstream.arrived(), unusual.len());
}
