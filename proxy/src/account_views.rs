//! Cache of the newest version and plan seen of each account. Replies may arrive out of order, so only a newer view
//! replaces an older one.

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use std::convert::Infallible;
use std::sync::Arc;
use store::call::authorize::AccountView;

/// Accounts in the cache.
const VIEWS_MAX: usize = 100_000;

pub struct AccountViews(Cache<String, Arc<Mutex<AccountView>>>);

impl Default for AccountViews {
    fn default() -> Self {
        Self(Cache::new(VIEWS_MAX))
    }
}

impl AccountViews {
    /// Returns the newest view seen of an account; the default view, with an empty plan name, if none was seen.
    pub fn get(&self, account: &str) -> AccountView {
        match self.0.get(account) {
            Some(view) => view.lock().clone(),
            None => AccountView::default(),
        }
    }

    /// Records a view, unless a newer one was recorded meanwhile.
    pub fn record(&self, account: &str, seen: &AccountView) {
        let first = || Ok::<_, Infallible>(Arc::new(Mutex::new(seen.clone())));
        let Ok(view) = self.0.get_or_insert_with(account, first);
        let mut view = view.lock();
        if (seen.generation, seen.version) > (view.generation, view.version) {
            view.clone_from(seen);
        }
    }

    /// Returns the number of accounts in the cache.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_view_does_not_replace_a_newer_one() {
        let views = AccountViews::default();
        let view = |generation, version, plan: &str| AccountView {
            generation,
            version,
            plan: plan.to_owned(),
        };
        assert_eq!(views.get("acct_1"), AccountView::default());
        for (seen, plan) in [
            (view(1, 5, "a"), "a"),
            (view(1, 4, "b"), "a"),
            (view(1, 5, "c"), "a"),
            (view(1, 6, "d"), "d"),
            (view(2, 1, "e"), "e"),
            (view(1, 9, "f"), "e"),
        ] {
            views.record("acct_1", &seen);
            assert_eq!(views.get("acct_1").plan, plan, "{seen:?}");
        }
        assert_eq!(views.get("acct_2"), AccountView::default());
        assert_eq!(views.len(), 1);
    }
}
