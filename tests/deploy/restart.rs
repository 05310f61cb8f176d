//! The store starts again, as it does with its machine. Redis before redis/redis#14545 and Valkey before
//! valkey-io/valkey#3984 run the transactions of their append-only file, and so the writes of scripts, with the rights
//! of the user `default`; writes that this user may not make are left out.

use crate::installation::Installation;
use harness::eventually;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// Calls that fit under the agent's daily cap, and those before each start.
const CALLS: u64 = 10;
const BEFORE: u64 = 3;

#[tokio::test]
async fn a_store_that_starts_again_has_all_that_it_had() {
    let installation = Installation::start();
    let (mut edge, admin) = (installation.edge(), installation.admin());
    let mut tenant = installation.settle(&edge, &admin).await;
    let behaviour: Vec<String> =
        installation
            .redis()
            .command(&["CONFIG", "GET", "propagation-error-behavior"]);
    assert_eq!(behaviour[1], "panic", "it ends where it would leave out a write");
    tenant.make_room_for(CALLS).await;
    tenant.call(BEFORE).await;
    for killed in [false, true] {
        if killed {
            installation.redis().wait_until_written();
            installation.redis().kill9();
        }
        installation.redis().restart();
        let logs = installation.redis().logs();
        assert!(!logs.contains("CRITICAL"), "{logs}");
        // This edge never saw the account, so it could not notice a loss.
        edge = installation.edge();
        tenant.caller = edge.caller(&tenant.virtual_key);
        tenant.call(BEFORE).await;
    }
    tenant.call_until_denied(CALLS - 3 * BEFORE).await;
    eventually("an admin server on the store", SOON, async || {
        (admin.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
    assert_eq!(installation.cli.json(&["ledger", "check"])["ok"], true);
}
