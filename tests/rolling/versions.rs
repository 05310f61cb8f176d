//! Two versions beside each other on one store. The test makes the other version: the same code with scripts of other
//! hashes. Meanwhile the scripts are flushed from the store repeatedly, as by a restart.

use crate::fixture::{ACTUAL, ADMIN, ESTIMATE, Fixture, SOON, body};
use crate::load::Load;
use domain::entry::HoldOutcome;
use domain::id::IdKind;
use domain::plan::Plan;
use harness::{Answer, Cli, Nanos, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::call::authorize::{AUTHORIZE, AccountView, Authorize, AuthorizeOutcome, Charge};
use store::call::hold::HoldName;
use store::call::reap::sweep;
use store::call::settle::{SETTLE, Settle, Settled};
use store::call::void::{VOID, Voided, void};
use store::script::Script;
use store::versions::AccountVersion;

const OTHERS_COST: u64 = 777;
const OTHERS_CALLS: u64 = 60;

/// The other version's handle on the fixture's store.
fn other_version(fixture: &Fixture) -> Store {
    let changed =
        |script: &Script| script.with_source(&format!("{}\n-- of another version\n", script.source()));
    let store = fixture.redis.store();
    let store = store.replacing(changed(&AUTHORIZE));
    let store = store.replacing(changed(&SETTLE));
    store.replacing(changed(&VOID))
}

/// A call of the fixture's agent, approved by the version behind `store`.
async fn approved(fixture: &Fixture, store: &Store, estimate: u64) -> HoldName {
    let mint = || IdKind::Allow.mint(clock::now_ms()).expect("an id");
    let name = HoldName {
        account: fixture.bot.account.id.clone(),
        agent: "bot".to_owned(),
        run: IdKind::Request.mint(clock::now_ms()).expect("an id"),
        allow_id: mint(),
    };
    let charge = Charge {
        estimate: Nanos::new(estimate),
        run_named: false,
        hold_life: Duration::from_secs(100),
        price_version: "another",
        model: "gpt-4o-mini",
        provider: "openai",
    };
    let mut view = AccountView::default();
    for _ in 0..3 {
        let authorize = Authorize {
            name: &name,
            key_id: &fixture.key_id,
            view: &view,
            plan: &Plan::default(),
            charge: Some(&charge),
        };
        let answer = authorize.execute(&name.keys(), store).await.expect("an answer");
        match answer.outcome {
            AuthorizeOutcome::Charged { .. } => return name,
            AuthorizeOutcome::OtherPlan => view = answer.view,
            other => panic!("{other:?}"),
        }
    }
    panic!("no plan of the account's");
}

fn settle(name: HoldName, estimate: u64, cost: u64) -> Settle {
    Settle {
        name,
        estimate: Nanos::new(estimate).expect("an amount"),
        cost: Nanos::new(cost).expect("an amount"),
        outcome: HoldOutcome::Settled,
        extension: None,
        measured: None,
        ended_by: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_versions_share_one_ledger_while_the_store_forgets_their_scripts() {
    let fixture = Fixture::new().await;
    let _edge = fixture.edge();
    let load = Load::on(&fixture);
    let (other, plain) = (other_version(&fixture), fixture.redis.store());
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, mut connection) = (Arc::clone(&stop), fixture.redis.conn().await);
    let forgetful = tokio::spawn(async move {
        let mut times = 0_u64;
        while !stopped.load(Ordering::Acquire) {
            let _: () = redis::cmd("SCRIPT")
                .arg("FLUSH")
                .query_async(&mut connection)
                .await
                .expect("SCRIPT FLUSH");
            times += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        times
    });
    for number in 0..OTHERS_CALLS {
        // Either version ends a hold that the other opened, and the second end finds no hold.
        let (opens, ends) = match number % 4 {
            0 => (&other, &other),
            1 => (&other, &plain),
            2 => (&plain, &other),
            _ => (&plain, &plain),
        };
        let name = approved(&fixture, opens, ESTIMATE).await;
        let settle = settle(name, ESTIMATE, OTHERS_COST);
        assert_eq!(
            settle
                .execute(&settle.name.keys(), None, ends)
                .await
                .expect("an answer"),
            Settled::Done
        );
        assert_eq!(
            settle
                .execute(&settle.name.keys(), None, opens)
                .await
                .expect("an answer"),
            Settled::Missing
        );
        let name = approved(&fixture, opens, ESTIMATE).await;
        assert_eq!(
            void(ends, &name, AccountVersion::default())
                .await
                .expect("an answer"),
            Voided::Refunded
        );
        assert_eq!(
            void(opens, &name, AccountVersion::default())
                .await
                .expect("an answer"),
            Voided::Barred
        );
    }
    load.answers(40).await;
    let tally = load.end().await;
    stop.store(true, Ordering::Release);
    assert!(forgetful.await.expect("the flushing task") > 5);
    assert_eq!(fixture.upstream.arrived() as u64, tally.answered);
    fixture
        .settled_at(tally.answered * ACTUAL + OTHERS_CALLS * OTHERS_COST)
        .await;
}

/// The other version ends a hold that the edge opened, and the edge's own settlement comes too late; and the operator's
/// program ends a hold of the other version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_settled_once_whichever_version_comes_first() {
    let fixture = Fixture::new().await;
    let edge = fixture.edge();
    let other = other_version(&fixture);
    let gate = Arc::new(tokio::sync::Notify::new());
    let waiting = Arc::clone(&gate);
    fixture
        .upstream
        .set(move |_| Answer::chat(9, 12).wait_for(&waiting));
    let caller = edge.caller(&fixture.key);
    let call = tokio::spawn(async move { caller.chat(body(false)).await });
    fixture.upstream.wait_for(1, SOON).await;
    let open = store::call::unsettled_holds::list(&other, Some(&fixture.bot.account.id), 10)
        .await
        .expect("the holds");
    assert_eq!(open.len(), 1);
    let first = settle(open[0].hold.name.clone(), ESTIMATE, OTHERS_COST);
    assert_eq!(
        first
            .execute(&first.name.keys(), None, &other)
            .await
            .expect("an answer"),
        Settled::Done
    );
    let _: () = fixture.redis.command(&["SCRIPT", "FLUSH"]);
    gate.notify_one();
    assert_eq!(call.await.expect("a call").status, 200);
    fixture.settled_at(OTHERS_COST).await;

    let opened = approved(&fixture, &other, ESTIMATE).await;
    let cli = Cli::new(ADMIN, fixture.redis.url());
    let id = opened.allow_id.as_str();
    // The operator settles what is overdue.
    fixture.bot.pass_deadlines().await;
    drop(cli.json(&["holds", "settle", "--id", id, "--actual", "0.000001"]));
    fixture.settled_at(OTHERS_COST + 1000).await;
    let bucket = fixture.bot.account.keys.bucket();
    let kept = sweep(&other, bucket, clock::now_ms()).await.expect("a sweep");
    assert!(kept.is_empty(), "{kept:?}");
}
