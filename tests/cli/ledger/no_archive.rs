//! An archive that does not answer proves nothing: neither that archived records are in order nor that they were
//! changed.

use super::fixture::Fixture;
use super::trail::move_all;
use harness::{Cli, assert_fields};
use serde_json::Value;
use store::audit::archive_id;

const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");

#[tokio::test]
async fn an_unreachable_archive_is_inconclusive_and_a_missing_segment_is_not() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("archive");
    move_all(&fixture, &place).await;
    let with = |archive: &str| {
        let cli = Cli::new(BINARY, fixture.redis.url());
        cli.env(
            "TOLLGATE_AUDIT__ARCHIVE",
            root.path().join(archive).display().to_string(),
        )
    };
    let there = with("archive");
    let whole = there.run(&["ledger", "check", "--trail"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");

    let account = fixture.tenants[0].account.id.as_str();
    let verify = ["audit", "verify", "--account", account];
    // A path below a file cannot be read, also by root; and a volume that is not mounted is no empty archive.
    std::fs::write(root.path().join("file"), "x").unwrap();
    for archive in ["file/below", "unmounted"] {
        let gone = with(archive);
        let plain = gone.json_exit(&["ledger", "check"], 3);
        assert_fields!(plain, { "ok": false, "violations": [], "more": 0 });
        assert_inconclusive(&plain, &["intent"]);
        let deep = gone.json_exit(&["ledger", "check", "--trail"], 3);
        assert_fields!(deep, { "ok": false, "violations": [], "more": 0 });
        assert_inconclusive(&deep, &["intent", "trail"]);
        let verdict = gone.json_exit(&verify, 3);
        assert_fields!(verdict, { "ok": false, "code": "ARCHIVE" });
    }

    // Also where no segment is missed, since all entries are in the store: the checkpoint is.
    let other = Fixture::build().await;
    let id = archive_id::for_new_archive(&other.store).await.expect("an id");
    let id = archive_id::keep(&other.store, &id).await.expect("an id");
    std::fs::create_dir(root.path().join("of-the-other")).expect("a folder");
    std::fs::write(root.path().join("of-the-other/archive-id"), id).expect("a file");
    let of_other = other.tenants[0].account.id.as_str();
    for (place, code) in [("of-the-other", 0), ("unmounted", 3)] {
        let cli = Cli::new(BINARY, other.redis.url()).env(
            "TOLLGATE_AUDIT__ARCHIVE",
            root.path().join(place).display().to_string(),
        );
        cli.json_exit(&["ledger", "check", "--trail"], code);
        cli.json_exit(&["audit", "verify", "--account", of_other], code);
        cli.json_exit(&["ledger", "check"], 0);
    }

    // The archive answers: the object is not there.
    let folder = place.join("intents").join(account).join("live");
    let segments = std::fs::read_dir(folder).expect("the segments of intents");
    for segment in segments {
        std::fs::remove_file(segment.expect("a segment").path()).expect("a segment");
    }
    let found = there.json_exit(&["ledger", "check"], 1);
    assert!(
        found["violations"].to_string().contains("it is not there"),
        "{found}"
    );
    let segments = std::fs::read_dir(place.join("segments").join(account).join("live"));
    let first = segments
        .expect("the segments")
        .map(|one| one.expect("a segment").path())
        .min();
    std::fs::remove_file(
        first
            .expect("a segment")
            .with_extension("")
            .with_extension("jsonl.zst"),
    )
    .expect("a segment");
    let verdict = there.json_exit(&verify, 1);
    assert_fields!(verdict, { "ok": false, "firstBroken": 1 });
    let found = there.json_exit(&["ledger", "check", "--trail"], 1);
    let trail = |one: &&Value| one["invariant"] == "trail";
    let violations = found["violations"].as_array().expect("a list");
    assert!(violations.iter().find(trail).is_some(), "{found}");
}

/// Asserts that exactly these invariants are inconclusive.
#[track_caller]
fn assert_inconclusive(checked: &Value, expected: &[&str]) {
    let inconclusive = checked["inconclusive"].as_array().expect("a list");
    let names = inconclusive
        .iter()
        .filter_map(|finding| finding["invariant"].as_str());
    let names: std::collections::BTreeSet<&str> = names.collect();
    assert_eq!(names, expected.iter().copied().collect(), "{checked}");
}
