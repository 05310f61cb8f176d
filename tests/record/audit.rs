//! `/audit`: lists, exports and checkpoints are complete, current, and of the own account only.

use crate::audit_writer::{AuditWriter, START_MS, chain, lines};
use crate::fixture::{Fixture, fresh, problem, success, text};
use archive::Archive;
use archive::location::ArchiveLocation;
use crypto::checkpoint_key::PublicKey;
use domain::chain::{GENESIS, entry_hash};
use domain::entry::Entry;
use domain::mode::Mode;
use domain::permission::Permission;
use domain::timestamp::iso_from_ms;
use harness::{Redis, Reply, Seed, SeedAccount, Store, Wire, assert_fields, eventually, http_client, until};
use history::trail::Trail;
use serde_json::{Map, Value, json};
use settings::load_from;
use std::time::Duration;
use store::audit::chain::EntryFilter;
use store::page::PageRequest;

/// The entries of an export, after checking that every one is linked to the one before, as a stranger would.
#[track_caller]
fn linked(text: &str) -> Vec<Value> {
    let mut previous = GENESIS.to_owned();
    let mut entries = Vec::new();
    for (seq, line) in (1_u64..).zip(text.lines()) {
        let mut entry: Map<String, Value> = serde_json::from_str(line).unwrap();
        entries.push(Value::Object(entry.clone()));
        let hash = entry.remove("hash").unwrap();
        assert_fields!(entries[entries.len() - 1], { "seq": seq, "previousHash": previous });
        assert_eq!(hash, json!(entry_hash(&previous, &entry).unwrap()), "{line}");
        previous = hash.as_str().unwrap().to_owned();
    }
    entries
}

#[track_caller]
fn exported(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let entries = linked(&reply.text());
    let size = entries.len().to_string();
    assert_eq!(reply.header("x-service-audit-size"), Some(size.as_str()));
    let head = entries.last().map_or(GENESIS, |entry| text(entry, "/hash"));
    assert_eq!(reply.header("x-service-audit-head"), Some(head));
    entries
}

fn archive(dir: &std::path::Path) -> Archive {
    let mut settings = load_from(None, std::iter::empty()).unwrap().audit;
    settings.archive = dir.display().to_string();
    Archive::at(ArchiveLocation::from_settings(&settings).unwrap())
}

#[tokio::test]
async fn a_writer_reads_its_own_entry_at_once_as_it_was_hashed() {
    let fixture = Fixture::start_with(|options| options.env("TOLLGATE_AUDIT__SEAL_EVERY_MS", "60000")).await;
    let (account, caller) = fixture.account("builder").await;
    for n in 1..=30 {
        let body = json!({ "name": format!("bot {n}") });
        let made = caller.post("/v1/agents", body).await;
        let id = match n {
            1..=5 => text(&success(&made, 200), "/agent/id").to_owned(),
            _ => continue,
        };
        let listed = success(&caller.get("/v1/audit?limit=1").await, 200);
        let newest = &listed["logs"][0];
        assert_eq!(
            (text(newest, "/type"), text(newest, "/agentId")),
            ("agent.created", id.as_str())
        );
        assert_eq!(newest["seq"], listed["total"]);
        fresh(text(newest, "/at"));
        let reply = caller
            .send("POST", &format!("/v1/agents/{id}/freeze"), &[], "")
            .await;
        success(&reply, 200);
        let path = format!("/v1/audit?agentId={id}&type=agent.frozen");
        let frozen = success(&caller.get(&path).await, 200);
        assert_eq!(
            (&frozen["total"], text(&frozen, "/logs/0/agentId")),
            (&json!(1), id.as_str())
        );
    }
    let all = caller.get("/v1/audit/export").await;
    let disposition = format!("attachment; filename=\"audit_{}_live.jsonl\"", account.id);
    assert_eq!(all.header("content-disposition"), Some(disposition.as_str()));
    let entries = exported(&all);
    // To the byte: the list holds the lines of the export.
    let listed = caller.get("/v1/audit?limit=200").await;
    let mut logs: Vec<String> = all.text().lines().map(str::to_owned).collect();
    logs.reverse();
    let body = format!(
        r#"{{"success":true,"logs":[{}],"total":{},"limit":200,"offset":0,"nextCursor":null}}"#,
        logs.join(","),
        entries.len()
    );
    assert_eq!(listed.text(), body);
    let part = caller.get("/v1/audit/export?after=3").await;
    assert_eq!(
        part.text(),
        all.text()
            .lines()
            .skip(3)
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    );
    let size = entries.len().to_string();
    assert_eq!(part.header("x-service-audit-size"), Some(size.as_str()));
    for after in [entries.len(), entries.len() + 5] {
        assert_eq!(
            caller
                .get(&format!("/v1/audit/export?after={after}"))
                .await
                .text(),
            ""
        );
    }
}

