//! A backup, a disaster, and a restored store: it is older than the money it counts, so it is no budget before the operator
//! says so (decisions D47, D52).

use crate::files::{path, run};
use crate::town::{Citizen, Town, archive, body, ok};
use crate::{ADMIN, PROXY};
use harness::{Admin, AdminOptions, Cli, Edge, EdgeOptions, eventually};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// Calls that fit under the agent's daily cap, one after the other.
const CALLS: u64 = 10;
/// Calls before the backup, and between it and the disaster.
const BEFORE: u64 = 4;
const LOST: u64 = 3;

/// Makes a backup; where it is.
fn back_up(town: &Town) -> PathBuf {
    let said = run(&mut backing_up(town));
    let made = said.trim().strip_prefix("backup: ").unwrap();
    PathBuf::from(made)
}

/// What makes a backup, and leaves the two newest.
fn backing_up(town: &Town) -> Command {
    // Before its first checkpoint the admin server has not made it.
    std::fs::create_dir_all(archive(town.dir.path())).unwrap();
    let mut command = Command::new(path("deploy/backup/backup.sh"));
    command
        .env("STORE_URL_FILE", town.url_file("backup"))
        .env("BACKUPS", town.dir.path().join("backups"))
        .env("ARCHIVE", archive(town.dir.path()))
        .env("KEEP", "2")
        .env("KEEP_DAILY", "0");
    command
}

/// The backups that there are.
fn backups(town: &Town) -> Vec<String> {
    let entries = std::fs::read_dir(town.dir.path().join("backups")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with('Z')).collect();
    names.sort();
    names
}

/// Makes backups of other times of copies of one.
fn at_other_times(town: &Town, backup: &Path, times: &[&str]) {
    for time in times {
        let copy = town.dir.path().join("backups").join(time);
        run(Command::new("cp").arg("-r").arg(backup).arg(copy));
    }
}

/// Makes the data directory of a new store.
fn restore(backup: &Path, directory: &Path, more: &[&Path]) -> std::process::Output {
    let mut command = Command::new(path("deploy/backup/restore.sh"));
    command.arg(backup).arg(directory).args(more).output().unwrap()
}

/// The store is gone with its disk, and comes back at the same place as it was in the backup.
fn disaster(town: &Town, backup: &Path) {
    town.redis().kill9();
    let live = town.redis().dir().join("appendonlydir");
    std::fs::remove_dir_all(&live).unwrap();
    let new = town.dir.path().join("new");
    let done = restore(backup, &new, &[]);
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success() && said.contains("every call is denied"),
        "{said}"
    );
    std::fs::rename(new.join("appendonlydir"), live).unwrap();
    town.redis().restart();
}

/// Waits until the archive's signed checkpoint covers all of the trail; how long that is.
async fn checkpointed(town: &Town, citizen: &Citizen) -> u64 {
    let log = ok(&citizen.manager.get("/api/v1/audit?limit=1").await, 200);
    let total = log["total"].as_u64().unwrap();
    let note = Path::new(&archive(town.dir.path())).join("checkpoints");
    let note = note.join(&citizen.account).join("live");
    eventually("a checkpoint", SOON, async || {
        // The second line of a note is the number of entries.
        let text = std::fs::read_to_string(&note).ok()?;
        let size: u64 = text.lines().nth(1)?.parse().ok()?;
        (size >= total).then_some(())
    })
    .await;
    total
}

/// An edge that never saw the newer store, and one that did: both deny.
async fn everything_is_denied(town: &Town, edges: [&Edge; 2], citizen: &Citizen, admin: &Admin) {
    let key = &citizen.virtual_key;
    let sent = town.upstream.requests().len();
    for edge in edges {
        eventually("a refusal by the store's mark", SOON, async || {
            let reply = edge.caller(key).chat(body()).await;
            assert_eq!(
                (reply.status, reply.error_code()),
                (503, "service_unavailable".to_owned())
            );
            let (status, _) = edge.ops("/readyz")?;
            edge.logs().contains("restored from a backup").then_some(())?;
            (status == 503).then_some(())
        })
        .await;
    }
    assert_eq!(town.upstream.requests().len(), sent, "a call was forwarded");
    assert_eq!(citizen.manager.get("/api/v1/agents").await.status, 503);
    // It looks by itself, and may have seen only that the store was away.
    eventually("the admin server's word about the mark", SOON, async || {
        let (status, why) = admin.ops("/readyz")?;
        assert_eq!(status, 503, "{why}");
        why.contains("restored from a backup").then_some(())
    })
    .await;
}

fn refused(cli: &Cli, args: &[&str], code: &str) -> Value {
    let done = cli.run(&[args, &["--json"]].concat());
    assert_eq!(done.code, Some(1), "{done:?}");
    let answer: Value = serde_json::from_str(&done.stdout).unwrap();
    if !code.is_empty() {
        assert_eq!(answer["code"], code, "{answer}");
    }
    answer
}

