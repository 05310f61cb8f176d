//! One record changed by hand at a time: the check names the invariant and the record, and nothing else.

use super::fixture::Fixture;
use domain::mode::Mode;
use serde_json::Value;
use std::collections::BTreeSet;
use store::Store;
use store::keys::{AccountKeys, IntentIndex, USER};

/// A change by hand, and the expected findings.
pub(super) struct Damage {
    command: Vec<String>,
    /// The invariants that no longer hold.
    broken: &'static [&'static str],
    /// Text that the name of one of the records must contain.
    record: String,
}

/// `command` has `{}` in place of the key. The check must name the key, unless [`Damage::names`] sets another record.
pub(super) fn damage(key: impl Into<String>, command: &str, broken: &'static [&'static str]) -> Damage {
    let key = key.into();
    let words = command.split(' ').map(|word| {
        if word == "{}" {
            key.clone()
        } else {
            word.to_owned()
        }
    });
    Damage {
        command: words.collect(),
        broken,
        record: key,
    }
}

impl Damage {
    /// Adds a word to the command; it may contain blanks.
    pub(super) fn word(mut self, word: String) -> Self {
        self.command.push(word);
        self
    }

    pub(super) fn names(self, record: impl Into<String>) -> Self {
        Self {
            record: record.into(),
            ..self
        }
    }
}

/// Makes each change, runs the check, and undoes the change.
pub(super) async fn each_is_found(fixture: &Fixture, all: Vec<Damage>) {
    let output = fixture.cli.run(&["ledger", "check", "--json"]);
    assert_eq!(output.code, Some(0), "before: {output:?}");
    for damage in all {
        let key = damage.command[1].clone();
        let (dump, life) = saved(&fixture.store, &key).await;
        let mut command = redis::cmd(&damage.command[0]);
        command.arg(&damage.command[1..]);
        let _: redis::Value = fixture.store.command(&command).await.unwrap();
        let output = fixture.cli.run(&["ledger", "check", "--json"]);
        let reported = format!("{:?}: {}{}", damage.command, output.stdout, output.stderr);
        assert_eq!(output.code, Some(1), "{reported}");
        let found: Value = serde_json::from_str(&output.stdout).expect("a document");
        let found = found["violations"].as_array().expect("a list");
        let broken: BTreeSet<&str> = found.iter().filter_map(|one| one["invariant"].as_str()).collect();
        assert_eq!(broken, damage.broken.iter().copied().collect(), "{reported}");
        let mut records = found.iter().filter_map(|one| one["records"].as_array()).flatten();
        let named = records.any(|record| {
            record
                .as_str()
                .is_some_and(|record| record.contains(&damage.record))
        });
        assert!(named, "{} is not named by {reported}", damage.record);
        restore(&fixture.store, &key, dump, life).await;
    }
    let output = fixture.cli.run(&["ledger", "check", "--json"]);
    assert_eq!(output.code, Some(0), "afterwards: {output:?}");
}

async fn saved(store: &Store, key: &str) -> (Option<Vec<u8>>, i64) {
    let dump = store.command(redis::cmd("DUMP").arg(key)).await.unwrap();
    let life: i64 = store.command(redis::cmd("PTTL").arg(key)).await.unwrap();
    (dump, life.max(0))
}

async fn restore(store: &Store, key: &str, dump: Option<Vec<u8>>, life: i64) {
    let mut back = match dump {
        None => redis::cmd("DEL"),
        Some(_) => redis::cmd("RESTORE"),
    };
    back.arg(key);
    if let Some(dump) = dump {
        back.arg(life).arg(dump).arg("REPLACE");
    }
    let _: redis::Value = store.command(&back).await.unwrap();
}

fn payer(fixture: &Fixture) -> AccountKeys {
    fixture.tenants[0].account.keys.clone()
}