#[tokio::test]
async fn filters_and_pages_agree_with_a_scan() {
    let redis = Redis::start();
    let store = redis.store();
    let seed = Seed::new(&store).await;
    let account = seed.account("builder").await;
    let writer = AuditWriter::new(&store, &account, Mode::Live);
    writer.write(&lines(1500)).await;
    agree_with_a_scan(&store, &account, &writer).await;
    // The clock is set back, within what is allowed, and is in step again later.
    let account = seed.account("builder").await;
    let writer = AuditWriter::new(&store, &account, Mode::Live);
    let mut set_back = lines(1500);
    for (at_ms, _) in &mut set_back[600..1300] {
        *at_ms -= 280_000;
    }
    writer.write(&set_back).await;
    agree_with_a_scan(&store, &account, &writer).await;
}

/// Reads 1500 entries, a second apart, in every way.
async fn agree_with_a_scan(store: &Store, account: &SeedAccount, writer: &AuditWriter) {
    let chain = chain(&writer.lines().await);
    let dir = tempfile::tempdir().unwrap();
    let archive = archive(dir.path());
    let trail = Trail::new(store, &archive, account.keys.live());
    let agents = [None, Some("bot-0"), Some("bot-2"), Some("nobody")];
    let kinds = [
        None,
        Some("decision.denied"),
        Some("agent.updated"),
        Some("no.such.type"),
    ];
    let at = |n: u64| Some(START_MS + 1000 * n);
    let spans = [
        (None, None),
        (at(100), None),
        (None, at(1400)),
        (at(700), at(701)),
        (at(701), at(700)),
        (at(450), at(550)),
        (at(590), None),
        (None, at(590)),
        (at(9999), None),
    ];
    for (agent, kind) in agents
        .iter()
        .flat_map(|agent| kinds.iter().map(move |kind| (*agent, *kind)))
    {
        for (from_ms, to_ms) in spans {
            let filter = EntryFilter {
                agent,
                kind,
                from_ms,
                to_ms,
            };
            let mut scan: Vec<&String> = chain
                .iter()
                .filter(|(entry, _)| agent.is_none_or(|agent| entry.agent.as_deref() == Some(agent)))
                .filter(|(entry, _)| kind.is_none_or(|kind| entry.kind == kind))
                .filter(|(entry, _)| {
                    from_ms.is_none_or(|ms| entry.at_ms >= ms) && to_ms.is_none_or(|ms| entry.at_ms < ms)
                })
                .map(|(_, sealed)| &sealed.json)
                .collect();
            scan.reverse();
            for (limit, offset) in [
                (1, 0),
                (50, 0),
                (200, 30),
                (7, scan.len()),
                (200, scan.len().saturating_sub(3)),
            ] {
                let part = trail.list(filter, PageRequest::at(offset, limit)).await.unwrap();
                let total = part.total;
                let found: Vec<&String> = part.records.iter().map(|entry| &entry.json).collect();
                let page: Vec<&String> = scan.iter().skip(offset).take(limit).copied().collect();
                assert_eq!(total, scan.len() as u64, "{filter:?}");
                assert!(found == page, "{filter:?} {limit} {offset}");
            }
        }
    }
}

