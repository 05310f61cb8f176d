//! Seeds an agent, and reads its counters.

use super::{AgentCounters, SeedAgent, mint, test_keyring};
use crate::{Redis, eventually};
use crypto::seal::SealedFor;
use crypto::virtual_key::{self, WellFormed};
use domain::cap::CapPolicy;
use domain::id::IdKind;
use domain::money::Nanos;
use domain::period::Period;
use domain::plan::{DEFAULT_PLANS, Plans};
use secrecy::{ExposeSecret, SecretString};
use std::collections::HashMap;
use std::time::Duration;
use store::call::authorize::{AccountView, Authorize, AuthorizeOutcome, Charge};
use store::call::hold::HoldName;
use store::keys;
use store::lookup::VirtualKeyOwner;
use store::provider_key::KEY_BYTES;

/// The provider key of an agent that is [ready](SeedAgent::ready).
pub const PROVIDER_KEY: &str = "sk-test-provider-key";
/// The fields of an agent's own policy: whether it is enabled, and the limits of a run, the day and the month.
const POLICY: [&str; 4] = ["cap", "cap_run", "cap_day", "cap_month"];

impl SeedAgent {
    fn key(&self) -> String {
        self.account.keys.live().agent(&self.id)
    }

    /// Sets the agent's own policy.
    pub async fn cap(&self, policy: CapPolicy) {
        let limits = [policy.per_run, policy.daily, policy.monthly];
        let [run, day, month] =
            limits.map(|limit| limit.map(|nanos| nanos.get().to_string()).unwrap_or_default());
        let enabled = u8::from(policy.enabled).to_string();
        let values = [enabled.as_str(), &run, &day, &month];
        let fields: Vec<_> = POLICY.into_iter().zip(values).collect();
        self.account.changed(&self.key(), &fields).await;
    }

    /// Gives the agent's own limits, as [`Self::cap`] left them, the policy that `ledger check` compares them with.
    pub async fn policy_record(&self) {
        let (realm, seed) = (self.account.keys.live(), &self.account.seed);
        let now = clock::now_ms().to_string();
        let fields = self.fields(&self.key()).await;
        let policy = match fields.get("policy_id") {
            Some(policy) => policy.clone(),
            None => mint(IdKind::Policy),
        };
        let names = [
            ("cap", "cap"),
            ("cap_run", "run"),
            ("cap_day", "day"),
            ("cap_month", "month"),
        ];
        let limits = names.map(|(own, set)| (set, fields.get(own).map_or("", String::as_str)));
        let limits = limits.into_iter().filter(|(_, limit)| !limit.is_empty());
        let mut record = vec![
            ("id", policy.as_str()),
            ("name", ""),
            ("agent", &self.id),
            ("currency", "USD"),
            ("revision", "1"),
            ("created_at", &now),
            ("updated_at", &now),
        ];
        record.extend(limits);
        seed.run(redis::cmd("DEL").arg(realm.policy(&policy))).await;
        seed.hset(&realm.policy(&policy), &record).await;
        seed.run(redis::cmd("ZADD").arg(realm.policies()).arg(&now).arg(&policy))
            .await;
        self.account.changed(&self.key(), &[("policy_id", &policy)]).await;
    }

    /// Removes the agent's own policy.
    pub async fn no_cap(&self) {
        let key = self.key();
        self.account
            .seed
            .run(redis::cmd("HDEL").arg(&key).arg(&POLICY))
            .await;
        self.account.changed(&key, &[]).await;
    }

    /// Freezes the agent, or lifts the freeze.
    pub async fn frozen(&self, frozen: bool) {
        if frozen {
            self.account.changed(&self.key(), &[("frozen", "user")]).await;
        } else {
            self.account
                .seed
                .run(redis::cmd("HDEL").arg(self.key()).arg("frozen"))
                .await;
            self.account.changed(&self.key(), &[]).await;
        }
    }

    /// Stores the key of the provider `openai`, in place of the one before; returns its id.
    pub async fn provider_key(&self, secret: &str) -> String {
        self.provider_key_for("openai", secret).await
    }

    /// Stores the key of another provider, such as an upstream by name; returns its id.
    pub async fn provider_key_for(&self, provider: &str, secret: &str) -> String {
        let id = mint(IdKind::ProviderKey);
        let owner = SealedFor {
            account: &self.account.id,
            agent: &self.id,
            provider,
            key_id: &id,
        };
        let sealed = test_keyring()
            .seal(&owner, &SecretString::from(secret))
            .expect("a sealed key");
        self.provider_key_sealed_for(provider, &id, &sealed).await;
        id
    }

