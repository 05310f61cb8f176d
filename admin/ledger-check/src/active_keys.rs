//! Keys in force: active virtual keys have a record and are in the list of their agent, and no key is in force that the
//! trail says was revoked.

use super::book::AccountMode;
use super::drive::{BATCH, Job, drive};
use super::pass::Pass;
use super::violation::Invariant;
use domain::entry::Entry;
use store::StoreError;
use store::read::Read;

impl Pass<'_> {
    /// Compares active virtual keys with their records and the lists of their agents.
    pub(super) async fn compare_active_keys(&mut self, account_mode: AccountMode) -> Result<(), StoreError> {
        let (store, realm) = (self.store, self.accounts.realm(account_mode));
        let (bucket, keys) = (realm.bucket(), realm.keys());
        let ids = self.members(account_mode, &keys.active_keys()).await?;
        let jobs = ids.into_iter().map(|id| {
            let read = Read::field(bucket, keys.virtual_key(&id), "agent");
            Job::new([read], id)
        });
        let mut wanted = Vec::new();
        drive(store, jobs, |id, mut answers| {
            wanted.push((id, answers.text().unwrap_or_default()));
        })
        .await?;
        let fields = ["agent", "revoked_at"];
        let reads = |(id, agent): &(String, String)| {
            vec![
                Read::score(bucket, keys.active_keys(), id),
                Read::fields(bucket, keys.virtual_key(id), &fields),
                Read::score(bucket, keys.agent_keys(agent), id),
            ]
        };
        let mut faults = Vec::new();
        let (_, is_sure) = self
            .read_between_entries(account_mode, wanted, reads, |(id, agent), _, mut answers| {
                let is_active = answers.read::<Option<f64>>().flatten().is_some();
                let record = answers.read::<[Option<String>; 2]>().unwrap_or_default();
                let is_listed = answers.read::<Option<f64>>().flatten().is_some();
                let detail = match record {
                    _ if !is_active => return,
                    [None, _] => "the key is active, but has no record",
                    [_, Some(_)] => "the key is active, but was revoked",
                    [Some(own), None] if own == agent && !is_listed => {
                        "the key is active, but the list of its agent's keys lacks it"
                    }
                    _ => return,
                };
                let records = vec![keys.virtual_key(&id), keys.active_keys()];
                faults.push((records, detail.to_owned()));
            })
            .await?;
        self.report_policies(account_mode, faults, is_sure, "its active keys");
        Ok(())
    }

    /// Processes an audit entry: collects keys that it says were revoked.
    pub(super) async fn trail_key(
        &mut self,
        account_mode: AccountMode,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        if matches!(entry.kind.as_str(), "virtual_key.revoked" | "api_key.revoked")
            && let Some(id) = entry.data.get("keyId").and_then(|id| id.as_str())
        {
            let revoked = &mut self.page(account_mode).revoked_keys;
            revoked.push(id.to_owned());
            if revoked.len() >= BATCH {
                return self.check_revoked_keys(account_mode).await;
            }
        }
        Ok(())
    }

    /// Checks that no key is in force that the trail says was revoked. No key is ever restored.
    pub(super) async fn check_revoked_keys(&mut self, account_mode: AccountMode) -> Result<(), StoreError> {
        let ids = std::mem::take(&mut self.page(account_mode).revoked_keys);
        let (realm, store) = (self.accounts.realm(account_mode), self.store);
        let (bucket, keys) = (realm.bucket(), realm.keys());
        let fields = ["created_at", "revoked_at"];
        let jobs = ids.into_iter().map(|id| {
            let reads = [
                Read::score(bucket, keys.active_keys(), &id),
                Read::fields(bucket, keys.api_key(&id), &fields),
            ];
            Job::new(reads, id)
        });
        drive(store, jobs, |id, mut answers| {
            let is_active = answers.read::<Option<f64>>().flatten().is_some();
            let api_key = answers.read::<[Option<String>; 2]>().unwrap_or_default();
            let record = match api_key {
                _ if is_active => keys.virtual_key(&id),
                [Some(_), None] => keys.api_key(&id),
                _ => return,
            };
            let audit = realm.audit();
            let detail = "the key is in force, but the trail says that it was revoked";
            self.add_violation(Invariant::Trail, &[&record, &audit], detail);
        })
        .await
    }
}
