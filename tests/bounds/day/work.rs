//! Direct runs of the scripts that an edge or a worker runs after a failure, at a deadline, or to seal a secret again.

use super::{Person, webhook};
use crate::fill::{AGENT, MODE};
use crate::fixture::Fixture;
use clock::now_ms;
use domain::money::Nanos;
use domain::plan::{DEFAULT_PLANS, Plans};
use domain::threshold::{Threshold, Watched};
use harness::text;
use std::collections::BTreeMap;
use std::time::Duration;
use store::account::refused;
use store::audit::archive::{ArchivedEntries, RemovalOutcome};
use store::audit::chain::Chain;
use store::audit::reseal_checkpoint_key;
use store::call::authorize::AccountView;
use store::call::denial_windows::{CountedDenials, script as denial_windows};
use store::call::extend::{Extend, Extended};
use store::call::hold::Hold;
use store::call::reap::reap;
use store::call::void::{Voided, void};
use store::connection::witness_of;
use store::keys::{self, STORE};
use store::provider_key::reseal::ProviderKeyReseal;
use store::script::change::Scope;
use store::threshold::notice::Notice;
use store::versions::{AccountVersion, fence, witness};
use store::webhook::script::deliver::Lease;
use store::webhook::script::{SecretReseal, WebhookLocation};

const ESTIMATE: u64 = 1_000;
/// Entries that are archived at once.
const ARCHIVED: u64 = 500;
const LONG: Duration = Duration::from_secs(600);

impl Person {
    pub(super) async fn work(&self, fixture: &Fixture) {
        self.end_holds(fixture).await;
        self.note(fixture).await;
        self.seal_again(fixture).await;
    }

    /// Extends and voids a hold, and reaps an overdue one.
    async fn end_holds(&self, fixture: &Fixture) {
        let (store, account) = (&fixture.store, &self.tenant.account);
        let agent = account.agent(AGENT);
        let (key_id, _) = agent.virtual_key_with_id().await;
        let open = agent.open_hold(&key_id, ESTIMATE, LONG).await;
        let plans = Plans::parse(DEFAULT_PLANS).expect("the plans");
        let view = AccountView {
            plan: "enterprise".to_owned(),
            ..AccountView::default()
        };
        let extend = Extend {
            name: &open,
            key_id: &key_id,
            view: &view,
            plan: plans.get(&view.plan).expect("a plan"),
            from: Nanos::new(ESTIMATE).expect("an amount"),
            to: Nanos::new(2 * ESTIMATE).expect("an amount"),
            hold_life: LONG,
        };
        let extended = extend.execute(&open.keys(), store).await.expect("an answer");
        assert!(matches!(extended, Extended::Extended { .. }), "{extended:?}");
        assert_eq!(
            void(store, &open, AccountVersion::default())
                .await
                .expect("an answer"),
            Voided::Refunded
        );

        let overdue = agent.open_hold(&key_id, ESTIMATE, Duration::from_millis(1)).await;
        let key = account.keys.bucket().hold(&overdue.allow_id);
        let stored: Option<String> = store.command(redis::cmd("GET").arg(key)).await.expect("a hold");
        tokio::time::sleep(Duration::from_millis(50)).await;
        // Unless the server's reaper was faster.
        if let Some(hold) = stored.and_then(|stored| Hold::parse(&overdue.allow_id, &stored)) {
            reap(store, &hold).await.expect("an answer");
        }
    }