#[tokio::test]
async fn wallets_and_their_lists() {
    let mut fixture = Fixture::build().await;
    let (bucket, row) = fixture.leave_in_transit().await;
    let (keys, other) = (payer(&fixture), fixture.tenants[1].account.keys.clone());
    let table = keys.live().transactions();
    let line: String = fixture.redis.command(&["HGET", &table, "1"]);
    // The balance after the first transaction, a deposit of 100 USD.
    let edited = line.replacen("100000000000", "100000000001", 1);
    assert_ne!(edited, line);
    let mut edit = damage(&table, "HSET {} 1", &["wallet-balance"]);
    edit.command.push(edited);
    let of_wallet = |kind| keys.live().transactions_of_wallet("ann", kind);
    let agent = keys.live().agent("ann");
    // Transactions 6 and 7 are of transfers.
    let of_transfer = &["wallet-balance", "conservation", "transit"];
    let gone = format!("{table} 6");
    let all = vec![
        damage(&agent, "HINCRBY {} balance 1", &["wallet-balance"]),
        damage(&agent, "HSET {} balance x", &["wallet-balance"]),
        damage(
            keys.live().wallet(USER),
            "HINCRBY {} balance -1",
            &["wallet-balance"],
        ),
        damage(
            keys.in_mode(Mode::Test).wallet("ann"),
            "HINCRBY {} balance 7",
            &["wallet-balance"],
        ),
        edit.names(format!("{table} 1")),
        damage(&table, "HDEL {} 6", of_transfer).names(gone),
        damage(&table, "HSET {} 7 nonsense", of_transfer).names(format!("{table} 7")),
        damage(&table, "HSET {} extra x", &["wallet-balance"]),
        damage(of_wallet(None), "LPOP {}", &["wallet-balance"]),
        damage(of_wallet(None), "RPUSH {} 99999", &["wallet-balance"]),
        damage(of_wallet(Some("spend")), "LSET {} 0 1", &["wallet-balance"]),
        damage(of_wallet(Some("spend")), "DEL {}", &["wallet-balance"]),
        damage(
            keys.live().transactions_of_type("deposit"),
            "RPUSH {} 5",
            &["wallet-balance"],
        ),
        damage(
            keys.live().transactions_of_type("deposit"),
            "SET {} x",
            &["wallet-balance"],
        ),
        damage(
            keys.live().transactions_of_wallet("bob", Some("escrow_refund")),
            "RPUSH {} 5",
            &["wallet-balance"],
        ),
        damage(
            bucket.transit(),
            &format!("HDEL {{}} {row}"),
            &["conservation", "transit"],
        )
        .names("transfer of 2000000000 nanos from wallet"),
        damage(bucket.transit(), "HSET {} txn_0 nonsense", &["transit"]),
        damage(agent.clone(), "HINCRBY {} pending 5", &["pending"]),
        damage(other.live().deposit("user-1"), "HSET {} amount 5", &["pending"]).names("txn_"),
        damage(
            other.live().deposit("ann-2"),
            "HSET {} state confirmed",
            &["pending"],
        )
        .names("txn_"),
        damage(other.live().deposit("ann-2"), "DEL {}", &["pending"]).names(other.live().agent("ann")),
    ];
    each_is_found(&fixture, all).await;
    // Rows that were changed or made up.
    let text: String = fixture.redis.command(&["HGET", &bucket.transit(), &row]);
    let more = text.replace("2000000000", "3000000000");
    assert_ne!(more, text);
    let made_up = text.replace(&row, "txn_made_up");
    let mut changed = damage(
        bucket.transit(),
        &format!("HSET {{}} {row}"),
        &["transit", "conservation"],
    );
    changed.command.push(more);
    let mut invented = damage(
        bucket.transit(),
        "HSET {} txn_made_up",
        &["transit", "conservation"],
    );
    invented.command.push(made_up);
    each_is_found(&fixture, vec![changed.names(&row), invented.names("txn_made_up")]).await;
}

