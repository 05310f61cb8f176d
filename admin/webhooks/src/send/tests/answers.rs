//! Tests of receivers' answers, and of receivers that do not answer.

use super::*;

#[tokio::test]
async fn only_2xx_accepts() {
    for status in [200, 201, 202, 204, 299] {
        let attempted = attempt(answer(&format!("HTTP/1.1 {status} X\r\n\r\n")), PATIENT_MS).await;
        assert_eq!(
            (attempted.code, attempted.error.as_deref()),
            (Some(status), None),
            "{status}"
        );
    }
    for status in [101, 400, 401, 404, 410, 429, 500, 503, 599, 600, 999] {
        let attempted = attempt(answer(&format!("HTTP/1.1 {status} X\r\n\r\nwhy")), PATIENT_MS).await;
        assert_eq!(
            (attempted.code, attempted.error),
            (Some(status), Some(format!("answered {status}"))),
        );
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Receiver::start(answer("HTTP/1.1 200 OK\r\n\r\n")).await;
    for status in [300, 301, 302, 303, 304, 307, 308, 399] {
        let location = elsewhere.url("/secret");
        let head = format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let receiver = Receiver::start(answer(&head)).await;
        let attempted = send(&sender(no_names(), PATIENT_MS), &receiver.url("/")).await;
        assert_eq!(
            (attempted.code, attempted.error.as_deref()),
            (Some(status), Some("redirects are not followed"))
        );
        assert_eq!(receiver.hits(), 1);
    }
    assert_eq!(elsewhere.hits(), 0);
}

#[tokio::test]
async fn a_silent_peer_is_awaited_until_the_deadline() {
    let timed_out = "timed out after 300 ms";
    for how in [
        How::Hang,
        How::Ignore,
        How::Drip("", b'H'),
        How::Drip("HTTP/1.1 200 OK\r\nx: ", b'x'),
    ] {
        let shown = format!("{how:?}");
        let attempted = attempt(how, SHORT_MS).await;
        assert_eq!(attempted.error.as_deref(), Some(timed_out), "{shown}");
        assert_failed(&attempted, timed_out);
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_take_the_body_is_not_waited_for_either() {
    static LARGE: [u8; 16 << 20] = [b' '; 16 << 20];
    let receiver = Receiver::start(How::Ignore).await;
    let attempted = send_body(&sender(no_names(), SHORT_MS), &receiver.url("/"), &LARGE).await;
    assert_failed(&attempted, "timed out after 300 ms");
    // The answer counts even if the receiver does not read the whole body.
    let early = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig".to_vec();
    let receiver = Receiver::start(How::AnswerEarly(early)).await;
    let attempted = send_body(&sender(no_names(), PATIENT_MS), &receiver.url("/"), &LARGE).await;
    assert_eq!(
        (attempted.code, attempted.excerpt.as_deref()),
        (Some(413), Some("big"))
    );
}

#[tokio::test]
async fn a_body_that_does_not_end_is_left_alone_after_its_first_bytes() {
    for (head, part) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 10485760\r\n\r\n",
            vec![b'x'; 65536],
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", vec![b'x'; 65536]),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            b"8\r\nxxxxxxxx\r\n".repeat(1000),
        ),
    ] {
        let receiver = Receiver::start(How::Flood(head, part)).await;
        let attempted = send(&sender(no_names(), PATIENT_MS), &receiver.url("/")).await;
        assert_eq!(
            (attempted.code, attempted.accepted()),
            (Some(200), true),
            "{head}"
        );
        assert_eq!(attempted.excerpt, Some("x".repeat(256)), "{head}");
        receiver.cut().await;
    }
}

#[tokio::test]
async fn a_dripping_body_is_not_waited_for() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nslow";
    let receiver = Receiver::start(How::Drip(head, b'.')).await;
    let attempted = send(&sender(no_names(), PATIENT_MS), &receiver.url("/")).await;
    assert!(attempted.accepted());
    let excerpt = attempted.excerpt.unwrap();
    assert!(excerpt.starts_with("slow") && excerpt.len() < 256, "{excerpt}");
    receiver.cut().await;
    // Nor a body that never begins; and the deadline does not cancel the result of the head.
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n".to_vec();
    let attempted = attempt(How::AnswerAndStay(head), 400).await;
    assert_eq!(
        (attempted.code, attempted.error, attempted.excerpt),
        (Some(200), None, None)
    );
}

