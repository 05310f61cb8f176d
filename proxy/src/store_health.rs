//! Health of the store (decision D47). It can be used if it is the ledger that this edge knows, is configured safely
//! and lost no writes. A background task checks once a second. A call checks again if a connection to the store broke
//! since the last check: the server may meanwhile have been restored from a backup, or have started without its last
//! writes.

mod outage;
mod shared_read;

use self::outage::Outage;
use self::shared_read::SharedRead;
use crate::key_owners::KeyOwners;
use crate::provider_keys::ProviderKeys;
use arc_swap::ArcSwapOption;
use crypto::virtual_key::WellFormed;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use store::Store;
use store::command_rights::Program;
use store::lost_connections::LostConnections;
use store::sanity::{self, MasterKeyCheck, StoreRecord, UntrustedStore};
use store::write_refusal::SteadyRefusal;
use tokio::time::{interval, timeout};

/// Interval of the background check, which detects an untrusted store. The next script detects a wiped one.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Maximum time that a call waits for the cluster node that holds the ledger's record, if the node was unreachable at
/// the last check. A node that is back replies sooner; an unreachable one delays one call at a time, by no more than
/// this.
const RECORD_WITHIN: Duration = Duration::from_millis(50);

/// Known state of the store.
pub struct EdgeStoreHealth {
    store: Store,
    key_owners: Arc<KeyOwners>,
    provider_keys: Arc<ProviderKeys>,
    record: ArcSwapOption<StoreRecord>,
    is_untrusted: AtomicBool,
    is_reachable: AtomicBool,
    lost_connections: LostConnections,
    /// Held during the full check of a call. Concurrent calls share its result.
    full_check: tokio::sync::Mutex<()>,
    /// Number of full checks by calls that the store did not pass.
    failed_checks: AtomicU64,
    /// In a cluster: at the last check the node of the ledger's record was unreachable while others were reachable. It
    /// may come back restored from a backup.
    is_record_away: AtomicBool,
    /// Held while a call reads the record from that node.
    record_read: Arc<tokio::sync::Mutex<()>>,
    /// The read for requests that need no key.
    keyless_read: SharedRead,
    /// The store has another ledger than before, and the cached key owners belong to the old one.
    has_changed_ledger: AtomicBool,
    /// Why the store is untrusted or unreachable.
    outage: Outage,
    /// Refusal of writes by the store. It is only reported and changes no decision: the store refuses the script of a
    /// call, and settlements and other writes that a full store still accepts are sent.
    refusal: SteadyRefusal,
    /// Result of comparing the master keys with the store. Without the store's key this process can decrypt no provider
    /// key.
    master_key: MasterKeyCheck,
}

impl EdgeStoreHealth {
    /// Creates the health of a store that was not checked yet. `key_owners` is cleared when another ledger replaces the
    /// store's; `provider_keys` has the master keys; `address` is the store's address as the log may show it.
    pub fn new(
        store: Store,
        key_owners: Arc<KeyOwners>,
        provider_keys: Arc<ProviderKeys>,
        address: Option<String>,
    ) -> Self {
        Self {
            store,
            key_owners,
            provider_keys,
            record: ArcSwapOption::default(),
            is_untrusted: AtomicBool::default(),
            is_reachable: AtomicBool::default(),
            lost_connections: LostConnections::default(),
            full_check: tokio::sync::Mutex::default(),
            failed_checks: AtomicU64::default(),
            is_record_away: AtomicBool::default(),
            record_read: Arc::default(),
            keyless_read: SharedRead::default(),
            has_changed_ledger: AtomicBool::default(),
            outage: Outage::new(address),
            refusal: SteadyRefusal::default(),
            master_key: MasterKeyCheck::default(),
        }
    }

    /// Returns whether the store may be used at all. Checks it if nothing is known yet, or if a connection broke since
    /// the last check.
    pub async fn is_trusted(self: &Arc<Self>) -> bool {
        if self.is_checked() {
            if self.is_record_away.load(Ordering::Acquire) {
                self.read_record_again().await;
            }
            return !self.is_untrusted.load(Ordering::Acquire);
        }
        // Boxed: the case is rare, and this future needs more space than the one that awaits it.
        Box::pin(self.check_once(self.store.timeout())).await
    }

    /// Returns whether the last full check found the ledger, and no connection broke since.
    fn is_checked(&self) -> bool {
        self.is_reachable.load(Ordering::Acquire)
            && self.record.load().is_some()
            && !self.lost_connections.since_check(&self.store)
    }

