//! `users.sh`: repeated runs, new passwords, clusters, and the user for people.

use super::reply_of;
use crate::files::{path, run};
use crate::installation::{Installation, address, make_users};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The script on a folder, with neither of its variables set.
fn script(dir: &Path) -> Command {
    let mut script = Command::new(path("deploy/redis/users.sh"));
    script.arg(dir).env_remove("SCHEME").env_remove("ROTATE");
    script
}

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
    let make = || run(&mut script(dir.path()));
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
    let reply_of = make();
    assert!(
        reply_of.contains("kept replica ann") && !reply_of.contains("secret"),
        "{reply_of}"
    );
    assert_eq!(contents(dir.path()), before, "a second run changes nothing");
    // The template's own users are made as in the template again.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, acl.replace("+psync +sync", "+@all")).unwrap();
    make();
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_rotation_has_no_moment_without_a_password() {
    let installation = Installation::start();
    let (dir, place) = (installation.dir.path(), installation.place());
    let load = |rotate: Option<&str>| {
        make_users(dir, "redis", rotate);
        let _: () = installation.redis().command(&["ACL", "LOAD"]);
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

    // Rotations of two users overlap; a third password of one would drop the first.
    let old = ["edge", "admin"].map(|name| {
        let old = address(dir, name, &place);
        load(Some(name));
        old
    });
    let new = ["edge", "admin"].map(|name| address(dir, name, &place));
    assert!(old.iter().chain(&new).all(|url| lets_in(url)), "all four work");
    let before = contents(dir);
    let third = script(dir).env("ROTATE", "edge").output().unwrap();
    let reason = String::from_utf8_lossy(&third.stderr);
    assert!(
        !third.status.success() && reason.contains("edge has two passwords"),
        "{reason}"
    );
    assert_eq!(contents(dir), before);
    load(None);
    assert!(!old.iter().any(|url| lets_in(url)), "the old ones have gone");
    assert!(new.iter().all(|url| lets_in(url)));
}

/// Containers and services read the files as other users than the one who makes them.
#[test]
fn files_that_are_replaced_keep_their_modes() {
    let dir = tempfile::tempdir().unwrap();
    run(&mut script(dir.path()));
    let mode = |name: &str| {
        let about = std::fs::metadata(dir.path().join(name)).unwrap();
        about.permissions().mode() & 0o777
    };
    assert_eq!((mode("edge.url"), mode("users.acl")), (0o600, 0o600));
    for name in ["edge.url", "users.acl"] {
        let shown = std::fs::Permissions::from_mode(0o444);
        std::fs::set_permissions(dir.path().join(name), shown).unwrap();
    }
    let before = contents(dir.path());
    run(script(dir.path()).env("ROTATE", "edge"));
    let after = contents(dir.path());
    for name in ["edge.url", "users.acl"] {
        assert_ne!(after[name], before[name]);
        assert_eq!(mode(name), 0o444, "{name}");
    }
    assert_eq!(mode("admin.url"), 0o600);
}

#[test]
fn a_cluster_has_an_address_for_each_node_that_is_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    run(script(dir.path())
        .arg("10.0.0.1:6379,10.0.0.2:6380")
        .env("SCHEME", "redis-cluster"));
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

/// An upgrade and a rotation name neither scheme nor place: those of the installation are kept.
#[test]
fn making_them_again_keeps_scheme_and_place() {
    let nodes = "10.0.0.1:6379,10.0.0.2:6380";
    for (scheme, place, rotated) in [
        ("redis", "10.0.0.5:6379", "backup.url"),
        ("rediss", "10.0.0.5:6379", "backup.url"),
        ("redis-cluster", nodes, "backup-2.url"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        run(script(dir.path()).arg(place).env("SCHEME", scheme));
        let before = contents(dir.path());
        run(&mut script(dir.path()));
        assert_eq!(contents(dir.path()), before, "{scheme}");
        run(script(dir.path()).arg(place));
        assert_eq!(contents(dir.path()), before, "{scheme} at {place}");

        let around = |url: &str| {
            let (start, rest) = url.split_once("://").unwrap();
            (start.to_owned(), rest.split_once('@').unwrap().1.to_owned())
        };
        for (name, file) in [("edge", "edge.url"), ("backup", rotated)] {
            run(script(dir.path()).env("ROTATE", name));
            let after = contents(dir.path());
            assert_ne!(after[file], before[file], "{scheme}: {file}");
            assert_eq!(around(&after[file]), around(&before[file]), "{scheme}: {file}");
            assert_eq!(after.len(), before.len(), "{scheme}: no other files");
        }
        // A file that is gone is made for the same store.
        std::fs::remove_file(dir.path().join("admin.url")).unwrap();
        run(&mut script(dir.path()));
        let made = &contents(dir.path())["admin.url"];
        assert_eq!(around(made), around(&before["admin.url"]), "{scheme}");
    }
}

#[test]
fn another_scheme_than_that_of_the_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    run(script(dir.path()).env("SCHEME", "redis-cluster"));
    let before = contents(dir.path());
    for other in ["redis", "rediss"] {
        let refused = script(dir.path()).env("SCHEME", other).output().unwrap();
        let reply_of = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success(), "{other}");
        assert!(
            reply_of.contains("are redis-cluster://") && reply_of.contains(other),
            "{reply_of}"
        );
    }
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_node_that_a_cluster_has_got_is_backed_up_with_the_same_password() {
    let dir = tempfile::tempdir().unwrap();
    run(script(dir.path())
        .arg("10.0.0.1:6379")
        .env("SCHEME", "redis-cluster"));
    let before = contents(dir.path());
    run(script(dir.path()).arg("10.0.0.1:6379,10.0.0.2:6380"));
    let after = contents(dir.path());
    assert_eq!(after["users.acl"], before["users.acl"]);
    let expected = before["backup-1.url"].replace("10.0.0.1:6379", "10.0.0.2:6380");
    assert_eq!(after["backup-2.url"], expected);
}

#[test]
fn the_administrator_of_the_store_may_what_the_runbook_asks_for() {
    let installation = Installation::start();
    for words in [
        &["ACL", "LOG"][..],
        &["ACL", "LOAD"],
        &["SLOWLOG", "GET", "10"],
        &["CONFIG", "SET", "maxmemory", "3gb"],
        &["BGREWRITEAOF"],
        &["INFO", "memory"],
        &["DBSIZE"],
    ] {
        let answer = reply_of(&installation, "administrator", words);
        assert!(answer.starts_with("OK "), "{words:?}: {answer}");
    }
    let mut cli = Command::new(path("deploy/redis/store-cli.sh"));
    let reply_of = run(cli
        .env("STORE_URL_FILE", installation.url_file("administrator"))
        .args(["ACL", "WHOAMI"]));
    assert_eq!(reply_of, "tollgate-administrator\n");
}
