//! Settlements that the store did not accept at once (decision D36): the caller has its answer, the ledger follows
//! exactly once, also through a restart of the edge; estimates beyond the queue stay charged, and visible.

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, PROXY, SOON, STORE_TIMEOUT_MS, Setup, answer, metric, usd};
use harness::{Edge, EdgeOptions, Reply, eventually, executable_script, until};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use store::call::reap::sweep;

/// Makes `count` calls whose settlement meets a store that is gone; the wire stays cut.
pub async fn answered_without_a_store(fixture: &Fixture, count: usize) -> Vec<Reply> {
    let gate = fixture.gated();
    let arrived = fixture.upstream.requests().len();
    let calls = futures::future::join_all((0..count).map(|_| fixture.call()));
    let cut = async {
        fixture.upstream.wait_for(arrived + count, SOON).await;
        fixture.lose_store();
        for _ in 0..count {
            gate.notify_one();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (replies, ()) = futures::future::join(calls, cut).await;
    fixture.upstream.set(|_| answer());
    replies
}

fn setup() -> Setup {
    Setup::default()
        .wired()
        .env("STORE__TIMEOUT_MS", STORE_TIMEOUT_MS)
}

pub fn another_edge(fixture: &Fixture, data: &Path) -> Edge {
    let options = EdgeOptions::new(PROXY, fixture.redis.url(), fixture.upstream.base_url());
    Edge::start(options.env("TOLLGATE_PROXY__DATA_DIR", data.display().to_string()))
}

/// The paths of all journals in a directory.
pub fn journal_paths(data: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(data).expect("the data directory");
    let files = entries.map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
}

pub fn journals(data: &Path) -> Vec<String> {
    let texts = journal_paths(data).map(|path| std::fs::read_to_string(path).expect("a journal"));
    texts.collect()
}

/// The number of lines of all journals in a directory.
pub fn journal_lines(data: &Path) -> usize {
    journals(data).iter().map(|text| text.lines().count()).sum()
}

/// Starts another edge in the directory, which settles all of the fixture's four calls.
pub async fn settled_by_another_edge(fixture: &Fixture, data: &Path) -> Edge {
    let next = another_edge(fixture, data);
    fixture.bot.settled_within(SOON).await;
    assert_eq!(fixture.charged(), [4 * ACTUAL; 3], "{}", next.logs());
    until("an empty queue", async || {
        metric(&next, "tollgate_proxy_pending") == 0
    })
    .await;
    next
}

#[tokio::test]
async fn the_answer_goes_out_and_the_settlement_follows() {
    let fixture = setup().start().await;
    fixture.approved_call().await;
    for reply in answered_without_a_store(&fixture, 5).await {
        assert_eq!(reply.status, 200, "{reply:?}");
        let (estimate, actual) = (usd(ESTIMATE), usd(ACTUAL));
        assert_eq!(reply.header("x-service-decision"), Some("approved"));
        assert!(
            reply
                .header("x-service-allow-id")
                .is_some_and(|id| id.starts_with("allow_"))
        );
        assert_eq!(reply.header("x-service-estimated-usd"), Some(estimate.as_str()));
        assert_eq!(reply.header("x-service-actual-usd"), Some(actual.as_str()));
    }
    assert_eq!(
        fixture.charged(),
        [ACTUAL + 5 * ESTIMATE; 3],
        "the estimates stay for now"
    );
    assert_eq!(
        (fixture.metric("tollgate_proxy_pending"), fixture.open_holds()),
        (5, 5)
    );
    fixture.wire().heal();
    fixture.settled_at(6 * ACTUAL).await;
    assert_eq!(
        fixture.metric(r#"tollgate_proxy_settlements_total{result="done"}"#),
        6
    );
    assert_eq!(
        fixture.metric(r#"tollgate_proxy_settlements_total{result="missing"}"#),
        0
    );
    until("nothing left to do", async || {
        let journals = journals(&fixture.edge.dir().join("data"));
        journals.iter().all(String::is_empty)
    })
    .await;
}

/// Each settlement is made by the next edge, however the one before ended.
#[tokio::test]
async fn a_settlement_survives_its_edge() {
    for kill in [true, false] {
        let fixture = setup().start().await;
        fixture.approved_call().await;
        let replies = answered_without_a_store(&fixture, 3).await;
        assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
        if kill {
            fixture.edge.kill9();
        } else {
            fixture.edge.term();
            assert_eq!(fixture.edge.wait_exit(SOON), Some(0), "{}", fixture.edge.logs());
        }
        let data = fixture.edge.dir().join("data");
        assert_eq!(journal_lines(&data), 3);
        assert_eq!(fixture.charged(), [ACTUAL + 3 * ESTIMATE; 3]);
        let next = settled_by_another_edge(&fixture, &data).await;
        next.kill9();
        drop(another_edge(&fixture, &data));
        assert_eq!(
            fixture.charged(),
            [4 * ACTUAL; 3],
            "a third edge finds nothing to do"
        );
    }
}

/// Makes the edge a process whose log goes through a pipe: its files can be kept from growing, as on a full disk, and
/// its log cannot.
fn edge_of_limited_files(dir: &Path) -> String {
    let (script, pipe) = (dir.join("edge"), dir.join("pipe"));
    let text = format!(
        "#!/bin/sh\nmkfifo '{pipe}'\ncat '{pipe}' &\nexec '{PROXY}' \"$@\" > '{pipe}' 2>&1\n",
        pipe = pipe.display()
    );
    executable_script(&script, &text)
}

/// Lets no file of the edge grow beyond `bytes` (util-linux).
fn limit_files(edge: &Edge, bytes: &str) {
    let limit = format!("--fsize={bytes}:");
    let status = Command::new("prlimit")
        .args(["--pid", &edge.pid().to_string(), &limit])
        .status();
    assert!(status.expect("prlimit").success());
}

/// The disk is full when the settlements come; where there is room again, the journal has them before the edge ends.
#[tokio::test]
async fn settlements_of_a_full_disk_are_written_later_or_named() {
    for (has_room_again, stop) in [(true, "TERM"), (false, "TERM"), (false, "INT")] {
        let dir = tempfile::tempdir().expect("a directory");
        let fixture = setup().edge(edge_of_limited_files(dir.path())).start().await;
        fixture.approved_call().await;
        fixture.at_rest().await;
        limit_files(&fixture.edge, "1");
        let replies = answered_without_a_store(&fixture, 3).await;
        assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
        let lines = || fixture.metric("tollgate_proxy_pending_journal_lines");
        let unwritten = || fixture.metric("tollgate_proxy_pending_unwritten");
        assert_eq!(
            (fixture.metric("tollgate_proxy_pending"), lines(), unwritten()),
            (3, 0, 3)
        );
        if has_room_again {
            limit_files(&fixture.edge, "unlimited");
            until("the journal", async || lines() == 3).await;
            assert_eq!(unwritten(), 0);
        }
        fixture.edge.signal(stop);
        let code = if has_room_again { 0 } else { 4 };
        assert_eq!(
            fixture.edge.wait_exit(SOON),
            Some(code),
            "{}",
            fixture.edge.logs()
        );
        let data = fixture.edge.dir().join("data");
        let written = journal_lines(&data);
        if !has_room_again {
            assert_eq!(written, 0);
            let named = || fixture.edge.logs().matches("lost with this process").count();
            until("three lines of the log", async || named() == 3).await;
            for reply in &replies {
                let id = reply.header("x-service-allow-id").expect("a decision");
                let command = format!("`tollgate-admin holds settle --id {id} --actual {}`", usd(ACTUAL));
                assert!(fixture.edge.logs().contains(&command), "{}", fixture.edge.logs());
            }
            continue;
        }
        assert_eq!(written, 3);
        settled_by_another_edge(&fixture, &data).await;
    }
}

/// Two edges share a data directory: the second leaves the first one's journal alone.
#[tokio::test]
async fn a_living_edge_keeps_its_journal() {
    let fixture = setup().start().await;
    fixture.approved_call().await;
    answered_without_a_store(&fixture, 2).await;
    let other = another_edge(&fixture, &fixture.edge.dir().join("data"));
    assert_eq!(metric(&other, "tollgate_proxy_pending"), 0);
    assert_eq!(fixture.charged(), [ACTUAL + 2 * ESTIMATE; 3]);
    fixture.wire().heal();
    fixture.settled_at(3 * ACTUAL).await;
}

/// A journal that was cut in the middle of a line, or holds something else, stops nothing.
#[tokio::test]
async fn a_damaged_journal_costs_only_its_damaged_lines() {
    let fixture = setup().start().await;
    fixture.approved_call().await;
    answered_without_a_store(&fixture, 3).await;
    fixture.edge.kill9();
    let data = fixture.edge.dir().join("data");
    let text = journals(&data).concat();
    let cut = text.trim_end().len() - 10;
    let nonsense = b"\x01\x02\n\xff\xfe\n{\"do\":\"dance\"}\n";
    let damaged = [&nonsense[..], &text.as_bytes()[..cut]].concat();
    for entry in std::fs::read_dir(&data).expect("the data directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            std::fs::write(path, &damaged).expect("the journal");
        }
    }
    // Something that has the name of a journal, and can be neither read nor removed as one.
    std::fs::create_dir(data.join("a.pending.jsonl")).expect("a directory");
    let _next = another_edge(&fixture, &data);
    until("two settlements", async || fixture.open_holds() == 1).await;
    assert_eq!(
        fixture.charged(),
        [3 * ACTUAL + ESTIMATE; 3],
        "never less than was spent"
    );
}

#[tokio::test]
async fn settlements_beyond_the_queue_stay_charged_and_visible() {
    let setup = setup()
        .env("PROXY__RETRY_QUEUE_LIMIT", 3)
        .env("UPSTREAM__TIMEOUT_MS", 10_000)
        .env("PROXY__HOLD_GRACE_MS", 1);
    let fixture = setup.start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    answered_without_a_store(&fixture, 6).await;
    for _ in 0..5 {
        fixture.unavailable_call().await;
    }
    assert_eq!(fixture.metric("tollgate_proxy_pending"), 3, "bounded");
    let lines = journal_lines(&fixture.edge.dir().join("data"));
    assert!(lines <= 6, "{lines} lines for a queue of 3");
    fixture.wire().heal();
    fixture.at_rest().await;
    assert_eq!(fixture.charged(), [4 * ACTUAL + 3 * ESTIMATE; 3]);
    assert_eq!(fixture.open_holds(), 3);

    let bucket = fixture.bot.account.keys.bucket();
    let kept = async || {
        let now = clock::now_ms();
        sweep(fixture.seed.store(), bucket, now).await.expect("a sweep");
        (fixture.bot.kept_holds().await == 3).then_some(())
    };
    eventually("three kept holds", SOON, kept).await;
    assert_eq!(
        fixture.charged(),
        [4 * ACTUAL + 3 * ESTIMATE; 3],
        "kept, not given back"
    );
    assert_eq!(fixture.open_holds(), 0);
}
