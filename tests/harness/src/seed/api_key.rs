//! Seeding an API key, as the product issues one.

use super::{SeedAccount, mint};
use crypto::api_key::Family;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::permission::Permission;
use secrecy::ExposeSecret;
use store::api_key::script::{ApiKeyCreated, NewApiKey};

/// A freshly issued API key.
#[derive(Debug, Clone)]
pub struct SeedApiKey {
    /// Its id.
    pub id: String,
    /// The secret that callers send.
    pub secret: String,
}

impl SeedAccount {
    /// Issues an API key of this account with all permissions; returns its secret.
    pub async fn api_key(&self, mode: Mode) -> String {
        self.issue(mode, &Permission::ALL, &[], None).await.secret
    }

    /// Issues an API key of this account with these permissions, networks and expiry.
    pub async fn issue(
        &self,
        mode: Mode,
        permissions: &[Permission],
        allow_ips: &[&str],
        expires_at_ms: Option<u64>,
    ) -> SeedApiKey {
        let id = mint(IdKind::ApiKey);
        let secret = Family::Svc.mint(mode).expect("a secret");
        let networks = allow_ips.iter().map(|text| text.parse().expect("a network"));
        let key = NewApiKey {
            account: &self.id,
            key_id: &id,
            name: "",
            mode,
            secret: &secret,
            permissions,
            allow_ips: &networks.collect::<Vec<_>>(),
            expires_at_ms,
            actor: "test",
        };
        let created = key.create(&self.seed.store).await.expect("an API key");
        assert_eq!(created, ApiKeyCreated::Done, "of {}", self.id);
        SeedApiKey {
            id,
            secret: secret.expose_secret().to_owned(),
        }
    }
}