#[tokio::test]
async fn queries_are_checked() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    for (query, names) in [
        ("agentId=a/b", "agentId"),
        ("agentId=user", "agentId"),
        ("agentId=", "agentId"),
        ("from=yesterday", "from"),
        ("to=1", "to"),
        ("seq=1", "\"seq\" is not a query parameter here"),
        ("type=a&type=b", "type"),
    ] {
        let reply = caller.get(&format!("/v1/audit?{query}")).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(names), "{query}: {sentence}");
    }
    for kind in [
        "*",
        "a%2Fb",
        "",
        "live%2F*",
        "%7B%7D",
        "a.b,c.d",
        &"x".repeat(500),
    ] {
        let reply = caller.get(&format!("/v1/audit?type={kind}")).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.starts_with("type must be"), "{kind}: {sentence}");
    }
    let listed = success(&caller.get("/v1/audit?type=no.such.type").await, 200);
    assert_fields!(listed, { "logs": [], "total": 0 });
    for query in [
        "after=-1",
        "after=x",
        "after=",
        "after=99999999999999999999",
        "from=1",
    ] {
        let reply = caller.get(&format!("/v1/audit/export?{query}")).await;
        problem(&reply, 400, "VALIDATION");
    }
    for query in ["size=-1", "size=1000", "size=x"] {
        let reply = caller.get(&format!("/v1/audit/checkpoint?{query}")).await;
        problem(&reply, 400, "VALIDATION");
    }
}

#[tokio::test]
async fn modes_and_accounts_never_mix() {
    let fixture = Fixture::start().await;
    let (first, _) = fixture.account("builder").await;
    let (second, _) = fixture.account("builder").await;
    for (account, mode) in [&first, &second]
        .into_iter()
        .flat_map(|account| Mode::ALL.map(|mode| (account, mode)))
    {
        let caller = fixture.caller(account, mode).await;
        let mark = format!("of {} {mode}", account.id);
        success(&caller.post("/v1/agents", json!({ "name": mark })).await, 200);
    }
    for (account, mode) in [&first, &second]
        .into_iter()
        .flat_map(|account| Mode::ALL.map(|mode| (account, mode)))
    {
        let caller = fixture.caller(account, mode).await;
        let export = caller.get("/v1/audit/export").await;
        let marks: Vec<Value> = exported(&export)
            .iter()
            .filter(|entry| entry["type"] == "agent.created")
            .map(|entry| entry["data"]["name"].clone())
            .collect();
        assert_eq!(marks, [json!(format!("of {} {mode}", account.id))]);
        let note = success(&caller.get("/v1/audit/checkpoint").await, 200);
        assert_eq!(text(&note, "/keyName"), format!("tollgate/{}/{mode}", account.id));
    }
}

#[tokio::test]
async fn checkpoints_are_signed_notes() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    success(&caller.post("/v1/agents", json!({ "name": "a" })).await, 200);
    let all = caller.get("/v1/audit/export").await;
    let entries = exported(&all);
    let now = success(&caller.get("/v1/audit/checkpoint").await, 200);
    assert_eq!(now["size"], json!(entries.len()));
    assert_eq!(now["hash"], entries[entries.len() - 1]["hash"]);
    fresh(text(&now, "/at"));
    let origin = format!("tollgate/{}/live", account.id);
    for form in ["/publicKey", "/verifierKey"] {
        let key = PublicKey::parse(text(&now, form)).unwrap();
        let checkpoint = key.verify(text(&now, "/note"), &origin).unwrap();
        assert_eq!(hex::encode(checkpoint.hash), text(&now, "/hash"));
        assert_eq!(checkpoint.size, entries.len() as u64);
    }
    let lines: Vec<&str> = text(&now, "/note").lines().collect();
    assert_eq!((lines.len(), lines[0], lines[3]), (5, origin.as_str(), ""));
    assert!(lines[4].starts_with(&format!("\u{2014} {origin} ")));
    // An earlier state can be signed too; there is one key.
    let first = success(&caller.get("/v1/audit/checkpoint?size=1").await, 200);
    assert_eq!((&first["size"], &first["hash"]), (&json!(1), &entries[0]["hash"]));
    assert_eq!(first["publicKey"], now["publicKey"]);
    // Its note names the trail's end at its signing, so it cannot pass for the note of a trail that ends there.
    let key = PublicKey::parse(text(&now, "/publicKey")).unwrap();
    let checkpoint = key.verify(text(&first, "/note"), &origin).unwrap();
    assert_eq!(checkpoint.end().size, entries.len() as u64);
    assert_eq!(hex::encode(checkpoint.end().hash), text(&now, "/hash"));
    let none = success(&caller.get("/v1/audit/checkpoint?size=0").await, 200);
    assert_eq!((&none["size"], text(&none, "/hash")), (&json!(0), GENESIS));
    let sealed: String = fixture
        .redis
        .command(&["HGET", "tollgate/store", "checkpoint_key"]);
    assert!(sealed.starts_with("v1."), "sealed under the master key");
}