#[tokio::test]
async fn escrows() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let (keys, payee) = (payer(&fixture), fixture.tenants[1].account.keys.clone());
    let of = &fixture.escrows;
    let escrow = |number: u64| keys.live().escrow(number);
    let named = |number: u64| format!("escrow {number}");
    let (open, remote) = (keys.live().open_escrows("ann"), payee.live().open_escrows("ann"));
    let all = vec![
        damage(escrow(of.funded), "HSET {} status released", &["escrow-state"]).names(named(of.funded)),
        damage(escrow(of.funded), "HSET {} status pending", &["escrow-state"]).names(named(of.funded)),
        damage(
            escrow(of.funded),
            "HSET {} status lost",
            &["escrow-state", "conservation"],
        ),
        damage(escrow(of.pending), "HSET {} status funded", &["escrow-state"]).names(named(of.pending)),
        damage(escrow(of.released), "HSET {} amount 5", &["escrow-state"]).names(named(of.released)),
        damage(
            escrow(of.funded),
            "HSET {} amount 5",
            &["escrow-state", "conservation"],
        )
        .names(named(of.funded)),
        damage(escrow(of.released), "HSET {} status refunded", &["escrow-state"]).names(named(of.released)),
        damage(escrow(of.refunded), "HSET {} winner int_other", &["escrow-state"]).names(named(of.refunded)),
        damage(escrow(of.disputed), "HDEL {} winner", &["escrow-state"]),
        damage(
            escrow(of.disputed),
            "DEL {}",
            &["escrow-state", "conservation", "counters", "names"],
        )
        .names(named(of.disputed)),
        damage(escrow(of.pending), "HSET {} conditions longer", &["counters"])
            .names(format!("{} live_text_bytes", keys.record())),
        damage(
            open.clone(),
            &format!("SREM {{}} {}", of.funded),
            &["escrow-state"],
        ),
        damage(
            open.clone(),
            &format!("SADD {{}} {}", of.pending),
            &["escrow-state"],
        ),
        damage(open, &format!("SADD {{}} {}", of.released), &["escrow-state"]),
        damage(remote.clone(), "SADD {} 99999", &["escrow-state"]),
        // The payee's account does not pay it.
        damage(remote, &format!("SADD {{}} {}", of.funded), &["escrow-state"]),
    ];
    each_is_found(&fixture, all).await;
}

#[tokio::test]
async fn intents() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let keys = payer(&fixture);
    let (spent, waits) = (fixture.spent.clone(), fixture.waits.clone());
    let intent = |id: &str| keys.live().intent(id);
    let list = |which| keys.live().intents(which);
    let pending = list(IntentIndex::State("pending_approval"));
    let only = &["intent"];
    let all = vec![
        damage(intent(&spent), "HSET {} note changed", &["counters", "intent"]),
        damage(intent(&spent), "HSET {} head 00", only),
        damage(intent(&spent), "HSET {} txn txn_other", only),
        damage(intent(&spent), "HSET {} id int_other", only),
        damage(intent(&spent), "HDEL {} fp", only),
        damage(intent(&spent), "HDEL {} txn", only),
        damage(intent(&spent), "DEL {}", &["counters", "intent"]).names(&spent),
        damage(intent(&waits), "HSET {} state blocked", only),
        damage(intent(&waits), "DEL {}", &["counters", "intent"]).names(&waits),
        damage(list(IntentIndex::All), &format!("LREM {{}} 0 {spent}"), only).names(&spent),
        damage(
            list(IntentIndex::Kind("spend")),
            &format!("RPUSH {{}} {spent}"),
            only,
        )
        .names(&spent),
        damage(list(IntentIndex::Agent("ann")), "RPUSH {} int_other", only).names("int_other"),
        damage(
            list(IntentIndex::State("settled")),
            &format!("RPUSH {{}} {waits}"),
            only,
        )
        .names(&waits),
        damage(list(IntentIndex::State("blocked")), "SET {} x", only),
        damage(pending, &format!("ZREM {{}} {waits}"), only).names(&waits),
    ];
    each_is_found(&fixture, all).await;
}