/// What the operator sees before accepting.
fn inspection(town: &Town, citizen: &Citizen, lost_from: u64) {
    refused(&town.cli, &["store", "check"], "STORE_RESTORED");
    assert_eq!(town.cli.json(&["ledger", "check"])["ok"], true);
    let verify = ["audit", "verify", "--account", &citizen.account];
    let told = refused(&town.cli, &verify, "");
    assert_eq!(told["firstBroken"], lost_from, "{told}");
    // One account alone does not open the store.
    let one = ["store", "accept", "--account", &citizen.account];
    let done = town.cli.run(&one);
    assert!(
        done.code == Some(0) && done.stdout.contains("leave out --account"),
        "{done:?}"
    );
    refused(&town.cli, &["store", "check"], "STORE_RESTORED");
}

#[tokio::test]
async fn a_restored_store_is_no_fresh_budget() {
    let town = Town::found();
    let (edge, admin) = (town.edge(), town.admin());
    let citizen = town.settle(&edge, &admin).await;
    citizen.make_room_for(CALLS).await;
    citizen.call(BEFORE).await;
    let kept = checkpointed(&town, &citizen).await;
    let backup = back_up(&town);
    citizen.call(LOST).await;
    checkpointed(&town, &citizen).await;

    disaster(&town, &backup);
    let fresh = EdgeOptions::new(PROXY, "redis://127.0.0.1:1", town.upstream.base_url());
    let fresh = fresh.env("TOLLGATE_STORE__URL_FILE", town.url_file("edge"));
    let fresh = Edge::start(fresh.alive_is_enough());
    everything_is_denied(&town, [&edge, &fresh], &citizen, &admin).await;
    inspection(&town, &citizen, kept + 1);
    everything_is_denied(&town, [&edge, &fresh], &citizen, &admin).await;

    let done = town.cli.run(&["store", "accept"]);
    assert!(
        done.code == Some(0) && done.stdout.contains("in use from now on"),
        "{done:?}"
    );
    for edge in [&edge, &fresh] {
        eventually("a ready edge", SOON, async || {
            (edge.ops("/readyz")?.0 == 200).then_some(())
        })
        .await;
    }
    // What was spent before the backup counts; what was lost is the operator's to book.
    citizen.call_until_denied(CALLS - BEFORE).await;
    assert_eq!(town.upstream.requests().len() as u64, CALLS + LOST);
    assert_eq!(town.cli.json(&["ledger", "check"])["ok"], true);
    assert_eq!(town.cli.json(&["store", "check"])["ok"], true);
}

#[test]
fn backups_are_whole_or_not_there() {
    let town = Town::found();
    let first = back_up(&town);
    assert_eq!(first.file_name().unwrap().len(), "2026-11-22T08-58-10Z".len());
    for file in ["store.rdb", "archive.tar", "manifest", "SHA256SUMS"] {
        assert!(first.join(file).exists(), "{file}");
    }
    // A damaged one is refused, and nothing is made of it.
    let target = town.dir.path().join("target");
    let snapshot = std::fs::read(first.join("store.rdb")).unwrap();
    let mut damaged = snapshot.clone();
    damaged[40] ^= 1;
    std::fs::write(first.join("store.rdb"), damaged).unwrap();
    let done = restore(&first, &target, &[]);
    assert!(!done.status.success() && !target.exists(), "{done:?}");
    std::fs::write(first.join("store.rdb"), snapshot).unwrap();
    // Nothing that is there is written over.
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("somebody"), "else").unwrap();
    let done = restore(&first, &target, &[]);
    assert!(
        String::from_utf8_lossy(&done.stderr).contains("is not empty"),
        "{done:?}"
    );
    // With the archive.
    let (store, archive) = (town.dir.path().join("a"), town.dir.path().join("b"));
    assert!(restore(&first, &store, &[&archive]).status.success());
    assert!(archive.is_dir() && store.join("appendonlydir").is_dir());
    // A wrong password leaves no backup behind, and is not printed.
    let file = town.dir.path().join("wrong.url");
    let url = format!(
        "redis://tollgate-backup:hunter2@127.0.0.1:{}",
        town.redis().port()
    );
    std::fs::write(&file, url).unwrap();
    let backups = town.dir.path().join("others");
    let mut wrong = Command::new(path("deploy/backup/backup.sh"));
    let wrong = wrong.env("STORE_URL_FILE", &file).env("BACKUPS", &backups);
    let done = wrong.output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(!done.status.success() && !said.contains("hunter2"), "{said}");
    let left = std::fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let whole = left.filter(|name| name.to_str().unwrap().ends_with('Z'));
    assert_eq!(whole.count(), 0);
}

/// What a refusal says; nothing was made of it, and nothing went.
fn refused_to_back_up(town: &Town, why: &str) {
    let before = backups(town);
    let done = backing_up(town).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && said.contains(why), "{done:?}");
    assert_eq!(backups(town), before, "{said}");
}

