//! What all calls share: settings, store, tables, caches and counters. Every cache here is bounded, and none holds
//! anything that a decision depends on: status, limits and spend are read inside the store's script each time.

use crate::buffer_budget::{AccountPart, Room};
use crate::edge::connections::Connections;
use crate::edge::head_limited::HEAD_BYTES_MAX;
use crate::key_owners::known_key::KnownKey;
use crate::metrics::Metrics;
use crate::pending::Pending;
use crate::pending::item::Origin;
use crate::store_health::Watch;
use crate::tables::prices::Imported;
use crate::upstream::Upstream;
use arc_swap::ArcSwap;
use crypto::seal::{SealError, SealedFor, Sealer};
use domain::plan::{Plan, Plans};
use domain::price::PriceTable;
use quick_cache::sync::Cache;
use secrecy::SecretString;
use settings::Settings;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use store::Store;
use store::account::refused::RefusedCopy;
use store::blocked::BlockedCopy;
use store::call::authorize::AccountView;
use store::call::hold::HoldKeys;
use store::call::settle::{Settle, Settled};
use store::lookup::VirtualKeyOwner;

/// Hashes that no key has; remembered so that a repeated one costs the store nothing.
const UNKNOWN_MAX: usize = 10_000;
/// Accounts whose last version is remembered.
const VIEWS_MAX: usize = 100_000;
/// Opened provider keys; zeroized when they leave. Opening one again takes less than a microsecond.
const OPENED_MAX: usize = 2_000;

/// A plan as an answer names it.
#[derive(Debug, Clone)]
pub struct PlanLimits {
    /// Its name.
    pub name: String,
    /// Its limits.
    pub plan: Plan,
    /// The absolute address of the way up.
    pub upgrade_url: Option<String>,
}

impl PlanLimits {
    /// For an account that was not heard of yet: the store answers with the plan it has, and checks nothing. Should its
    /// record name no plan at all, these limits let nothing through.
    #[must_use]
    fn unknown() -> Self {
        let plan = Plan {
            active_virtual_keys: Some(0),
            ..Plan::default()
        };
        Self {
            name: String::new(),
            plan,
            upgrade_url: None,
        }
    }
}

/// The plans as answers name them.
fn by_name(plans: &Plans, settings: &Settings) -> HashMap<String, Arc<PlanLimits>> {
    let limits = |name: &str| {
        let plan = plans.get(name)?.clone();
        let upgrade_url = plan.upgrade_url.as_ref().map(|url| match url.strip_prefix('/') {
            Some(path) => format!("{}/{path}", settings.public_url()),
            None => url.clone(),
        });
        let name = name.to_owned();
        Some((
            name.clone(),
            Arc::new(PlanLimits {
                name,
                plan,
                upgrade_url,
            }),
        ))
    };
    plans.names().filter_map(limits).collect()
}