#[tokio::test]
async fn counters_holds_logs_and_names() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let keys = payer(&fixture);
    let (bucket, period) = (keys.bucket(), fixture.period());
    let agent = keys.live().agent("ann");
    let [open, kept] = &fixture.holds;
    let (day, month) = (period.day, period.month);
    let all = vec![
        damage(&agent, &format!("HINCRBY {{}} d{day} 1"), &["counters"]),
        damage(&agent, &format!("HINCRBY {{}} m{month} 1"), &["counters"]),
        damage(&agent, &format!("HINCRBY {{}} w{day} -1"), &["counters"]),
        damage(&agent, &format!("HDEL {{}} w{day}"), &["counters"]),
        damage(&agent, &format!("HDEL {{}} s{month} slot"), &["counters"]).names(keys.record()),
        damage(keys.record(), &format!("HINCRBY {{}} t{month} 1"), &["counters"]),
        damage(keys.record(), &format!("HINCRBY {{}} n{month} 1"), &["counters"]),
        damage(keys.record(), "HINCRBY {} live_text_bytes 1", &["counters"]),
        damage(keys.record(), "HINCRBY {} live_text_bytes -1", &["counters"]),
        damage(keys.record(), "HDEL {} live_text_bytes", &["counters"]),
        damage(keys.record(), "HSET {} test_text_bytes 1", &["counters"]),
        damage(keys.record(), "HSET {} test_text_bytes nonsense", &["counters"]),
        damage(keys.record(), "HINCRBY {} live_audit_text 1", &["counters"]),
        damage(keys.record(), "HINCRBY {} live_audit_text -1", &["counters"]),
        damage(keys.record(), "HDEL {} live_audit_text", &["counters"]),
        damage(keys.record(), "HSET {} test_audit_text 1", &["counters"]),
        damage(keys.record(), "HINCRBY {} live_kept_text 1", &["counters"]),
        damage(keys.record(), "HDEL {} live_kept_text", &["counters"]),
        damage(keys.live().run("ann", "run-1"), "HSET {} spent -1", &["counters"]),
        damage(keys.live().run("ann", "run-1"), "DEL {}", &["counters"]),
        damage(&agent, "HINCRBY {} held -1", &["counters"]),
        damage(&agent, "HDEL {} held", &["counters"]),
        damage(&agent, "HSET {} held nonsense", &["counters"]),
        damage(keys.live().agent("bob"), "HSET {} held 1", &["counters"]),
        damage(bucket.due(), &format!("ZREM {{}} {open}"), &["holds"]).names(open),
        damage(bucket.due(), "ZADD {} 1 allow_other", &["holds"]),
        damage(bucket.hold(open), "DEL {}", &["counters", "holds"]),
        damage(bucket.hold(open), "SET {} nonsense", &["counters", "holds"]),
        damage(bucket.kept(), &format!("ZREM {{}} {kept}"), &["holds"]).names(kept),
        damage(bucket.kept_hold(kept), "DEL {}", &["holds"]),
        damage(keys.live().audit(), "LPOP {}", &["audit-sequence"]),
        damage(keys.live().audit(), "RPOP {}", &["audit-sequence"]),
        damage(keys.live().audit(), "LSET {} 3 nonsense", &["audit-sequence"]),
        damage(keys.live().audit(), "RPUSH {} 99999", &["audit-sequence"]),
        damage(
            format!("{}/live/savings", keys.record()),
            "SET {} x",
            &["unknown-key"],
        ),
        damage("strange", "SET {} x", &["unknown-key"]),
        damage(
            AccountKeys::new("acct_nobody").record(),
            "HSET {} a b",
            &["unknown-key"],
        ),
    ];
    each_is_found(&fixture, all).await;
    // Below the charged amount: day, month and the account's sum agree among themselves.
    let less = |key: &str, field: String| {
        let _: i64 = fixture.redis.command(&["HINCRBY", key, &field, "-1"]);
    };
    less(&agent, format!("d{day}"));
    less(&agent, format!("m{month}"));
    less(&keys.record(), format!("t{month}"));
    let output = fixture.cli.run(&["ledger", "check", "--json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    for word in [
        format!("{agent} d{day}"),
        format!("{agent} m{month}"),
        "spends and holds".to_owned(),
    ] {
        assert!(output.stdout.contains(&word), "{word}: {}", output.stdout);
    }
}

/// The last assigned numbers are read from a record that anyone who can write to the store can set.
#[tokio::test]
async fn numbers_that_were_never_assigned_do_not_keep_the_check_busy() {
    let mut fixture = Fixture::build().await;
    fixture.admin = None;
    let keys = payer(&fixture);
    for (field, record, invariant) in [
        ("live_audit_seq", keys.live().audit(), "audit-sequence"),
        ("live_txn_seq", keys.live().transactions(), "wallet-balance"),
    ] {
        let before: String = fixture.redis.command(&["HGET", &keys.record(), field]);
        for number in ["9000000000000000000", "18446744073709551615"] {
            let _: i64 = fixture.redis.command(&["HSET", &keys.record(), field, number]);
            for trail in ["", "--trail"] {
                let output = fixture
                    .cli
                    .script(&format!("timeout 100 $ADMIN ledger check --json {trail}"));
                assert_eq!(output.code, Some(1), "{field} {trail}: {output:?}");
                let found: Value = serde_json::from_str(&output.stdout).expect("a document");
                let violations = found["violations"].as_array().expect("a list");
                let named = violations.iter().filter(|one| {
                    one["invariant"] == invariant && one["records"].to_string().contains(&record)
                });
                assert_eq!(named.count(), 1, "{field} {trail}: {output:?}");
            }
        }
        let _: i64 = fixture.redis.command(&["HSET", &keys.record(), field, &before]);
    }
    assert_eq!(fixture.cli.run(&["ledger", "check", "--trail"]).code, Some(0));
}
