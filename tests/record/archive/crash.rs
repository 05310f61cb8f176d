//! Processes are killed while entries move: nothing is lost, nothing is there twice, and the store stays small.

use super::fixture::{EVERYTHING, Fixture, append, archive_at, line, number};
use domain::entry::Entry;
use harness::{Admin, AdminOptions, Cli, Gate, GateSide, Redis, Wire, eventually, until};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::audit::chain::ArchiveBacklog;

const BINARY: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Longest wait for background work, which takes a fraction of it on a quiet machine.
const WAIT: Duration = Duration::from_secs(180);
/// Times that something is killed.
const KILLS: u64 = 8;

fn options(fixture: &Fixture, more: &[(&str, &str)]) -> AdminOptions {
    options_at(&fixture.redis.url(), fixture, more)
}

fn options_at(store: &str, fixture: &Fixture, more: &[(&str, &str)]) -> AdminOptions {
    let archive = fixture.root.path().display().to_string();
    let base = [("ARCHIVE", archive.as_str()), ("SEAL_EVERY_MS", "20")];
    let mut options = AdminOptions::new(BINARY, store);
    for (key, value) in base.iter().chain(more) {
        options = options.env(&format!("TOLLGATE_AUDIT__{key}"), *value);
    }
    options
}

const TINY: &[(&str, &str)] = &[("SEGMENT_ENTRIES", "7"), ("ARCHIVE_AFTER_ENTRIES", "10")];

/// Writes until it is stopped. Returns the numbers that the store confirmed.
async fn traffic(fixture: Arc<Fixture>, stop: Arc<AtomicBool>) -> BTreeMap<u64, String> {
    let mut written = BTreeMap::new();
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        let (line, _) = line(n, fixture.at_ms(n));
        // An unconfirmed line may have been written.
        if let Ok(seq) = append(&fixture.store, &fixture.account, &line).await {
            written.insert(seq, line);
        }
        n += 1;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    written
}

/// Asserts that each confirmed line is there, once, in its place, and that the chain is whole.
async fn all_is_there(fixture: &Fixture, written: &BTreeMap<u64, String>) {
    let head = fixture.trail().seal().await.unwrap();
    let (mut before, mut next) = ("genesis".to_owned(), 1);
    let mut decisions = BTreeMap::new();
    loop {
        let part = fixture.trail().read(next).await.unwrap();
        if part.is_empty() {
            break;
        }
        for sealed in part {
            let entry = Entry::from_json(&sealed.json).unwrap();
            assert_eq!((entry.seq, entry.seal(&before).as_ref()), (next, Some(&sealed)));
            if let Some(line) = written.get(&next) {
                let written = Entry::from_line(next, format!("{next} {line}").as_bytes());
                assert_eq!(written.seal(&before).as_ref(), Some(&sealed));
            }
            if entry.kind.starts_with("decision.") {
                decisions.insert(entry.id.clone(), next);
            }
            before = hex::encode(sealed.hash);
            next += 1;
        }
    }
    assert_eq!((head.seq, head.text()), (next - 1, before));
    assert!(
        written
            .last_key_value()
            .is_some_and(|(last, _)| *last <= head.seq)
    );
    assert_eq!(fixture.list(EVERYTHING, 0, 1).await.1, head.seq);
    for (id, seq) in decisions.iter().step_by(7) {
        let found = fixture.trail().decision(id).await.unwrap();
        assert!(
            found.iter().map(number).any(|number| number == *seq),
            "{id} {seq}"
        );
    }
}

