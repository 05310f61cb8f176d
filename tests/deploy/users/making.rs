//! Making the users: again, with another password, for a cluster, and the one for people.

use super::said;
use crate::files::{path, run};
use crate::town::{Town, address, make_users};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything in a folder, by name.
fn contents(dir: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    entries.map(read).collect()
}

#[test]
fn making_them_again_keeps_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let make = || run(Command::new(path("deploy/redis/users.sh")).arg(dir.path()));
    make();
    let file = dir.path().join("users.acl");
    let mut acl = std::fs::read_to_string(&file).unwrap();
    let by_hand = "user replica on >secret +psync +replconf +ping\nuser ann on >secret ~* +@read\n";
    acl.push_str(by_hand);
    std::fs::write(&file, &acl).unwrap();
    // As prepare.sh leaves them.
    run(Command::new("chmod").args(["-R", "a-w"]).arg(dir.path()));
    run(Command::new("chmod").arg("u+w").arg(dir.path()));
    let before = contents(dir.path());
    let said = make();
    assert!(
        said.contains("kept replica ann") && !said.contains("secret"),
        "{said}"
    );
    assert_eq!(contents(dir.path()), before, "a second run changes nothing");
    // The template's own users are those of the template.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, acl.replace("+psync +sync", "+@all")).unwrap();
    make();
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_rotation_has_no_moment_without_a_password() {
    let town = Town::found();
    let (dir, place) = (town.dir.path(), town.place());
    let load = |rotate: Option<&str>| {
        make_users(dir, "redis", rotate);
        let _: () = town.redis().command(&["ACL", "LOAD"]);
    };
    let lets_in = |url: &str| {
        let client = redis::Client::open(url).unwrap();
        client.get_connection().is_ok()
    };
    let others = ["admin", "operator", "backup", "administrator"];
    let all = || others.map(|name| address(dir, name, &place));
    let (old, before) = (address(dir, "edge", &place), all());
    load(Some("edge"));
    let new = address(dir, "edge", &place);
    assert!(old != new && lets_in(&old) && lets_in(&new), "both work");
    load(None);
    assert!(!lets_in(&old) && lets_in(&new), "the old one has gone");
    assert_eq!(all(), before, "nobody else's password changed");
}

#[test]
fn a_cluster_has_an_address_for_each_node_that_is_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut script = Command::new(path("deploy/redis/users.sh"));
    let script = script.arg(dir.path()).arg("10.0.0.1:6379,10.0.0.2:6380");
    run(script.env("SCHEME", "redis-cluster"));
    let all = contents(dir.path());
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    let expected = [
        "admin.url",
        "administrator-1.url",
        "administrator-2.url",
        "backup-1.url",
        "backup-2.url",
        "edge.url",
        "operator.url",
        "users.acl",
    ];
    assert_eq!(names, expected);
    let password = |name: &str| all[name].split([':', '@']).nth(2).unwrap();
    assert_eq!(password("backup-1.url"), password("backup-2.url"));
    for (name, start, end) in [
        ("backup-2.url", "redis://tollgate-backup:", "@10.0.0.2:6380\n"),
        (
            "edge.url",
            "redis-cluster://tollgate-edge:",
            "@10.0.0.1:6379,10.0.0.2:6380\n",
        ),
    ] {
        let url = &all[name];
        assert!(url.starts_with(start) && url.ends_with(end), "{url}");
    }
}

#[test]
fn the_administrator_of_the_store_may_what_the_runbook_asks_for() {
    let town = Town::found();
    for words in [
        &["ACL", "LOG"][..],
        &["ACL", "LOAD"],
        &["SLOWLOG", "GET", "10"],
        &["CONFIG", "SET", "maxmemory", "3gb"],
        &["BGREWRITEAOF"],
        &["INFO", "memory"],
        &["DBSIZE"],
    ] {
        let answer = said(&town, "administrator", words);
        assert!(answer.starts_with("OK "), "{words:?}: {answer}");
    }
    let mut cli = Command::new(path("deploy/redis/store-cli.sh"));
    let said = run(cli
        .env("STORE_URL_FILE", town.url_file("administrator"))
        .args(["ACL", "WHOAMI"]));
    assert_eq!(said, "tollgate-administrator\n");
}
