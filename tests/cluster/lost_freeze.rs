//! An acknowledged freeze and an acknowledged revocation are lost with their master: its replica never received them.
//! Calls through an edge that has not seen them do not hide the loss. Where an admin server runs, such an edge denies
//! the accounts until the operator accepts them.

use crate::fixture::{ADMIN, Fixture, MASTERS, SOON, accept, call, cap};
use domain::mode::Mode;
use harness::{Admin, Caller, Cli, Edge, SeedAgent, eventually, until};
use serde_json::{Value, json};
use store::keys::REFUSED;

/// Calls through the edge that has not seen the change: if a change raised the version by as little as a call does,
/// they would hide its loss.
const CALLS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    Freeze,
    Revocation,
}

/// An agent whose account loses a change.
struct Victim {
    lost: Lost,
    agent: SeedAgent,
    key_id: String,
    key: String,
    api_key: String,
}

impl Victim {
    async fn on(fixture: &Fixture, node: usize, lost: Lost) -> Self {
        let agent = fixture.resident_on(node, cap(None)).await.agent;
        let (key_id, key) = agent.virtual_key_with_id().await;
        let api_key = agent.account.api_key(Mode::Live).await;
        Self {
            lost,
            agent,
            key_id,
            key,
            api_key,
        }
    }

    /// Makes the change at an admin server, which acknowledges it.
    async fn change(&self, admin: &Admin) {
        let caller = admin.caller(&self.api_key);
        let agent = format!("/v1/agents/{}", self.agent.id);
        let reply = match self.lost {
            Lost::Freeze => caller.post(&format!("{agent}/freeze"), json!({})).await,
            Lost::Revocation => {
                caller
                    .delete(&format!("{agent}/virtual-keys/{}", self.key_id))
                    .await
            }
        };
        assert!(reply.status < 300, "{:?}: {}", self.lost, reply.text());
    }

    /// Status of a call while the change is in force.
    const fn refusal(&self) -> u16 {
        match self.lost {
            Lost::Freeze => 403,
            Lost::Revocation => 401,
        }
    }

    fn caller(&self, edge: &Edge) -> Caller {
        edge.caller(&self.key)
    }

    fn record(&self) -> String {
        self.agent.account.keys.record()
    }
}

/// Makes victims on the master at `node`. Its replica is cut off before the changes; the first of two edges sees them.
async fn changed(fixture: &Fixture, admin: &Admin, node: usize) -> [Victim; 2] {
    let replica = fixture.cluster.replica_of(node);
    let victims = [
        Victim::on(fixture, node, Lost::Freeze).await,
        Victim::on(fixture, node, Lost::Revocation).await,
    ];
    for victim in &victims {
        for edge in &fixture.edges {
            assert_eq!(victim.caller(edge).chat(call("before")).await.status, 200);
        }
    }
    fixture.cluster.wait_in_step(replica);
    fixture.cluster.cut_off(replica);
    for victim in &victims {
        victim.change(admin).await;
        let met = victim.caller(&fixture.edges[0]).chat(call("met")).await;
        assert_eq!(met.status, victim.refusal(), "{:?}: {}", victim.lost, met.text());
    }
    victims
}

/// Waits until the edge denies the victim because the store lost writes of its account.
async fn is_denied(edge: &Edge, victim: &Victim) {
    let caller = victim.caller(edge);
    until("a denial for lost writes", async || {
        let reply = caller.chat(call("lost")).await;
        let knows = edge.logs().lines().any(|line| {
            line.contains("the store lost writes of this account") && line.contains(&victim.agent.account.id)
        });
        reply.status == 503 && knows
    })
    .await;
}

/// The accounts that `ledger check` reports for lost writes.
fn named(fixture: &Fixture) -> String {
    let output = Cli::new(ADMIN, fixture.cluster.url()).run(&["ledger", "check", "--json"]);
    let document: Value = serde_json::from_str(&output.stdout).expect("a document");
    let violations = document["violations"].as_array().expect("a list");
    let versions = violations
        .iter()
        .filter(|violation| violation["invariant"] == json!("versions"));
    versions
        .map(|violation| violation["records"].to_string())
        .collect()
}

