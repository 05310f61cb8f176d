//! `tollgate-admin deposit` and `deposit confirm` (decisions D17, D59).

use crate::{account, ready, refused};
use harness::{Cli, Redis, assert_fields, text, words};
use serde_json::{Value, json};
use store::keys::{AccountKeys, deposit_lookup};

fn deposit(cli: &Cli, account: &str, rest: &[&str]) -> Value {
    cli.json(&[&["deposit", "--account", account][..], rest].concat())
}

#[test]
fn a_deposit_is_made_once_and_a_pending_one_confirmed() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let id = account(&cli);
    let into = |amount, reference| ["--wallet", "user", "--amount", amount, "--reference", reference];
    let made = deposit(&cli, &id, &into("12.000000001", "r1"));
    assert_fields!(made, { "state": "confirmed", "balance": 12.000000001, "replayed": false });
    assert!(made["transactionId"].as_str().unwrap().starts_with("txn_"));
    let again = deposit(&cli, &id, &into("12.000000001", "r1"));
    assert_fields!(again, {
        "transactionId": made["transactionId"], "balance": made["balance"], "replayed": true,
    });
    let args = [&["deposit", "--account", &id][..], &into("13", "r1")].concat();
    assert_eq!(refused(&cli, &args, 1)["code"], "IDEMPOTENCY_KEY_REUSED");

    let pending = deposit(&cli, &id, &[&into("1", "r2")[..], &["--pending"]].concat());
    assert_fields!(pending, { "state": "pending", "balance": 12.000000001 });
    let other = [
        "deposit",
        "confirm",
        "--reference",
        "r2",
        "--amount",
        "0.999999999",
    ];
    let error = refused(&cli, &other, 1);
    let sentence = format!("reference r2: account {id} announced 1 USD, not 0.999999999 USD");
    assert_fields!(error, { "code": "CONFLICT", "error": sentence });
    let confirm = ["deposit", "confirm", "--reference", "r2", "--amount", "1"];
    let confirmed = cli.json(&confirm);
    assert_fields!(confirmed, {
        "state": "confirmed", "balance": 13.000000001, "transactionId": pending["transactionId"],
    });
    let again = cli.json(&confirm);
    assert_fields!(again, { "balance": confirmed["balance"], "replayed": true });
    let text = cli.run(&confirm).stdout;
    assert!(text.contains("13.000000001 USD") && !text.contains('{'), "{text}");
    assert!(text.contains(&format!("of account {id} is confirmed")), "{text}");
    assert!(
        text.trim_end()
            .ends_with("Nothing changed: it was confirmed before."),
        "{text}"
    );

    let wallet = AccountKeys::new(&id).live().wallet("user");
    let fields: Vec<String> = redis.command(&["HMGET", &wallet, "balance", "pending"]);
    assert_eq!(fields, ["13000000001", "0"]);
    let log: Vec<String> = redis.command(&["LRANGE", &AccountKeys::new(&id).live().audit(), "0", "-1"]);
    let deposits: Vec<&String> = log.iter().filter(|line| line.contains("deposit.")).collect();
    assert_eq!(deposits.len(), 3, "{log:?}");
    assert!(
        deposits
            .iter()
            .all(|line| line.contains("\"actor\":\"operator\""))
    );
}

#[test]
fn wallets_are_those_of_the_account_and_mode() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let (id, other) = (account(&cli), account(&cli));
    fn rest<'a>(wallet: &'a str, reference: &'a str) -> [&'a str; 6] {
        ["--wallet", wallet, "--amount", "1", "--reference", reference]
    }
    let made = deposit(&cli, &id, &rest("user", "r1"));
    let live = made["walletId"].to_string();
    assert_eq!(deposit(&cli, &id, &rest(&live, "r2"))["balance"], json!(2));
    let test = deposit(
        &cli,
        &id,
        &[&rest("user", "r1")[..], &["--mode", "test"]].concat(),
    );
    assert_fields!(test, { "balance": 1, "mode": "test" });
    let test = test["walletId"].to_string();
    assert_ne!(live, test);
    for (who, wallet) in [
        (&other, live.as_str()),
        (&id, test.as_str()),
        (&id, "1"),
        (&id, "nobody"),
        (&id, "wal_0"),
    ] {
        let args = format!("deposit --account {who} --wallet {wallet} --amount 1 --reference x");
        let args = words(&args);
        assert_eq!(refused(&cli, &args, 1)["code"], "NOT_FOUND", "{wallet}");
    }
    let args = [&["deposit", "--account", "acct_none"][..], &rest("user", "r1")].concat();
    assert_eq!(refused(&cli, &args, 1)["code"], "NOT_FOUND");
}

