//! Requests executed at most once (decision D26): the record id derived from a caller's idempotency key, and the
//! fingerprint that detects a different request under the same key.

use crate::keys::Realm;
use crypto::virtual_key::CheckSecret;
use domain::chain::canonical;
use domain::id::IdKind;
use entropy::NoEntropy;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Longest idempotency key.
pub const KEY_MAX: usize = 255;

/// Returns whether `key` is valid: 1 to 255 printable ASCII characters.
pub fn is_key(key: &str) -> bool {
    (1..=KEY_MAX).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Identity of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestIdentity {
    /// Id of its record, `int_…`: a function of account, mode, idempotency key and generation, independent of the
    /// route.
    pub id: String,
    /// A new id for a refusal that is not stored under the caller's key (decision D59).
    pub spare_id: String,
    /// Hash of the canonical request.
    pub fingerprint: String,
}

impl RequestIdentity {
    /// Returns the identity of a request to `route` with these fields, amounts in nano-USD. Without a key the id is
    /// random.
    ///
    /// # Errors
    /// [`NoEntropy`] if the operating system has no randomness.
    pub fn new(
        secret: &CheckSecret,
        realm: &Realm,
        key: Option<&str>,
        (route, request): (&str, &Value),
        at_ms: u64,
    ) -> Result<Self, NoEntropy> {
        let id = match key {
            Some(key) => Self::id_of(secret, realm, key, 0),
            None => IdKind::Intent.mint(at_ms)?,
        };
        Ok(Self::named(id, IdKind::Intent.mint(at_ms)?, (route, request)))
    }

    /// Returns the id for an idempotency key: the first one (`generation` 0), or that of a later generation, for a key
    /// whose earlier intents were archived.
    pub fn id_of(secret: &CheckSecret, realm: &Realm, key: &str, generation: usize) -> String {
        let number = generation.to_string();
        let words = ["intent", realm.account(), realm.mode().as_str(), key, &number];
        // The first id has no generation number. Keys contain no line break, so no other key yields the same words.
        let words = if generation == 0 { &words[..4] } else { &words[..] };
        IdKind::Intent.derived(secret.derive(words))
    }

    /// Returns the identity of a request with a known id.
    pub fn named(id: String, spare_id: String, (route, request): (&str, &Value)) -> Self {
        let mut hash = Sha256::new();
        hash.update(route.as_bytes());
        hash.update(b"\n");
        // A request without a canonical form must not equal all other such requests.
        hash.update(canonical(request).unwrap_or_else(|| request.to_string().into_bytes()));
        add_long_integers(&mut hash, request, &mut 0);
        Self {
            id,
            spare_id,
            fingerprint: hex::encode(hash.finalize()),
        }
    }
}

/// Hashes integers that the canonical form rounds, since it writes numbers as doubles: each with its index among all
/// numbers. Requests without such integers keep their fingerprint.
fn add_long_integers(hash: &mut Sha256, value: &Value, position: &mut u64) {
    match value {
        Value::Number(number) => {
            let digits = number.to_string();
            if !number.is_f64() && canonical(number).as_deref() != Some(digits.as_bytes()) {
                // The canonical form contains no line break.
                hash.update(format!("\n{position} {digits}"));
            }
            *position += 1;
        }
        Value::Array(items) => {
            for item in items {
                add_long_integers(hash, item, position);
            }
        }
        Value::Object(fields) => {
            for field in fields.values() {
                add_long_integers(hash, field, position);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::mode::Mode;
    use serde_json::json;

    fn identity(
        account: &str,
        mode: Mode,
        key: Option<&str>,
        route: &str,
        request: &Value,
    ) -> RequestIdentity {
        let secret = CheckSecret::from_stored("00".repeat(32));
        RequestIdentity::new(&secret, &Realm::new(account, mode), key, (route, request), 1).unwrap()
    }

    #[test]
    fn the_key_leads_to_one_id_in_its_account_and_mode() {
        let request = json!({ "amountNanos": "5" });
        let first = identity("acct_1", Mode::Live, Some("k"), "spend", &request);
        assert_eq!(
            identity("acct_1", Mode::Live, Some("k"), "transfer", &request).id,
            first.id
        );
        for (account, mode, key) in [
            ("acct_2", Mode::Live, "k"),
            ("acct_1", Mode::Test, "k"),
            ("acct_1", Mode::Live, "K"),
        ] {
            assert_ne!(identity(account, mode, Some(key), "spend", &request).id, first.id);
        }
        assert_ne!(
            identity("acct_1", Mode::Live, None, "spend", &request).id,
            identity("acct_1", Mode::Live, None, "spend", &request).id
        );
        assert!(
            first.id.starts_with("int_") && first.id.len() == 30,
            "{}",
            first.id
        );
        // Pinned: keys that callers hold must find their records after an upgrade.
        assert_eq!(first.id, "int_7V9AATH1FEDX144AS4QDPNSR26");
    }

    #[test]
    fn each_generation_of_a_key_has_an_id_of_its_own() {
        let secret = CheckSecret::from_stored("00".repeat(32));
        let realm = Realm::new("acct_1", Mode::Live);
        let ids = ["k", "k1", "k 1"]
            .map(|key| [0, 1, 2, 10].map(|n| RequestIdentity::id_of(&secret, &realm, key, n)));
        let all: std::collections::BTreeSet<&String> = ids.iter().flatten().collect();
        assert_eq!(all.len(), 12);
        assert_eq!(
            ids[0][0],
            identity("acct_1", Mode::Live, Some("k"), "spend", &json!({})).id
        );
        // Pinned, like the first one.
        assert_eq!(ids[0][1], "int_5WV0DVHDQHJT76HGHSF4PQA1N7");
    }

    #[test]
    fn the_fingerprint_ignores_order_and_sees_route_and_values() {
        let of =
            |route: &str, request: Value| identity("a", Mode::Live, Some("k"), route, &request).fingerprint;
        let first = of("spend", json!({ "a": "1", "b": { "x": 1, "y": [1.0] } }));
        assert_eq!(of("spend", json!({ "b": { "y": [1], "x": 1 }, "a": "1" })), first);
        assert_ne!(of("spend", json!({ "b": { "y": [2], "x": 1 }, "a": "1" })), first);
        assert_ne!(
            of("transfer", json!({ "a": "1", "b": { "x": 1, "y": [1] } })),
            first
        );
    }

    #[test]
    fn integers_beyond_doubles_are_seen_by_every_digit() {
        let of = |text: &str| {
            let request = serde_json::from_str(text).unwrap();
            identity("a", Mode::Live, Some("k"), "spend", &request).fingerprint
        };
        for alike in [
            [r#"{"n":9007199254740992}"#, r#"{"n":9007199254740993}"#],
            [r#"{"n":-9007199254740993}"#, r#"{"n":-9007199254740992}"#],
            [r#"{"n":18446744073709551615}"#, r#"{"n":18446744073709551614}"#],
            [r#"{"n":9223372036854775808}"#, r#"{"n":9223372036854775807}"#],
            [r#"{"n":9007199254740993}"#, r#"{"n":"9007199254740993"}"#],
            [r#"{"n":9007199254740993}"#, r#"{"n":9007199254740992.0}"#],
            // Only the position differs.
            [
                r#"{"n":[9007199254740992,{"m":9007199254740993}]}"#,
                r#"{"n":[9007199254740993,{"m":9007199254740992}]}"#,
            ],
            [
                r#"{"a":9007199254740993,"b":9007199254740992}"#,
                r#"{"a":9007199254740992,"b":9007199254740993}"#,
            ],
        ] {
            assert_ne!(of(alike[0]), of(alike[1]), "{alike:?}");
        }
        assert_eq!(
            of(r#"{"a":9007199254740993,"b":[1]}"#),
            of(r#"{ "b": [1.0], "a": 9007199254740993 }"#)
        );
        // Pinned: requests are known again after an upgrade.
        for (text, fingerprint) in [
            (
                r#"{"a":"1","b":{"x":-1,"y":[1.5,1e30,null,true]},"n":9007199254740991}"#,
                "ac7a43d69b16051f0f8d335129e82086e6a5ff3f2dfaa3d454a6cd0190135a32",
            ),
            (
                r#"{"n":9007199254740992}"#,
                "c7c2a99d920b102ffa7e812c44cdc2d126b2be6df89335b4473915a91a87f9ee",
            ),
        ] {
            assert_eq!(of(text), fingerprint, "{text}");
        }
    }

    #[test]
    fn keys_are_printable_ascii() {
        assert!(is_key("a") && is_key("a b~") && is_key(&"x".repeat(255)));
        for bad in ["", "é", "a\n", "a\u{7f}", &"x".repeat(256)] {
            assert!(!is_key(bad), "{bad:?}");
        }
    }
}
