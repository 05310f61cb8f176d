//! A backup, a disaster, and a restored store: it lacks the last charges, so it is no budget before the operator
//! accepts it (decisions D47, D52).

use crate::files::{path, run};
use crate::installation::{Installation, Tenant, archive, body, ok};
use crate::{ADMIN, PROXY};
use harness::{Admin, AdminOptions, Cli, Edge, EdgeOptions, eventually, until};
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

/// Makes a backup. Returns its path.
pub fn back_up(installation: &Installation) -> PathBuf {
    let printed = run(&mut backing_up(installation));
    let made = printed.trim().strip_prefix("backup: ").unwrap();
    PathBuf::from(made)
}

/// The command that makes a backup and keeps the two newest.
fn backing_up(installation: &Installation) -> Command {
    // The admin server makes this directory only with its first checkpoint.
    std::fs::create_dir_all(archive(installation.dir.path())).unwrap();
    let mut command = Command::new(path("deploy/backup/backup.sh"));
    command
        .env("STORE_URL_FILE", installation.url_file("backup"))
        .env("BACKUPS", installation.dir.path().join("backups"))
        .env("ARCHIVE", archive(installation.dir.path()))
        .env("KEEP", "2")
        .env("KEEP_DAILY", "0");
    command
}

fn backups(installation: &Installation) -> Vec<String> {
    let entries = std::fs::read_dir(installation.dir.path().join("backups")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with('Z')).collect();
    names.sort();
    names
}

/// Copies a backup to the names of other times.
fn at_other_times(installation: &Installation, backup: &Path, times: &[&str]) {
    for time in times {
        let copy = installation.dir.path().join("backups").join(time);
        run(Command::new("cp").arg("-r").arg(backup).arg(copy));
    }
}

/// Makes the data directory of a new store.
fn restore(backup: &Path, directory: &Path, more: &[&Path]) -> std::process::Output {
    let mut command = Command::new(path("deploy/backup/restore.sh"));
    command.arg(backup).arg(directory).args(more).output().unwrap()
}

/// Loses the store with its disk, and restores it from the backup at the same place.
fn lose_and_restore(installation: &Installation, backup: &Path) {
    installation.redis().kill9();
    let live = installation.redis().dir().join("appendonlydir");
    std::fs::remove_dir_all(&live).unwrap();
    let new = installation.dir.path().join("new");
    let done = restore(backup, &new, &[]);
    let printed = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success() && printed.contains("every call is denied"),
        "{printed}"
    );
    std::fs::rename(new.join("appendonlydir"), live).unwrap();
    installation.redis().restart();
}

/// Waits until the archive's signed checkpoint covers the whole trail. Returns the trail's length.
async fn checkpointed(installation: &Installation, tenant: &Tenant) -> u64 {
    let log = ok(&tenant.manager.get("/api/v1/audit?limit=1").await, 200);
    let total = log["total"].as_u64().unwrap();
    let note = Path::new(&archive(installation.dir.path())).join("checkpoints");
    let note = note.join(&tenant.account).join("live");
    eventually("a checkpoint", SOON, async || {
        // The second line of a note is the number of entries.
        let text = std::fs::read_to_string(&note).ok()?;
        let size: u64 = text.lines().nth(1)?.parse().ok()?;
        (size >= total).then_some(())
    })
    .await;
    total
}

