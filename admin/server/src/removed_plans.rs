//! Number of accounts with a plan that a reload removed.

use store::account::Account;
use store::read::Read;
use store::{Store, StoreError};
use telemetry::error_chain;

/// Accounts read in one round trip.
const ACCOUNTS_AT_ONCE: usize = 500;

/// Warns, in the background, of plans that are gone, with the number of accounts that have one.
pub(crate) fn warn(store: Store, removed: Vec<String>) {
    if removed.is_empty() {
        return;
    }
    tokio::spawn(async move {
        match count(&store, &removed).await {
            Ok(accounts) => tracing::warn!(
                ?removed,
                accounts,
                "plans are gone from plans.file: accounts that have one are refused"
            ),
            Err(error) => tracing::warn!(
                ?removed,
                error = %error_chain(&error),
                "plans are gone from plans.file: accounts that have one are refused; how many have one is unknown"
            ),
        }
    });
}

/// Counts the accounts with one of these plans.
async fn count(store: &Store, plans: &[String]) -> Result<usize, StoreError> {
    let accounts = Account::ids(store).await?;
    let mut found = 0;
    for some in accounts.chunks(ACCOUNTS_AT_ONCE) {
        let mut answers = store
            .many(&Read::for_accounts(some, &["plan".to_owned()]))
            .await?;
        for _ in some {
            let plan: Option<(Option<String>,)> = answers.read();
            let plan = plan.and_then(|(plan,)| plan);
            found += usize::from(plan.is_some_and(|plan| plans.contains(&plan)));
        }
    }
    Ok(found)
}