#[test]
fn a_wiped_store_pushes_no_backup_out() {
    let town = Town::found();
    for number in 0..20 {
        let _: () = town
            .redis()
            .command(&["SET", &format!("{{b0000}}/{number}"), "x"]);
    }
    let file = Path::new(&archive(town.dir.path())).join("checkpoints");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "x").unwrap();
    let made = back_up(&town);
    let manifest = std::fs::read_to_string(made.join("manifest")).unwrap();
    let keys: i64 = town.redis().command(&["DBSIZE"]);
    assert!(
        manifest.contains(&format!("\nkeys {keys}\n")) && manifest.contains("\narchive-files 1\n"),
        "{manifest}"
    );
    at_other_times(&town, &made, &["2020-01-01T00-00-00Z", "2020-01-02T00-00-00Z"]);
    // Less than half, then nothing at all.
    for number in 0..12 {
        let _: i64 = town.redis().command(&["DEL", &format!("{{b0000}}/{number}")]);
    }
    refused_to_back_up(&town, &format!("the store has {} where", keys - 12));
    let _: () = town.redis().command(&["FLUSHALL"]);
    refused_to_back_up(&town, "the store has no keys");
    // The operator says that it is meant.
    std::thread::sleep(Duration::from_millis(1100));
    run(backing_up(&town).env("ALLOW_FEWER", "yes"));
    assert_eq!(backups(&town).len(), 2);
    std::fs::remove_file(&file).unwrap();
    let _: () = town.redis().command(&["SET", "x", "x"]);
    refused_to_back_up(&town, "the archive has 0 where the last backup has 1");
}

/// What the server counts then it counts as well when it has to refuse something to a replica, which needs no restart.
#[tokio::test]
async fn a_store_that_left_writes_out_pushes_no_backup_out() {
    let town = Town::found();
    back_up(&town);
    let mut replica = TcpStream::connect(("127.0.0.1", town.redis().port())).unwrap();
    replica.write_all(b"AUTH replica secret\r\n").unwrap();
    let mut let_in = [0; 5];
    replica.read_exact(&mut let_in).unwrap();
    assert_eq!(&let_in, b"+OK\r\n");
    replica.write_all(b"PSYNC ? -1\r\n").unwrap();
    let says = |section: &str, words: &str| {
        let info: String = town.redis().command(&["INFO", section]);
        info.contains(words).then_some(())
    };
    eventually("a replica", SOON, async || says("replication", "state=online")).await;
    replica.write_all(b"REPLCONF nonsense x\r\n").unwrap();
    eventually("a refusal", SOON, async || {
        says("stats", "unexpected_error_replies:1\r\n")
    })
    .await;
    drop(replica);
    refused_to_back_up(&town, "the store has left out ");
    assert_eq!(backups(&town).len(), 1);
    run(backing_up(&town).env("ALLOW_FEWER", "yes"));
}

#[test]
fn the_last_backup_of_each_day_stays() {
    let town = Town::found();
    let made = back_up(&town);
    let others = [
        "2020-01-01T00-00-00Z",
        "2020-01-01T23-00-00Z",
        "2020-01-02T09-00-00Z",
        "2020-01-03T01-00-00Z",
        "2020-01-03T02-00-00Z",
        "2020-01-03T03-00-00Z",
    ];
    at_other_times(&town, &made, &others);
    std::fs::remove_dir_all(&made).unwrap();
    let made = run(backing_up(&town).env("KEEP", "3").env("KEEP_DAILY", "3"));
    let made = made.trim().rsplit('/').next().unwrap().to_owned();
    let expected = [
        "2020-01-02T09-00-00Z",
        "2020-01-03T02-00-00Z",
        "2020-01-03T03-00-00Z",
        &made,
    ];
    assert_eq!(backups(&town), expected);
}

#[test]
fn only_the_newest_backups_stay() {
    let town = Town::found();
    let backups = town.dir.path().join("backups");
    for old in [
        "2020-01-01T00-00-00Z",
        "2020-01-02T00-00-00Z",
        "2020-01-03T00-00-00Z",
    ] {
        std::fs::create_dir_all(backups.join(old)).unwrap();
    }
    std::fs::create_dir(backups.join("2020-01-04T00-00-00Z.unfinished")).unwrap();
    let made = back_up(&town);
    let mut left: Vec<_> = std::fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    left.sort();
    assert_eq!(left, [backups.join("2020-01-03T00-00-00Z"), made]);
}

/// An admin server on a restored store starts, and answers 503 until it is accepted.
#[tokio::test]
async fn an_admin_server_started_on_it_waits_too() {
    let town = Town::found();
    let first = town.admin();
    let edge = town.edge();
    let citizen = town.settle(&edge, &first).await;
    let backup = back_up(&town);
    drop(first);
    disaster(&town, &backup);
    let options = AdminOptions::new(ADMIN, "redis://127.0.0.1:1");
    let options = options.env("TOLLGATE_STORE__URL_FILE", town.url_file("admin"));
    let admin = Admin::start(options.alive_is_enough());
    let manager = admin.caller(&citizen.api_key);
    assert_eq!(manager.get("/api/v1/agents").await.status, 503);
    assert_eq!(
        manager
            .post("/v1/spend", json!({ "agent": "bot", "amount": 1 }))
            .await
            .status,
        503
    );
    assert_eq!(town.cli.json(&["store", "accept"])["ok"], true);
    eventually("an answer", SOON, async || {
        (manager.get("/api/v1/agents").await.status == 200).then_some(())
    })
    .await;
}