#[tokio::test]
async fn a_body_that_breaks_off_does_not_matter() {
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf";
    let attempted = attempt(answer(short), PATIENT_MS).await;
    assert_eq!(
        (attempted.accepted(), attempted.excerpt.as_deref()),
        (true, Some("half"))
    );
}

#[tokio::test]
async fn an_excerpt_can_be_shown() {
    let wild = "HTTP/1.1 500 X\r\n\r\n<b>\u{1b}[2J\r\n\u{202e}é\u{0}</b>".as_bytes();
    let attempted = attempt(How::Answer([wild, b"\xff\xfe"].concat()), PATIENT_MS).await;
    assert_eq!(attempted.excerpt.as_deref(), Some("<b>?[2J  ?é?</b>??"));
    let long = format!("HTTP/1.1 500 X\r\n\r\n{}", "é".repeat(200));
    let attempted = attempt(answer(&long), PATIENT_MS).await;
    assert_eq!(attempted.excerpt, Some("é".repeat(128)));
    let squeezed = attempt(
        How::Answer([b"HTTP/1.1 500 X\r\n\r\n".as_slice(), &[0x80; 400]].concat()),
        PATIENT_MS,
    )
    .await;
    assert_eq!(squeezed.excerpt, Some("?".repeat(256)));
}

#[tokio::test]
async fn a_connection_that_ends_early_is_said_to() {
    let closed = "the connection was closed before an answer";
    for how in [
        How::Close,
        answer(""),
        answer("HTTP/1.1 200"),
        answer("HTTP/1.1 200 OK\r\nx: y\r\n"),
        answer("HTTP/1.1 100 Continue\r\n\r\n"),
    ] {
        let shown = format!("{how:?}");
        let attempted = attempt(how, PATIENT_MS).await;
        assert_eq!(attempted.error.as_deref(), Some(closed), "{shown}");
        assert_failed(&attempted, closed);
    }
}

#[tokio::test]
async fn malformed_http_is_reported_as_such() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "220 mail.example.com ESMTP\r\n",
        "-ERR unknown command 'POST'\r\n",
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 99 OK\r\n\r\n",
    ] {
        let attempted = attempt(answer(garbage), PATIENT_MS).await;
        assert_eq!(
            attempted.error.as_deref(),
            Some("the answer is not HTTP"),
            "{garbage:?}"
        );
        assert_failed(&attempted, "the answer is not HTTP");
    }
}

#[tokio::test]
async fn a_large_head_is_not_read_to_its_end() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(20_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    for how in [
        answer(&long),
        answer(&many),
        How::Flood("HTTP/1.1 200 OK\r\n", b"x: y\r\n".to_vec()),
        How::Flood("HTTP/1.1 200 ", vec![b'x'; 1000]),
        How::Flood("", b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        How::Flood(
            "",
            format!("HTTP/1.1 103 Early Hints\r\n{}\r\n", "x: y\r\n".repeat(90)).into_bytes(),
        ),
    ] {
        assert_failed(
            &attempt(how, PATIENT_MS).await,
            "the head of the answer is too large",
        );
    }
    let fits = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(10_000));
    assert!(attempt(answer(&fits), PATIENT_MS).await.accepted());
    let hinted = format!("{}{fits}", "HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n".repeat(100));
    assert!(attempt(answer(&hinted), PATIENT_MS).await.accepted());
}

#[tokio::test]
async fn a_closed_port_is_said_to_refuse() {
    let receiver = Receiver::start(How::Hang).await;
    let url = receiver.url("/");
    drop(receiver);
    tokio::task::yield_now().await; // the listener closes with its task
    assert_failed(
        &send(&sender(no_names(), PATIENT_MS), &url).await,
        "connection refused",
    );
}
