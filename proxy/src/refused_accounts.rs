//! Accounts for which the store accepts no more records (decision D71), and accounts that lost writes, which are denied
//! until an operator accepts the loss.

use crate::account_views::AccountViews;
use std::sync::Arc;
use store::Store;
use store::account::refused::{Cause, RefusedCopy};
use store::call::authorize::AccountView;
use store::versions::AccountVersion;

/// This edge's copy of the list.
pub struct RefusedAccounts {
    copy: RefusedCopy,
    store: Store,
    views: Arc<AccountViews>,
}

impl RefusedAccounts {
    /// Creates an empty copy. Accounts that lost writes are recorded in `views`.
    pub fn new(store: Store, views: Arc<AccountViews>) -> Self {
        Self {
            copy: RefusedCopy::default(),
            store,
            views,
        }
    }

    /// Returns why the store accepts no more records of an account; `None` if it accepts them.
    pub fn cause(&self, account: &str) -> Option<Cause> {
        self.copy.cause(account)
    }

    /// Reads the list. An account that lost writes gets a view with a version that it cannot reach before `store
    /// accept`. So `authorize.lua` denies its calls until then, and decides the first call after the acceptance as
    /// usual.
    pub async fn refresh(&self) {
        self.copy.refresh(&self.store).await;
        for (account, generation) in self.copy.lost() {
            let floor = AccountVersion::until_accepted(generation);
            let view = AccountView {
                generation: floor.generation,
                version: floor.version,
                plan: self.views.get(&account).plan,
            };
            self.views.record(&account, &view);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, text};

    #[tokio::test]
    async fn an_account_that_lost_writes_has_a_view_that_it_cannot_reach() {
        let fixture = Fixture::new().await;
        let (refused, views) = (&fixture.refused, &fixture.views);
        let view = |generation, version| AccountView {
            generation,
            version,
            plan: "free".to_owned(),
        };
        views.record("acct_1", &view(3, 7));
        views.record("acct_2", &view(4, 7));
        fixture.on_command(|command| {
            (command[0] == "GET").then(|| text("acct_1 lost_writes 3\nacct_2 lost_writes 3"))
        });
        refused.refresh().await;
        let floor = AccountVersion::until_accepted(3);
        assert_eq!(views.get("acct_1"), view(floor.generation, floor.version));
        assert_eq!(views.get("acct_2"), view(4, 7), "it was accepted");
        // The view stays until the acceptance, even if the list no longer names the account.
        fixture.on_command(|command| (command[0] == "GET").then(|| text("")));
        refused.refresh().await;
        views.record("acct_1", &view(3, 9));
        assert_eq!(views.get("acct_1").version, floor.version);
        views.record("acct_1", &view(5, 9));
        assert_eq!(views.get("acct_1"), view(5, 9));
    }
}
