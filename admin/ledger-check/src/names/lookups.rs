//! The look-ups of keys, compared with the records that they lead to.

use super::{KeyLookup, KeyRecordKind};
use crate::drive::{Job, drive};
use crate::pass::Pass;
use crate::violation::Invariant;
use store::StoreError;
use store::keys::AccountKeys;
use store::lookup::{ApiKeyOwner, VirtualKeyOwner};
use store::read::{Answers, Read};

/// The fields of a key's record that are compared. Each record has the last one.
const FIELDS: [&str; 4] = ["hash", "agent", "revoked_at", "created_at"];

impl Pass<'_> {
    /// Processes the look-up of a key.
    pub(crate) fn key_lookup(&mut self, kind: KeyRecordKind, lookup: String, mut answers: Answers) {
        // Announced, and expired between the scan and the read.
        let Some(text) = answers.text() else { return };
        let owner = match kind {
            KeyRecordKind::Virtual => VirtualKeyOwner::parse(&text).map(|owner| {
                let account = AccountKeys::new(owner.account());
                let agent = Some(owner.agent().to_owned());
                (account.virtual_key(owner.key_id()), account, agent)
            }),
            KeyRecordKind::Api => ApiKeyOwner::parse(&text).map(|owner| {
                let account = AccountKeys::new(&owner.account);
                (account.api_key(&owner.key_id), account, None)
            }),
        };
        let Some((record, account, agent)) = owner else {
            return self.add_violation(Invariant::Names, &[&lookup], "it names no key");
        };
        self.names.key_lookups.push(KeyLookup {
            lookup,
            record,
            account,
            agent,
        });
    }

    /// Reads the records that the collected look-ups lead to. A look-up and the hash in the record never change, so
    /// both can be read at different times. A look-up without a record is that of a key that is being created, or was
    /// removed.
    pub(super) async fn read_looked_up_keys(&mut self) -> Result<(), StoreError> {
        let lookups = std::mem::take(&mut self.names.key_lookups);
        let jobs = lookups.into_iter().map(|lookup| {
            let read = Read::fields(lookup.account.bucket(), &lookup.record, &FIELDS);
            Job::new([read], lookup)
        });
        drive(self.store, jobs, |lookup, mut answers| {
            let fields = answers.read::<[Option<String>; 4]>().unwrap_or_default();
            let [hash, agent, None, Some(_)] = fields else {
                return;
            };
            let presented = lookup.lookup.rsplit('/').next().unwrap_or_default();
            let other_agent = agent.zip(lookup.agent).filter(|(own, named)| own != named);
            let detail = match (hash, other_agent) {
                (Some(hash), _) if hash != presented => Some(
                    "a look-up of another hash leads to the key: whoever has that secret can use it"
                        .to_owned(),
                ),
                (_, Some((own, named))) => {
                    Some(format!("its look-up names the agent {named} instead of {own}"))
                }
                (_, None) => None,
            };
            if let Some(detail) = detail {
                self.add_violation(Invariant::Names, &[&lookup.record, &lookup.lookup], detail);
            }
        })
        .await
    }
}
