//! Every way in which a provider can misbehave, on request.

use super::*;
use harness::assert_fields;
use std::io::Read as _;
use std::time::Instant;

#[tokio::test]
async fn errors_come_by_header_and_by_model_in_the_providers_shape() {
    let caller = caller().await;
    for (status, kind, code) in [
        (400, "invalid_request_error", "invalid_value"),
        (401, "invalid_request_error", "invalid_api_key"),
        (403, "invalid_request_error", "model_not_found"),
        (404, "invalid_request_error", "model_not_found"),
        (409, "invalid_request_error", ""),
        (429, "requests", "rate_limit_exceeded"),
        (500, "server_error", ""),
        (503, "server_error", "overloaded"),
        (529, "server_error", ""),
    ] {
        let by_header = send(&caller, &status.to_string()).await;
        let by_model = caller
            .chat(chat_body(&format!("sandbox-{status}"), "hello"))
            .await;
        for reply in [by_header, by_model] {
            assert_eq!(
                (reply.status, reply.error_code().as_str()),
                (status, code),
                "{reply:?}"
            );
            let error = &reply.json()["error"];
            assert_fields!(error, { "type": kind, "param": null }, "{reply:?}");
            assert!(
                error["message"]
                    .as_str()
                    .is_some_and(|message| message.len() > 10),
                "{reply:?}"
            );
            assert!(reply.header("x-request-id").is_some());
        }
    }
    let words = ["", "200", "302", "600", "nonsense", "HANG"];
    let values = ["slow:", "slow:x", "stream:x", "stream:delay", "usage:", "usage:{"];
    let numbers = ["cost:1", "huge:-1", "huge:999999999999"];
    for unknown in words.into_iter().chain(values).chain(numbers) {
        let reply = send(&caller, unknown).await;
        assert_eq!(reply.error_code(), "sandbox_unknown_scenario", "{unknown}");
    }
}

#[tokio::test]
async fn a_refused_option_of_a_stream_is_named() {
    let caller = caller().await;
    for (scenario, says) in [
        ("stream:delay=5,speed=1", "`speed=1`"),
        ("stream:events=1000001", "`events=1000001`"),
        ("stream:events=9,eol=no", "`eol=no`"),
        ("stream:events=1000000,bytes=1000", "256 MiB"),
    ] {
        let reply = send(&caller, scenario).await;
        assert_eq!(reply.error_code(), "sandbox_unknown_scenario", "{scenario}");
        let message = reply.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains(says), "{scenario}: {message}");
    }
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let reply = send(&caller().await, "429").await;
    assert_eq!(
        (
            reply.header("retry-after"),
            reply.header("x-ratelimit-remaining-requests")
        ),
        (Some("20"), Some("0"))
    );
    assert_eq!(reply.header("x-ratelimit-reset-requests"), Some("20s"));
}

/// Errors with key fragments, which the edge has to remove.
#[tokio::test]
async fn a_wrong_key_is_echoed_in_part() {
    let message = send(&caller().await, "401").await.json()["error"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.starts_with("Incorrect API key provided: sk-sandb") && message.contains("*cdef."),
        "{message}"
    );
    assert!(!message.contains(KEY));
}

#[tokio::test]
async fn usage_is_as_requested() {
    let caller = caller().await;
    assert!(send(&caller, "no-usage").await.json().get("usage").is_none());
    assert_fields!(send(&caller, "cost:100, 20").await.json()["usage"], { "total_tokens": 120 });
    for literal in ["{}", "null", "{\"prompt_tokens\":-5}", "{\"prompt_tokens\":1e30}"] {
        let text = send(&caller, &format!("usage:{literal}")).await.text();
        assert!(text.ends_with(&format!("\"usage\":{literal}}}")), "{text}");
    }
}

#[tokio::test]
async fn answers_come_compressed_and_in_chunks() {
    let caller = caller().await;
    let plain = send(&caller, "ok").await;
    assert!(plain.header("content-length").is_some() && plain.header("content-encoding").is_none());

    let gzip = send(&caller, "gzip").await;
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&gzip.body[..])
        .read_to_string(&mut text)
        .unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["usage"], plain.json()["usage"]);

    let chunked = send(&caller, "chunked").await;
    assert_eq!(
        (
            chunked.header("transfer-encoding"),
            chunked.header("content-length")
        ),
        (Some("chunked"), None)
    );
    assert_eq!(chunked.json()["usage"], plain.json()["usage"]);
}

#[tokio::test]
async fn answers_break_off() {
    let address = start(Duration::ZERO).await;
    let caller = Caller::new(&format!("http://{address}"), KEY);
    for scenario in ["reset", "truncate"] {
        let headers = [("x-sandbox-scenario", scenario)];
        let body = chat_body("gpt-4o-mini", "hello").to_string();
        let answer = caller
            .try_send("POST", "/v1/chat/completions", &headers, body.clone())
            .await;
        assert!(answer.is_err(), "{scenario}: {answer:?}");

        let mut raw = RawClient::connect(address).await;
        assert!(
            raw.send_chat(
                KEY,
                &format!("x-sandbox-scenario: {scenario}\r\n"),
                body.as_bytes()
            )
            .await
        );
        let received = String::from_utf8(raw.read_to_end(Duration::from_secs(5)).await).unwrap();
        assert!(
            received.starts_with("HTTP/1.1 200") && received.contains("chatcmpl-"),
            "{scenario}: {received}"
        );
        assert!(
            !received.contains("total_tokens"),
            "{scenario}: the end is missing: {received}"
        );
        assert_eq!(
            received.contains("content-length:"),
            scenario == "truncate",
            "{scenario}: {received}"
        );
    }
    assert_eq!(send(&caller, "ok").await.status, 200, "it goes on");
}

#[tokio::test]
async fn a_redirect_leads_nowhere() {
    let reply = send(&caller().await, "redirect").await;
    assert_eq!(
        (reply.status, reply.header("location")),
        (302, Some("/v1/elsewhere"))
    );
}

#[tokio::test]
async fn a_huge_answer_is_exactly_that_long_and_still_json() {
    let caller = caller().await;
    for bytes in [1, 100_000, 5 << 20] {
        let reply = send(&caller, &format!("huge:{bytes}")).await;
        assert_eq!(
            reply.header("content-length"),
            Some(reply.body.len().to_string().as_str())
        );
        assert!(
            reply.body.len() == bytes || bytes == 1,
            "{bytes}: {}",
            reply.body.len()
        );
        assert_eq!(reply.json()["usage"]["prompt_tokens"], 2 + 4);
    }
}

#[tokio::test]
async fn answers_wait() {
    let address = start(Duration::from_millis(80)).await;
    let caller = Caller::new(&format!("http://{address}"), KEY);
    let began = Instant::now();
    assert_eq!(send(&caller, "ok").await.status, 200);
    assert!(
        began.elapsed() >= Duration::from_millis(80),
        "the sandbox's own delay"
    );
    let began = Instant::now();
    assert_eq!(send(&caller, "slow:200").await.status, 200);
    assert!(
        began.elapsed() >= Duration::from_millis(280),
        "and the scenario's"
    );
    let hanging = tokio::time::timeout(Duration::from_millis(500), send(&caller, "hang")).await;
    assert!(hanging.is_err(), "{hanging:?}");
    harness::until("a caller who hung up is no longer in flight", async || {
        stats(&caller).await["in_flight"] == 0
    })
    .await;
}
