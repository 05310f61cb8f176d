//! Price tables are kept in the archive, and `audit recompute` recomputes each charge by the table of its version
//! (decision D48).

use crate::stage::{Client, MODEL, Stage};
use crate::world::BINARY;
use domain::mode::Mode;
use domain::price::PriceTable;
use harness::{Cli, Redis, chat_body, eventually};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use store::prices::tables::{TABLES_MAX, offer, offered, remove};

/// Longest wait for an edge to read imported prices, and for an admin server to archive a table.
const SOON: Duration = Duration::from_secs(30);
const WAITING: &str = "tollgate/price-tables";

/// The exit code and the document of `audit recompute`.
async fn recompute(cli: &Cli, client: &Client, more: &[&str]) -> (i32, Value) {
    let mut words = vec!["audit", "recompute", "--json", "--account", &client.account.id];
    words.extend(more);
    let done = cli.run(&words);
    let document = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    (done.code.unwrap(), document)
}

/// The version of the prices by which the next call is charged.
async fn call(client: &Client) -> (String, Value) {
    let reply = client.edge.chat(chat_body(MODEL, "hello")).await;
    let decision = client
        .decision(reply.header("x-service-allow-id").expect("it is approved"))
        .await;
    (decision["priceVersion"].as_str().unwrap().to_owned(), decision)
}

fn kept(archive: &Path, version: &str) -> Option<PriceTable> {
    let text = std::fs::read_to_string(archive.join(format!("prices/{version}.json"))).ok()?;
    Some(PriceTable::from_text(version, &text).unwrap())
}

#[tokio::test]
async fn each_charge_is_recomputed_by_the_table_of_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path();
    let place = archive.to_str().unwrap();
    let stage = Stage::start_with(&[("AUDIT__ARCHIVE", place)]).await;
    let client = stage.client("enterprise", json!({})).await;
    let cli = Cli::new(BINARY, stage.world.redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", place);

    let (first, before) = call(&client).await;
    let list = archive.join("list.json");
    let dear = json!({ MODEL: { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-3,
        "output_cost_per_token": 2e-3, "supported_endpoints": ["/v1/chat/completions"] } });
    std::fs::write(&list, dear.to_string()).unwrap();
    let imported = cli.json(&["prices", "import", list.to_str().unwrap()]);
    let (second, after) = eventually("the edge charges by the imported prices", SOON, async || {
        Some(call(&client).await).filter(|(version, _)| *version != first)
    })
    .await;
    assert_eq!(imported["priceVersion"], json!(second));
    assert_ne!(before["chargedNanos"], after["chargedNanos"]);

    eventually(
        "both tables are in the archive, and only there",
        SOON,
        async || {
            let waiting: u64 = stage.world.redis.command(&["HLEN", WAITING]);
            (waiting == 0 && kept(archive, &first).is_some() && kept(archive, &second).is_some())
                .then_some(())
        },
    )
    .await;
    let input = |version: &str| {
        let shown = cli.json(&["prices", "show", MODEL, "--version", version]);
        shown["models"][0]["prices"]["rates"]["standard"]["input"].clone()
    };
    assert_eq!((input(&first), input(&second)), (json!("0.15"), json!("1000")));
    let versions = cli.json(&["prices", "versions"]);
    let has = |version: &str, in_force: bool| {
        let row = json!({ "version": version, "archived": true, "inForce": in_force });
        versions["versions"].as_array().unwrap().contains(&row)
    };
    assert!(has(&first, false) && has(&second, true), "{versions}");

    let (code, all) = recompute(&cli, &client, &[]).await;
    assert_eq!(code, 0, "{all}");
    assert_eq!((&all["ok"], &all["same"]), (&json!(true), &all["calls"]));
    assert!(
        all["calls"].as_u64().unwrap() >= 2 && all["different"] == json!(0),
        "{all}"
    );
    let (code, none) = recompute(&cli, &client, &["--to", "2026-01-01"]).await;
    assert_eq!((code, &none["calls"]), (0, &json!(0)));

    // A changed charge is found, with its entry.
    let trail = client.account.keys.in_mode(Mode::Live).audit();
    let charged = before["chargedNanos"].as_str().unwrap();
    let lines: Vec<String> = stage.world.redis.command(&["LRANGE", &trail, "0", "-1"]);
    let id = before["id"].as_str().unwrap();
    let at = lines
        .iter()
        .position(|line| line.contains(id) && line.contains(charged))
        .unwrap();
    let changed = lines[at].replace(charged, &format!("{charged}0"));
    let _: String = stage
        .world
        .redis
        .command(&["LSET", &trail, &at.to_string(), &changed]);
    let (code, found) = recompute(&cli, &client, &[]).await;
    assert_eq!(code, 1, "{found}");
    let named = &found["differences"][0];
    assert_eq!(
        (&named["id"], &named["computedNanos"]),
        (&before["id"], &before["chargedNanos"])
    );
    assert_eq!(found["different"], json!(1));
    let _: String = stage
        .world
        .redis
        .command(&["LSET", &trail, &at.to_string(), &lines[at]]);

    // Without its table a charge cannot be recomputed, and a damaged table is no table.
    let path = archive.join(format!("prices/{first}.json"));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (code, found) = recompute(&cli, &client, &[]).await;
    assert_eq!((code, &found["missingTables"]), (3, &json!([first])));
    let shown = cli.run(&["prices", "show", MODEL, "--version", &first]);
    assert_eq!(shown.code, Some(1), "{shown:?}");
    std::fs::write(&path, text.replacen("0.15", "0.16", 1)).unwrap();
    let damaged = cli.run(&["audit", "recompute", "--account", &client.account.id]);
    assert_eq!(damaged.code, Some(1), "{damaged:?}");
    assert!(
        damaged.stderr.contains(&format!("prices/{first}.json")),
        "{damaged:?}"
    );
}