/// The gate.
pub struct Gate {
    /// The configuration.
    pub settings: Settings,
    /// The store.
    pub store: Store,
    /// Opens provider keys.
    pub sealer: Sealer,
    /// The prices in force.
    pub prices: ArcSwap<PriceTable>,
    /// What is known of the prices that the operator imported.
    pub imported: Imported,
    plans: ArcSwap<HashMap<String, Arc<PlanLimits>>>,
    unknown_plan: Arc<PlanLimits>,
    /// The way to the provider.
    pub upstream: Upstream,
    /// The callers' connections.
    pub connections: Arc<Connections>,
    /// The addresses that are not answered, as last read.
    pub blocked: BlockedCopy,
    /// The accounts that are refused what makes records, as last read.
    pub refused: RefusedCopy,
    /// What is known of the store's health.
    pub watch: Arc<Watch>,
    /// What the store could not take yet.
    pub pending: Pending,
    /// Counters for operators.
    pub metrics: Metrics,
    /// Keys by their SHA-256. Whose they are is immutable in the store, so never stale.
    pub owners: Cache<[u8; 32], Arc<KnownKey>>,
    /// What the bodies of each account have of the room.
    parts: Cache<String, Arc<AccountPart>>,
    /// Hashes that the store does not know. Random, so none of them can become a key later.
    pub unknown: Cache<[u8; 32], ()>,
    /// Room for request bodies.
    pub body_room: Arc<Room>,
    views: Cache<String, Arc<Mutex<AccountView>>>,
    opened: Cache<String, Arc<SecretString>>,
    in_flight: AtomicUsize,
    draining: AtomicBool,
    closed: AtomicBool,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// Counts a request as in flight until it is dropped, also when its task panics.
#[derive(Debug)]
pub struct InFlight(Arc<Gate>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What is read and checked before a port is bound.
pub struct Parts {
    /// The configuration.
    pub settings: Settings,
    /// Opens provider keys.
    pub sealer: Sealer,
    /// The price file, before the store's overlay.
    pub prices: PriceTable,
    /// The plans.
    pub plans: Plans,
    /// The way to the provider.
    pub upstream: Upstream,
    /// The queue for what the store cannot take.
    pub pending: Pending,
    /// The callers' connections.
    pub connections: Arc<Connections>,
}

impl Gate {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: Parts, store: Store, metrics: Metrics) -> Self {
        let Parts {
            settings,
            sealer,
            prices,
            plans,
            upstream,
            pending,
            connections,
        } = parts;
        Self {
            body_room: Arc::new(Room::new(
                settings.proxy.max_buffered_bytes,
                settings.proxy.max_body_bytes + HEAD_BYTES_MAX,
            )),
            plans: ArcSwap::from_pointee(by_name(&plans, &settings)),
            owners: Cache::new(settings.proxy.max_remembered_keys),
            parts: Cache::new(settings.proxy.max_remembered_keys),
            settings,
            store,
            sealer,
            prices: ArcSwap::from_pointee(prices),
            imported: Imported::default(),
            unknown_plan: Arc::new(PlanLimits::unknown()),
            upstream,
            connections,
            blocked: BlockedCopy::default(),
            refused: RefusedCopy::default(),
            watch: Arc::default(),
            pending,
            metrics,
            unknown: Cache::new(UNKNOWN_MAX),
            views: Cache::new(VIEWS_MAX),
            opened: Cache::new(OPENED_MAX),
            in_flight: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// Whether calls should be sent here: they can be decided, as far as the last looks at the store go, and this process
    /// is not about to end.
    pub fn is_ready(&self) -> bool {
        self.watch.is_ready() && self.blocked.is_read() && self.imported.is_known() && !self.is_draining()
    }

    /// This process is about to end: callers and balancers are told to turn to others.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether this process is about to end.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Counts one more request; `None` when none may begin any more.
    pub fn enter(self: &Arc<Self>) -> Option<InFlight> {
        // In one order with `close`: a request that is not counted there finds the gate closed here.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let entered = InFlight(Arc::clone(self));
        (!self.closed.load(Ordering::SeqCst)).then_some(entered)
    }

    /// From now on no request begins. Those that had begun are in [`Gate::in_flight`] until they end.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// What was last heard of an account.
    pub fn view(&self, account: &str) -> AccountView {
        match self.views.get(account) {
            Some(view) => view.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            None => AccountView::default(),
        }
    }

    /// Remembers what was just heard of an account, unless something newer was heard meanwhile.
    pub fn heard(&self, account: &str, news: &AccountView) {
        let fresh = || Ok::<_, std::convert::Infallible>(Arc::new(Mutex::new(news.clone())));
        let Ok(view) = self.views.get_or_insert_with(account, fresh);
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        if (news.generation, news.version) > (view.generation, view.version) {
            view.clone_from(news);
        }
    }

    /// What a key is remembered by, from now on.
    pub fn remember(&self, digest: [u8; 32], owner: VirtualKeyOwner) -> Arc<KnownKey> {
        let fresh = || Ok::<_, std::convert::Infallible>(Arc::default());
        let Ok(part) = self.parts.get_or_insert_with(owner.account(), fresh);
        let known = Arc::new(KnownKey::new(owner, part));
        self.owners.insert(digest, Arc::clone(&known));
        known
    }

    /// The limits of a plan, or `None` when the table has no such plan: then the call is denied (decision D7). An account
    /// that was not heard of yet has the empty plan, whose limits the store does not look at.
    pub fn plan(&self, name: &str) -> Option<Arc<PlanLimits>> {
        match name {
            "" => Some(Arc::clone(&self.unknown_plan)),
            name => self.plans.load().get(name).cloned(),
        }
    }

    /// Puts other plans in force.
    pub fn set_plans(&self, plans: &Plans) {
        self.plans.store(Arc::new(by_name(plans, &self.settings)));
    }

    /// Moves the ledger by what became of the hold with these keys, now or, when the store cannot take it, later; the word for
    /// which of it, for the log. A store that has no such hold, or took the settlement after the way to it was lost, may be another
    /// ledger than the one of the hold: then it is asked again.
    pub async fn resolve_hold(&self, keys: &HoldKeys, origin: &Origin, settle: Settle) -> &'static str {
        let why = match settle.run_with(keys, &self.store).await {
            Ok(Settled::Missing) => None,
            Ok(settled) if self.watch.is_still(self, &origin.ledger).await => {
                self.metrics.ledger.settled(settled, &settle);
                return settled.as_str();
            }
            Ok(_) => None,
            Err(error) => Some(error),
        };
        tracing::warn!(
            decision.id = settle.name.allow_id,
            error = why.as_ref().map(|error| error as &dyn std::error::Error),
            "a settlement has to wait"
        );
        self.metrics.ledger.settlement_waits();
        self.pending.settle(settle, origin);
        "waits"
    }

    /// How many entries the caches have: owners, unknown, views, opened.
    pub fn cached(&self) -> [usize; 4] {
        [
            self.owners.len(),
            self.unknown.len(),
            self.views.len(),
            self.opened.len(),
        ]
    }

    /// Opens a provider key; the result is remembered by its sealed form, so a replaced key is never used again.
    ///
    /// # Errors
    /// [`SealError`] when it does not open.
    pub fn open_key(&self, owner: &SealedFor<'_>, sealed: &str) -> Result<Arc<SecretString>, SealError> {
        let name = [owner.account, owner.agent, owner.key_id, sealed].join(" ");
        if let Some(key) = self.opened.get(&name) {
            return Ok(key);
        }
        let key = Arc::new(self.sealer.open(owner, sealed)?);
        self.opened.insert(name, Arc::clone(&key));
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Does, ESTIMATE, Stand, record, runs, text};
    use domain::entry::How;
    use domain::money::Nanos;
    use secrecy::ExposeSecret as _;
    use store::call::hold::{AsOf, HoldName};
    use store::call::settle::SETTLE;
    use store::keys::STORE;

    #[tokio::test]
    async fn a_closed_gate_admits_nobody() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        let before = gate.enter();
        assert!(before.is_some() && gate.in_flight() == 1);
        gate.close();
        assert!(gate.enter().is_none());
        assert_eq!(gate.in_flight(), 1, "only the one that began before");
        drop(before);
        assert_eq!(gate.in_flight(), 0);
    }

    /// Balancers send calls here only where all four hold.
    #[tokio::test]
    async fn a_gate_is_ready_when_nothing_is_missing() {
        for missing in [None, Some(0), Some(1), Some(2), Some(3)] {
            let stand = Stand::new().await;
            let gate = &stand.gate;
            stand.store_says(|command| {
                match (command[0].as_str(), command.get(1).map_or("", String::as_str)) {
                    ("HGET", _) => Some(Does::Answers("$-1\r\n".to_owned())),
                    ("HGETALL", key) if key != STORE => Some(Does::Answers("*0\r\n".to_owned())),
                    _ => None,
                }
            });
            if missing != Some(0) {
                assert!(gate.watch.usable(gate).await);
            }
            if missing != Some(1) {
                gate.blocked.follow(&gate.store).await;
                assert!(gate.blocked.is_read());
            }
            if missing != Some(2) {
                assert!(gate.imported.is_known_now(gate).await);
            }
            if missing == Some(3) {
                gate.drain();
            }
            assert_eq!(gate.is_ready(), missing.is_none(), "{missing:?}");
            assert_eq!(gate.is_draining(), missing == Some(3));
        }
    }

    /// An answer that comes late does not bring back an older state of the account.
    #[tokio::test]
    async fn only_what_is_newer_is_remembered_of_an_account() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        let view = |generation, version, plan: &str| AccountView {
            generation,
            version,
            plan: plan.to_owned(),
        };
        assert_eq!(gate.view("acct_1"), AccountView::default());
        for (news, known) in [
            (view(1, 5, "a"), "a"),
            (view(1, 4, "b"), "a"),
            (view(1, 5, "c"), "a"),
            (view(1, 6, "d"), "d"),
            (view(2, 1, "e"), "e"),
            (view(1, 9, "f"), "e"),
        ] {
            gate.heard("acct_1", &news);
            assert_eq!(gate.view("acct_1").plan, known, "{news:?}");
        }
        assert_eq!(gate.view("acct_2"), AccountView::default());
        assert_eq!(gate.cached(), [0, 0, 1, 0]);
    }

