//! The shell commands in README and documents.

use crate::files::{all_below, path, run, text};
use crate::installation::{login, make_users, without_places};
use harness::Redis;
use std::process::Command;

/// Documents that install a store from its files.
const INSTALLATIONS: [&str; 1] = ["docs/guides/deployment.md"];
/// The documents outside of `docs`.
const BESIDE: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "benches/README.md",
    "tests/mutants/README.md",
];

pub fn documents() -> Vec<String> {
    let mut all = all_below("docs");
    all.retain(|name| name.ends_with(".md"));
    all.extend(BESIDE.map(str::to_owned));
    all
}

/// The lines of a document's shell examples.
fn examples(document: &str) -> Vec<String> {
    let text = text(document);
    let blocks = text.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

/// A store that is made from the files of `deploy/redis` as a document says keeps its data where the machine has a
/// place for it.
#[test]
fn the_lines_for_the_store_give_it_a_directory() {
    for document in INSTALLATIONS {
        let dir = tempfile::tempdir().unwrap();
        let [etc, data] = ["etc", "data"].map(|name| dir.path().join(name));
        for folder in [&etc, &data] {
            std::fs::create_dir(folder).unwrap();
        }
        make_users(dir.path(), "redis", None);
        let here = |line: &String| {
            line.replace("sudo ", "")
                .replace(" -g redis", "")
                .replace("/etc/tollgate/secrets/", "secrets/")
                .replace("secrets/", &format!("{}/", dir.path().display()))
                .replace("/etc/redis", &etc.display().to_string())
                .replace("/var/lib/redis", &data.display().to_string())
        };
        let lines = examples(document);
        let lines: Vec<String> = lines
            .iter()
            .filter(|line| line.contains("/etc/redis"))
            .map(here)
            .collect();
        assert!(!lines.is_empty(), "{document}");
        run(Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &lines.join("\n")])
            .current_dir(path("")));
        let conf = etc.join("redis.conf");
        let whole = std::fs::read_to_string(&conf).unwrap();
        std::fs::write(&conf, without_places(&whole)).unwrap();
        let [conf, users] = [conf, etc.join("users.acl")].map(|file| file.display().to_string());
        let store = Redis::start_as(
            &login(dir.path()),
            &["--include", &conf, "--aclfile", &users],
            &[],
        );
        let place: Vec<String> = store.command(&["CONFIG", "GET", "dir"]);
        assert_eq!(place[1], data.display().to_string(), "{document}: {lines:#?}");
        assert!(data.join("appendonlydir").is_dir(), "{document}");
    }
}

/// A store starts with the lines for `redis.conf` that a document shows (fenced as `conf`).
#[test]
fn a_store_starts_with_the_lines_that_a_document_adds() {
    let dir = tempfile::tempdir().unwrap();
    let mut count = 0;
    for document in documents() {
        for block in text(&document).split("```conf\n").skip(1) {
            let lines = block.split("```").next().unwrap();
            let file = dir.path().join(format!("{count}.conf")).display().to_string();
            std::fs::write(&file, lines).unwrap();
            let store = Redis::start_with(&["--include", &file]);
            for line in lines.lines().filter(|line| !line.starts_with('#')) {
                let (name, value) = line.split_once(' ').unwrap();
                let set: Vec<String> = store.command(&["CONFIG", "GET", name]);
                assert_eq!(set, [name, value], "{document}: {line}");
            }
            count += 1;
        }
    }
    assert_eq!(count, 1, "scale-out.md has one");
}

/// No other document has a line of its own to install `redis.conf`.
#[test]
fn redis_conf_is_installed_by_one_line() {
    let mut count = 0;
    for document in documents() {
        for line in text(&document).lines() {
            if line.contains("install ") && line.contains("deploy/redis/redis.conf") {
                let line = line.replace("sudo ", "");
                assert_eq!(
                    line,
                    "(cat deploy/redis/redis.conf && echo dir /var/lib/redis) | install -m 0640 -g redis /dev/stdin /etc/redis/redis.conf",
                    "{document}"
                );
                count += 1;
            }
        }
    }
    assert_eq!(count, INSTALLATIONS.len());
}

