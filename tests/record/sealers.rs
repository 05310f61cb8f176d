//! Sealing is confluent: with any schedule of sealers, kills and lost answers, the chain and its indexes are the ones
//! that a single reader of the lines computes.

use crate::audit_writer::{AuditWriter, START_MS, chain, lines};
use crate::fixture::BINARY;
use domain::entry::LINE_VERSION;
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Redis, Seed, SeedAccount, SeededRandom, Store, Wire, until};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use store::audit::chain::Chain;
use store::audit::seal::SEAL_BATCH;
use store::keys::Realm;
use tokio::task::JoinHandle;

/// Lines sealed in a test.
const COUNT: u64 = 3000;
const SEALERS: usize = 8;

/// Compares hashes and indexes with those computed from the lines alone.
async fn check(store: &Store, account: &SeedAccount, writer: &AuditWriter, mode: Mode) {
    Chain::new(store, account.keys.in_mode(mode))
        .seal()
        .await
        .unwrap();
    let chain = chain(&writer.lines().await);
    let hashes: Vec<Vec<u8>> = chain.iter().map(|(_, sealed)| sealed.hash.to_vec()).collect();
    assert!(
        writer.hashes().await == hashes,
        "the hashes are those of one sealer"
    );
    let mut model: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (entry, _) in &chain {
        for (agent, kind) in entry.indexes() {
            model
                .entry(account.keys.in_mode(mode).audit_index(agent, kind))
                .or_default()
                .push(entry.seq);
        }
    }
    let pattern = account
        .keys
        .in_mode(mode)
        .audit_index(Some("AGENT"), Some("TYPE"))
        .replace("AGENT/TYPE", "*");
    let pattern = pattern.replace('{', "\\{");
    let keys: Vec<String> = store.command(redis::cmd("KEYS").arg(pattern)).await.unwrap();
    assert_eq!(keys.len(), model.len(), "no other lists");
    for (key, numbers) in model {
        let found: Vec<u64> = store
            .command(redis::cmd("LRANGE").arg(&key).arg(0).arg(-1))
            .await
            .unwrap();
        assert!(found == numbers, "{key}");
    }
    for (entry, _) in chain
        .iter()
        .filter(|(entry, _)| entry.id.starts_with("allow_"))
        .step_by(97)
    {
        let numbers = Chain::new(store, account.keys.in_mode(mode))
            .decision(&entry.id)
            .await
            .unwrap();
        assert!(numbers.contains(&entry.seq), "{}", entry.id);
    }
}

/// Asserts that the sealers of the test did something, since [`check`] seals the rest.
async fn sealed_some(writer: &AuditWriter) {
    assert!(!writer.hashes().await.is_empty(), "no sealer sealed anything");
}

