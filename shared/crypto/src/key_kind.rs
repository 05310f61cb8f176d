//! Kinds of credentials, recognized by their prefix. The answer to the wrong kind names the kind that was sent.

use crate::api_key::Family;
use domain::mode::Mode;

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A virtual key, for the edge.
    Virtual,
    /// An API key, for the management API.
    Api,
    /// A provider's key with the usual prefix.
    Provider,
}

/// Common start of the prefixes of virtual keys.
const VIRTUAL: &[u8] = b"vk_";
/// Usual prefix of providers' keys.
const PROVIDER: &[u8] = b"sk-";

impl KeyKind {
    /// Returns the kind of `key` by its prefix. The rest of the key may be malformed.
    pub fn from_prefix(key: &[u8]) -> Option<Self> {
        let families = [Family::Svc, Family::SkService];
        let mut api = families
            .iter()
            .flat_map(|family| [Mode::Live, Mode::Test].map(|mode| family.prefix(mode)));
        if key.starts_with(VIRTUAL) {
            Some(Self::Virtual)
        } else if api.any(|prefix| key.starts_with(prefix.as_bytes())) {
            Some(Self::Api)
        } else if key.starts_with(PROVIDER) {
            Some(Self::Provider)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_determines_the_kind() {
        for (key, kind) in [
            ("vk_live_00", Some(KeyKind::Virtual)),
            ("svc_live_00", Some(KeyKind::Api)),
            ("svc_test_00", Some(KeyKind::Api)),
            ("sk_service_live_00", Some(KeyKind::Api)),
            ("sk_service_test_00", Some(KeyKind::Api)),
            ("sk-proj-00", Some(KeyKind::Provider)),
            ("svc_", None),
            ("Bearer vk_live_00", None),
            ("", None),
        ] {
            assert_eq!(KeyKind::from_prefix(key.as_bytes()), kind, "{key}");
        }
    }
}
