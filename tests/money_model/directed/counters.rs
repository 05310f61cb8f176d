//! The counters of days and months: which ones are dropped, and their ceiling.

use super::fixture::{DirectedFixture, deposit, spend};
use super::preconditions::{charge, long_ago, other_day};
use crate::act::{Act, Spend};
use crate::model::{Charge, MOST, Run};
use crate::model_fixture::{Checked, ModelFixture};
use domain::period::Period;

pub async fn all(setup: &DirectedFixture<'_>) -> Checked {
    old_counters(setup).await?;
    runs(setup).await?;
    ceiling(setup).await
}

/// The first charge of a day drops the counters of days and months long past, and nothing else.
async fn old_counters(setup: &DirectedFixture<'_>) -> Checked {
    let (day, month) = (setup.period.day, setup.period.month);
    let charged = [None, Some(setup.period), Some(other_day(setup.period))];
    for charged in charged {
        let mut model = setup.model();
        let agent = model.sides[0].agents.get_mut("a").expect("the agent");
        for name in [
            format!("d{}", day - 40),
            format!("d{}", day - 41),
            format!("w{}", day - 40),
            format!("w{}", day - 41),
            format!("m{}", month - 200),
            format!("m{}", month - 201),
            format!("s{}", month - 200),
            format!("s{}", month - 201),
            "dx1".to_owned(),
            "x1".to_owned(),
        ] {
            agent.old.insert(name, "7".to_owned());
        }
        // The seven newest of each kind stay, however old they are: with those of 40 days and of 200.
        for newer in 2..=7 {
            for (kind, now) in [('d', day), ('w', day), ('m', month), ('s', month)] {
                agent.old.insert(format!("{kind}{}", now - newer), "7".to_owned());
            }
        }
        model.sides[0]
            .charges
            .extend(charged.map(|period| charge("a", 1, period)));
        let mut fixture: ModelFixture = setup.fixture(model).await?;
        fixture.want("settled", spend(1, 1)).await?;
    }
    Ok(())
}

/// A refused spend leaves an ended run ended, a settled one resumes it; each spend of a run drops ended runs from the
/// indexes.
async fn runs(setup: &DirectedFixture<'_>) -> Checked {
    let mut model = setup.model();
    let moment = model.now();
    let expires = model.window.later(1_000_000);
    let ended = Run {
        first: moment.clone(),
        last: moment,
        calls: Some(0),
        denied: 0,
        expires,
        status: Some("failed"),
        called: true,
    };
    let side = &mut model.sides[0];
    side.runs.insert(("a".to_owned(), "r".to_owned()), ended);
    side.listed_before.extend(["a".to_owned(), "b".to_owned()]);
    side.counted_before = side.listed_before.clone();
    let place = model.place(0, "a");
    model.lay("made", &Act::Deposit(deposit(90, place, 10_000)));
    let mut fixture = setup.fixture(model).await?;
    let ask = |n, run: &str, amount| {
        Act::Spend(Spend {
            run: Some(run.to_owned()),
            ..spend(n, amount)
        })
    };
    fixture
        .want("blocked insufficient_balance", ask(1, "r", 20_000))
        .await?;
    fixture.want("settled", ask(2, "r", 10)).await?;
    fixture.want("settled", ask(3, "new", 10)).await
}

/// No counter passes the ceiling; each of them alone refuses the spend.
async fn ceiling(setup: &DirectedFixture<'_>) -> Checked {
    let full = MOST - 1024;
    let now = setup.period;
    let long_ago = long_ago(now);
    let only_day = Period {
        month: long_ago.month,
        ..now
    };
    let charges = [
        charge("a", full, only_day),
        charge("a", full, other_day(now)),
        charge("b", full, other_day(now)),
        Charge {
            run: Some("r".to_owned()),
            ..charge("a", full, long_ago)
        },
    ];
    for full in charges {
        let mut model = setup.model();
        if full.run.is_some() {
            let moment = model.now();
            let expires = model.window.later(1_000_000);
            model.sides[0].runs.insert(
                ("a".to_owned(), "r".to_owned()),
                Run {
                    first: moment.clone(),
                    last: moment,
                    calls: Some(1),
                    denied: 0,
                    expires,
                    status: None,
                    called: false,
                },
            );
        }
        model.sides[0].charges.push(full);
        let mut fixture = setup.fixture(model).await?;
        let ask = |n, amount| {
            Act::Spend(Spend {
                run: Some("r".to_owned()),
                ..spend(n, amount)
            })
        };
        fixture.want("blocked insufficient_balance", ask(1, 2048)).await?;
        let mut model = fixture.model;
        let place = model.place(0, "a");
        model.lay("made", &Act::Deposit(deposit(90, place, 10_000)));
        let mut fixture = setup.fixture(model).await?;
        fixture.want("too_much", ask(2, 2048)).await?;
        fixture.want("settled", ask(3, 1024)).await?;
    }
    // Tracked USD are live only: they do not bind the test mode.
    let mut model = setup.model();
    model.sides[0].charges.push(charge("b", full, now));
    model.lay("made", &Act::Deposit(deposit(91, model.place(1, "a"), 10_000)));
    let mut fixture = setup.fixture(model).await?;
    let mut test = spend(4, 2048);
    test.request_id.at = 1;
    fixture.want("settled", test).await
}
