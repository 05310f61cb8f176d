//! Memory of entries in the store, as docs/reference/archive.md states it.

use super::fixture::Fixture;
use std::collections::BTreeMap;

/// Entries that are measured.
const COUNT: u64 = 100_000;

/// `cargo test --workspace --test record archive::measure -- --ignored --nocapture`
#[tokio::test]
#[ignore = "it measures and takes a minute"]
async fn memory_of_live_entries() {
    let fixture = Fixture::new().await;
    let script = "local n = tonumber(ARGV[1]) for at = n, n + 999 do \
        redis.call('RPUSH', KEYS[1], (string.gsub(ARGV[2 + at - n], '#', at + 1, 1))) end return n";
    for first in (0..COUNT).step_by(1000) {
        let mut run = redis::cmd("EVAL");
        run.arg(script)
            .arg(1)
            .arg(fixture.account.keys.live().audit())
            .arg(first);
        for n in first..first + 1000 {
            // Ten calls a second.
            run.arg(format!("# {}", call(fixture.start_ms + n * 100, n)));
        }
        let _: u64 = fixture.store.command(&run).await.unwrap();
    }
    fixture.chain().seal().await.unwrap();
    let last = fixture.trail().read(COUNT).await.unwrap();
    assert!(last[0].json.contains("decision.approved"), "{last:?}");
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    let prefix = fixture.account.keys.prefix();
    let keys: Vec<String> = fixture.redis.command(&["KEYS", &format!("{prefix}/live/audit*")]);
    for key in &keys {
        let bytes: u64 = fixture.redis.command(&["MEMORY", "USAGE", key, "SAMPLES", "0"]);
        let what = key[prefix.len()..].strip_prefix("/live/audit").unwrap();
        let what = match what.split('/').nth(1) {
            None => "lines",
            Some("hashes") => "hashes",
            Some("of") => "indexes",
            _ => "decisions",
        };
        *sizes.entry(what).or_default() += bytes;
    }
    for (what, bytes) in &sizes {
        println!("{what}: {} bytes an entry", bytes / COUNT);
    }
    println!(
        "all: {} MB per million calls",
        sizes.values().sum::<u64>() / COUNT
    );
    assert_eq!(sizes.len(), 4);
    assert_eq!(fixture.move_segment(10_000).await, 10_000);
    let files = ["jsonl.zst", "json"].map(|end| {
        let name = format!(
            "segments/{}/live/000000000001-000000010000.{end}",
            fixture.account.id
        );
        std::fs::metadata(fixture.root.path().join(name)).unwrap().len()
    });
    let each = files.map(|bytes| bytes / 10_000);
    println!(
        "archived: {} bytes an entry, {} in the manifest",
        each[0], each[1]
    );
}

/// A call that was settled, as long as real ones are.
fn call(at_ms: u64, n: u64) -> String {
    let id = domain::id::IdKind::Allow.mint(at_ms).unwrap();
    let agent = format!("agent-{:02}", n % 20);
    let memo = format!(
        "acct_01KAH3V9J80123456789ABCDEF {agent} run-2026-11-18-{:04} vk_01KAH3V9J80123456789ABCDEG 2026-11-01 gpt-4o-mini",
        n / 50
    );
    let measured = format!(
        "chat.completions,0,,{},{},{},{},,completed,0",
        900 + n % 200,
        n % 3 * 128,
        100 + n % 300,
        800 + n % 4_000
    );
    format!(
        "{at_ms} v2 A settled 8550 {id} {measured} H 120000 20775 202611 1 12:100:,35:120:,8550:500000000:120000,{}:10000000000:240000,{}:100000000000:240000,3:25:,{}:5000000000000:960000 {memo}",
        n * 8550,
        n * 85_500,
        n * 171_000
    )
}