/// Returns true if `.gitignore` names this file or a folder above it.
fn ignored(file: &str) -> bool {
    let rules = text(".gitignore");
    let mut rules = rules.lines().filter(|line| !line.starts_with('#'));
    rules.any(|rule| match rule.strip_suffix('/') {
        Some(folder) => file.starts_with(&format!("{}/", folder.trim_start_matches('/'))),
        None => file.rsplit('/').next() == Some(rule),
    })
}

/// Commands that make the master key or passwords of the store hide them from other users and from git.
#[test]
fn secrets_are_made_for_their_owner_alone_and_ignored() {
    let mut count = 0;
    for document in documents() {
        for line in examples(&document) {
            if let Some((_, file)) = line.split_once("/dev/urandom | base64 > ") {
                let file = file.split(')').next().unwrap();
                assert!(line.starts_with("(umask 077; "), "{document}: {line}");
                assert!(file.starts_with('/') || ignored(file), "{document}: {file}");
                count += 1;
            }
            if let Some(folder) = line.strip_prefix("deploy/redis/users.sh ") {
                let folder = folder.split(' ').next().unwrap();
                let file = format!("{folder}/edge.url");
                assert!(file.starts_with('/') || ignored(&file), "{document}: {file}");
                count += 1;
            }
        }
    }
    assert!(count >= 6, "{count}");
}

/// A server that is started by hand in the checkout leaves its data there.
#[test]
fn no_store_is_part_of_the_repository() {
    for name in ["dump.rdb", "appendonlydir/appendonly.aof.manifest"] {
        assert!(ignored(name), "{name}");
    }
}

/// Builds for deployment know their commit: documents contain no build command beside those that set it.
#[test]
fn builds_for_deployment_know_their_commit() {
    let printed = run(Command::new(path("deploy/local/commit.sh")).env("TOLLGATE_COMMIT", "0123abc"));
    assert_eq!(printed, "0123abc\n");
    for file in ["Makefile", "deploy/docker/static.sh", "benches/pgo.sh"] {
        assert!(text(file).contains("$(deploy/local/commit.sh)"), "{file}");
    }
    for document in documents() {
        for line in examples(&document) {
            assert!(!line.contains("cargo build"), "{document}: {line}");
        }
    }
}

/// After a hand-over the other instance serves: signals go to both.
#[test]
fn signals_reach_the_instance_that_serves() {
    let mut count = 0;
    for document in documents() {
        for line in text(&document).lines() {
            for word in ["systemctl reload ", "systemctl stop "] {
                let Some((_, units)) = line.split_once(word) else {
                    continue;
                };
                let units = units.split('`').next().unwrap();
                if units.contains("tollgate-proxy@") {
                    assert!(units.contains("'tollgate-proxy@*'"), "{document}: {line}");
                    count += 1;
                }
            }
        }
    }
    assert_eq!(count, 2);
}

/// systemd appends to a file without bound, and a full disk stops the edge's journal and the store.
#[test]
fn no_document_sends_the_log_to_a_file() {
    for document in documents() {
        assert!(!text(&document).contains("StandardError=append:"), "{document}");
    }
}

/// Every command names our namespace, and one that reads a password has a terminal.
#[test]
fn commands_for_kubernetes_find_what_they_name() {
    let mut count = 0;
    for document in documents() {
        let text = text(&document);
        for (at, _) in text.match_indices("kubectl ") {
            let line = text[at..].lines().next().unwrap();
            let command = line.split(['`', '|', '"']).next().unwrap();
            let of_ours = [
                "exec ",
                "rollout ",
                "logs ",
                "scale ",
                "create secret",
                "create --",
            ];
            if of_ours.iter().any(|word| command.contains(word)) {
                assert!(command.contains("--namespace tollgate"), "{document}: {command}");
                let asks = command.contains("--askpass");
                assert!(
                    !asks || command.contains("exec --stdin --tty "),
                    "{document}: {command}"
                );
                count += 1;
            }
        }
    }
    assert!(count >= 8, "{count}");
}