/// While the archive cannot be written, tables wait in the store; what is no table leaves it without a trace.
#[tokio::test]
async fn tables_wait_for_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    // A file where the folder of tables has to be.
    std::fs::create_dir(&archive).unwrap();
    std::fs::write(archive.join("prices"), "").unwrap();
    let place = archive.to_str().unwrap();
    let stage = Stage::start_with(&[("AUDIT__ARCHIVE", place)]).await;
    let client = stage.client("enterprise", json!({})).await;
    let cli = Cli::new(BINARY, stage.world.redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", place);
    let (version, _) = call(&client).await;
    let failures = "tollgate_admin_archiving_failed_total";
    eventually("a round of the keeper fails", SOON, async || {
        stage
            .world
            .admin
            .metric::<f64>(failures)
            .filter(|count| *count > 0.0)
    })
    .await;
    let text: String = stage.world.redis.command(&["HGET", WAITING, &version]);
    PriceTable::from_text(&version, &text).unwrap();
    let (code, _) = recompute(&cli, &client, &[]).await;
    assert_eq!(code, 0, "a table that waits counts");

    let _: u64 = stage
        .world
        .redis
        .command(&["HSET", WAITING, "0123456789abcdef", "{}", "../../x", &text]);
    std::fs::remove_file(archive.join("prices")).unwrap();
    eventually("the store has none", SOON, async || {
        let waiting: u64 = stage.world.redis.command(&["HLEN", WAITING]);
        (waiting == 0).then_some(())
    })
    .await;
    assert!(kept(&archive, &version).is_some());
    let files = std::fs::read_dir(archive.join("prices")).unwrap();
    assert_eq!(files.count(), 1, "nothing but the table");
}

/// An archive that is away for long does not make the store grow: more than 64 tables are not taken.
#[tokio::test]
async fn at_most_64_tables_wait() {
    let redis = Redis::start();
    let store = redis.store();
    for number in 0..TABLES_MAX - 1 {
        assert!(offer(&store, &number.to_string(), "text").await.unwrap());
    }
    assert!(offer(&store, "the last", "text").await.unwrap());
    assert!(!offer(&store, "one more", "text").await.unwrap());
    assert!(
        offer(&store, "the last", "text").await.unwrap(),
        "it waits already"
    );
    assert_eq!(offered(&store).await.unwrap().len() as u64, TABLES_MAX);
    remove(&store, "0").await.unwrap();
    assert!(offer(&store, "one more", "text").await.unwrap());
}
