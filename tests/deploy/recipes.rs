//! Recipes of the guides for bad nights, run as written on a real store.

use crate::backup::back_up;
use crate::files::{path, run, text};
use crate::installation::Installation;
use harness::Redis;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Output};

/// A user that is not root's, if the test may set one.
const SOMEBODY: u32 = 4321;

/// Load of the smallest installation of docs/guides/sizing.md.
const CALLS_A_SECOND: u64 = 1_000;
/// Bytes that a call adds to the append-only file, and to a replica's stream (docs/guides/sizing.md).
const STREAM_BYTES_A_CALL: u64 = 1_700;

/// The lines of a document from the one that contains `first` to the one that contains `last`, without indentation.
fn lines(document: &str, first: &str, last: &str) -> String {
    let text = text(document);
    let from = text.lines().skip_while(|line| !line.contains(first));
    let mut lines = Vec::new();
    for line in from {
        lines.push(line.trim_start());
        if line.contains(last) {
            return lines.join("\n");
        }
    }
    panic!("{document}: no {first} … {last}");
}

fn bash(script: &str, place: &Path) -> Output {
    let mut bash = Command::new("bash");
    bash.args(["-euc", script]).current_dir(place).output().unwrap()
}

/// The words as the append-only file has them.
fn command(words: &[&str]) -> String {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let words: Vec<String> = words.collect();
    format!("*{}\r\n{}", words.len(), words.concat())
}

#[test]
fn an_append_only_file_with_an_open_transaction_is_mended() {
    let redis = Redis::start_with(&["--appendonly", "yes"]);
    let _: () = redis.command(&["SET", "kept", "1"]);
    redis.kill9();
    let place = redis.dir().join("appendonlydir");
    let files = std::fs::read_dir(&place).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let name = files
        .into_iter()
        .find(|name| name.ends_with(".incr.aof"))
        .unwrap();
    let file = place.join(&name);
    let cut = [command(&["MULTI"]), command(&["SET", "cut", "1"])].concat();
    let later = [
        command(&["MULTI"]),
        command(&["SET", "later", "1"]),
        command(&["EXEC"]),
    ];
    let whole = [std::fs::read_to_string(&file).unwrap(), cut].concat();
    std::fs::write(&file, [&whole, &later.concat()].map(String::as_str).concat()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let is_root = chown(&file, Some(SOMEBODY), Some(SOMEBODY)).is_ok();

    let script = lines(
        "docs/guides/runbook.md",
        "F=appendonly.aof.1.incr.aof",
        "mv mended",
    )
    .replace("appendonly.aof.1.incr.aof", &name)
    .replace("N=10805061", &format!("N={}", whole.len()));
    let done = bash(&script, &place);
    assert!(done.status.success(), "{done:?}");
    let about = std::fs::metadata(&file).unwrap();
    assert_eq!(about.mode() & 0o777, 0o640, "the store's user reads it");
    assert!(!is_root || (about.uid(), about.gid()) == (SOMEBODY, SOMEBODY));
    redis.restart();
    for (key, value) in [("kept", Some("1")), ("cut", None), ("later", Some("1"))] {
        let found: Option<String> = redis.command(&["GET", key]);
        assert_eq!(found.as_deref(), value, "{key}");
    }
}

/// The writes of a copy are kept for the replica that makes it. The server's defaults (256 MB, 1 MB) are too small.
#[test]
fn a_replica_can_copy_a_busy_store() {
    let conf = text("deploy/redis/redis.conf");
    let value = |key: &str| conf.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    let megabytes = |text: &str| match text.split_at(text.len() - 2) {
        (number, "gb") => number.parse::<u64>().unwrap() * 1024,
        (number, unit) => number.parse().ok().filter(|_| unit == "mb").unwrap(),
    };
    let kept = value("client-output-buffer-limit replica ");
    let kept = kept
        .strip_suffix(" 0 0")
        .expect("no lower limit of longer copies");
    assert_eq!(megabytes(kept) * 2, megabytes(value("maxmemory ")));
    let half_a_minute = 30 * CALLS_A_SECOND * STREAM_BYTES_A_CALL;
    assert!(megabytes(value("repl-backlog-size ")) << 20 >= half_a_minute);
}

/// Under compose: into a new volume as after the loss of the disk, and into one that has the old data.
#[test]
fn a_backup_is_restored_into_a_volume() {
    let installation = Installation::start();
    let backup = back_up(&installation);
    let script = lines("docs/guides/backup.md", "docker.io/library/redis:", "chown -R");
    let script = script.split_once("bash -euc '").unwrap().1;
    let script = script.strip_suffix('\'').unwrap();
    for has_data in [false, true] {
        let volume = tempfile::tempdir().unwrap();
        let live = volume.path().join("appendonlydir");
        if has_data {
            std::fs::create_dir(&live).unwrap();
            std::fs::write(live.join("old"), "x").unwrap();
        }
        let script = script
            .replace("/data", &volume.path().display().to_string())
            .replace("/backup ", &format!("{} ", backup.display()))
            .replace("/scripts", &path("deploy/backup").display().to_string())
            .replace("chown -R redis:redis", "ls");
        let done = bash(&script, volume.path());
        assert!(done.status.success(), "{script}\n{done:?}");
        assert!(live.join("appendonly.aof.manifest").exists());
        let old = run(Command::new("find").arg(volume.path()).args(["-name", "old"]));
        assert_eq!(old.contains("/lost/"), has_data, "{old}");
    }
}

/// Redis counts both since its start: the alert lasts for as long, whatever was done.
#[test]
fn alerts_on_counters_of_the_store_can_be_ended() {
    let runbook = text("docs/guides/runbook.md");
    let rules = text("deploy/prometheus/alerts.yml");
    let mut count = 0;
    for rule in rules.split("- alert: ").skip(1) {
        let counters = [
            "tollgate_admin_store_evicted_keys",
            "tollgate_admin_store_lost_writes",
        ];
        if counters.iter().any(|counter| rule.contains(counter)) {
            let name = rule.lines().next().unwrap();
            let section = runbook.split("\n### ").find(|section| section.starts_with(name));
            assert!(section.unwrap().contains("store-cli CONFIG RESETSTAT"), "{name}");
            count += 1;
        }
    }
    assert_eq!(count, 2);
}
