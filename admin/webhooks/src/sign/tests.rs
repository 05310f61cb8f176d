//! Signatures against the published example, against HMAC written out by hand, and during a change of secrets.

use super::*;
use sha2::Digest;

fn secrets(current: &str, old: Option<&str>) -> Secrets {
    Secrets {
        current: current.into(),
        old: old.map(SecretString::from),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers[name].to_str().unwrap()
}

/// Computes HMAC-SHA256 by its definition (RFC 2104), for keys of at most one block.
fn by_hand(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

#[test]
fn the_published_example_of_standard_webhooks_is_met() {
    let secrets = secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", None);
    let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    let headers = headers(&secrets, id, 1_614_265_330_999, br#"{"test": 2432232314}"#).unwrap();
    assert_eq!(
        text(&headers, &WEBHOOK_SIGNATURE),
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    );
    assert_eq!(text(&headers, &WEBHOOK_ID), id);
    assert_eq!(text(&headers, &WEBHOOK_TIMESTAMP), "1614265330");
}

#[test]
fn the_service_signature_is_over_the_bytes_under_the_secret_as_it_stands() {
    // RFC 4231, test case 2 has a key that is too short as a secret; the function is tested with it nevertheless.
    let known = hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
    assert_eq!(
        hex::encode(&known),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
    for secret in [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "0123456789abcdef",
        "süß, nicht wahr?",
    ] {
        let body = b"{\"a\":\"\xc3\xa9\"}\n\xff";
        let headers = headers(&secrets(secret, None), "msg_1", 0, body).unwrap();
        let expected = hex::encode(by_hand(secret.as_bytes(), body));
        assert_eq!(text(&headers, &SERVICE_SIGNATURE), format!("sha256={expected}"));
    }
}

#[test]
fn the_key_is_decoded_only_from_the_form_that_says_so() {
    let signed = |secret: &str| {
        let headers = headers(&secrets(secret, None), "msg_1", 5_000, b"{}").unwrap();
        text(&headers, &WEBHOOK_SIGNATURE).to_owned()
    };
    let under = |key: &[u8]| format!("v1,{}", STANDARD.encode(by_hand(key, b"msg_1.5.{}")));
    assert_eq!(
        signed("whsec_AAECAwQFBgcICQ=="),
        under(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    );
    assert_eq!(
        signed("whsec_AAECAwQFBgcICR=="),
        under(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        "unused bits do not matter to receivers' libraries"
    );
    for literal in [
        "AAECAwQFBgcICQ==",
        "whsec_not base64 at all",
        "whsec_AAECAwQFBgcICQ",
        "WHSEC_AAECAwQFBgcICQ==",
        "whsec_",
    ] {
        assert_eq!(signed(literal), under(literal.as_bytes()), "{literal}");
    }
}

#[test]
fn both_secrets_sign_while_both_are_good() {
    let (new, old) = ("the new secret, 2026", "whsec_AAECAwQFBgcICQ==");
    let body = br#"{"type":"wallet.deposit"}"#;
    let both = headers(&secrets(new, Some(old)), "msg_2", 9_000, body).unwrap();
    let only_new = headers(&secrets(new, None), "msg_2", 9_000, body).unwrap();
    let only_old = headers(&secrets(old, None), "msg_2", 9_000, body).unwrap();
    assert_eq!(
        text(&both, &WEBHOOK_SIGNATURE),
        format!(
            "{} {}",
            text(&only_new, &WEBHOOK_SIGNATURE),
            text(&only_old, &WEBHOOK_SIGNATURE)
        )
    );
    assert_eq!(both[SERVICE_SIGNATURE], only_new[SERVICE_SIGNATURE]);
    assert_eq!(both[SERVICE_SIGNATURE_OLD], only_old[SERVICE_SIGNATURE]);
    assert!(!only_new.contains_key(SERVICE_SIGNATURE_OLD));
    assert_ne!(only_new[SERVICE_SIGNATURE], only_old[SERVICE_SIGNATURE]);
}

#[test]
fn the_kind_and_the_sender_are_named_and_nothing_else_is_sent() {
    let headers = headers(&secrets("0123456789abcdef", None), "msg_3", 0, b"{}").unwrap();
    assert_eq!(headers[CONTENT_TYPE], "application/json");
    assert!(text(&headers, &USER_AGENT).starts_with("Tollgate-Webhooks/"));
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "content-type",
            "user-agent",
            "webhook-id",
            "webhook-signature",
            "webhook-timestamp",
            "x-service-signature"
        ]
    );
}

#[test]
fn an_id_that_is_no_header_value_is_refused() {
    let secrets = secrets("0123456789abcdef", None);
    assert!(headers(&secrets, "msg\r\nx: y", 0, b"{}").is_err());
}

#[test]
fn secrets_have_16_to_256_printable_characters() {
    let wide = "ß".repeat(256);
    for good in [
        "0123456789abcdef",
        "whsec_MfKQ9r8GKYqrTwjU",
        "with spaces, too",
        &wide,
    ] {
        assert_eq!(check_secret(good), Ok(()), "{good}");
    }
    let long = "a".repeat(257);
    for bad in [
        "",
        "0123456789abcde",
        "ßßßßßßßß",
        "0123456789abcdef\n",
        "0123456789\tabcdef",
        "0123456789\u{0}abcdef",
        "0123456789\u{7f}abcdef",
        "0123456789\u{200b}abcdef",
        "0123456789\u{202e}abcdef",
        &long,
    ] {
        assert_eq!(check_secret(bad), Err(BadSecret), "{bad:?}");
    }
    assert_eq!(
        BadSecret.to_string(),
        "secret must have 16 to 256 printable characters."
    );
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?}", secrets("0123456789abcdef", Some("fedcba9876543210")));
    assert!(!shown.contains("0123") && !shown.contains("fedc"), "{shown}");
}