fn ledger_holds(fixture: &Fixture) {
    let cli = Cli::new(BINARY, fixture.redis.url());
    let checked = cli.run(&["ledger", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_and_store_are_killed_while_they_archive() {
    let fixture = Arc::new(Fixture::on(Redis::start_durable()).await);
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(traffic(Arc::clone(&fixture), Arc::clone(&stop)));
    let mut admins: Vec<Admin> = (0..2).map(|_| Admin::start(options(&fixture, TINY))).collect();
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(700 + kill * 130 % 900)).await;
        if kill % 4 == 3 {
            fixture.redis.kill9();
            fixture.redis.restart();
        } else {
            let victim = usize::try_from(kill % 2).unwrap();
            admins[victim].kill9();
            admins[victim] = Admin::start(options(&fixture, TINY));
        }
    }
    stop.store(true, Ordering::Relaxed);
    let written = writing.await.unwrap();
    assert!(written.len() > 300, "{} lines", written.len());
    let quiet = || async {
        let backlog = fixture.chain().backlog().await.ok()?;
        let done = backlog.live <= 10 && backlog.forgotten == backlog.archived;
        done.then_some(backlog)
    };
    let backlog: ArchiveBacklog = eventually("the archive to catch up", WAIT, quiet).await;
    assert!(backlog.archived > 200, "{backlog:?}");
    all_is_there(&fixture, &written).await;
    ledger_holds(&fixture);
    bounded(&fixture);
}

/// The records of a busy account in the store do not grow with its history.
fn bounded(fixture: &Fixture) {
    let prefix = fixture.account.keys.prefix();
    let lists: Vec<String> = fixture.redis.command(&["KEYS", &format!("{prefix}/live/audit*")]);
    for key in lists {
        let kind: String = fixture.redis.command(&["TYPE", &key]);
        if kind == "list" && !key.ends_with("/segments") {
            let length: u64 = fixture.redis.command(&["LLEN", &key]);
            assert!(length <= 10, "{key}: {length}");
        }
        if kind == "string" {
            let length: u64 = fixture.redis.command(&["STRLEN", &key]);
            assert!(length <= 40 * 20, "{key}: {length}");
        }
    }
}

/// Stops archivers in the middle, wherever they are just then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archivers_are_cut_off_anywhere() {
    const COUNT: u64 = 240;
    /// Rounds without progress after which each one gets twice the time: a segment takes longer on a busy machine.
    const PATIENCE: u64 = 50;
    let fixture = Arc::new(Fixture::on(Redis::start_durable()).await);
    let written = Arc::new(Mutex::new(BTreeMap::new()));
    for n in 0..COUNT {
        let (line, _) = line(n, fixture.at_ms(n));
        let seq = append(&fixture.store, &fixture.account, &line).await.unwrap();
        written.lock().insert(seq, line);
    }
    fixture.chain().seal().await.unwrap();
    let (mut round, mut cut) = (0, 0);
    // About twice as long as a segment takes.
    let mut longest_us = 30_000;
    let (mut reached, mut reached_in) = ((0, 0), 0);
    loop {
        let backlog = fixture.chain().backlog().await.unwrap();
        if backlog.archived == COUNT && backlog.forgotten == COUNT {
            break;
        }
        round += 1;
        if reached != (backlog.archived, backlog.forgotten) {
            (reached, reached_in) = ((backlog.archived, backlog.forgotten), round);
        } else if round - reached_in == PATIENCE {
            assert!(longest_us < 10_000_000, "it never ends: {backlog:?}");
            (longest_us, reached_in) = (longest_us * 2, round);
        }
        let working = {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                let archive = archive_at(fixture.root.path());
                let chain = fixture.chain();
                let forgetting = archive.forget_decisions(&chain, backlog.forgotten).await;
                forgetting.unwrap();
                let last = backlog.movable;
                archive.move_segment(&chain, last, 7).await.unwrap();
            })
        };
        tokio::time::sleep(Duration::from_micros(round * 733 % longest_us)).await;
        working.abort();
        cut += u64::from(working.await.is_err_and(|error| error.is_cancelled()));
    }
    assert!(cut > 0, "none of {round} was cut off");
    let written = written.lock().clone();
    all_is_there(&fixture, &written).await;
    ledger_holds(&fixture);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_entries_move_with_those_half_as_old() {
    const DAY_MS: u64 = 86_400_000;
    let fixture = Fixture::new().await;
    let now_ms = store::server_clock::now_ms(&fixture.store).await.unwrap();
    for n in 0..15 {
        let age_days = [40, 20, 10][n as usize / 5];
        let (line, _) = line(n, now_ms - age_days * DAY_MS + n);
        append(&fixture.store, &fixture.account, &line).await.unwrap();
    }
    let _admin = Admin::start(options(&fixture, &[]));
    let moved = || async {
        let backlog = fixture.chain().backlog().await.unwrap();
        (backlog.archived > 0).then_some(backlog)
    };
    let backlog: ArchiveBacklog = eventually("old entries to move", WAIT, moved).await;
    assert_eq!((backlog.archived, backlog.live), (10, 5));
    assert_eq!(fixture.objects().await.len(), 2, "one segment and its manifest");
    assert_eq!(fixture.list(EVERYTHING, 0, 100).await.1, 15);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_archive_is_not_writable_says_so_and_keeps_everything() {
    let fixture = Fixture::new().await;
    let archive = fixture.root.path().join("file/below").display().to_string();
    let blocked = [TINY, &[("ARCHIVE", archive.as_str())]].concat();
    let admin = Admin::start(options(&fixture, &blocked));
    std::fs::write(fixture.root.path().join("file"), "x").unwrap();
    fixture.fill(40).await;
    let failed = || async {
        let failed: u64 = admin.metric("tollgate_admin_archiving_failed_total")?;
        (failed > 0).then_some(())
    };
    eventually("a failure to be counted", WAIT, failed).await;
    let logs = admin.logs();
    assert!(
        logs.contains("a chain cannot be archived; nothing left the store"),
        "{logs}"
    );
    let backlog = fixture.chain().backlog().await.unwrap();
    assert_eq!((backlog.archived, backlog.live), (0, 40));
    // Once there is room again, it goes on by itself.
    std::fs::remove_file(fixture.root.path().join("file")).unwrap();
    let caught_up = || async {
        let backlog = fixture.chain().backlog().await.unwrap();
        (backlog.live <= 10).then_some(())
    };
    eventually("the archiver to go on", WAIT, caught_up).await;
}

/// The archive takes everything: what fails is the store, which has alerts of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_stops_answering_is_no_failure_of_the_archive() {
    let fixture = Fixture::new().await;
    let wire = Wire::to_port(fixture.redis.port());
    // Stops the command with which entries leave the store; nothing else has a segment's description.
    let gate = Gate::new(GateSide::Request, &[r#""entries":7"#], 1, 1);
    wire.put_gate(&gate);
    let admin = Admin::start(options_at(&wire.redis_url(), &fixture, TINY));
    fixture.fill(40).await;
    until("a round that failed", async || {
        let logs = admin.logs();
        let mut failed = logs
            .lines()
            .filter(|line| line.contains("a worker's round failed"));
        failed.any(|line| line.contains("archiver"))
    })
    .await;
    assert_eq!(gate.stopped(), 1);
    gate.open();
    until("the rest to be archived", async || {
        let backlog = fixture.chain().backlog().await.unwrap();
        backlog.live <= 10
    })
    .await;
    let failed: Option<u64> = admin.metric("tollgate_admin_archiving_failed_total");
    assert_eq!(failed, Some(0), "{}", admin.logs());
}