#[test]
fn bad_values_exit_with_2_and_touch_nothing() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let id = account(&cli);
    let long = "x".repeat(201);
    for (wallet, reference) in [
        ("a b", "r"),
        ("user", ""),
        ("user", &long),
        ("user", "r "),
        ("user", "r\u{200b}"),
        ("user", "\u{202e}r"),
    ] {
        let args = [
            "deposit",
            "--account",
            &id,
            "--wallet",
            wallet,
            "--amount",
            "1",
            "--reference",
            reference,
        ];
        assert_eq!(refused(&cli, &args, 2)["code"], "USAGE", "{args:?}");
    }
    let owed = format!("deposit --account {id} --wallet user --amount -5 --reference r");
    let owed: Vec<&str> = owed.split(' ').collect();
    let answer = refused(&cli, &owed, 2);
    let message = answer["error"].as_str().expect("a sentence");
    assert!(message.contains("the amount must not be negative"), "{answer}");
    let shown = cli.json(&["account", "show", "--account", &id]);
    assert_eq!(shown["version"], 1, "nothing changed");
}

#[test]
fn a_reference_that_several_know_asks_for_the_account() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let (one, two) = (account(&cli), account(&cli));
    let rest = words("--wallet user --amount 1 --reference r --pending");
    assert_fields!(refused(&cli, &["deposit", "confirm", "--reference", "r"], 1), { "code": "NOT_FOUND" });
    deposit(&cli, &one, &rest);
    deposit(&cli, &two, &rest);
    deposit(&cli, &two, &[&rest[..], &["--mode", "test"]].concat());
    let confirm = ["deposit", "confirm", "--reference", "r"];
    let several = refused(&cli, &confirm, 1);
    let sentence = several["error"].as_str().unwrap();
    assert_eq!(several["code"], "CONFLICT");
    assert!(
        sentence.contains(&one) && sentence.contains(&two) && sentence.contains("--account"),
        "{sentence}"
    );
    let of = |account: &str, mode: &[&str]| {
        let args = [&confirm[..], &["--account", account], mode].concat();
        cli.json(&args)["accountId"].clone()
    };
    // However many accounts know the reference, the named one is used.
    let crowd: Vec<String> = (0..10_000).map(|n| format!("acct_{n} live")).collect();
    let lookup = deposit_lookup("r");
    let words: Vec<&str> = crowd.iter().map(String::as_str).collect();
    let added: usize = redis.command(&[&["SADD", &lookup], &words[..]].concat());
    assert_eq!(added, crowd.len());
    assert_eq!(of(&one, &[]), json!(one));
    let args = [&confirm[..], &["--account", &two]].concat();
    assert_fields!(refused(&cli, &args, 1), { "code": "CONFLICT" }, "both of its modes do");
    assert_eq!(of(&two, &["--mode", "test"]), json!(two));
    assert_eq!(of(&two, &["--mode", "live"]), json!(two));
    assert_fields!(refused(&cli, &["deposit", "confirm", "--reference", "unknown"], 1), {
        "code": "NOT_FOUND",
    });
}

/// A deposit that was never pending is not found by its reference alone, even if it is announced later.
#[test]
fn a_deposit_that_was_confirmed_at_once_is_not_confirmed_again() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let id = account(&cli);
    let rest = ["--wallet", "user", "--amount", "1", "--reference", "r"];
    deposit(&cli, &id, &rest);
    let announced = [&["deposit", "--account", &id][..], &rest, &["--pending"]].concat();
    let refused_since = refused(&cli, &announced, 1);
    assert_fields!(refused_since, { "code": "IDEMPOTENCY_KEY_REUSED" });
    let sentence = text(&refused_since, "/error");
    assert!(
        sentence.ends_with("this deposit has arrived already"),
        "{sentence}"
    );
    let confirm = ["deposit", "confirm", "--reference", "r"];
    for more in [&[][..], &["--account", &id]] {
        let args = [&confirm[..], more].concat();
        assert_eq!(refused(&cli, &args, 1)["code"], "NOT_FOUND", "{args:?}");
    }
    let lookup: u64 = redis.command(&["EXISTS", &deposit_lookup("r")]);
    assert_eq!(lookup, 0, "no look-up is left");
    // A look-up that a crash left leads nowhere.
    let place = format!("{id} live");
    let _: u64 = redis.command(&["SADD", &deposit_lookup("r"), &place]);
    assert_eq!(refused(&cli, &confirm, 1)["code"], "NOT_FOUND");
    // A deposit that was pending is found, before and after it is confirmed.
    let rest = [
        "--wallet",
        "user",
        "--amount",
        "1",
        "--reference",
        "p",
        "--pending",
    ];
    deposit(&cli, &id, &rest);
    assert_fields!(deposit(&cli, &id, &rest), { "state": "pending", "replayed": true });
    // A pending deposit that is sent as arrived must be confirmed, as the sentence says.
    let arrived = [&["deposit", "--account", &id][..], &rest[..6]].concat();
    let sentence = text(&refused(&cli, &arrived, 1), "/error").to_owned();
    assert!(
        sentence.ends_with("this deposit is pending: confirm it"),
        "{sentence}"
    );
    for replayed in [false, true] {
        let confirmed = cli.json(&["deposit", "confirm", "--reference", "p"]);
        assert_eq!(confirmed["replayed"], json!(replayed));
    }
    // The output of a repeated command describes the present state.
    let output = cli
        .run(&[&["deposit", "--account", &id][..], &rest].concat())
        .stdout;
    assert!(
        output.contains("is confirmed. The wallet held 2 USD then. Nothing changed"),
        "{output}"
    );
    let sentence = text(&refused(&cli, &arrived, 1), "/error").to_owned();
    assert!(
        sentence.ends_with("this deposit has arrived already"),
        "{sentence}"
    );
}