    /// Writes the workers' records of an account: denials beyond a rate, a limit that is nearly spent, its witnessed
    /// version, and the list of refused accounts.
    async fn note(&self, fixture: &Fixture) {
        let (store, account) = (&fixture.store, &self.tenant.account);
        let bucket = account.keys.bucket();
        let window = format!("{} rate_limited {} {AGENT} vk_none", now_ms() - 1_000, account.id);
        let mut count = redis::cmd("HSET");
        count.arg(bucket.counted_denials()).arg(&window).arg(50);
        let _: u64 = store.command(&count).await.expect("a count");
        let counted = CountedDenials::parse(&window, "50").expect("a window");
        denial_windows::record(store, &counted).await.expect("an answer");

        let notice = Notice {
            watched: Watched::Day,
            threshold: Threshold::Nearly,
            agent: Some(AGENT),
        };
        notice
            .record(store, &account.keys.in_mode(MODE), now_ms())
            .await
            .expect("an answer");
        let view = AccountVersion {
            generation: 1,
            version: now_ms(),
        };
        let witness_bucket = witness_of(bucket);
        witness::update(store, witness_bucket, &account.id, view)
            .await
            .expect("an answer");
        let list = refused::RefusedLists::default();
        refused::write(store, &list).await.expect("an answer");
        let fence_key = bucket.due().replace("/due", "/fence");
        let sha: String = fixture.redis.command(&["SCRIPT", "LOAD", fence::FENCE.source()]);
        let _: Vec<String> = fixture.redis.command(&["EVALSHA", &sha, "1", &fence_key]);
    }

    /// Archives the oldest entries. Only after this does the trail begin with entries that cannot be read.
    pub async fn archive(&self, fixture: &Fixture) {
        let name =
            |agent: Option<&str>, kind: Option<&str>| (agent.map(str::to_owned), kind.map(str::to_owned));
        let frozen = Some("agent.frozen");
        let lists = BTreeMap::from([
            (name(Some(AGENT), None), ARCHIVED),
            (name(None, frozen), ARCHIVED),
            (name(Some(AGENT), frozen), ARCHIVED),
        ]);
        let archived = ArchivedEntries {
            first: 1,
            count: ARCHIVED,
            hash: [b'x'; 32],
            descriptor: "{}",
            text: 0,
            lists: &lists,
        };
        let realm = self.tenant.account.keys.in_mode(MODE);
        let chain = Chain::new(&fixture.store, realm.clone());
        // The server's archiver may have claimed another end before.
        let claimed = chain.claim_segment(1, ARCHIVED, None).await;
        assert!(claimed.expect("an answer").is_some());
        let outcome = archived.execute(&fixture.store, &realm).await;
        assert_eq!(outcome.expect("an answer"), RemovalOutcome::Done);
    }

    /// Seals secrets again, and leases and releases a webhook.
    async fn seal_again(&self, fixture: &Fixture) {
        let (store, account) = (&fixture.store, &self.tenant.account);
        let field = keys::provider_key_sealed_field("openai");
        let key = account.keys.in_mode(MODE).agent(AGENT);
        let sealed: String = fixture.redis.command(&["HGET", &key, &field]);
        let again = ProviderKeyReseal {
            account: &account.id,
            agent: AGENT,
            provider: "openai",
            key_id: "pk_1",
            old: &sealed,
            new: &sealed,
            actor: "test",
        };
        again.execute(store).await.expect("an answer");
        let sealed: Option<String> = fixture
            .redis
            .command(&["HGET", STORE, reseal_checkpoint_key::FIELD]);
        let sealed = sealed.unwrap_or_default();
        reseal_checkpoint_key::replace(store, &sealed, &sealed)
            .await
            .expect("an answer");

        let hook = webhook("http://127.0.0.1:9/a");
        let hook = self.post("/webhooks", hook).await;
        let id = text(&hook, "/webhook/id");
        let key = account.keys.in_mode(MODE).webhook(id);
        let sealed: String = fixture.redis.command(&["HGET", &key, "secret"]);
        let scope = Scope {
            account: &account.id,
            mode: MODE,
            actor: "test",
        };
        let again = SecretReseal {
            webhook: id,
            field: "secret",
            old: &sealed,
            new: &sealed,
        };
        again.execute(store, &scope).await.expect("an answer");
        let lease = Lease {
            endpoint: WebhookLocation {
                realm: account.keys.in_mode(MODE),
                webhook: id.to_owned(),
            },
            token: "a token".to_owned(),
            life: LONG,
            farthest: LONG,
        };
        lease.take(store, 10).await.expect("an answer");
        lease.release(store).await.expect("an answer");
        self.delete(&format!("/webhooks/{id}")).await;
    }
}
