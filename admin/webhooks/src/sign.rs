//! The headers with which a receiver verifies a delivery (decisions D41 and D66): the service's own signature and those
//! of Standard Webhooks, both over the exact bytes of the body.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use domain::printable::is_printable;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue, USER_AGENT};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// Shortest and longest secret, in characters.
pub const SECRET_CHARS: std::ops::RangeInclusive<usize> = 16..=256;
/// `sha256=<hex>` under the secret's own bytes.
pub(crate) const SERVICE_SIGNATURE: HeaderName = HeaderName::from_static("x-service-signature");
/// Header with the service's signature under the previous secret, while both are valid.
pub(crate) const SERVICE_SIGNATURE_OLD: HeaderName = HeaderName::from_static("x-service-signature-old");
/// Header with the delivery's id, the same for every attempt, by which duplicates are recognized.
pub(crate) const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
/// When this attempt was made, in Unix seconds.
pub(crate) const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
/// `v1,<base64>` for each secret, separated by a space.
pub(crate) const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Prefix of a secret whose rest is its key in base64.
const ENCODED_PREFIX: &str = "whsec_";
/// Base64 as receivers' libraries decode it: padded, with any value of the unused bits of its last character.
const READ_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);
const AGENT: &str = concat!("Tollgate-Webhooks/", env!("CARGO_PKG_VERSION"));

/// The secrets of a webhook.
#[derive(Debug, Clone)]
pub struct Secrets {
    /// The secret that was set last.
    pub current: SecretString,
    /// The previous secret, while both are valid.
    pub old: Option<SecretString>,
}

/// Why a text is not a valid secret: a sentence that names the field `secret`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("secret must have 16 to 256 printable characters.")]
pub struct BadSecret;

/// Checks that a text can be a secret.
///
/// # Errors
/// [`BadSecret`] if it is too short or too long, or contains an invisible character.
pub fn check_secret(text: &str) -> Result<(), BadSecret> {
    let fits = SECRET_CHARS.contains(&text.chars().count());
    if fits && text.chars().all(is_printable) {
        Ok(())
    } else {
        Err(BadSecret)
    }
}

/// Returns the headers of an attempt at `at_ms` to deliver `body` under `id`.
///
/// # Errors
/// `id` is not a valid header value.
pub fn headers(
    secrets: &Secrets,
    id: &str,
    at_ms: u64,
    body: &[u8],
) -> Result<HeaderMap, InvalidHeaderValue> {
    let seconds = (at_ms / 1000).to_string();
    let signed: [&[u8]; 5] = [id.as_bytes(), b".", seconds.as_bytes(), b".", body];
    let mut signature = format!("v1,{}", standard(&secrets.current, &signed));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(SERVICE_SIGNATURE, service(&secrets.current, body)?);
    if let Some(old) = &secrets.old {
        headers.insert(SERVICE_SIGNATURE_OLD, service(old, body)?);
        signature = format!("{signature} v1,{}", standard(old, &signed));
    }
    headers.insert(WEBHOOK_ID, HeaderValue::from_str(id)?);
    headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from_str(&seconds)?);
    headers.insert(WEBHOOK_SIGNATURE, HeaderValue::from_str(&signature)?);
    Ok(headers)
}

fn service(secret: &SecretString, body: &[u8]) -> Result<HeaderValue, InvalidHeaderValue> {
    let mac = hmac(secret.expose_secret().as_bytes(), &[body]);
    HeaderValue::from_str(&format!("sha256={}", hex::encode(mac)))
}

fn standard(secret: &SecretString, signed: &[&[u8]]) -> String {
    let secret = secret.expose_secret();
    let encoded = secret.strip_prefix(ENCODED_PREFIX);
    let decoded = encoded.and_then(|encoded| READ_BASE64.decode(encoded).ok());
    let decoded = decoded.filter(|key| !key.is_empty()).map(zeroize::Zeroizing::new);
    let key = decoded.as_ref().map_or(secret.as_bytes(), |key| key.as_slice());
    STANDARD.encode(hmac(key, signed))
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else {
        return Vec::new(); // HMAC accepts keys of any length
    };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests;
