//! `bench-record`: memory of the audit trail of many decisions, and the speed of sealing, exporting and verifying it.
//!
//! The lines are appended in the scripts' form, three denied calls for seven approved ones. Sealing, exporting and
//! verifying are the product's own code, on one core beside the store.

use archive::Archive;
use audit_verify::{ChainVerifier, file, online};
use clap::Parser;
use clock::now_ms;
use futures::TryStreamExt;
use gate_bench::lines::line;
use gate_bench::published::{self, Places, circumstances};
use harness::{Redis, Seed, SeedAccount, Store};
use history::export::TrailExport;
use settings::load_from;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufReader, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use store::audit::chain::Chain;

/// Appends lines and numbers them, as the scripts do.
const WRITE: &str = "for i = 2, #ARGV, 2 do
    local seq = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
    redis.call('RPUSH', KEYS[2], string.format('%d %s %s', seq, ARGV[i], ARGV[i + 1]))
  end";
/// Lines appended by one call of the script.
const AT_ONCE: u64 = 1000;
/// Decisions a second, by the times of their lines.
const RATE: u64 = 1000;

/// Measures the audit trail of many decisions.
#[derive(Debug, Parser)]
struct Options {
    #[arg(long, default_value_t = 1_000_000)]
    decisions: u64,
    #[command(flatten)]
    places: Places,
}

impl Options {
    /// Returns whether the options are those of a published report.
    fn is_whole(&self) -> bool {
        self.decisions == Self::parse_from(["bench-record"]).decisions
    }
}

const HEAD: &str = "\
# What the audit trail of a million decisions takes

Written by `make bench-record`: one account, one chain, 50 agents, seven settled calls to three denied ones, a thousand a second by \
their times. The lines are appended in the form in which the scripts write them (about 330 bytes each), not by the scripts; sealing, \
exporting and verifying are the product's own code in one thread, profile `release`, beside a Redis without the append-only file. \
One run.
";

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Appends all lines. The time of the last one is now.
async fn fill(store: &Store, account: &SeedAccount, decisions: u64) -> Outcome<()> {
    let start = now_ms() - decisions * 1000 / RATE;
    let mut written = 0;
    while written < decisions {
        let mut eval = redis::cmd("EVAL");
        eval.arg(WRITE).arg(2).arg(account.keys.record());
        eval.arg(account.keys.live().audit()).arg("live_audit_seq");
        for n in written..decisions.min(written + AT_ONCE) {
            let at = start + n * 1000 / RATE;
            eval.arg(at).arg(line(&account.id, n, at)?);
        }
        let _: redis::Value = store.command(&eval).await?;
        written = decisions.min(written + AT_ONCE);
    }
    Ok(())
}

/// Memory of all keys whose names match, in bytes.
fn memory(redis: &Redis, pattern: &str) -> u64 {
    let keys: Vec<String> = redis.command(&["KEYS", pattern]);
    keys.iter()
        .map(|key| {
            redis
                .command::<Option<u64>>(&["MEMORY", "USAGE", key, "SAMPLES", "0"])
                .unwrap_or(0)
        })
        .sum()
}

fn rate(count: u64, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

async fn run(options: &Options) -> Outcome<String> {
    let circumstances = circumstances();
    let redis = Redis::start();
    let store = Store::open(&redis.unix_url(), std::time::Duration::from_secs(10))?;
    let account = Seed::new(&store).await.account("enterprise").await;
    let count = options.decisions;
    let before = redis.memory_used();
    fill(&store, &account, count).await?;
    let filled = redis.memory_used();

    let began = Instant::now();
    let head = Chain::new(&store, account.keys.live()).seal().await?;
    let sealed = rate(count, began);
    if head.seq != count {
        return Err(format!("{} of {count} entries are sealed", head.seq).into());
    }
    let full = redis.memory_used();

    let dir = tempfile::tempdir()?;
    let mut settings = load_from(None, std::iter::empty())?.audit;
    settings.archive = dir.path().join("archive").display().to_string();
    let archive = Arc::new(Archive::from_settings(&settings)?);
    let began = Instant::now();
    let verdict = online(
        &store,
        &archive,
        &account.keys.live(),
        Vec::new(),
        std::time::Duration::from_secs(60),
        |_, _| {},
    )
    .await?;
    let verified = rate(count, began);
    if !verdict.ok() || verdict.entries != count {
        return Err(format!("{verdict:?}").into());
    }

    let path = dir.path().join("export.jsonl");
    let began = Instant::now();
    let export = TrailExport {
        store: store.clone(),
        archive,
        realm: account.keys.live(),
        after: 0,
        head,
    };
    let mut out = BufWriter::new(std::fs::File::create(&path)?);
    let mut lines = std::pin::pin!(export.lines());
    while let Some(chunk) = lines.try_next().await? {
        out.write_all(&chunk)?;
    }
    out.flush()?;
    let exported = rate(count, began);
    let bytes = std::fs::metadata(&path)?.len();

    let began = Instant::now();
    let mut verifier = ChainVerifier::starting_after(0);
    let broken = file::verify(BufReader::new(std::fs::File::open(&path)?), &mut verifier)?;
    let read = rate(count, began);
    if broken.is_some() || verifier.hash() != head.hash {
        return Err(format!("the export is broken: {broken:?}").into());
    }

    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let keys = account.keys.live().audit().replace('{', "\\{");
    let mut report = String::new();
    writeln!(
        report,
        "{HEAD}\n{circumstances}\n| what | {count} decisions |\n|---|---:|"
    )?;
    for (name, size) in [
        ("lines", memory(&redis, &keys)),
        ("hashes", memory(&redis, &format!("{keys}/hashes"))),
        ("index by agent and type", memory(&redis, &format!("{keys}/of/*"))),
        (
            "index by decision",
            memory(&redis, &format!("{keys}/decisions/*")),
        ),
        ("all of it: memory of the store before sealing", filled - before),
        ("after sealing", full - before),
        ("export file", bytes),
    ] {
        writeln!(report, "| {name}, MB | {:.0} |", megabytes(size))?;
    }
    for (name, rate) in [
        ("sealed", sealed),
        ("verified in the store", verified),
        ("exported", exported),
        ("verified in a file", read),
    ] {
        writeln!(report, "| {name}, entries/s | {rate:.0} |")?;
    }
    Ok(report)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let is_whole = options.is_whole();
    published::main("bench-record", &options.places, is_whole, run(&options))
}
