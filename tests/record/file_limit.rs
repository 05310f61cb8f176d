//! Files that cannot grow (`ulimit -f`): the system sends SIGXFSZ, and the write must fail as on a full disk.

use crate::fixture::BINARY;
use crate::trail_fixture::TrailFixture;
use harness::{Admin, AdminOptions, eventually, executable_script};
use std::time::Duration;
use store::audit::chain::Chain;

/// Longest wait for background work.
const WAIT: Duration = Duration::from_secs(60);

/// Runs `audit export` with files of at most 4 KiB, of which the trail needs more.
fn export(fixture: &TrailFixture, options: &str) -> (String, Vec<String>) {
    let out = fixture.path("out");
    std::fs::create_dir(&out).unwrap();
    let (account, dir) = (&fixture.account.id, out.display());
    let script = format!(
        "ulimit -f 4; exec \"$ADMIN\" audit export --account {account} --json {}",
        options.replace("DIR", &dir.to_string())
    );
    let output = fixture.cli.script(&script);
    let document = output.document(1);
    assert_eq!(document["code"], "OUTPUT", "{document}");
    let left = std::fs::read_dir(&out).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    (document["error"].as_str().unwrap().to_owned(), left.collect())
}

#[tokio::test]
async fn an_export_that_does_not_fit_leaves_nothing() {
    let fixture = TrailFixture::open().await;
    let (error, left) = export(&fixture, "--out DIR/trail.jsonl --checkpoint DIR/trail.note");
    let file = fixture.path("out").join("trail.jsonl").display().to_string();
    assert!(error.contains(&format!("{file} was not written")), "{error}");
    assert!(error.contains("File too large"), "{error}");
    assert!(left.is_empty(), "{left:?}");
}

/// The export is in place when its checkpoint fails: the error says which of both is missing.
#[tokio::test]
async fn a_checkpoint_that_cannot_be_written_is_named() {
    let fixture = TrailFixture::open().await;
    let (error, left) = export(
        &fixture,
        "--after 49 --out DIR/trail.jsonl --checkpoint DIR/none/trail.note",
    );
    let out = fixture.path("out");
    let [file, note] = ["trail.jsonl", "none/trail.note"].map(|name| out.join(name).display().to_string());
    assert!(error.contains(&format!("{note} was not written")), "{error}");
    assert!(error.contains(&format!("{file} is complete")), "{error}");
    assert_eq!(left, ["trail.jsonl"]);
}

/// Its log goes through a pipe, whose reader has no limit.
#[tokio::test]
async fn a_server_whose_archive_cannot_grow_goes_on() {
    let fixture = TrailFixture::open().await;
    let (script, pipe) = (fixture.path("admin"), fixture.path("pipe"));
    let text = format!(
        "#!/bin/sh\nmkfifo '{pipe}'\ncat '{pipe}' &\nulimit -f 0\nexec '{BINARY}' \"$@\" > '{pipe}' 2>&1\n",
        pipe = pipe.display()
    );
    let archive = fixture.path("archive").display().to_string();
    let options = AdminOptions::new(&executable_script(&script, &text), fixture.redis.url())
        .env("TOLLGATE_AUDIT__ARCHIVE", archive)
        .env("TOLLGATE_AUDIT__SEAL_EVERY_MS", "20")
        .env("TOLLGATE_AUDIT__SEGMENT_ENTRIES", "10")
        .env("TOLLGATE_AUDIT__ARCHIVE_AFTER_ENTRIES", "10");
    let admin = Admin::start(options);
    let refused = async || {
        let logs = admin.logs();
        assert!(admin.is_running(), "{logs}");
        let mut lines = logs.lines();
        let is_refused = |line: &&str| line.contains("cannot write") && line.contains("File too large");
        lines.find(is_refused).map(str::to_owned)
    };
    eventually("a write that fails", WAIT, refused).await;
    assert!(admin.is_running());
    let chain = Chain::new(&fixture.store, fixture.account.keys.live());
    assert_eq!(chain.backlog().await.unwrap().live, 50, "no entry left the store");
    let (status, _) = admin.ops("/livez").unwrap();
    assert_eq!(status, 200);
}