    /// Stores a provider key in a sealed form of the caller's, such as one that cannot be decrypted.
    pub async fn provider_key_sealed(&self, key_id: &str, sealed: &str) {
        self.provider_key_sealed_for("openai", key_id, sealed).await;
    }

    /// Like [`Self::provider_key_sealed`], for another provider.
    pub async fn provider_key_sealed_for(&self, provider: &str, key_id: &str, sealed: &str) {
        let now = clock::now_ms().to_string();
        let (id_field, sealed_field, last4_field, created_field) = (
            keys::provider_key_id_field(provider),
            keys::provider_key_sealed_field(provider),
            keys::provider_key_last4_field(provider),
            keys::provider_key_created_field(provider),
        );
        let fields = [
            (id_field.as_str(), key_id),
            (&sealed_field, sealed),
            (&last4_field, "0000"),
            (&created_field, &now),
        ];
        let mut index = redis::cmd("SADD");
        let index = index.arg(self.account.keys.sealed_agents()).arg(&self.id);
        self.account.seed.run(index).await;
        // As `provider_key/store.lua` counts it.
        let seed = &self.account.seed;
        let mut length = redis::cmd("HSTRLEN");
        let before = seed
            .store
            .command(length.arg(self.key()).arg(&sealed_field))
            .await;
        let before: i64 = before.expect("a length");
        let added = if before == 0 { KEY_BYTES as i64 } else { -before };
        let mut count = redis::cmd("HINCRBY");
        count.arg(self.account.keys.record()).arg("live_kept_text");
        seed.run(count.arg(added + sealed.len() as i64)).await;
        self.account.changed(&self.key(), &fields).await;
    }

    /// Makes a virtual key; returns the secret.
    pub async fn virtual_key(&self) -> String {
        self.virtual_key_with_id().await.1
    }

    /// Makes a virtual key; returns its id and the secret.
    pub async fn virtual_key_with_id(&self) -> (String, String) {
        let (account, seed) = (&self.account, &self.account.seed);
        let secret = virtual_key::mint(&seed.check_secret)
            .expect("a virtual key")
            .expose_secret()
            .to_owned();
        let formed = WellFormed::parse(secret.as_bytes()).expect("a well-formed key");
        let key_id = mint(IdKind::VirtualKey);
        let owner = VirtualKeyOwner::new(&account.id, &self.id, &key_id);
        let hash = formed.hash();
        let mut lookup = redis::cmd("SET");
        lookup.arg(keys::virtual_key_lookup(&hash)).arg(owner.as_stored());
        seed.run(&lookup).await;
        let mut number = redis::cmd("HINCRBY");
        let number: i64 = seed
            .store
            .command(number.arg(account.keys.record()).arg("key_seq").arg(1))
            .await
            .expect("a key's number");
        seed.run(
            redis::cmd("ZADD")
                .arg(account.keys.active_keys())
                .arg(number)
                .arg(&key_id),
        )
        .await;
        seed.run(
            redis::cmd("ZADD")
                .arg(account.keys.agent_keys(&self.id))
                .arg(number)
                .arg(&key_id),
        )
        .await;
        let now = clock::now_ms().to_string();
        let fields = [
            ("id", key_id.as_str()),
            ("agent", &self.id),
            ("name", ""),
            ("prefix", formed.shown()),
            ("hash", &hash),
            ("status", "active"),
            ("created_at", &now),
        ];
        account.changed(&account.keys.virtual_key(&key_id), &fields).await;
        (key_id, secret)
    }

    /// Gives the agent all that a call needs: this policy, the provider key [`PROVIDER_KEY`] and a virtual key. Returns
    /// id and secret of the virtual key.
    pub async fn ready(&self, policy: CapPolicy) -> (String, String) {
        self.cap(policy).await;
        self.provider_key(PROVIDER_KEY).await;
        self.virtual_key_with_id().await
    }

