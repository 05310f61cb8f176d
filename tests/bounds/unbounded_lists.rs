//! Routes with a query that return a list with a fixed bound or no list: each costs the store the same beside a
//! thousand and beside a million records of each kind of the account.

use crate::fill::{AGENT, ListKind, Tenant, roomy};
use crate::fixture::Fixture;
use crate::lists::{FEW, MANY, OTHERS, SEARCHED, SHORT, work_of};
use crate::watch::{Watch, Work};
use harness::{Role, SessionCaller, TEST_PASSWORD, text};
use serde_json::json;
use std::collections::BTreeSet;
use store::agent::survey::AGENTS_MAX;

/// Kinds of records that there are many of. Calls are entries of the audit trail.
const KINDS: [ListKind; 10] = [
    ListKind::Calls,
    ListKind::Agents,
    ListKind::VirtualKeys,
    ListKind::Policies,
    ListKind::Transactions,
    ListKind::Escrows,
    ListKind::Intents,
    ListKind::Runs,
    ListKind::EndedRuns,
    ListKind::Holds,
];
/// Records that a request may read in addition where there are many: the ends of lists.
const MORE: u64 = 200;
/// Entries at the end of the trail that an export reads.
const EXPORTED: u64 = 100;

/// A request of a route.
struct Request {
    route: &'static str,
    path: String,
    /// Records that it may read beside a million of each kind, by a bound of its own.
    looks: u64,
    /// Whether only a session may send it.
    by_session: bool,
}

/// The requests of all routes, of an account with `count` records of each kind.
fn requests(filled: &Filled, count: u64) -> Vec<Request> {
    let Filled { webhook, intent, .. } = filled;
    let request = |route, path: &str, looks: usize| Request {
        route,
        path: format!("/v1{path}"),
        looks: looks as u64,
        by_session: false,
    };
    let session = |route, path: &str| Request {
        route,
        path: path.to_owned(),
        looks: 0,
        by_session: true,
    };
    let of_end = format!("/audit/export?after={}", count - EXPORTED);
    let intent = format!("/intents/{intent}/export");
    let searched = usize::try_from(SEARCHED).unwrap();
    let none = "from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z";
    vec![
        request("/agents/{id}/provider-keys", "/agents/bot/provider-keys", 0),
        request("/webhooks", "/webhooks", 0),
        request(
            "/webhooks/{id}/deliveries",
            &format!("/webhooks/{webhook}/deliveries"),
            0,
        ),
        session("/api-keys", "/api/v1/api-keys"),
        session("/sessions", "/api/user/sessions"),
        session("/team", "/api/user/team"),
        session("/invitations", "/api/user/invitations"),
        request("/names", "/names?ids=bot", 0),
        request("/overview", "/overview", AGENTS_MAX * 20),
        request("/audit/export", &of_end, 0),
        request("/calls/export", &format!("/calls/export?{none}"), searched),
        request("/usage", &format!("/usage?groupBy=model&{none}"), searched),
        request("/audit/checkpoint", "/audit/checkpoint", 0),
        request("/intents/{id}/export", &intent, 0),
    ]
}

/// An account with records, its owner's session and its webhook.
struct Filled {
    tenant: Tenant,
    session: SessionCaller,
    webhook: String,
    /// An intent that was made among the others.
    intent: String,
}

impl Filled {
    async fn new(fixture: &Fixture, count: u64) -> Self {
        let tenant = Tenant::new(fixture).await;
        let owner = tenant.account.user(Role::Owner).await;
        tenant
            .account
            .agent(AGENT)
            .provider_key("sk-test-provider-key")
            .await;
        let secret = "whsec_0123456789abcdef0123456789";
        let hook = json!({ "url": "http://127.0.0.1:9/a", "secret": secret, "events": ["agent.frozen"] });
        let hook = tenant.caller.post("/v1/webhooks", hook).await.json();
        for kind in KINDS {
            tenant.fill(fixture, kind, count).await;
        }
        // The spend is blocked for lack of money, and recorded.
        let spend = json!({ "agent": AGENT, "amount": 1 });
        let spent = tenant.caller.post("/v1/spend", spend).await;
        Self {
            intent: text(&spent.json(), "/intent_id").to_owned(),
            session: fixture.admin.sign_in(&owner.email, TEST_PASSWORD).await,
            webhook: text(&hook, "/webhook/id").to_owned(),
            tenant,
        }
    }

    async fn work(&self, fixture: &Fixture, watch: &Watch, request: &Request) -> Work {
        let Request { path, by_session, .. } = request;
        let get = async || match by_session {
            true => self.session.get(path).await,
            false => self.tenant.caller.get(path).await,
        };
        work_of(fixture, watch, (&self.tenant.account.id, path), get).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn a_request_costs_the_same_beside_a_million_records() {
    let fixture = Fixture::start_with(roomy).await;
    let (few, many) = (
        Filled::new(&fixture, FEW).await,
        Filled::new(&fixture, MANY).await,
    );
    let watch = Watch::start(&fixture.redis).await;
    let both = requests(&few, FEW).into_iter().zip(requests(&many, MANY));
    let mut wrong = Vec::new();
    let mut routes = BTreeSet::new();
    for (with_few, with_many) in both {
        let least = few.work(&fixture, &watch, &with_few).await;
        let most = many.work(&fixture, &watch, &with_many).await;
        println!(
            "{}: {} and {} records",
            with_many.path, least.records, most.records
        );
        if most.records > least.records + with_many.looks + MORE {
            wrong.push(format!(
                "{}: {:?}\n{:?}",
                with_many.path, least.by_name, most.by_name
            ));
        }
        routes.insert(with_many.route);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let short = SHORT.iter().map(|(route, _)| *route);
    let expected: BTreeSet<&str> = short.chain(OTHERS.iter().copied()).collect();
    assert_eq!(routes, expected);
}
