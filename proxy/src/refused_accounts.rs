//! The accounts that are refused, as the store names them: those that lost writes are denied until an operator accepts
//! them.

use crate::gate::Gate;
use store::call::authorize::AccountView;
use store::versions::View;

/// Reads the list. What is remembered of an account that lost writes becomes what it cannot reach before `store
/// accept`: then `authorize.lua` denies its calls, and the first one after the acceptance is decided as any other.
pub(crate) async fn follow(gate: &Gate) {
    gate.refused.follow(&gate.store).await;
    for (account, generation) in gate.refused.lost() {
        let floor = View::until_accepted(generation);
        let news = AccountView {
            generation: floor.generation,
            version: floor.version,
            plan: gate.view(&account).plan,
        };
        gate.heard(&account, &news);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Stand, text};

    #[tokio::test]
    async fn an_account_that_lost_writes_is_remembered_as_further_than_it_can_come() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        let view = |generation, version| AccountView {
            generation,
            version,
            plan: "free".to_owned(),
        };
        gate.heard("acct_1", &view(3, 7));
        gate.heard("acct_2", &view(4, 7));
        stand.store_says(|command| {
            (command[0] == "GET").then(|| text("acct_1 lost_writes 3\nacct_2 lost_writes 3"))
        });
        follow(gate).await;
        let floor = View::until_accepted(3);
        assert_eq!(gate.view("acct_1"), view(floor.generation, floor.version));
        assert_eq!(gate.view("acct_2"), view(4, 7), "it was accepted");
        // It waits for the acceptance, also when nobody names it any more.
        stand.store_says(|command| (command[0] == "GET").then(|| text("")));
        follow(gate).await;
        gate.heard("acct_1", &view(3, 9));
        assert_eq!(gate.view("acct_1").version, floor.version);
        gate.heard("acct_1", &view(5, 9));
        assert_eq!(gate.view("acct_1"), view(5, 9));
    }
}
