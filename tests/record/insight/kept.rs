//! An approved call that is never settled.

use crate::stage::Client;
use crate::world::World;
use domain::id::Kind;
use domain::plan::{DEFAULT_PLANS, Plans};
use harness::Nanos;
use std::time::Duration;
use store::call::authorize::{AccountView, Authorize, Charge, Outcome};
use store::call::hold::HoldName;

/// Its name, and its estimate in nano-USD.
pub async fn overdue(world: &World, client: &Client) -> (HoldName, u64) {
    let estimate = 1_234_567;
    let name = HoldName {
        account: client.account.id.clone(),
        agent: client.agent.id.clone(),
        run: "r".to_owned(),
        allow_id: Kind::Allow.mint(clock::now_ms()).unwrap(),
    };
    let plans = Plans::parse(DEFAULT_PLANS).unwrap();
    let view = AccountView {
        plan: "builder".to_owned(),
        ..AccountView::default()
    };
    let charge = Charge {
        estimate: Nanos::new(estimate).unwrap(),
        run_named: true,
        hold_life: Duration::from_millis(1),
        price_version: "v",
        model: "m",
        provider: "openai",
    };
    let ask = Authorize {
        name: &name,
        key_id: &client.key_id,
        view: &view,
        plan: plans.get("builder").unwrap(),
        charge: Some(&charge),
    };
    let answer = ask.execute(&world.store).await.unwrap();
    assert!(matches!(answer.outcome, Outcome::Charged { .. }), "{answer:?}");
    (name, estimate)
}
