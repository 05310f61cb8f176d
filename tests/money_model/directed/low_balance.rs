//! Debits around the threshold of a low balance: only the entry of the debit that crosses it reports that.

use super::fixture::{DirectedFixture, deposit, escrow, request_id, spend, transfer};
use super::preconditions::limit;
use crate::act::{Act, Spend};
use crate::model::{Limits, Model, Place};
use crate::model_fixture::{Checked, ModelFixture};

/// The highest threshold there can be: 9,000,000 USD.
const HIGHEST: u64 = 9_000_000_000_000_000;

pub async fn spends(setup: &DirectedFixture<'_>) -> Checked {
    for (way, _) in POLICIES {
        let mut fixture = setup.fixture(with_policies(setup, way)).await?;
        for (n, amount) in AMOUNTS {
            fixture.want("settled", spend_of("a", n, amount)).await?;
        }
    }
    // A pending spend counts when it is approved.
    let mut model = setup.model();
    let limits = Limits {
        low: Some(90),
        approval: Some(5),
        ..Limits::default()
    };
    limit(&mut model, "a", limits);
    let mut fixture = setup.fixture(model).await?;
    fixture.want("pending", spend_of("a", 1, 11)).await?;
    let approve = Act::Resolve {
        at: 0,
        id: "int_1".to_owned(),
        grant: true,
        stale: false,
        at_ms: 5,
        plan: None,
        n: 2,
    };
    fixture.want("settled 89", approve).await?;
    // Without a wallet, earlier spends do not count.
    let mut model = setup.model();
    model.lay("set", &policy(None, Some(5), 70));
    model.lay("set", &policy(Some("poor"), Some(5), 71));
    let mut fixture = setup.fixture(model).await?;
    fixture.want("settled ", spend_of("poor", 3, 7)).await?;
    beyond_doubles(setup, |_, n, amount| spend_of("a", n, amount)).await
}

/// By transfers within the account and out of it, of agents and of the account's own wallet.
pub async fn transfers(setup: &DirectedFixture<'_>) -> Checked {
    for (way, _) in POLICIES {
        for (from, to_at) in [("a", 0), ("a", 2), ("user", 0), ("user", 2)] {
            let mut fixture = setup.fixture(with_policies(setup, way)).await?;
            let places = (fixture.model.place(0, from), fixture.model.place(to_at, "b"));
            for (n, amount) in AMOUNTS {
                fixture.want("done", pay(&places, n, amount)).await?;
            }
        }
    }
    for to_at in [0, 2] {
        beyond_doubles(setup, |model, n, amount| {
            pay(&(model.place(0, "a"), model.place(to_at, "b")), n, amount)
        })
        .await?;
    }
    Ok(())
}

/// By funding escrows for payees here and elsewhere.
pub async fn escrows(setup: &DirectedFixture<'_>) -> Checked {
    for (way, _) in POLICIES {
        for (from, to_at) in [("a", 0), ("user", 2)] {
            let mut model = with_policies(setup, way);
            let (from, to) = (model.place(0, from), model.place(to_at, "b"));
            for (n, amount) in AMOUNTS {
                model.lay("done", &Act::Escrow(escrow(100 + n, &from, &to, amount)));
            }
            let mut fixture = setup.fixture(model).await?;
            for (n, _) in AMOUNTS {
                let fund = Act::Fund {
                    request_id: request_id(0, n),
                    escrow: n,
                };
                fixture.want("done", fund).await?;
            }
        }
    }
    Ok(())
}

/// Request numbers and debits from a balance of 100: down to the threshold of 50, one below it, and further down.
const AMOUNTS: [(u64, u64); 3] = [(1, 50), (2, 1), (3, 1)];

/// Thresholds of the agent's own policy (`None`: no policy) and of the account's.
const POLICIES: [([Option<Option<u64>>; 2], &str); 7] = [
    ([Some(Some(50)), Some(Some(99))], "the agent's own counts"),
    ([Some(None), Some(Some(50))], "it counts, too, when it has none"),
    ([None, Some(Some(50))], "the account's counts without it"),
    ([Some(Some(50)), None], "there is no other"),
    ([None, Some(None)], "the account's has none"),
    ([Some(Some(0)), Some(Some(0))], "nothing is below nothing"),
    ([Some(Some(100)), Some(Some(100))], "the balance is the threshold"),
];

fn with_policies(setup: &DirectedFixture<'_>, [own, wide]: [Option<Option<u64>>; 2]) -> Model {
    let mut model = setup.model();
    match own {
        Some(low) => limit(
            &mut model,
            "a",
            Limits {
                low,
                ..Limits::default()
            },
        ),
        None => {
            let id = model.sides[0].agents["a"].policy.clone().expect("a policy");
            model.lay("deleted", &Act::DropPolicy { at: 0, id });
        }
    }
    if let Some(low) = wide {
        model.lay("set", &policy(None, low, 70));
    } else if own.is_none() {
        model.lay("set", &policy(None, None, 70));
    }
    // Policies of test mode do not apply to live wallets.
    let mut test = policy(None, Some(80), 72);
    if let Act::Policy { at, .. } = &mut test {
        *at = 1;
    }
    model.lay("set", &test);
    model
}

fn policy(agent: Option<&str>, low: Option<u64>, n: u64) -> Act {
    Act::Policy {
        at: 0,
        agent: agent.map(str::to_owned),
        limits: Limits {
            low,
            ..Limits::default()
        },
        n,
    }
}

fn spend_of(agent: &str, n: u64, amount: u64) -> Act {
    Act::Spend(Spend {
        agent: agent.to_owned(),
        ..spend(n, amount)
    })
}

fn pay((from, to): &(Place, Place), n: u64, amount: u64) -> Act {
    Act::Transfer(transfer(n, from, to, amount))
}

/// The highest threshold, crossed from balances that doubles cannot represent: each nano counts.
async fn beyond_doubles(setup: &DirectedFixture<'_>, debit: impl Fn(&Model, u64, u64) -> Act) -> Checked {
    // The initial balance and the debits. The model computes exactly which of them crosses.
    let cases: [(u64, &[u64]); 4] = [
        (HIGHEST, &[1, 1]),
        ((1 << 53) + 1, &[(1 << 53) + 1 - HIGHEST, 1]),
        ((1 << 53) + 1, &[(1 << 53) + 2 - HIGHEST]),
        (2 * HIGHEST + 1, &[HIGHEST, 1, 1, 1]),
    ];
    for (balance, debits) in cases {
        let mut model = setup.model();
        limit(
            &mut model,
            "a",
            Limits {
                low: Some(HIGHEST),
                ..Limits::default()
            },
        );
        let place = model.place(0, "a");
        model.lay(
            "made",
            &Act::Deposit(deposit(90, place, balance - super::fixture::START)),
        );
        let mut fixture: ModelFixture = setup.fixture(model).await?;
        for (n, amount) in (1..).zip(debits) {
            let act = debit(&fixture.model, n, *amount);
            fixture.go(&act).await?;
        }
        let crossings = fixture.model.sides[0].audit.iter();
        let crossings = crossings.filter(|entry| {
            entry
                .words
                .as_deref()
                .is_some_and(|words| words.contains("low_nanos"))
        });
        if crossings.count() != 1 {
            return Err(format!(
                "from {balance} by {debits:?}: the threshold is crossed once"
            ));
        }
    }
    Ok(())
}