#[tokio::test]
async fn an_export_ends_where_it_began_though_entries_are_written_meanwhile() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let writer = AuditWriter::new(&fixture.store, &account, Mode::Live);
    writer.write(&lines(2000)).await;
    let writing = async {
        let more = lines(40);
        // Bounded: on a busy machine the trail would outgrow the time of an export.
        for _ in 0..100 {
            writer.write(&more).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::future::pending::<()>().await;
    };
    let exporting = async {
        let mut sizes = Vec::new();
        for _ in 0..6 {
            sizes.push(exported(&caller.get("/v1/audit/export").await).len());
        }
        sizes
    };
    let sizes = tokio::select! {
        () = writing => Vec::new(),
        sizes = exporting => sizes,
    };
    assert!(sizes[0] > 2000 && sizes.is_sorted(), "{sizes:?}");
    assert!(sizes[5] > sizes[0], "{sizes:?}");
}

#[tokio::test]
async fn an_export_that_cannot_go_on_breaks_the_connection() {
    let redis = Redis::start();
    let wire = Wire::to_port(redis.port());
    let fixture = Fixture::on(redis, |options| {
        let options = options.env("TOLLGATE_STORE__URL", wire.redis_url());
        options.env("TOLLGATE_AUDIT__SEAL_EVERY_MS", "60000")
    })
    .await;
    let account = fixture.seed.account("builder").await;
    let key = account.issue(Mode::Live, &[Permission::Read], &[], None).await;
    // More than any buffer between the two ends holds.
    AuditWriter::new(&fixture.store, &account, Mode::Live)
        .write(&lines(30_000))
        .await;
    let request = http_client().get(format!("{}/v1/audit/export", fixture.admin.url()));
    let mut response = request.bearer_auth(&key.secret).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert!(response.chunk().await.unwrap().is_some());
    wire.refuse(true);
    wire.cut();
    let end = loop {
        match response.chunk().await {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(end.is_err(), "{end:?}");
    wire.heal();
    until("the server works again", async || {
        let reply = fixture.admin.caller(&key.secret).get("/v1/audit?limit=1").await;
        reply.status == 200
    })
    .await;
}

#[tokio::test]
async fn entries_are_there_after_the_store_was_killed() {
    let fixture = Fixture::on(Redis::start_durable(), |options| options).await;
    let (_, caller) = fixture.account("builder").await;
    for n in 0..20 {
        let body = json!({ "maxSpendPerDay": n });
        success(&caller.post("/v1/policies/bot", body).await, 200);
    }
    let before = caller.get("/v1/audit/export").await;
    fixture.redis.kill9();
    fixture.redis.restart();
    let after = eventually("the server answers", Duration::from_secs(20), async || {
        let reply = caller.get("/v1/audit/export").await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    exported(&after);
    assert_eq!(after.text(), before.text());
}

#[tokio::test]
async fn a_clock_that_jumps_back_breaks_no_chain() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let writer = AuditWriter::new(&fixture.store, &account, Mode::Live);
    let mut all = lines(60);
    for (n, (at, _)) in all.iter_mut().enumerate() {
        match n {
            20..30 => *at -= 3_600_000,
            40..45 => *at += 86_400_000,
            _ => {}
        }
    }
    writer.write(&all).await;
    let entries = exported(&caller.get("/v1/audit/export").await);
    let listed = success(&caller.get("/v1/audit?limit=200").await, 200);
    assert_eq!(listed["total"], json!(entries.len()));
    let mut ids: Vec<&str> = entries.iter().map(|entry| text(entry, "/id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), entries.len(), "every entry has an id of its own");
    // Near the ends of a span each row is judged by its own time.
    for n in 0..70 {
        let at = iso_from_ms(START_MS + 1000 * n);
        let found = success(&caller.get(&format!("/v1/audit?limit=200&from={at}")).await, 200);
        let logs = found["logs"].as_array().unwrap();
        assert_eq!(found["total"], json!(logs.len()), "{found}");
        let mut ids: Vec<&str> = logs.iter().map(|entry| text(entry, "/id")).collect();
        ids.reverse();
        let later = entries.iter().filter(|entry| text(entry, "/at") >= at.as_str());
        assert_eq!(ids, later.map(|entry| text(entry, "/id")).collect::<Vec<_>>());
    }
    let entry = Entry::from_json(&entries[30].to_string()).unwrap();
    assert!(entry.seq == 31);
}