    /// Checks the store in full, and returns whether it may be used. If another call is checking it, waits for that
    /// check, at most `within`, and shares its result unless a connection broke after it began. A call whose wait
    /// takes longer, or whose shared check failed, fails closed: calls that wait never check one after the other.
    async fn check_once(&self, within: Duration) -> bool {
        let failed_checks = self.failed_checks.load(Ordering::Acquire);
        let Ok(_turn) = timeout(within, self.full_check.lock()).await else {
            return false;
        };
        if self.failed_checks.load(Ordering::Acquire) != failed_checks {
            return false;
        }
        if self.is_checked() {
            return !self.is_untrusted.load(Ordering::Acquire);
        }
        let lost_connections = LostConnections::count();
        let checked = sanity::check(&self.store, Program::Edge).await;
        let has_passed = self.apply(checked, Some(lost_connections));
        if !has_passed {
            self.failed_checks.fetch_add(1, Ordering::AcqRel);
        }
        has_passed
    }

    /// Like [`EdgeStoreHealth::is_trusted`], for a call that checked before its body was read, which may have taken
    /// long. Checks the store only if a connection broke meanwhile.
    pub async fn is_still_trusted(self: &Arc<Self>) -> bool {
        if self.lost_connections.since_check(&self.store) {
            return Box::pin(self.is_trusted()).await;
        }
        !self.is_untrusted.load(Ordering::Acquire)
    }

    /// Returns the ledger's record as of the last check.
    pub fn ledger(&self) -> Option<Arc<StoreRecord>> {
        self.record.load_full()
    }

    /// Reads the ledger's record now; `None` if the store is not usable. Checks the store in full if a connection
    /// broke.
    pub async fn read_ledger(self: &Arc<Self>) -> Option<Arc<StoreRecord>> {
        if self.is_trusted().await && self.can_decide_now().await {
            self.ledger()
        } else {
            None
        }
    }

    /// Returns whether the store that has just replied is this ledger. Checks it only if a connection broke.
    pub async fn is_same_ledger(self: &Arc<Self>, ledger: &StoreRecord) -> bool {
        if self.lost_connections.since_check(&self.store) && !Box::pin(self.is_trusted()).await {
            return false;
        }
        let now = self.record.load();
        now.as_ref().is_some_and(|now| now.epoch == ledger.epoch)
    }

    /// Returns whether this installation can have issued the key, judged by its checksum.
    pub fn can_have_issued(&self, key: &WellFormed<'_>) -> bool {
        self.record
            .load()
            .as_ref()
            .is_some_and(|record| record.check_secret.issued(key))
    }

    /// Returns whether the store replies now, and is this ledger.
    pub async fn confirm(&self) -> bool {
        let read = sanity::record(&self.store).await;
        self.apply(read, None)
    }

    /// Returns whether calls can be decided now. If the node of the ledger's record is unreachable in a cluster,
    /// accounts on the nodes that reply still count.
    pub async fn can_decide_now(&self) -> bool {
        let read = sanity::record(&self.store).await;
        if self.store.is_cluster() && is_unreachable(&read) {
            let is_known = self.record.load().is_some() && !self.is_untrusted.load(Ordering::Acquire);
            return is_known && self.store.is_partly_there().await;
        }
        self.apply(read, None)
    }

    /// Like [`EdgeStoreHealth::can_decide_now`], for requests that need no key: those that wait share a read.
    pub async fn can_decide_now_shared(&self) -> bool {
        self.keyless_read.get(self.can_decide_now()).await
    }

    /// Applies a check that a call made, and returns whether the store may be used. `lost_connections` was read before
    /// a full check; `None` if only the record was read.
    fn apply(&self, checked: Result<StoreRecord, UntrustedStore>, lost_connections: Option<u64>) -> bool {
        if self.store.is_cluster() && is_unreachable(&checked) {
            // One node of several is unreachable. The next background check finds others.
            return false;
        }
        let has_passed = self.record_check(checked);
        self.forget_changed_ledger();
        if let Some(lost_connections) = lost_connections
            && has_passed
        {
            self.lost_connections.record_passed(lost_connections);
        }
        has_passed && !self.is_untrusted.load(Ordering::Acquire)
    }

    /// Returns whether calls can be decided, as of the last check.
    pub fn is_ready(&self) -> bool {
        self.is_reachable.load(Ordering::Acquire)
            && !self.is_untrusted.load(Ordering::Acquire)
            && self.record.load().is_some()
            && self.can_approve()
    }

    /// Returns whether a call can be approved at all, as of the last checks: the store accepts writes, and this process
    /// has its master key.
    pub fn can_approve(&self) -> bool {
        self.refusal.current().is_none() && self.master_key.last().is_ok()
    }

