//! Twin of `reseal.lua`: rotation of the master key for one provider key.

use crate::keys;
use crate::script::change::{CHANGE, Event, Scope};
use crate::script::reply::Reply;
use crate::script::script;
use crate::{Store, StoreError};
use domain::mode::Mode;
use serde_json::json;

script! {
    /// Replaces an agent's sealed provider key.
    pub static RESEAL = "reseal",
    source: [CHANGE, include_str!("reseal.lua")],
    when_full: Refuse,
    keys: struct ResealKeys: String { agent },
    /// `old` and `new` are sealed texts.
    args: struct ResealArgs<'a>: &'a str { field, old, new },
}

/// A provider key, sealed again.
#[derive(Debug)]
pub struct Reseal<'a> {
    /// Account id, `acct_…`.
    pub account: &'a str,
    /// Agent id.
    pub agent: &'a str,
    /// Name of the provider.
    pub provider: &'a str,
    /// The provider key's id.
    pub key_id: &'a str,
    /// Its old sealed text.
    pub old: &'a str,
    /// Its text under the newest master key.
    pub new: &'a str,
    /// The actor in the audit log.
    pub actor: &'a str,
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resealed {
    /// The new text is stored.
    Done,
    /// The stored key is another one, or removed; nothing changed.
    Changed,
}

impl Reseal<'_> {
    /// Replaces the old text by the new one.
    /// Safe to retry.
    pub async fn execute(&self, store: &Store) -> Result<Resealed, StoreError> {
        let scope = Scope::live(self.account, self.actor);
        let data = json!({ "provider": self.provider, "keyId": self.key_id });
        let event = Event::new("keys.rotated", data).with_agent(self.agent);
        let keys = ResealKeys {
            agent: scope.keys().agent(Mode::Live, self.agent),
        };
        let args = ResealArgs {
            field: &keys::provider_key_sealed_field(self.provider),
            old: self.old,
            new: self.new,
        };
        Resealed::read(scope.execute(store, &RESEAL, event, keys, args).await?)
    }
}

impl Resealed {
    /// Reads the reply of a script that replaces a sealed text.
    pub(crate) fn read(mut reply: Reply) -> Result<Self, StoreError> {
        match reply.word()?.as_str() {
            "done" => Ok(Self::Done),
            "changed" | "no_account" => Ok(Self::Changed),
            _ => reply.unexpected(),
        }
    }
}