/// References are per account. A command that was repeated must not confirm or cancel the deposit of another account,
/// which may have announced the same reference since.
#[test]
fn a_repeated_command_never_takes_another_accounts_deposit() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let (one, two) = (account(&cli), account(&cli));
    let rest = words("--wallet user --amount 1 --reference 1 --pending");
    let confirm = ["deposit", "confirm", "--reference", "1"];
    let cancel = ["deposit", "cancel", "--reference", "1"];
    deposit(&cli, &one, &rest);
    assert_eq!(cli.json(&confirm)["accountId"], json!(one));
    deposit(&cli, &two, &rest);
    deposit(&cli, &two, &[&rest[..], &["--mode", "test"]].concat());
    for command in [confirm, cancel] {
        assert_fields!(refused(&cli, &command, 1), { "code": "CONFLICT" });
        let mode_missing = [&command[..], &["--account", &two]].concat();
        assert_fields!(refused(&cli, &mode_missing, 1), { "code": "CONFLICT" });
    }
    let again = cli.json(&[&confirm[..], &["--account", &one]].concat());
    assert_fields!(again, { "accountId": one, "replayed": true });
    let live = ["--account", &two, "--mode", "live"];
    assert_fields!(cli.json(&[&cancel[..], &live].concat()), { "accountId": two, "state": "cancelled" });
    let rest_of_two = [&cancel[..], &["--account", &two, "--mode", "test"]].concat();
    assert_fields!(cli.json(&rest_of_two), { "mode": "test", "replayed": false });
}

#[test]
fn a_pending_deposit_is_taken_back_once_and_for_good() {
    let redis = Redis::start();
    let cli = ready(&redis);
    let id = account(&cli);
    let into = ["--wallet", "user", "--amount", "5", "--reference"];
    let announced = |reference| [&into[..], &[reference, "--pending"]].concat();
    for reference in ["lost", "late"] {
        let made = deposit(&cli, &id, &announced(reference));
        assert_fields!(made, { "state": "pending" });
    }
    let pending = || -> String {
        let wallet = AccountKeys::new(&id).live().wallet("user");
        redis.command(&["HGET", &wallet, "pending"])
    };
    assert_eq!(pending(), "10000000000");
    let cancel = ["deposit", "cancel", "--reference", "lost"];
    let cancelled = cli.json(&cancel);
    assert_fields!(cancelled, { "state": "cancelled", "replayed": false, "balance": null, "amount": 5 });
    assert_eq!(pending(), "5000000000");
    let again = cli.json(&cancel);
    assert_fields!(again, { "state": "cancelled", "replayed": true, "transactionId": cancelled["transactionId"] });
    let text = cli.run(&cancel).stdout;
    assert!(
        text.trim_end()
            .ends_with("Nothing changed: it was cancelled before."),
        "{text}"
    );

    // The cancelled deposit arrives after all: its reference is used up.
    let late = refused(&cli, &["deposit", "confirm", "--reference", "lost"], 1);
    assert_eq!(late["code"], "CONFLICT");
    assert!(
        late["error"]
            .as_str()
            .unwrap()
            .contains("was cancelled: use another reference"),
        "{late}"
    );
    for state in [&["--pending"][..], &[]] {
        let args = [&["deposit", "--account", &id][..], &into, &["lost"], state].concat();
        assert_eq!(refused(&cli, &args, 1)["code"], "IDEMPOTENCY_KEY_REUSED");
    }
    // A deposit that has arrived cannot be cancelled.
    assert_fields!(cli.json(&["deposit", "confirm", "--reference", "late"]), { "balance": 5 });
    let arrived = refused(&cli, &["deposit", "cancel", "--reference", "late"], 1);
    assert_eq!(arrived["code"], "CONFLICT");
    assert_eq!(pending(), "0");
    let log: Vec<String> = redis.command(&["LRANGE", &AccountKeys::new(&id).live().audit(), "0", "-1"]);
    let entries: Vec<&String> = log
        .iter()
        .filter(|line| line.contains("deposit.cancelled"))
        .collect();
    assert_eq!(entries.len(), 1, "{log:?}");
    assert!(entries[0].contains("\"reference\":\"lost\"") && entries[0].contains("\"actor\":\"operator\""));
    assert_eq!(cli.json(&["ledger", "check"])["ok"], true);
}
