//! The store starts again, as it does with its machine. Redis before redis/redis#14545 and Valkey before valkey-io/valkey#3984 run
//! the transactions of their append-only file, and so whatever a script wrote, with the rights of the user `default`; what it
//! may not do they leave out.

use crate::town::Town;
use harness::eventually;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// Calls that fit under the agent's daily cap, and those before each start.
const CALLS: u64 = 10;
const BEFORE: u64 = 3;

#[tokio::test]
async fn a_store_that_starts_again_has_all_that_it_had() {
    let town = Town::found();
    let (mut edge, admin) = (town.edge(), town.admin());
    let mut citizen = town.settle(&edge, &admin).await;
    let behaviour: Vec<String> = town
        .redis()
        .command(&["CONFIG", "GET", "propagation-error-behavior"]);
    assert_eq!(behaviour[1], "panic", "it ends where it would leave out a write");
    citizen.make_room_for(CALLS).await;
    citizen.call(BEFORE).await;
    for killed in [false, true] {
        if killed {
            town.redis().wait_until_written();
            town.redis().kill9();
        }
        town.redis().restart();
        let said = town.redis().logs();
        assert!(!said.contains("CRITICAL"), "{said}");
        // One that never saw the account, and would notice nothing.
        edge = town.edge();
        citizen.caller = edge.caller(&citizen.virtual_key);
        citizen.call(BEFORE).await;
    }
    citizen.call_until_denied(CALLS - 3 * BEFORE).await;
    eventually("an admin server on the store", SOON, async || {
        (admin.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
    assert_eq!(town.cli.json(&["ledger", "check"])["ok"], true);
}