/// Writes all lines in small pieces.
async fn write(writer: &AuditWriter) {
    let mut dice = SeededRandom::new(1);
    let all = lines(COUNT);
    let mut rest = all.as_slice();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(1 + dice.below(40) as usize));
        writer.write(now).await;
        rest = later;
        tokio::time::sleep(Duration::from_micros(dice.below(2000))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_sealers_that_are_killed_make_the_chain_of_one() {
    let redis = Redis::start();
    let store = redis.store();
    let account = Seed::new(&store).await.account("builder").await;
    let writer = AuditWriter::new(&store, &account, Mode::Live);
    let (url, id) = (redis.url(), account.id.clone());
    let sealer = || -> (JoinHandle<()>, Arc<AtomicBool>) {
        let (url, id) = (url.clone(), id.clone());
        let busy = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&busy);
        let sealing = tokio::spawn(async move {
            let store = Store::open(&url, Duration::from_secs(5)).unwrap();
            loop {
                reported.store(true, Ordering::SeqCst);
                let _ = Chain::new(&store, Realm::new(&id, Mode::Live)).seal().await;
                reported.store(false, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
        (sealing, busy)
    };
    let mut sealers: Vec<_> = (0..SEALERS).map(|_| sealer()).collect();
    let (mut kills, mut cut_off) = (0, 0);
    let killing = async {
        let mut dice = SeededRandom::new(7);
        loop {
            tokio::time::sleep(Duration::from_micros(500 + dice.below(4000))).await;
            let at = dice.below(SEALERS as u64) as usize;
            let (killed, busy) = std::mem::replace(&mut sealers[at], sealer());
            killed.abort();
            let _ = killed.await;
            cut_off += usize::from(busy.load(Ordering::SeqCst));
            kills += 1;
        }
    };
    tokio::select! {
        () = write(&writer) => {}
        () = killing => {}
    }
    assert!(kills > 20, "{kills}");
    assert!(cut_off > 0, "none of {kills} was killed while it sealed");
    for (sealer, _) in sealers {
        sealer.abort();
    }
    sealed_some(&writer).await;
    check(&store, &account, &writer, Mode::Live).await;
}

/// During an upgrade, an earlier server meets lines of a later release. It seals and shows the lines before them, and
/// does not seal them as unreadable for ever.
#[tokio::test]
async fn a_line_of_a_later_release_is_left_to_that_release() {
    const BEFORE: usize = 5;
    let redis = Redis::start();
    let store = redis.store();
    let seed = Seed::new(&store).await;
    let account = seed.account("builder").await;
    let writer = AuditWriter::new(&store, &account, Mode::Live);
    writer.write(&lines(BEFORE as u64)).await;
    let later = format!(
        "v{} D weekend_limit allow_1 1 ,,,,,,, a b c d e f",
        LINE_VERSION + 1
    );
    writer.write(&[(START_MS, later)]).await;
    writer.write(&lines(1)).await;
    let admin = Admin::start(AdminOptions::new(BINARY, redis.url()));
    let chain = Chain::new(&store, account.keys.live());
    for _ in 0..3 {
        let end = chain.seal().await.unwrap();
        assert_eq!((end.seq, writer.hashes().await.len()), (BEFORE as u64, BEFORE));
    }
    let caller = admin.caller(&account.api_key(Mode::Live).await);
    let reply = caller.get("/v1/audit").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let entries = reply.json()["logs"].as_array().unwrap().clone();
    assert_eq!(entries.len(), BEFORE);
    assert!(entries.iter().all(|entry| entry["type"] != "unreadable"));
    // The later release seals the line; an earlier server does not show it as something else.
    writer
        .forge(&writer.lines().await, &vec![vec![7; 32]; BEFORE + 2], BEFORE + 2)
        .await;
    let reply = caller.get("/v1/audit?limit=1&offset=1").await;
    assert_eq!(reply.status, 503, "{}", reply.text());
}

/// A line that nobody can read is sealed as such. The server logs the first of a trail, and counts each.
#[tokio::test]
async fn unreadable_lines_are_logged_once_a_trail_and_counted() {
    let redis = Redis::start();
    let store = redis.store();
    let seed = Seed::new(&store).await;
    let accounts = [seed.account("builder").await, seed.account("builder").await];
    let admin = Admin::start(AdminOptions::new(BINARY, redis.url()));
    let mut count = 0_u64;
    for (account, lines) in [(&accounts[0], 3), (&accounts[1], 1), (&accounts[0], 2)] {
        let line = (START_MS, "nonsense".to_owned());
        let writer = AuditWriter::new(&store, account, Mode::Live);
        writer.write(&vec![line; lines]).await;
        count += lines as u64;
        until("their count", async || {
            let counted = admin.metric::<u64>("tollgate_admin_audit_unreadable_entries_total");
            counted == Some(count)
        })
        .await;
    }
    let logs = admin.logs();
    let reported: Vec<&str> = logs
        .lines()
        .filter(|line| line.contains("lines of an audit trail cannot be read"))
        .collect();
    assert_eq!(reported.len(), accounts.len(), "{reported:?}");
    for (line, account) in reported.iter().zip(&accounts) {
        assert!(line.contains("ERROR") && line.contains(&account.id), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealers_whose_wires_are_cut_and_whose_answers_are_lost_make_the_same_chain() {
    let redis = Redis::start();
    let store = redis.store();
    let account = Seed::new(&store).await.account("builder").await;
    let writer = AuditWriter::new(&store, &account, Mode::Test);
    let wires: Vec<Wire> = (0..SEALERS).map(|_| Wire::to_port(redis.port())).collect();
    let failed = Arc::new(AtomicU64::new(0));
    let sealers: Vec<_> = wires
        .iter()
        .map(|wire| {
            let (url, id) = (wire.redis_url(), account.id.clone());
            let failed = Arc::clone(&failed);
            let sealing: JoinHandle<()> = tokio::spawn(async move {
                let store = Store::open(&url, Duration::from_millis(50)).unwrap();
                loop {
                    // Sealing fails when the wire is cut; the next attempt continues.
                    let sealed = Chain::new(&store, Realm::new(&id, Mode::Test)).seal().await;
                    failed.fetch_add(u64::from(sealed.is_err()), Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_micros(300)).await;
                }
            });
            sealing
        })
        .collect();
    let cutting = async {
        let mut dice = SeededRandom::new(3);
        loop {
            tokio::time::sleep(Duration::from_millis(1 + dice.below(8))).await;
            let wire = &wires[dice.below(SEALERS as u64) as usize];
            match dice.below(3) {
                0 => wire.cut(),
                1 => {
                    wire.swallow_replies(true);
                    tokio::time::sleep(Duration::from_millis(3)).await;
                    wire.cut();
                    wire.swallow_replies(false);
                }
                _ => wire.lose_reply_to("EVALSHA", 1),
            }
        }
    };
    tokio::select! {
        () = write(&writer) => {}
        () = cutting => {}
    }
    for sealer in sealers {
        sealer.abort();
    }
    let failed = failed.load(Ordering::SeqCst);
    assert!(failed > 0, "no wire was cut during sealing");
    sealed_some(&writer).await;
    check(&store, &account, &writer, Mode::Test).await;
}

#[tokio::test]
async fn servers_that_are_killed_while_they_seal_leave_the_same_chain() {
    let redis = Redis::start();
    let store = redis.store();
    let account = Seed::new(&store).await.account("builder").await;
    let writer = AuditWriter::new(&store, &account, Mode::Live);
    let start =
        || Admin::start(AdminOptions::new(BINARY, redis.url()).env("TOLLGATE_AUDIT__SEAL_EVERY_MS", "1"));
    let all = lines(COUNT * 2);
    let mut unfinished = 0;
    for part in all.chunks(all.len() / 4) {
        let before = writer.hashes().await.len();
        let victim = start();
        writer.write(part).await;
        until("the server seals some", async || {
            writer.hashes().await.len() > before
        })
        .await;
        victim.kill9();
        unfinished += usize::from(writer.hashes().await.len() < writer.lines().await.len());
    }
    assert!(unfinished > 0, "every server had sealed all when it was killed");
    let survivor = start();
    until("the survivor seals all", async || {
        writer.hashes().await.len() == all.len()
    })
    .await;
    drop(survivor);
    check(&store, &account, &writer, Mode::Live).await;
}

#[tokio::test]
async fn a_chain_with_a_backlog_is_sealed_piece_by_piece() {
    let redis = Redis::start();
    let store = redis.store();
    let account = Seed::new(&store).await.account("builder").await;
    let writer = AuditWriter::new(&store, &account, Mode::Live);
    let count = 2 * SEAL_BATCH + 1;
    for part in lines(count).chunks(100) {
        writer.write(part).await;
    }
    let chain = Chain::new(&store, account.keys.live());
    for (batches, end, added) in [
        (1, SEAL_BATCH, SEAL_BATCH),
        (1, 2 * SEAL_BATCH, SEAL_BATCH),
        (20, count, 1),
        (20, count, 0),
    ] {
        let sealed = chain.seal_some(batches).await.unwrap();
        assert_eq!((sealed.end.seq, sealed.added), (end, added));
    }
    check(&store, &account, &writer, Mode::Live).await;
}
