//! Price tables are kept in the archive, and `audit recompute` recomputes each charge by the table of its version
//! (decision D48).

use crate::fixture::BINARY;
use crate::record_fixture::{Client, MODEL, RecordFixture};
use domain::mode::Mode;
use domain::price::PriceTable;
use harness::{Cli, Redis, chat_body, eventually, until};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use store::prices::tables::{
    OfferedTable, OtherFields, TABLES_MAX, TEXT_BYTES_MAX, offer, offered, read, remove,
};

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
    let fixture = RecordFixture::start_with(&[("AUDIT__ARCHIVE", place)]).await;
    let client = fixture.client("enterprise", json!({})).await;
    let cli = Cli::new(BINARY, fixture.management.redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", place);

    let (first, before) = call(&client).await;
    let builtin = PriceTable::builtin().unwrap();
    let list = archive.join("list.json");
    let figures = json!({ "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-3,
        "output_cost_per_token": 2e-3, "supported_endpoints": ["/v1/chat/completions"] });
    // Lists also have figures for what is an alias in the file.
    let alias = builtin
        .models()
        .find(|name| name.starts_with(MODEL) && *name != MODEL)
        .unwrap();
    let dear = json!({ MODEL: figures, alias: figures });
    std::fs::write(&list, dear.to_string()).unwrap();
    let imported = cli.json(&["prices", "import", list.to_str().unwrap()]);
    let (second, after) = eventually("the edge charges by the imported prices", SOON, async || {
        Some(call(&client).await).filter(|(version, _)| *version != first)
    })
    .await;
    assert_eq!(imported["priceVersion"], json!(second));
    assert_ne!(before["chargedNanos"], after["chargedNanos"]);

    until("both tables are in the archive, and only there", async || {
        let waiting: u64 = fixture.management.redis.command(&["HLEN", WAITING]);
        waiting == 0 && kept(archive, &first).is_some() && kept(archive, &second).is_some()
    })
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
    let lines: Vec<String> = fixture.management.redis.command(&["LRANGE", &trail, "0", "-1"]);
    let id = before["id"].as_str().unwrap();
    let at = lines
        .iter()
        .position(|line| line.contains(id) && line.contains(charged))
        .unwrap();
    let changed = lines[at].replace(charged, &format!("{charged}0"));
    let _: String = fixture
        .management
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
    let _: String = fixture
        .management
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
    let fixture = RecordFixture::start_with(&[("AUDIT__ARCHIVE", place)]).await;
    let client = fixture.client("enterprise", json!({})).await;
    let cli = Cli::new(BINARY, fixture.management.redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", place);
    let (version, _) = call(&client).await;
    let failures = "tollgate_admin_archiving_failed_total";
    eventually("a round of the keeper fails", SOON, async || {
        fixture
            .management
            .admin
            .metric::<f64>(failures)
            .filter(|count| *count > 0.0)
    })
    .await;
    let text: String = fixture.management.redis.command(&["HGET", WAITING, &version]);
    PriceTable::from_text(&version, &text).unwrap();
    let (code, _) = recompute(&cli, &client, &[]).await;
    assert_eq!(code, 0, "a table that waits counts");

    let _: u64 =
        fixture
            .management
            .redis
            .command(&["HSET", WAITING, "0123456789abcdef", "{}", "../../x", &text]);
    std::fs::remove_file(archive.join("prices")).unwrap();
    until("the store has none", async || {
        let waiting: u64 = fixture.management.redis.command(&["HLEN", WAITING]);
        waiting == 0
    })
    .await;
    assert!(kept(&archive, &version).is_some());
    let files = std::fs::read_dir(archive.join("prices")).unwrap();
    assert_eq!(files.count(), 1, "nothing but the table");
}

/// An edge's user of the store can write any field. What no edge writes costs an admin server no memory and does not
/// delay the tables.
#[tokio::test]
async fn an_invalid_table_is_removed_unread() {
    /// Length of a field that only somebody with the credentials of an edge writes.
    const LONG: usize = 100 << 20;
    /// Maximum growth of the admin server's memory meanwhile, in KiB.
    const TAKEN_MAX_KIB: u64 = 64 << 10;
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path();
    let fixture = RecordFixture::start_with(&[("AUDIT__ARCHIVE", archive.to_str().unwrap())]).await;
    let client = fixture.client("enterprise", json!({})).await;
    let (version, _) = call(&client).await;
    let is_kept = async || kept(archive, &version);
    let table = eventually("the table is in the archive", SOON, is_kept).await;
    std::fs::remove_file(archive.join(format!("prices/{version}.json"))).unwrap();
    let pid = fixture.management.admin.pid();
    let before = kib(pid, "VmRSS:");

    let long = "a".repeat(LONG);
    let text = table.to_text().unwrap();
    let mut fields: Vec<Vec<u8>> = vec![
        b"0000000000000000".to_vec(),
        long.clone().into_bytes(),
        long.into_bytes(),
        b"{}".to_vec(),
        b"\xff\xfe".to_vec(),
        b"{}".to_vec(),
        b"0000000000000001".to_vec(),
        b"\xff\xfe".to_vec(),
        version.clone().into_bytes(),
        text.into_bytes(),
    ];
    for number in 0..2 * TABLES_MAX {
        fields.extend([format!("no table {number}").into_bytes(), b"{}".to_vec()]);
    }
    let client = redis::Client::open(fixture.management.redis.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut write = redis::cmd("HSET");
    let _: u64 = write.arg(WAITING).arg(fields).query(&mut connection).unwrap();
    until("nothing waits", async || {
        let waiting: u64 = fixture.management.redis.command(&["HLEN", WAITING]);
        waiting == 0
    })
    .await;
    assert!(kept(archive, &version).is_some());
    let files = std::fs::read_dir(archive.join("prices")).unwrap();
    assert_eq!(files.count(), 1, "nothing but the table");
    let taken = kib(pid, "VmHWM:").saturating_sub(before);
    assert!(taken <= TAKEN_MAX_KIB, "{taken} KiB");
    let logs = fixture.management.admin.logs();
    let longest = logs.lines().map(str::len).max().unwrap();
    assert!(longest < 2_000, "a line of {longest} bytes");
    assert!(
        logs.contains("removed fields that are no price tables of an edge"),
        "{logs}"
    );
}

/// A figure of a process's status, in KiB.
fn kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// An archive that is away for long does not make the store grow: more than 64 tables are not taken.
#[tokio::test]
async fn at_most_64_tables_wait() {
    let redis = Redis::start();
    let store = redis.store();
    let version = |number: u64| format!("{number:016x}");
    for number in 0..TABLES_MAX {
        assert!(offer(&store, &version(number), "text").await.unwrap());
    }
    let more = version(TABLES_MAX);
    assert!(!offer(&store, &more, "text").await.unwrap());
    assert!(
        offer(&store, &version(0), "text").await.unwrap(),
        "it waits already"
    );
    let all = offered(&store, OtherFields::Remove).await.unwrap();
    assert_eq!((all.versions.len() as u64, all.others), (TABLES_MAX, 0));
    remove(&store, &version(0)).await.unwrap();
    assert!(offer(&store, &more, "text").await.unwrap());
}

/// A text of the longest length is read, and one byte more is not.
#[tokio::test]
async fn a_text_is_read_up_to_its_bound() {
    let redis = Redis::start();
    let store = redis.store();
    let (longest, longer, missing) = ("00000000000000aa", "00000000000000bb", "00000000000000cc");
    let text = "x".repeat(TEXT_BYTES_MAX);
    offer(&store, longest, &text).await.unwrap();
    offer(&store, longer, &format!("{text}x")).await.unwrap();
    offer(&store, "a\n name {}", "text").await.unwrap();
    assert_eq!(read(&store, longest).await.unwrap(), OfferedTable::Text(text));
    assert_eq!(read(&store, longer).await.unwrap(), OfferedTable::TooLong);
    assert_eq!(read(&store, missing).await.unwrap(), OfferedTable::None);
    for (others, left) in [(OtherFields::Keep, 3), (OtherFields::Remove, 1)] {
        let found = offered(&store, others).await.unwrap();
        assert_eq!(
            (found.versions.as_slice(), found.others),
            (&[longest.to_owned()][..], 2)
        );
        assert!([longer, "a__name___"].contains(&found.first_other.replace('?', "_").as_str()));
        let fields: u64 = redis.command(&["HLEN", WAITING]);
        assert_eq!(fields, left);
    }
}