    /// Charges `estimate` nano-USD to the run `run-1` as an edge does that crashes at once: the hold stays open for
    /// `life`.
    pub async fn open_hold(&self, key_id: &str, estimate: u64, life: Duration) -> HoldName {
        let name = HoldName {
            account: self.account.id.clone(),
            agent: self.id.clone(),
            run: "run-1".to_owned(),
            allow_id: mint(IdKind::Allow),
        };
        let plans = Plans::parse(DEFAULT_PLANS).expect("the plans");
        let view = AccountView {
            plan: self.fields(&self.account.keys.record()).await["plan"].clone(),
            ..AccountView::default()
        };
        let charge = Charge {
            estimate: Some(Nanos::new(estimate).expect("an amount")),
            run_named: true,
            hold_life: life,
            price_version: "0123456789abcdef",
            model: "gpt-4o-mini",
            provider: "openai",
        };
        let authorize = Authorize {
            name: &name,
            key_id,
            view: &view,
            plan: plans.get(&view.plan).expect("the account's plan"),
            charge: Some(&charge),
        };
        let answer = authorize
            .execute(&name.keys(), &self.account.seed.store)
            .await
            .expect("a decision");
        assert!(
            matches!(answer.outcome, AuthorizeOutcome::Charged { .. }),
            "{answer:?}"
        );
        name
    }

    /// Counters of the agent and its account, by the store's clock.
    pub async fn counters(&self) -> AgentCounters {
        let store = &self.account.seed.store;
        let (seconds, micros): (u64, u64) = store.command(&redis::cmd("TIME")).await.expect("TIME");
        let period = Period::at(seconds * 1000 + micros / 1000);
        let agent = self.fields(&self.key()).await;
        let record = self.fields(&self.account.keys.record()).await;
        let read = |fields: &HashMap<String, String>, name: String| {
            fields
                .get(&name)
                .map_or(0, |text| text.parse().expect("a counter"))
        };
        AgentCounters {
            day_nanos: read(&agent, format!("d{}", period.day)),
            month_nanos: read(&agent, format!("m{}", period.month)),
            tracked_nanos: read(&record, format!("t{}", period.month)),
            slots: read(&record, format!("n{}", period.month)),
        }
    }

    /// Nano-USD charged to the agent by day and by month, and to its account, over all periods, so that
    /// midnight changes nothing.
    pub fn charged(&self, redis: &Redis) -> [u64; 3] {
        let agent: HashMap<String, String> = redis.command(&["HGETALL", &self.key()]);
        let record: HashMap<String, String> = redis.command(&["HGETALL", &self.account.keys.record()]);
        [sum(&agent, "d"), sum(&agent, "m"), sum(&record, "t")]
    }

    /// Spending of a named run in nano-USD, or `None` if it has no record.
    pub async fn run_spent(&self, run: &str) -> Option<u64> {
        let fields = self.fields(&self.account.keys.live().run(&self.id, run)).await;
        fields.get("spent").map(|text| text.parse().expect("a counter"))
    }

    /// Holds of the account's bucket that are open.
    pub async fn open_holds(&self) -> u64 {
        let due = self.account.keys.bucket().due();
        self.account
            .seed
            .store
            .command(redis::cmd("ZCARD").arg(due))
            .await
            .expect("ZCARD")
    }

    /// Waits until no hold of the account's bucket is open. Returns what the agent was charged today in nano-USD.
    pub async fn settled_within(&self, within: Duration) -> u64 {
        eventually("the settlement", within, async || {
            (self.open_holds().await == 0).then_some(())
        })
        .await;
        self.counters().await.day_nanos
    }

    /// Holds of the account's bucket that the reaper kept.
    pub async fn kept_holds(&self) -> u64 {
        let kept = self.account.keys.bucket().kept();
        self.account
            .seed
            .store
            .command(redis::cmd("ZCARD").arg(kept))
            .await
            .expect("ZCARD")
    }

    /// Makes the deadlines of the open holds of the account's bucket pass, so that the reaper's next sweep reaps them.
    pub async fn pass_deadlines(&self) {
        let (store, due) = (&self.account.seed.store, self.account.keys.bucket().due());
        let open: Vec<String> = store
            .command(redis::cmd("ZRANGE").arg(&due).arg(0).arg(-1))
            .await
            .expect("ZRANGE");
        let past: Vec<(u64, String)> = open.into_iter().map(|id| (1, id)).collect();
        if !past.is_empty() {
            self.account
                .seed
                .run(redis::cmd("ZADD").arg(&due).arg("XX").arg(past))
                .await;
        }
    }

    async fn fields(&self, key: &str) -> HashMap<String, String> {
        self.account
            .seed
            .store
            .command(redis::cmd("HGETALL").arg(key))
            .await
            .expect("HGETALL")
    }
}

/// The sum of the counters whose name is this prefix and a number.
fn sum(fields: &HashMap<String, String>, prefix: &str) -> u64 {
    let counters = fields.iter().filter(|(name, _)| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    });
    counters
        .map(|(_, value)| value.parse::<u64>().expect("a counter"))
        .sum()
}