/// Asserts that an edge that never saw the newer store denies, and so does one that did.
async fn everything_is_denied(
    installation: &Installation,
    edges: [&Edge; 2],
    tenant: &Tenant,
    admin: &Admin,
) {
    let key = &tenant.virtual_key;
    let sent = installation.upstream.requests().len();
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
    assert_eq!(
        installation.upstream.requests().len(),
        sent,
        "a call was forwarded"
    );
    assert_eq!(tenant.manager.get("/api/v1/agents").await.status, 503);
    // The admin server's periodic check may have found the store unreachable.
    eventually("the admin server's report of the mark", SOON, async || {
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

/// Asserts the output of the operator's checks before the store is accepted.
fn inspection(installation: &Installation, tenant: &Tenant, lost_from: u64) {
    refused(&installation.cli, &["store", "check"], "STORE_RESTORED");
    assert_eq!(installation.cli.json(&["ledger", "check"])["ok"], true);
    let verify = ["audit", "verify", "--account", &tenant.account];
    let reported = refused(&installation.cli, &verify, "");
    assert_eq!(reported["firstBroken"], lost_from, "{reported}");
    // One account alone does not open the store.
    let one = ["store", "accept", "--account", &tenant.account];
    let done = installation.cli.run(&one);
    assert!(
        done.code == Some(0) && done.stdout.contains("leave out --account"),
        "{done:?}"
    );
    refused(&installation.cli, &["store", "check"], "STORE_RESTORED");
}

#[tokio::test]
async fn a_restored_store_is_no_fresh_budget() {
    let installation = Installation::start();
    let (edge, admin) = (installation.edge(), installation.admin());
    let tenant = installation.settle(&edge, &admin).await;
    tenant.make_room_for(CALLS).await;
    tenant.call(BEFORE).await;
    let kept = checkpointed(&installation, &tenant).await;
    let backup = back_up(&installation);
    tenant.call(LOST).await;
    checkpointed(&installation, &tenant).await;

    lose_and_restore(&installation, &backup);
    let fresh = EdgeOptions::new(PROXY, "redis://127.0.0.1:1", installation.upstream.base_url());
    let fresh = fresh.env("TOLLGATE_STORE__URL_FILE", installation.url_file("edge"));
    let fresh = Edge::start(fresh.until_alive());
    everything_is_denied(&installation, [&edge, &fresh], &tenant, &admin).await;
    inspection(&installation, &tenant, kept + 1);
    everything_is_denied(&installation, [&edge, &fresh], &tenant, &admin).await;

    let done = installation.cli.run(&["store", "accept"]);
    assert!(
        done.code == Some(0) && done.stdout.contains("in use now"),
        "{done:?}"
    );
    for edge in [&edge, &fresh] {
        eventually("a ready edge", SOON, async || {
            (edge.ops("/readyz")?.0 == 200).then_some(())
        })
        .await;
    }
    // Spend before the backup counts; the operator books what was lost.
    tenant.call_until_denied(CALLS - BEFORE).await;
    assert_eq!(installation.upstream.requests().len() as u64, CALLS + LOST);
    assert_eq!(installation.cli.json(&["ledger", "check"])["ok"], true);
    assert_eq!(installation.cli.json(&["store", "check"])["ok"], true);
}

#[test]
fn backups_are_whole_or_not_there() {
    let installation = Installation::start();
    let first = back_up(&installation);
    assert_eq!(first.file_name().unwrap().len(), "2026-11-22T08-58-10Z".len());
    for file in ["store.rdb", "archive.tar", "manifest", "SHA256SUMS"] {
        assert!(first.join(file).exists(), "{file}");
    }
    // A damaged backup is refused, and nothing is restored from it.
    let target = installation.dir.path().join("target");
    let snapshot = std::fs::read(first.join("store.rdb")).unwrap();
    let mut damaged = snapshot.clone();
    damaged[40] ^= 1;
    std::fs::write(first.join("store.rdb"), damaged).unwrap();
    let done = restore(&first, &target, &[]);
    assert!(!done.status.success() && !target.exists(), "{done:?}");
    std::fs::write(first.join("store.rdb"), snapshot).unwrap();
    // Existing files are not overwritten.
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("somebody"), "else").unwrap();
    let done = restore(&first, &target, &[]);
    assert!(
        String::from_utf8_lossy(&done.stderr).contains("is not empty"),
        "{done:?}"
    );
    // With the archive.
    let (store, archive) = (
        installation.dir.path().join("a"),
        installation.dir.path().join("b"),
    );
    assert!(restore(&first, &store, &[&archive]).status.success());
    assert!(archive.is_dir() && store.join("appendonlydir").is_dir());
    // A wrong password leaves no backup behind, and is not printed.
    let file = installation.dir.path().join("wrong.url");
    let url = format!(
        "redis://tollgate-backup:hunter2@127.0.0.1:{}",
        installation.redis().port()
    );
    std::fs::write(&file, url).unwrap();
    let backups = installation.dir.path().join("others");
    let mut wrong = Command::new(path("deploy/backup/backup.sh"));
    let wrong = wrong.env("STORE_URL_FILE", &file).env("BACKUPS", &backups);
    let done = wrong.output().unwrap();
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(
        !done.status.success() && !printed.contains("hunter2"),
        "{printed}"
    );
    let left = std::fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let whole = left.filter(|name| name.to_str().unwrap().ends_with('Z'));
    assert_eq!(whole.count(), 0);
}

/// A backup looks like a replica to the store, and leaves the traces of one.
#[test]
fn money_moves_while_a_backup_is_made_and_after_it() {
    let installation = Installation::start();
    let make = |name| {
        installation
            .cli
            .json(&["account", "create", "--name", name, "--plan", "free"])
    };
    make("Before");
    let backup = std::thread::scope(|scope| {
        let backup = scope.spawn(|| back_up(&installation));
        while !backup.is_finished() {
            let info: String = installation.redis().command(&["INFO", "replication"]);
            if info.contains("connected_slaves:1") {
                make("Meanwhile");
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        backup.join().unwrap()
    });
    assert!(backup.is_dir());
    make("After");
}

/// Asserts that the backup is refused for this reason, and that none is made or removed.
fn refused_to_back_up(installation: &Installation, why: &str) {
    refused_by(installation, &mut backing_up(installation), why);
}

fn refused_by(installation: &Installation, backing_up: &mut Command, why: &str) {
    let before = backups(installation);
    let done = backing_up.output().unwrap();
    let printed = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && printed.contains(why), "{done:?}");
    assert_eq!(backups(installation), before, "{printed}");
    // A failed run that keeps its files keeps a full disk full, and the store may need it.
    let left = std::fs::read_dir(installation.dir.path().join("backups")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.ends_with(".unfinished")).count(), 0);
}

/// A store whose disk is full refuses every call, so a backup leaves a tenth of the disk free.
#[test]
fn a_backup_leaves_room_on_the_disk() {
    let installation = Installation::start();
    let bin = installation.dir.path().join("bin");
    for folder in [&bin, &installation.dir.path().join("backups")] {
        std::fs::create_dir(folder).unwrap();
    }
    let disk = |size: u64, free: u64| {
        let df = bin.join("df");
        std::fs::write(&df, format!("#!/bin/sh\necho size avail\necho {size} {free}\n")).unwrap();
        run(Command::new("chmod").arg("+x").arg(df));
        let mut command = backing_up(&installation);
        command.env(
            "PATH",
            format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
        );
        command
    };
    let info: String = installation.redis().command(&["INFO", "memory"]);
    let memory = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"))
        .unwrap();
    let memory: u64 = memory.trim().parse().unwrap();
    refused_by(
        &installation,
        &mut disk(memory * 100, memory * 10),
        "a tenth stays free",
    );
    // Room for the snapshot alone.
    std::fs::write(
        Path::new(&archive(installation.dir.path())).join("object"),
        vec![0; 50 << 20],
    )
    .unwrap();
    refused_by(
        &installation,
        &mut disk(memory * 10, memory * 5),
        "a tenth stays free",
    );
    run(&mut disk(200 << 20, 150 << 20));
    let no_archive = &mut backing_up(&installation);
    refused_by(
        &installation,
        no_archive.env("ARCHIVE", "/nonexistent"),
        "is no directory",
    );
}

#[test]
fn a_wiped_store_pushes_no_backup_out() {
    let installation = Installation::start();
    for number in 0..20 {
        let _: () = installation
            .redis()
            .command(&["SET", &format!("{{b0000}}/{number}"), "x"]);
    }
    let file = Path::new(&archive(installation.dir.path())).join("checkpoints");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "x").unwrap();
    let made = back_up(&installation);
    let manifest = std::fs::read_to_string(made.join("manifest")).unwrap();
    let keys: i64 = installation.redis().command(&["DBSIZE"]);
    assert!(
        manifest.contains(&format!("\nkeys {keys}\n")) && manifest.contains("\narchive-files 1\n"),
        "{manifest}"
    );
    at_other_times(
        &installation,
        &made,
        &["2020-01-01T00-00-00Z", "2020-01-02T00-00-00Z"],
    );
    // Less than half, then nothing at all.
    for number in 0..12 {
        let _: i64 = installation
            .redis()
            .command(&["DEL", &format!("{{b0000}}/{number}")]);
    }
    refused_to_back_up(&installation, &format!("the store has {} where", keys - 12));
    let _: () = installation.redis().command(&["FLUSHALL"]);
    refused_to_back_up(&installation, "the store has no keys");
    // The operator allows a backup with fewer keys.
    std::thread::sleep(Duration::from_millis(1100));
    run(backing_up(&installation).env("ALLOW_FEWER", "yes"));
    assert_eq!(backups(&installation).len(), 2);
    std::fs::remove_file(&file).unwrap();
    let _: () = installation.redis().command(&["SET", "x", "x"]);
    refused_to_back_up(&installation, "the archive has 0 where the last backup has 1");
}

/// The server's counter of left-out writes also rises when it refuses something to a replica, without a restart.
#[tokio::test]
async fn a_store_that_left_writes_out_pushes_no_backup_out() {
    let installation = Installation::start();
    back_up(&installation);
    let mut replica = TcpStream::connect(("127.0.0.1", installation.redis().port())).unwrap();
    replica.write_all(b"AUTH replica secret\r\n").unwrap();
    let mut let_in = [0; 5];
    replica.read_exact(&mut let_in).unwrap();
    assert_eq!(&let_in, b"+OK\r\n");
    replica.write_all(b"PSYNC ? -1\r\n").unwrap();
    let says = |section: &str, words: &str| {
        let info: String = installation.redis().command(&["INFO", section]);
        info.contains(words).then_some(())
    };
    eventually("a replica", SOON, async || says("replication", "state=online")).await;
    replica.write_all(b"REPLCONF nonsense x\r\n").unwrap();
    eventually("a refusal", SOON, async || {
        says("stats", "unexpected_error_replies:1\r\n")
    })
    .await;
    drop(replica);
    refused_to_back_up(&installation, "the store has left out ");
    assert_eq!(backups(&installation).len(), 1);
    run(backing_up(&installation).env("ALLOW_FEWER", "yes"));
}

#[test]
fn the_last_backup_of_each_day_stays() {
    let installation = Installation::start();
    let made = back_up(&installation);
    let others = [
        "2020-01-01T00-00-00Z",
        "2020-01-01T23-00-00Z",
        "2020-01-02T09-00-00Z",
        "2020-01-03T01-00-00Z",
        "2020-01-03T02-00-00Z",
        "2020-01-03T03-00-00Z",
    ];
    at_other_times(&installation, &made, &others);
    std::fs::remove_dir_all(&made).unwrap();
    let made = run(backing_up(&installation).env("KEEP", "3").env("KEEP_DAILY", "3"));
    let made = made.trim().rsplit('/').next().unwrap().to_owned();
    let expected = [
        "2020-01-02T09-00-00Z",
        "2020-01-03T02-00-00Z",
        "2020-01-03T03-00-00Z",
        &made,
    ];
    assert_eq!(backups(&installation), expected);
}

#[test]
fn only_the_newest_backups_stay() {
    let installation = Installation::start();
    let backups = installation.dir.path().join("backups");
    for old in [
        "2020-01-01T00-00-00Z",
        "2020-01-02T00-00-00Z",
        "2020-01-03T00-00-00Z",
    ] {
        std::fs::create_dir_all(backups.join(old)).unwrap();
    }
    std::fs::create_dir(backups.join("2020-01-04T00-00-00Z.unfinished")).unwrap();
    let made = back_up(&installation);
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
    let installation = Installation::start();
    let first = installation.admin();
    let edge = installation.edge();
    let tenant = installation.settle(&edge, &first).await;
    let backup = back_up(&installation);
    drop(first);
    lose_and_restore(&installation, &backup);
    let options = AdminOptions::new(ADMIN, "redis://127.0.0.1:1");
    let options = options.env("TOLLGATE_STORE__URL_FILE", installation.url_file("admin"));
    let admin = Admin::start(options.until_alive());
    let manager = admin.caller(&tenant.api_key);
    assert_eq!(manager.get("/api/v1/agents").await.status, 503);
    assert_eq!(
        manager
            .post("/v1/spend", json!({ "agent": "bot", "amount": 1 }))
            .await
            .status,
        503
    );
    assert_eq!(installation.cli.json(&["store", "accept"])["ok"], true);
    until("an answer", async || {
        manager.get("/api/v1/agents").await.status == 200
    })
    .await;
}