    /// A provider key that was replaced is opened anew; the same one is not opened twice.
    #[tokio::test]
    async fn an_opened_key_is_remembered_by_its_sealed_form() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        let owner = SealedFor {
            account: "acct_1",
            agent: "bot",
            provider: "openai",
            key_id: "pk_1",
        };
        let seal = |secret: &str| gate.sealer.seal(&owner, &SecretString::from(secret)).unwrap();
        let (one, other) = (seal("sk-1"), seal("sk-2"));
        let opened = gate.open_key(&owner, &one).unwrap();
        assert_eq!(opened.expose_secret(), "sk-1");
        assert!(Arc::ptr_eq(&opened, &gate.open_key(&owner, &one).unwrap()));
        assert_eq!(gate.open_key(&owner, &other).unwrap().expose_secret(), "sk-2");
        assert_eq!(gate.cached(), [0, 0, 0, 2]);
        let another = SealedFor {
            agent: "eve",
            ..owner
        };
        assert!(gate.open_key(&another, &one).is_err());
    }

    /// Should an account's record name no plan, nothing is let through.
    #[tokio::test]
    async fn the_limits_of_an_account_without_a_plan_let_nothing_through() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        let nobody = gate.plan("").unwrap();
        assert_eq!(nobody.plan.active_virtual_keys, Some(0));
        assert!(gate.plan("no such plan").is_none());
        assert_eq!(gate.plan("free").unwrap().name, "free");
    }

    fn settlement() -> Settle {
        Settle {
            name: HoldName {
                account: "acct_1".to_owned(),
                agent: "bot".to_owned(),
                run: "r".to_owned(),
                allow_id: "allow_1".to_owned(),
            },
            estimate: Nanos::from_stored(ESTIMATE),
            cost: Nanos::from_stored(7),
            how: How::Settled,
        }
    }

    /// Whether a settlement is taken at once where the store says this, and where it was lost before or not.
    async fn settled(stand: &Stand, says: &'static str, lost: bool) -> &'static str {
        let gate = &stand.gate;
        let ledger = gate.watch.ledger_now(gate).await.unwrap();
        let as_of = AsOf {
            generation: 1,
            version: 8,
        };
        let origin = Origin { ledger, as_of };
        stand.store_says(move |command| match command[0].as_str() {
            "EVALSHA" if says.is_empty() => Some(Does::HangsUp),
            "EVALSHA" => runs(command, &SETTLE).then(|| text(says)),
            "HGETALL" if lost => Some(record("another")),
            _ => None,
        });
        if lost {
            stand.lose_a_connection().await;
        }
        let settle = settlement();
        gate.resolve_hold(&settle.name.keys(), &origin, settle).await
    }

    #[tokio::test]
    async fn a_settlement_that_may_be_lost_waits() {
        for (says, lost, word) in [
            ("settled", false, "done"),
            ("mismatch", false, "mismatch"),
            ("missing", false, "waits"),
            ("", false, "waits"),
            ("settled", true, "waits"),
        ] {
            let stand = Stand::new().await;
            assert_eq!(settled(&stand, says, lost).await, word, "{says} {lost}");
            let waits = usize::from(word == "waits");
            assert_eq!(stand.gate.pending.len(), waits, "{says} {lost}");
            assert_eq!(stand.arguments(&SETTLE)[0], ["allow_1", "1000", "7", "settled"]);
        }
    }
}