/// Asserts that the admin server refuses the victim because its account lost writes.
async fn is_refused(admin: &Admin, victim: &Victim) {
    let caller = admin.caller(&victim.api_key);
    let reply = eventually("an answer of the new master", SOON, async || {
        let reply = caller.get("/v1/agents").await;
        (reply.status != 503 || admin.logs().contains(&victim.agent.account.id)).then_some(reply)
    })
    .await;
    assert_eq!(reply.status, 503, "{:?}: {}", victim.lost, reply.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_the_agent_do_not_make_up_for_what_was_lost() {
    let fixture = Fixture::start(2).await;
    let node = (fixture.home() + 1) % MASTERS;
    let admin = fixture.admin("auto");
    let victims = changed(&fixture, &admin, node).await;
    // Only edges run while the agents continue.
    drop(admin);
    fixture.cluster.lose(node, &victims[0].record());
    for victim in &victims {
        fixture.found_again(&victim.record()).await;
        let caller = victim.caller(&fixture.edges[1]);
        for number in 0..CALLS {
            until("a call that the edge approves", async || {
                let reply = caller.chat(call(&format!("lost {number}"))).await;
                reply.status == 200
            })
            .await;
        }
        is_denied(&fixture.edges[0], victim).await;
    }
    let check = named(&fixture);
    let young = fixture.admin("auto");
    for victim in &victims {
        assert!(
            check.contains(&victim.agent.account.id),
            "{:?}: {check}",
            victim.lost
        );
        is_refused(&young, victim).await;
    }
    for victim in &victims {
        accept(&fixture, &victim.agent.account);
        let served = victim.caller(&fixture.edges[0]).chat(call("accepted")).await;
        assert_eq!(served.status, 200, "{:?}: {}", victim.lost, served.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_that_had_not_met_it_stops_until_the_operator_accepts() {
    let fixture = Fixture::start(2).await;
    let node = (fixture.home() + 1) % MASTERS;
    let admin = fixture.admin("auto");
    let victims = changed(&fixture, &admin, node).await;
    fixture.cluster.lose(node, &victims[0].record());
    for victim in &victims {
        is_denied(&fixture.edges[1], victim).await;
    }
    let arrived = fixture.upstream.arrived();
    drop(admin);

    // The operator's commands work, and do not hide the loss.
    let cli = Cli::new(ADMIN, fixture.cluster.url());
    let command = |verb: &str, victim: &Victim| {
        let (account, agent) = (&victim.agent.account.id, &victim.agent.id);
        let _: Value = cli.json(&["agent", verb, "--account", account, "--agent", agent]);
    };
    for victim in &victims {
        command("freeze", victim);
        command("unfreeze", victim);
        let denied = victim.caller(&fixture.edges[1]).chat(call("held")).await;
        assert_eq!(denied.status, 503, "{:?}: {}", victim.lost, denied.text());
    }
    let check = named(&fixture);
    // A server that starts later finds the loss, and so an edge that starts later learns of it.
    let (young, late) = (fixture.admin("auto"), fixture.edge());
    for victim in &victims {
        assert!(
            check.contains(&victim.agent.account.id),
            "{:?}: {check}",
            victim.lost
        );
        is_refused(&young, victim).await;
    }
    until("a list that names both", async || {
        let mut get = redis::cmd("GET");
        let list: Option<String> = fixture.store.command(get.arg(REFUSED)).await.ok().flatten();
        let list = list.unwrap_or_default();
        victims
            .iter()
            .all(|victim| list.contains(&format!("{} lost_writes ", victim.agent.account.id)))
    })
    .await;
    assert_eq!(fixture.upstream.arrived(), arrived, "nothing was forwarded");
    for victim in &victims {
        is_denied(&late, victim).await;
    }

    // The first call after the acceptance is decided as any other.
    for victim in &victims {
        command("freeze", victim);
        accept(&fixture, &victim.agent.account);
        for edge in fixture.edges.iter().chain([&late]) {
            let frozen = victim.caller(edge).chat(call("frozen")).await;
            assert_eq!(frozen.status, 403, "{:?}: {}", victim.lost, frozen.text());
        }
        command("unfreeze", victim);
        let served = victim.caller(&fixture.edges[1]).chat(call("accepted")).await;
        assert_eq!(served.status, 200, "{:?}: {}", victim.lost, served.text());
    }
}

/// A change of each kind that no confirmation waits for, as a request.
const OTHERS: &[(&str, &str)] = &[
    ("/policies", r#"{"name":"All","maxSpendPerDay":"5"}"#),
    ("/policies/{agent}", r#"{"maxSpendPerDay":"5"}"#),
    (
        "/agents/{agent}/provider-keys",
        r#"{"provider":"openai","apiKey":"sk-0123456789abcdefghij0123"}"#,
    ),
];

/// Each of these is lost with its master, and the next request of its account notices it, as does the check of the
/// ledger.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_change_of_any_kind_is_noticed_by_the_next_request() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let admin = fixture.admin("auto");
    let replica = fixture.cluster.replica_of(node);
    let mut changed = Vec::new();
    for (path, body) in OTHERS {
        let agent = fixture.resident_on(node, cap(None)).await.agent;
        let caller = admin.caller(&agent.account.api_key(Mode::Live).await);
        changed.push((path.replace("{agent}", &agent.id), body, agent, caller));
    }
    fixture.cluster.wait_in_step(replica);
    fixture.cluster.cut_off(replica);
    for (path, body, _, caller) in &changed {
        let body: Value = serde_json::from_str(body).unwrap();
        let reply = caller.post(&format!("/v1{path}"), body).await;
        assert!(reply.status < 300, "{path}: {}", reply.text());
    }
    fixture.cluster.lose(node, &changed[0].2.account.keys.record());
    for (path, _, agent, caller) in &changed {
        let reply = eventually("an answer of the new master", SOON, async || {
            let reply = caller.get("/v1/agents").await;
            (reply.status != 503 || admin.logs().contains(&agent.account.id)).then_some(reply)
        })
        .await;
        assert_eq!(reply.status, 503, "{path}: {}", reply.text());
    }
    let check = named(&fixture);
    for (path, _, agent, _) in &changed {
        assert!(check.contains(&agent.account.id), "{path}: {check}");
    }
}
