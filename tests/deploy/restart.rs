//! The store starts again, as it does with its machine. Redis before redis/redis#14545 and Valkey before
//! valkey-io/valkey#3984 run the transactions of their append-only file, and so the writes of scripts, with the rights
//! of the user `default`; writes that this user may not make are left out.

use crate::files::{run, text};
use crate::installation::Installation;
use harness::{Redis, eventually};
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// Calls that fit under the agent's daily cap, and those before each start.
const CALLS: u64 = 10;
const BEFORE: u64 = 3;

#[tokio::test]
async fn a_store_that_starts_again_has_all_that_it_had() {
    let installation = Installation::start();
    let (mut edge, admin) = (installation.edge(), installation.admin());
    let mut tenant = installation.settle(&edge, &admin).await;
    let behaviour: Vec<String> =
        installation
            .redis()
            .command(&["CONFIG", "GET", "propagation-error-behavior"]);
    assert_eq!(behaviour[1], "panic", "it ends where it would leave out a write");
    tenant.make_room_for(CALLS).await;
    tenant.call(BEFORE).await;
    for killed in [false, true] {
        if killed {
            installation.redis().wait_until_written();
            installation.redis().kill9();
        }
        installation.redis().restart();
        let logs = installation.redis().logs();
        assert!(!logs.contains("CRITICAL"), "{logs}");
        // This edge never saw the account, so it could not notice a loss.
        edge = installation.edge();
        tenant.caller = edge.caller(&tenant.virtual_key);
        tenant.call(BEFORE).await;
    }
    tenant.call_until_denied(CALLS - 3 * BEFORE).await;
    eventually("an admin server on the store", SOON, async || {
        (admin.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
    assert_eq!(installation.cli.json(&["ledger", "check"])["ok"], true);
}

/// Bytes of the `EXEC` at the end of the file, and some of the write before it.
const CUT_OFF: u64 = 20;

fn write_two(redis: &Redis, name: &str) {
    let script = "redis.call('SET', 'a' .. ARGV[1], '') redis.call('SET', 'b' .. ARGV[1], '')";
    redis.command::<()>(&["EVAL", script, "0", name]);
}

fn names(redis: &Redis) -> Vec<String> {
    let mut names: Vec<String> = redis.command(&["KEYS", "*"]);
    names.sort_unstable();
    names
}

/// A store that a crash stopped within a script's writes, as it is after its first start.
fn torn_store() -> Redis {
    let options = [
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--propagation-error-behavior",
        "panic",
    ];
    let redis = Redis::start_with(&options);
    write_two(&redis, "1");
    write_two(&redis, "2");
    redis.kill9();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(redis.append_only_file())
        .unwrap();
    file.set_len(file.metadata().unwrap().len() - CUT_OFF).unwrap();
    redis.restart();
    assert_eq!(
        names(&redis),
        ["a1", "b1"],
        "the script that was cut off is not there"
    );
    redis
}

/// The runbook (TollgateStoreDown). Redis cuts the file off within the transaction of the script, and appends to it:
/// the transaction stays open.
#[test]
fn a_rewrite_closes_the_transaction_that_a_crash_cut_off() {
    let redis = torn_store();
    redis.rewrite_if_torn();
    write_two(&redis, "3");
    redis.kill9();
    redis.restart();
    assert_eq!(names(&redis), ["a1", "a3", "b1", "b3"]);
}

/// Without the rewrite Redis 7.0.15 does not start the next time: it would leave out a script, and run a part of the
/// one that was cut off. The runbook's lines take that out of the file.
#[test]
fn a_transaction_that_stayed_open_can_be_taken_out_of_the_file() {
    let redis = torn_store();
    let log = redis.logs();
    let (_, offset) = log.split_once("at offset ").expect("the offset");
    let offset = offset.split(' ').next().unwrap();
    write_two(&redis, "3");
    write_two(&redis, "4");
    redis.kill9();
    let file = redis.append_only_file();
    let all = ["a1", "a3", "a4", "b1", "b3", "b4"];
    if redis.try_launch() {
        // This version cuts the file off before the transaction.
        assert_eq!(names(&redis), all);
        return;
    }
    let runbook = text("docs/guides/runbook.md");
    let (_, lines) = runbook
        .split_once("```sh\nF=appendonly.aof.1.incr.aof; N=")
        .unwrap();
    let lines = lines.split_once('\n').unwrap().1.split("```").next().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let mend = format!("F={name}; N={offset}\n{lines}");
    run(Command::new("bash")
        .args(["-ec", &mend])
        .current_dir(file.parent().unwrap()));
    redis.restart();
    assert_eq!(names(&redis), all);
}
