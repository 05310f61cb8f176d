//! Files that cannot grow (`ulimit -f`): the system sends SIGXFSZ, and the write must fail as on a full disk.

use crate::fixture::BINARY;
use crate::trail_fixture::TrailFixture;
use harness::{Admin, AdminOptions, eventually, executable_script};
use std::time::Duration;
use store::audit::chain::Chain;

/// Longest wait for background work.
const WAIT: Duration = Duration::from_secs(60);

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