    /// Returns why calls cannot be decided, as of the last check; `None` if they can.
    pub fn reason(&self) -> Option<String> {
        if self.is_ready() {
            return None;
        }
        let refusal = || self.refusal.current().map(|refusal| refusal.to_string());
        let otherwise = || match self.master_key.last() {
            Err(wrong) => wrong.to_string(),
            Ok(()) => "the store was not checked yet".to_owned(),
        };
        Some(self.outage.reason().or_else(refusal).unwrap_or_else(otherwise))
    }

    /// Reads the ledger's record, whose node was unreachable. Does nothing if another call is reading it.
    async fn read_record_again(self: &Arc<Self>) {
        let Ok(guard) = Arc::clone(&self.record_read).try_lock_owned() else {
            return;
        };
        let health = Arc::clone(self);
        // In a separate task, so that a late reply counts too.
        let read = tokio::spawn(async move {
            let read = sanity::record(&health.store).await;
            if !is_unreachable(&read) {
                health.record_check(read);
            }
            drop(guard);
        });
        drop(timeout(RECORD_WITHIN, read).await);
    }

    /// Records the result of a check. Returns whether the store passed it.
    fn record_check(&self, checked: Result<StoreRecord, UntrustedStore>) -> bool {
        self.is_reachable
            .store(!is_unreachable(&checked), Ordering::Release);
        if let Err(error) = &checked {
            self.outage.record(error);
        }
        match checked {
            Ok(record) => {
                self.check_master_key(&record);
                let record = Arc::new(record);
                let before = self.record.swap(Some(Arc::clone(&record)));
                if before.is_some_and(|before| before.epoch != record.epoch) {
                    tracing::error!(
                        "the store is another ledger than before: its accounts and keys are others"
                    );
                    self.has_changed_ledger.store(true, Ordering::Release);
                }
                self.is_record_away.store(false, Ordering::Release);
                self.end_outage();
                true
            }
            Err(error) if error.is_unreachable() => false,
            Err(_) => {
                self.is_untrusted.store(true, Ordering::Release);
                self.is_record_away.store(false, Ordering::Release);
                false
            }
        }
    }

    /// Checks that this process has the master key of the store's secrets. Logs a change.
    fn check_master_key(&self, record: &StoreRecord) {
        match self.master_key.record(self.provider_keys.check(record)) {
            Some(Ok(())) => tracing::info!("this process has the store's master key"),
            Some(Err(error)) => tracing::error!(%error, "every call is denied"),
            None => {}
        }
    }

    /// Ends the outage, unless the store was found to be untrusted and the background check has not confirmed the end.
    fn end_outage(&self) {
        if !self.is_untrusted.load(Ordering::Acquire) {
            self.outage.end();
        }
    }

    /// Clears the key owners of the previous ledger.
    fn forget_changed_ledger(&self) {
        if self.has_changed_ledger.swap(false, Ordering::AcqRel) {
            self.key_owners.clear();
        }
    }

    /// Checks the store once a second, forever. When it starts again after a panic, the last result is no longer relied
    /// on: the next call checks the store in full.
    pub async fn follow(self: Arc<Self>) {
        self.is_reachable.store(false, Ordering::Release);
        let mut ticks = interval(CHECK_EVERY);
        loop {
            ticks.tick().await;
            self.check().await;
        }
    }

    /// Performs the background check. Only this check ends the denial of every call.
    pub async fn check(&self) {
        let is_known = self.record.load().is_some();
        let lost_connections = LostConnections::count();
        let checked = sanity::check(&self.store, Program::Edge).await;
        let is_away = self.store.is_cluster() && is_known && is_unreachable(&checked);
        if is_away && self.store.is_partly_there().await {
            // Calls of accounts on the other nodes can be decided, even without the node of the ledger's record.
            self.is_record_away.store(true, Ordering::Release);
            self.is_reachable.store(true, Ordering::Release);
            self.end_outage();
            return;
        }
        if let Ok(record) = &checked {
            self.refusal.record(record.takes_no_writes());
        }
        let has_passed = self.record_check(checked);
        self.forget_changed_ledger();
        if has_passed {
            self.lost_connections.record_passed(lost_connections);
            self.is_untrusted.store(false, Ordering::Release);
            self.end_outage();
        }
    }
}

fn is_unreachable(checked: &Result<StoreRecord, UntrustedStore>) -> bool {
    checked.as_ref().is_err_and(UntrustedStore::is_unreachable)
}

#[cfg(test)]
mod tests;
