//! Paging by cursor: while records are added and removed, each one that stays is returned once; invalid cursors are
//! refused.

use crate::cursor::forged;
use crate::fixture::{FULL, Fixture, problem, success, text};
use harness::{Caller, Mode, Role, SeedAccount, SeededRandom, TEST_PASSWORD};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The name of a list's records, and the field with their id.
struct List {
    path: &'static str,
    plural: &'static str,
    id: &'static str,
}

const AGENTS: List = List {
    path: "/v1/agents",
    plural: "agents",
    id: "/id",
};

/// A page, and the cursor of the next one.
async fn page(
    caller: &Caller,
    list: &List,
    limit: usize,
    cursor: Option<&str>,
) -> (Vec<String>, Option<String>) {
    let joint = if list.path.contains('?') { '&' } else { '?' };
    let cursor = cursor
        .map(|cursor| format!("&cursor={cursor}"))
        .unwrap_or_default();
    let path = format!("{}{joint}limit={limit}{cursor}", list.path);
    let body = success(&caller.get(&path).await, 200);
    let records = body[list.plural].as_array().unwrap();
    assert!(records.len() <= limit);
    let ids = records.iter().map(|record| id(record, list));
    (ids.collect(), body["nextCursor"].as_str().map(str::to_owned))
}

fn id(record: &Value, list: &List) -> String {
    let id = record.pointer(list.id).unwrap();
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

async fn make(caller: &Caller, name: usize) -> String {
    let body = json!({ "name": format!("n{name}") });
    let made = success(&caller.post("/v1/agents", body).await, 200);
    text(&made, "/agent/id").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lasting_records_are_listed_once_while_others_come_and_go() {
    let fixture = Fixture::start().await;
    for seed in 0..12 {
        let (_, caller) = fixture.account("enterprise").await;
        // The lowest bit of a seed does not count.
        let mut dice = SeededRandom::new(2 * seed);
        let mut below = |high: usize| usize::try_from(dice.below(high as u64)).unwrap();
        let mut there: Vec<String> = Vec::new();
        for n in 0..12 + below(12) {
            there.push(make(&caller, n).await);
        }
        let mut stayed: BTreeSet<String> = there.iter().cloned().collect();
        let limit = 1 + below(6);
        let (mut met, mut cursor) = (Vec::new(), None);
        loop {
            let (ids, next) = page(&caller, &AGENTS, limit, cursor.as_deref()).await;
            met.extend(ids);
            let Some(next) = next else { break };
            cursor = Some(next);
            for n in 0..below(4) {
                // Adds a record, or removes one: often the last of the page, which the cursor names.
                if below(3) == 0 {
                    there.push(make(&caller, 1000 + n).await);
                } else {
                    let last = met.last().and_then(|last| there.iter().position(|id| id == last));
                    let gone = last.filter(|_| below(2) == 0);
                    let gone = there.remove(gone.unwrap_or_else(|| below(there.len())));
                    success(&caller.delete(&format!("/v1/agents/{gone}")).await, 200);
                    stayed.remove(&gone);
                }
            }
        }
        let once: BTreeSet<String> = met.iter().cloned().collect();
        assert_eq!(once.len(), met.len(), "seed {seed}: one was met twice: {met:?}");
        let missed: Vec<_> = stayed.difference(&once).collect();
        assert!(
            missed.is_empty(),
            "seed {seed}: {missed:?} were missed in {met:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_one_score_are_met_once_also_when_the_one_of_the_cursor_is_gone() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("enterprise").await;
    for name in 0..3 {
        make(&caller, name).await;
    }
    let set = account.keys.live().runs("bot");
    let now = clock::now_ms().to_string();
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    let mut expected = Vec::new();
    for n in 0..40 {
        let run = format!("r{n:02}");
        let _: u64 = fixture.redis.command(&["ZADD", &set, &now, &run]);
        let record = account.keys.live().run("bot", &run);
        let _: u64 = fixture
            .redis
            .command(&["HSET", &record, "first", &now, "last", &now]);
        expected.insert(0, run);
    }
    let list = List {
        path: "/v1/agents/bot/runs",
        plural: "runs",
        id: "/runId",
    };
    for limit in [1, 7, 20, 39, 40, 41] {
        let (mut met, mut cursor) = (Vec::new(), None);
        loop {
            let (mut ids, next) = page(&caller, &list, limit, cursor.as_deref()).await;
            ids.sort_by(|a, b| b.cmp(a));
            met.extend(ids);
            let Some(next) = next else { break };
            assert!(met.len() < 40, "the last page has no cursor");
            // The last run of the page is removed before the next page is read.
            let last = met.last().unwrap();
            let _: u64 = fixture.redis.command(&["ZREM", &set, last]);
            cursor = Some(next);
            let (again, _) = page(&caller, &list, limit, cursor.as_deref()).await;
            assert!(again.iter().all(|id| !met.contains(id)), "{again:?} in {met:?}");
            let _: u64 = fixture.redis.command(&["ZADD", &set, &now, last]);
        }
        assert_eq!(met, expected, "in pages of {limit}");
    }
}

/// Every list of the management API that needs nothing but an agent `bot` with a wallet.
async fn lists(caller: &Caller) -> Vec<String> {
    let reply = caller.post("/v1/wallets/create", json!({ "botId": "bot" })).await;
    success(&reply, 200);
    let wallet = success(&caller.get("/v1/agents/bot/wallet").await, 200);
    let webhook = json!({ "url": "http://127.0.0.1:9/a", "secret": "whsec_0123456789abcdef0123456789", "events": ["agent.frozen"] });
    let webhook = success(&caller.post("/v1/webhooks", webhook).await, 201);
    vec![
        "/v1/agents".to_owned(),
        "/v1/agents?q=b".to_owned(),
        "/v1/wallet".to_owned(),
        "/v1/agents/bot/provider-keys".to_owned(),
        "/v1/agents/bot/virtual-keys".to_owned(),
        "/v1/agents/bot/runs".to_owned(),
        "/v1/agents/bot/runs?status=failed".to_owned(),
        "/v1/agents/bot/runs?status=paused".to_owned(),
        "/v1/policies".to_owned(),
        "/v1/policies?agentId=bot".to_owned(),
        "/v1/transactions".to_owned(),
        "/v1/transactions?type=spend".to_owned(),
        format!("/v1/wallets/{}/transactions", wallet["walletId"]),
        "/v1/escrow".to_owned(),
        "/v1/audit".to_owned(),
        "/v1/audit?agentId=bot".to_owned(),
        "/v1/intents".to_owned(),
        "/v1/intents?state=settled".to_owned(),
        "/v1/intents?state=pending_approval".to_owned(),
        "/v1/webhooks".to_owned(),
        format!("/v1/webhooks/{}/deliveries", text(&webhook, "/webhook/id")),
    ]
}

fn with(path: &str, query: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{query}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_list_refuses_offsets_beyond_the_bound_and_cursors_that_are_not_its_own() {
    let private = "TOLLGATE_WEBHOOKS__ALLOW_PRIVATE";
    let fixture = Fixture::start_with(|options| options.env(private, "true")).await;
    let (account, caller) = fixture.account("enterprise").await;
    let lists = lists(&caller).await;
    // A cursor of a list that has more than one page.
    for name in 0..3 {
        make(&caller, name).await;
    }
    let (_, next) = page(&caller, &AGENTS, 1, None).await;
    let of_agents = next.unwrap();
    let own = |position: &str| forged(&[&account.id, "live", "agents"], position);
    for path in &lists {
        success(&caller.get(&with(path, "offset=10000")).await, 200);
        for (query, named) in [
            ("offset=10001", "offset must be a whole number from 0 to 10000"),
            ("offset=1000000000", "cursor"),
            ("offset=-1", "offset"),
            ("limit=0", "limit must be"),
            ("limit=201", "limit must be"),
            ("cursor=", "cursor must be"),
            ("cursor=nonsense", "cursor must be"),
            ("cursor=AAAA", "cursor must be"),
            (&format!("cursor={}", "A".repeat(513)), "cursor must be"),
            (&format!("cursor={of_agents}&offset=1"), "cursor and offset"),
            ("cursor=x&cursor=x", "cursor is given twice"),
        ] {
            let reply = caller.get(&with(path, query)).await;
            let sentence = problem(&reply, 400, "VALIDATION");
            assert!(sentence.contains(named), "{path} {query}: {sentence}");
        }
        let reply = caller.get(&with(path, &format!("cursor={of_agents}"))).await;
        if path == AGENTS.path {
            success(&reply, 200);
        } else {
            assert!(problem(&reply, 400, "VALIDATION").starts_with("cursor"), "{path}");
        }
    }
    // Forged cursors with positions that the list cannot have are refused.
    for position in ["", "x", "5", "x y", "NaN x", "inf x", "-inf x"] {
        let reply = caller
            .get(&with(AGENTS.path, &format!("cursor={}", own(position))))
            .await;
        assert!(
            problem(&reply, 400, "VALIDATION").starts_with("cursor"),
            "{position:?}"
        );
    }
    let reply = caller
        .get(&with(AGENTS.path, &format!("cursor={}", own("9e15 ~"))))
        .await;
    let all = success(&reply, 200);
    assert_eq!(all["agents"].as_array().unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_is_of_its_account_mode_and_filters_and_is_no_credential() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("enterprise").await;
    for name in 0..3 {
        make(&caller, name).await;
    }
    let (_, next) = page(&caller, &AGENTS, 1, None).await;
    let path = with(AGENTS.path, &format!("cursor={}", next.unwrap()));
    success(&caller.get(&path).await, 200);
    let api = path.replace("/v1/", "/api/v1/");
    success(&caller.get(&api).await, 200);
    let second = account.issue(Mode::Live, FULL, &[], None).await;
    success(&fixture.admin.caller(&second.secret).get(&path).await, 200);
    let (_, stranger) = fixture.account("enterprise").await;
    let tester = fixture.caller(&account, Mode::Test).await;
    for other in [stranger, tester] {
        let reply = other.get(&path).await;
        assert!(problem(&reply, 400, "VALIDATION").starts_with("cursor"));
    }
    let filtered = format!("{path}&q=n");
    assert!(problem(&caller.get(&filtered).await, 400, "VALIDATION").starts_with("cursor"));
    let nobody = fixture.admin.caller("svc_live_0000").get(&path).await;
    assert_eq!(nobody.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lists_of_people_go_on_by_cursor() {
    let fixture = Fixture::start().await;
    let account: SeedAccount = fixture.seed.account("enterprise").await;
    let owner = account.user(Role::Owner).await;
    for _ in 0..4 {
        account.user(Role::Viewer).await;
    }
    let session = fixture.admin.sign_in(&owner.email, TEST_PASSWORD).await;
    for _ in 0..4 {
        fixture.admin.sign_in(&owner.email, TEST_PASSWORD).await;
        account.issue(Mode::Live, FULL, &[], None).await;
    }
    for (path, plural, id, count) in [
        ("/api/user/team", "users", "/id", 5_usize),
        ("/api/user/sessions", "sessions", "/id", 5),
        ("/api/v1/api-keys", "apiKeys", "/keyId", 4),
    ] {
        let (mut met, mut cursor) = (BTreeSet::new(), String::new());
        let mut pages = 0;
        loop {
            let body = session.get(&format!("{path}?limit=2{cursor}")).await.json();
            for record in body[plural].as_array().unwrap() {
                assert!(met.insert(text(record, id).to_owned()), "{path}: twice");
            }
            pages += 1;
            let Some(next) = body["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!((met.len(), pages), (count, count.div_ceil(2)), "{path}");
    }
}
